/// Rules for what opens a door: keys, passwords, tokens.
enum SecretRules {
  /// PEM blocks that hold a key, to their end or to the end of the text. A certificate is public.
  @Sendable static func privateKeys(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = find("-----BEGIN ", in: text, from: index) {
      let label = text.end(from: start + 11) { Byte.isUpper($0) || Byte.isDigit($0) || $0 == 32 }
      guard text.has("-----", at: label), text[start..<label].count > 14, text.has("KEY", at: label - 3) else {
        index = start + 11
        continue
      }
      var end = text.count
      if let close = find("-----END ", in: text, from: label) {
        end = text.end(from: close + 9) { $0 != UInt8(ascii: "-") }
        end = text.end(from: end) { $0 == UInt8(ascii: "-") }
      }
      found.append(start..<end)
      index = end
    }
    return found
  }

  /// User and password between `://` and `@`.
  @Sendable static func urlCredentials(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = find("://", in: text, from: index) {
      let authority = start + 3
      let end = text.end(from: authority) {
        !Byte.isSpace($0) && !Byte.isQuote($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
          && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">")
      }
      if let at = text[authority..<end].lastIndex(of: UInt8(ascii: "@")), at > authority {
        found.append(authority..<at)
      }
      index = end
    }
    return found
  }

  /// Prefix, least number of characters behind it, and what those are.
  private static let prefixes: [(StaticString, Int, @Sendable (UInt8) -> Bool)] = [
    ("AKIA", 16, isUpperOrDigit), ("ASIA", 16, isUpperOrDigit), ("ghp_", 20, Byte.isAlphanumeric),
    ("gho_", 20, Byte.isAlphanumeric), ("ghu_", 20, Byte.isAlphanumeric), ("ghs_", 20, Byte.isAlphanumeric),
    ("ghr_", 20, Byte.isAlphanumeric), ("github_pat_", 20, Byte.isToken), ("glpat-", 16, Byte.isToken),
    ("xoxb-", 10, Byte.isToken), ("xoxp-", 10, Byte.isToken), ("xoxa-", 10, Byte.isToken), ("xoxs-", 10, Byte.isToken),
    ("xoxr-", 10, Byte.isToken), ("sk_live_", 16, Byte.isToken), ("sk_test_", 16, Byte.isToken),
    ("rk_live_", 16, Byte.isToken), ("rk_test_", 16, Byte.isToken), ("ck_live_", 16, Byte.isToken),
    ("ck_test_", 16, Byte.isToken), ("whsec_", 16, Byte.isToken), ("sk-", 20, Byte.isToken),
    ("npm_", 30, Byte.isAlphanumeric),
    ("pypi-", 16, Byte.isToken), ("AIza", 30, Byte.isToken), ("SG.", 30, isTokenOrDot),
    ("hf_", 30, Byte.isAlphanumeric),
    ("dop_v1_", 32, Byte.isHex), ("SK", 32, Byte.isHex), ("AC", 32, Byte.isHex),
    ("AGE-SECRET-KEY-1", 20, isUpperOrDigit),
  ]
  @Sendable private static func isUpperOrDigit(_ byte: UInt8) -> Bool { Byte.isUpper(byte) || Byte.isDigit(byte) }
  @Sendable private static func isTokenOrDot(_ byte: UInt8) -> Bool { Byte.isToken(byte) || byte == UInt8(ascii: ".") }

  /// Keys that their makers gave a prefix to be recognised by.
  @Sendable static func knownPrefixes(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      guard Byte.isLetter(text[index]), text.startsWord(index) else {
        index += 1
        continue
      }
      var end = index
      for (prefix, least, isTail) in prefixes where text.has(prefix, at: index) {
        let tail = index + prefix.utf8CodeUnitCount
        let stop = text.end(from: tail, while: isTail)
        if stop - tail >= least, text.endsWord(stop) { end = stop }
      }
      if end > index {
        found.append(index..<end)
        index = end
      } else {
        index = text.end(from: index + 1, while: Byte.isAlphanumeric)
      }
    }
    return found
  }

  /// JSON web tokens: three parts in base64url, the first of which starts with `{"`.
  @Sendable static func webTokens(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = find("eyJ", in: text, from: index) {
      index = start + 3
      guard text.startsWord(start) else { continue }
      let first = text.end(from: start, while: Byte.isToken)
      index = first
      guard first - start >= 10, first < text.count, text[first] == UInt8(ascii: ".") else { continue }
      let second = text.end(from: first + 1, while: Byte.isToken)
      guard second - first > 10, second < text.count, text[second] == UInt8(ascii: ".") else { continue }
      let third = text.end(from: second + 1, while: Byte.isToken)
      guard third - second > 10 else { continue }
      found.append(start..<third)
      index = third
    }
    return found
  }

  /// What follows the scheme of an `Authorization` header, and `Bearer` and `Basic` on their own.
  @Sendable static func authorization(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      let letter = text[index] | 32
      guard letter == UInt8(ascii: "a") || letter == UInt8(ascii: "b"), text.startsWord(index) else {
        index += 1
        continue
      }
      if text.hasKey("authorization", at: index) {
        var value = index + 13
        if value < text.count, Byte.isQuote(text[value]) { value += 1 }
        value = text.end(from: value) { $0 == 32 }
        guard value < text.count, text[value] == UInt8(ascii: ":") || text[value] == UInt8(ascii: "=") else {
          index += 13
          continue
        }
        value = text.end(from: value + 1) { $0 == 32 }
        var quote: UInt8?
        if value < text.count, Byte.isQuote(text[value]) {
          quote = text[value]
          value += 1
        }
        let scheme = text.end(from: value, while: Byte.isToken)
        var start = value
        if scheme < text.count, text[scheme] == 32, scheme > value { start = scheme + 1 }
        let isSimple =
          text.hasKey("bearer", at: value) || text.hasKey("basic", at: value) || text.hasKey("token", at: value)
        let end = text.end(from: start) { byte in
          if let quote { return byte != quote }
          return byte != 10 && byte != 13 && (!isSimple || byte != 32)
        }
        if end > start { found.append(start..<end) }
        index = max(end, index + 13)
        continue
      }
      let isBearer = text.hasKey("bearer ", at: index)
      if isBearer || text.hasKey("basic ", at: index) {
        let start = index + (isBearer ? 7 : 6)
        let end = text.end(from: start) { Byte.isToken($0) || ".+/=~".utf8.contains($0) }
        // `bearer of bad news` and `Basic arithmetic` have no digit; a credential without one is a rarity.
        if end - start >= 8, text[start..<end].contains(where: { Byte.isDigit($0) || $0 == UInt8(ascii: "=") }) {
          found.append(start..<end)
        }
        index = max(end, index + 6)
        continue
      }
      index = text.end(from: index + 1, while: Byte.isAlphanumeric)
    }
    return found
  }

  private static let keys: [StaticString] = [
    "password", "passwd", "passphrase", "pwd", "client_secret", "secret_key", "secret", "api_key", "apikey",
    "access_key", "private_key", "privatekey", "access_token", "refresh_token", "auth_token", "id_token", "token",
    "auth",
    "credentials", "credential", "session_id", "sessionid", "set_cookie", "cookie", "otp", "pin", "cvv", "cvc",
  ]

  /// The value behind a name that says that it is a secret: `password=…`, `"token": "…"`.
  @Sendable static func namedValues(_ text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    var lineHasMySQL = false
    while index < text.count {
      let byte = text[index]
      if byte == 10 { lineHasMySQL = false }
      if lineHasMySQL, byte == UInt8(ascii: "-"), text.has(" -p", at: index - 1) {
        let start = index + 2
        let end = text.end(from: start) { !Byte.isSpace($0) }
        if end > start { found.append(start..<end) }
        index = max(end, index + 1)
        continue
      }
      // A name may be the last part of a longer one: `db_password`, `x-api-key`.
      let mayStart =
        Byte.isLetter(byte) && (index == 0 || !Byte.isAlphanumeric(text[index - 1]))
      guard mayStart else {
        index += 1
        continue
      }
      if text.hasKey("mysql", at: index) { lineHasMySQL = true }
      var next = text.end(from: index + 1, while: Byte.isAlphanumeric)
      for key in keys where text.hasKey(key, at: index) {
        let keyEnd = index + key.utf8CodeUnitCount
        guard keyEnd >= text.count || !Byte.isToken(text[keyEnd]) else { continue }
        if let value = value(in: text, behind: keyEnd) {
          found.append(value)
          next = value.upperBound
        } else {
          next = max(next, keyEnd)
        }
        break
      }
      index = next
    }
    return found
  }

  private static func value(in text: [UInt8], behind key: Int) -> Range<Int>? {
    var index = key
    if index < text.count, Byte.isQuote(text[index]) { index += 1 }
    let gap = text.end(from: index) { $0 == 32 }
    guard gap < text.count else { return nil }
    let separator = text[gap]
    guard separator == UInt8(ascii: ":") || separator == UInt8(ascii: "=") else {
      // `passwd hunter3`: a word of letters and digits right behind the name.
      guard gap == key + 1, index == key, text.hasKey("passwd", at: key - 6) || text.hasKey("password", at: key - 8)
      else { return nil }
      let end = text.end(from: gap, while: { !Byte.isSpace($0) })
      let word = text[gap..<end]
      return word.contains(where: Byte.isDigit) && word.contains(where: Byte.isLetter) ? gap..<end : nil
    }
    var start = text.end(from: gap + 1) { $0 == 32 }
    guard start < text.count else { return nil }
    if Byte.isQuote(text[start]) {
      let quote = text[start]
      start += 1
      let end = text.end(from: start) { $0 != quote }
      return end > start ? start..<end : nil
    }
    if text.has("[redacted]", at: start) { return start..<start + 10 }
    let end = text.end(from: start) { byte in
      !Byte.isSpace(byte) && !Byte.isQuote(byte) && !",;)]}".utf8.contains(byte)
        && (byte != UInt8(ascii: "&") || separator != UInt8(ascii: "="))
    }
    return end > start ? start..<end : nil
  }

  static func find(_ word: StaticString, in text: [UInt8], from start: Int) -> Int? {
    let first = word.utf8Start[0]
    var index = start
    while index < text.count {
      if text[index] == first, text.has(word, at: index) { return index }
      index += 1
    }
    return nil
  }
}
