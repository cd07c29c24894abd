/// Rules for what opens a door: keys, passwords, tokens.
enum SecretRules {
  /// PEM blocks that hold a key, to their end or to the end of the text. A certificate is public.
  static func privateKeys(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = text.find("-----BEGIN ", from: index) {
      let label = text.end(from: start + 11) { Byte.isUpper($0) || Byte.isDigit($0) || $0 == 32 }
      guard text.has("-----", at: label), holdsKey(text, start + 11..<label) else {
        index = start + 11
        continue
      }
      var end = text.count
      if let close = text.find("-----END ", from: label) {
        end = text.end(from: close + 9) { $0 != UInt8(ascii: "-") }
        end = text.end(from: end) { $0 == UInt8(ascii: "-") }
      }
      found.append(start..<end)
      index = end
    }
    return found
  }

  // `RSA PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`, `KEY`.
  private static func holdsKey(_ text: Span<UInt8>, _ label: Range<Int>) -> Bool {
    // Longer than any label that there is.
    guard label.count <= 64 else { return true }
    var isKey = false
    for index in label {
      if text.has("PUBLIC", at: index) { return false }
      if text.has("KEY", at: index) { isKey = true }
    }
    return isKey
  }

  /// User and password between `://` and `@`.
  static func urlCredentials(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = text.find("://", from: index) {
      let authority = start + 3
      var end = text.end(from: authority) { isInAuthority($0) && $0 != UInt8(ascii: "/") }
      // A password may hold a slash: behind the colon of an authority there is a port, and nothing else.
      if end < text.count, text[end] == UInt8(ascii: "/"), hasPassword(text, authority..<end) {
        end = text.end(from: end, while: isInAuthority)
      }
      var at = end
      while at > authority, text[at - 1] != UInt8(ascii: "@") { at -= 1 }
      if at - 1 > authority { found.append(authority..<at - 1) }
      index = end
    }
    return found
  }

  private static func isInAuthority(_ byte: UInt8) -> Bool {
    !Byte.isSpace(byte) && !Byte.isQuote(byte) && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
      && byte != UInt8(ascii: "<") && byte != UInt8(ascii: ">")
  }

  private static func hasPassword(_ text: Span<UInt8>, _ authority: Range<Int>) -> Bool {
    guard !authority.isEmpty, text[authority.lowerBound] != UInt8(ascii: "[") else { return false }
    for index in authority where text[index] == UInt8(ascii: ":") {
      let password = index + 1..<authority.upperBound
      return text.contains(in: password) { !Byte.isDigit($0) }
        && !text.contains(in: authority) { $0 == UInt8(ascii: "@") }
    }
    return false
  }

  private typealias Prefix = (word: StaticString, least: Int, isTail: @Sendable (UInt8) -> Bool)

  /// Prefix, least number of characters behind it, and what those are.
  private static let prefixes: [Prefix] = [
    ("AKIA", 16, isUpperOrDigit), ("ASIA", 16, isUpperOrDigit), ("ABIA", 16, isUpperOrDigit),
    ("ACCA", 16, isUpperOrDigit), ("ghp_", 20, Byte.isAlphanumeric), ("gho_", 20, Byte.isAlphanumeric),
    ("ghu_", 20, Byte.isAlphanumeric), ("ghs_", 20, Byte.isAlphanumeric), ("ghr_", 20, Byte.isAlphanumeric),
    ("github_pat_", 20, Byte.isToken), ("glpat-", 16, Byte.isToken), ("glptt-", 16, Byte.isToken),
    ("gldt-", 16, Byte.isToken), ("glrt-", 16, Byte.isToken), ("glcbt-", 16, Byte.isToken),
    ("glft-", 16, Byte.isToken), ("glsoat-", 16, Byte.isToken), ("glagent-", 16, Byte.isToken),
    ("xoxb-", 10, Byte.isToken), ("xoxp-", 10, Byte.isToken), ("xoxa-", 10, Byte.isToken),
    ("xoxs-", 10, Byte.isToken), ("xoxr-", 10, Byte.isToken), ("xoxe-", 10, Byte.isToken),
    ("xapp-", 10, Byte.isToken), ("sk_live_", 16, Byte.isToken), ("sk_test_", 16, Byte.isToken),
    ("rk_live_", 16, Byte.isToken), ("rk_test_", 16, Byte.isToken), ("ck_live_", 16, Byte.isToken),
    ("ck_test_", 16, Byte.isToken), ("whsec_", 16, Byte.isToken), ("sk-", 20, Byte.isToken),
    ("xai-", 20, Byte.isToken), ("gsk_", 30, Byte.isAlphanumeric), ("r8_", 30, Byte.isAlphanumeric),
    ("hf_", 30, Byte.isAlphanumeric), ("pplx-", 30, Byte.isAlphanumeric), ("npm_", 30, Byte.isAlphanumeric),
    ("pypi-", 16, Byte.isToken), ("rubygems_", 32, Byte.isHex), ("dckr_pat_", 20, Byte.isToken),
    ("dckr_oat_", 20, Byte.isToken), ("AIza", 30, Byte.isToken), ("GOCSPX-", 20, Byte.isToken),
    ("ya29.", 20, Byte.isToken), ("SG.", 30, isTokenOrDot), ("key-", 32, Byte.isHex), ("xkeysib-", 32, Byte.isToken),
    ("dop_v1_", 32, Byte.isHex), ("doo_v1_", 32, Byte.isHex), ("dor_v1_", 32, Byte.isHex), ("SK", 32, Byte.isHex),
    ("AC", 32, Byte.isHex), ("dapi", 32, Byte.isHex), ("AGE-SECRET-KEY-1", 20, isUpperOrDigit),
    ("shpat_", 24, Byte.isAlphanumeric), ("shpss_", 24, Byte.isAlphanumeric), ("shpca_", 24, Byte.isAlphanumeric),
    ("shppa_", 24, Byte.isAlphanumeric), ("lin_api_", 20, Byte.isAlphanumeric),
    ("lin_oauth_", 20, Byte.isAlphanumeric), ("ntn_", 30, Byte.isAlphanumeric), ("secret_", 40, Byte.isAlphanumeric),
    ("hvs.", 20, Byte.isToken), ("hvb.", 20, Byte.isToken), ("hvr.", 20, Byte.isToken), ("ATATT3", 30, Byte.isToken),
    ("ATCTT3", 30, Byte.isToken), ("sntrys_", 30, isTokenOrDot), ("sntryu_", 30, Byte.isAlphanumeric),
    ("sbp_", 40, Byte.isHex), ("pscale_tkn_", 20, isTokenOrDot), ("pscale_pw_", 20, isTokenOrDot),
    ("pscale_oauth_", 20, isTokenOrDot), ("glsa_", 30, Byte.isToken), ("glc_", 30, Byte.isToken),
    ("sq0atp-", 20, Byte.isToken), ("sq0csp-", 20, Byte.isToken), ("sq0idp-", 20, Byte.isToken),
    ("EAAA", 56, Byte.isToken), ("PMAK-", 40, Byte.isToken), ("dp.pt.", 30, Byte.isAlphanumeric),
    ("dp.st.", 30, isTokenOrDot), ("dp.ct.", 30, Byte.isAlphanumeric), ("dp.sa.", 30, Byte.isAlphanumeric),
    ("NRAK-", 20, Byte.isAlphanumeric), ("dt0c01.", 40, isTokenOrDot), ("LTAI", 16, Byte.isAlphanumeric),
    ("pat-na1-", 30, Byte.isToken), ("pat-eu1-", 30, Byte.isToken), ("figd_", 30, Byte.isToken),
    ("fo1_", 30, Byte.isToken), ("nfp_", 30, Byte.isAlphanumeric), ("duffel_live_", 30, Byte.isToken),
    ("EZAK", 40, Byte.isAlphanumeric), ("shippo_live_", 30, Byte.isAlphanumeric), ("sl.", 60, Byte.isToken),
    ("rdme_", 40, Byte.isAlphanumeric), ("tfp_", 30, Byte.isToken), ("ops_eyJ", 40, Byte.isToken),
    ("sha256~", 30, Byte.isToken), ("v1.0-", 60, Byte.isToken), ("HRKU-", 30, Byte.isToken),
    ("CLOJARS_", 40, Byte.isAlphanumeric),
  ]

  /// The first two bytes of the prefixes, as `crash_suspicions` takes them.
  static let beginnings: [UInt32] = {
    var beginnings = [UInt32](repeating: 0, count: 512)
    for prefix in prefixes {
      let start = prefix.word.utf8Start
      beginnings[Int(start[0]) * 4 + Int(start[1]) / 32] |= 1 << UInt32(start[1] & 31)
    }
    return beginnings
  }()

  private static let prefixesByFirstByte: [[Prefix]] = (0..<128).map { byte in
    prefixes.filter { $0.word.utf8Start[0] == UInt8(byte) }
  }
  @Sendable private static func isUpperOrDigit(_ byte: UInt8) -> Bool { Byte.isUpper(byte) || Byte.isDigit(byte) }
  @Sendable private static func isTokenOrDot(_ byte: UInt8) -> Bool { Byte.isToken(byte) || byte == UInt8(ascii: ".") }

  // The shortest key is `xoxb-` and ten characters.
  private static func isLongEnough(_ text: Span<UInt8>, _ start: Int) -> Bool {
    guard text.count - start >= 15 else { return false }
    // `sha256~` is the one prefix with such a sign in it.
    for index in start..<start + 15 {
      guard isTokenOrDot(text[index]) || text[index] == UInt8(ascii: "~") else { return false }
    }
    return true
  }

  /// Keys that their makers gave a prefix to be recognised by.
  static func knownPrefixes(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      guard Byte.isLetter(text[index]), text.startsWord(index) else {
        index += 1
        continue
      }
      var end = index
      for (prefix, least, isTail) in prefixesByFirstByte[Int(text[index] & 0x7f)] where text.has(prefix, at: index) {
        guard isLongEnough(text, index) else { break }
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

  /// The secret part of the addresses and the names of bots that chat services give out: `hooks.slack.com/services/…`,
  /// `discord.com/api/webhooks/…`, `123456789:AA…`.
  static func chatServices(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      var start: Int?
      switch text[index] {
      case UInt8(ascii: "/"):
        if text.has("/services/T", at: index), index >= 9, text.has("slack.com", at: index - 9) { start = index + 10 }
        if text.has("/api/webhooks/", at: index) { start = index + 14 }
      case UInt8(ascii: ":"):
        guard text.has(":AA", at: index) else { break }
        let end = text.end(from: index + 1, while: Byte.isToken)
        var first = index
        while first > 0, index - first <= 10, Byte.isDigit(text[first - 1]) { first -= 1 }
        if (34...40).contains(end - index), (8...10).contains(index - first) { start = first }
      default: break
      }
      guard let start else {
        index += 1
        continue
      }
      let end = text.end(from: start) { Byte.isToken($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ":") }
      if end > start { found.append(start..<end) }
      index = max(end, index + 1)
    }
    return found
  }

  /// JSON web tokens: three parts in base64url, the first of which starts with `{"`.
  static func webTokens(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while let start = text.find("eyJ", from: index) {
      index = start + 3
      guard text.startsWord(start) else { continue }
      let first = text.end(from: start, while: Byte.isToken)
      index = first
      guard first - start >= 10, first < text.count, text[first] == UInt8(ascii: ".") else { continue }
      let second = text.end(from: first + 1, while: Byte.isToken)
      guard second - first > 10, second < text.count, text[second] == UInt8(ascii: ".") else { continue }
      let third = text.end(from: second + 1, while: Byte.isToken)
      // A token with algorithm `none` has no third part; its second one is JSON too.
      guard third - second > 10 || text.has("eyJ", at: first + 1) else { continue }
      found.append(start..<third)
      index = third
    }
    return found
  }

  private static func isCredentialMark(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ".") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "=")
      || byte == UInt8(ascii: "~") || byte == UInt8(ascii: "%")
  }

  /// What follows the scheme of an `Authorization` header, and `Bearer` and `Basic` on their own.
  static func authorization(_ text: Span<UInt8>) -> [Range<Int>] {
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
        } else if index > 0, Byte.isQuote(text[index - 1]), !Byte.isQuote(text[index + 13]) {
          // `-H 'Authorization: …'`
          quote = text[index - 1]
        }
        let scheme = text.end(from: value, while: Byte.isToken)
        var start = value
        if scheme < text.count, text[scheme] == 32, scheme > value { start = scheme + 1 }
        let isSimple =
          text.hasKey("bearer", at: value) || text.hasKey("basic", at: value) || text.hasKey("token", at: value)
        let end = text.end(from: start) { byte in
          if let quote { return byte != quote }
          return byte != 10 && byte != 13 && (!isSimple || byte != 32 && !Byte.isQuote(byte))
        }
        if end > start { found.append(start..<end) }
        index = max(end, index + 13)
        continue
      }
      let isBearer = text.hasKey("bearer ", at: index)
      if isBearer || text.hasKey("basic ", at: index) {
        let start = index + (isBearer ? 7 : 6)
        let end = text.end(from: start) { Byte.isToken($0) || isCredentialMark($0) }
        // `bearer of bad news` and `Basic arithmetic` have no digit; a credential without one is a rarity.
        if end - start >= 8, text.contains(in: start..<end, where: { Byte.isDigit($0) || $0 == UInt8(ascii: "=") }) {
          found.append(start..<end)
        }
        index = max(end, index + 6)
        continue
      }
      index = text.end(from: index + 1, while: Byte.isAlphanumeric)
    }
    return found
  }
}
