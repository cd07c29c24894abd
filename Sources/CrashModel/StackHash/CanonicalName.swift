/// The part of a function's name that stays the same from build to build.
///
/// Optimisation levels, specialisations and unrelated edits change what a symbol is called; this takes off whatever they
/// change and keeps what the programmer wrote: module, types, function, argument labels.
public enum CanonicalName {
  /// - Parameters:
  ///   - function: simplified, demangled name.
  ///   - rawFunction: linker name; the function's where it has none.
  /// - Returns: nil for code that nobody wrote: a thunk, a witness, an outlined copy.
  public static func of(function: String, rawFunction: String?) -> String? {
    if let rawFunction, SwiftName.isSwift(rawFunction) { return swift(function) }
    return cxx(function)
  }

  private static let generated: [StaticString] = [
    "thunk for ", "protocol witness for ", "outlined ", "type metadata ", "lazy protocol witness table ",
    "objectdestroy", "block_copy_helper", "block_destroy_helper", "__swift_", "vtable thunk for ",
    "dispatch thunk of ", "curry thunk of ", "implicit closure #", "value witness", "associated type witness",
    "generic protocol witness", "default associated", "key path ",
  ]
  private static let wrappers: [StaticString] = [
    "specialized ", "merged ", "partial apply for ", "partial apply forwarder for ", "@objc ", "@nonobjc ", "static ",
    "async ",
  ]

  private static let closurePrefix = "closure in "

  /// Where the name of a closure says that it is one; nil for other functions. Without it the name is that of the function
  /// that the closure is in. It stands behind the module.
  static func closureMarker(in name: String) -> Range<String.Index>? {
    guard name.utf8Contains(closurePrefix) else { return nil }
    return Substring(name).range(of: closurePrefix)
  }

  // By bytes, as all marks are ASCII: a month of crashes has hundreds of thousands of names, and characters, which may be
  // made of many scalars, cost a hundred times as much.
  private static func swift(_ name: String) -> String? {
    var name = name
    return name.withUTF8 { swift($0.span) }
  }

  private static func swift(_ name: Span<UInt8>) -> String? {
    let text = name.extracting(0..<(name.find(" with unmangled suffix ", from: 0) ?? name.count))
    var start = 0
    var closures = 0
    while true {
      if let wrapper = wrappers.first(where: { text.has($0, at: start) }) {
        start += wrapper.utf8CodeUnitCount
      } else if text.has("closure #", at: start), let rest = text.findOutsideBrackets(" in ", from: start) {
        // Numbers count the closures before this one, which an edit changes.
        closures += 1
        start = rest.upperBound
      } else if text.has("implicit closure #", at: start), let rest = text.findOutsideBrackets(" in ", from: start) {
        start = rest.upperBound
      } else {
        break
      }
    }
    if text.has("variable initialization expression of ", at: start) || text.has("default argument ", at: start) {
      // What runs before a function does belongs to its type.
      if let of = text.findOutsideBrackets(" of ", from: start) { start = of.upperBound }
      while let wrapper = wrappers.first(where: { text.has($0, at: start) }) { start += wrapper.utf8CodeUnitCount }
    }
    if generated.contains(where: { text.has($0, at: start) }) { return nil }
    // One closure or several nested ones: how many there are is the optimiser's choice too.
    var result = closures > 0 ? Array(closurePrefix.utf8) : []
    appendWithoutGenericArguments(text.extracting(start..<text.count), to: &result)
    return String(decoding: result, as: UTF8.self)
  }

  private static func appendWithoutGenericArguments(_ text: Span<UInt8>, to result: inout [UInt8]) {
    result.reserveCapacity(result.count + text.count)
    var depth = 0
    var previous = UInt8(ascii: " ")
    for index in text.indices {
      let byte = text[index]
      if byte == UInt8(ascii: "<") && isNameCharacter(previous, endingAt: index, of: text) {
        depth += 1
      } else if byte == UInt8(ascii: ">") && depth > 0 && previous != UInt8(ascii: "-") {
        depth -= 1
      } else if depth == 0 {
        result.append(byte)
      }
      previous = byte
    }
  }

  /// - Parameter byte: the last one in front of `end`.
  private static func isNameCharacter(_ byte: UInt8, endingAt end: Int, of text: Span<UInt8>) -> Bool {
    if byte < 0x80 { return Byte.isAlphanumeric(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ")") }
    // Letters of all scripts, and not the emoji. The longest character that tells is a few scalars long.
    let before = text.withUnsafeBufferPointer { String(decoding: $0[max(0, end - 64)..<end], as: UTF8.self) }
    return before.last.map { $0.isLetter || $0.isNumber } ?? false
  }

  private static func cxx(_ name: String) -> String? {
    var name = name
    return name.withUTF8 { bytes in
      // The functions of C, and of the runtime that are written as such.
      if isPlain(bytes.span) { return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self) }
      return cxx(bytes.span)
    }
  }

  /// Nothing of what `cxx` looks for can be in it.
  private static func isPlain(_ name: Span<UInt8>) -> Bool {
    for index in name.indices where !Byte.isAlphanumeric(name[index]) && name[index] != UInt8(ascii: "_") {
      return false
    }
    return !name.has("__", at: 0) && !name.has("mem", at: 0) && !name.has("str", at: 0)
  }

  private static func cxx(_ name: Span<UInt8>) -> String? {
    var end = name.count
    if let at = name.find("@", from: 0), at > 0 { end = at }  // GLIBC_2.34
    if let clone = name.extracting(0..<end).find(" [clone", from: 0) { end = clone }
    let text = name.extracting(internalAliasLength(name.extracting(0..<end))..<end)
    var plain = dropArguments(text.extracting(0..<endWithoutCloneSuffixes(text)))
    for variant in ["_avx", "_sse", "_evex", "_erms", "_ssse3", "_unaligned"] {
      if plain.hasPrefix("__") || plain.hasPrefix("mem") || plain.hasPrefix("str"), plain.utf8Contains(variant),
        let cut = Substring(plain).range(of: variant)
      {
        plain = String(plain[..<cut.lowerBound])
        while plain.hasPrefix("_") { plain.removeFirst() }
      }
    }
    // `$_0` and `{lambda()#2}` number lambdas in their function.
    if plain.utf8Contains("$_") || plain.utf8Contains("#") { plain = plain.replacingNumberedLambdas() }
    if plain.hasPrefix("non-virtual thunk to ") || plain.hasPrefix("virtual thunk to ") { return nil }
    return plain.isEmpty ? nil : plain
  }

  /// How many bytes of a linker's name come before the function's own.
  ///
  /// `__GI_raise` is how glibc calls its own `raise`: two names of one function, of which a symbol table gives either.
  static func internalAliasLength(_ name: Span<UInt8>) -> Int { name.has("__GI_", at: 0) && name.count > 5 ? 5 : 0 }

  private static let cloneSuffixes: [StaticString] = [
    "cold", "part", "isra", "constprop", "llvm", "lto_priv", "localalias",
  ]

  private static func endWithoutCloneSuffixes(_ text: Span<UInt8>) -> Int {
    var end = text.count
    while true {
      var dot = end - 1
      while dot > 0, text[dot] != UInt8(ascii: ".") { dot -= 1 }
      guard dot > 0, end - dot > 1 else { return end }
      let isNumber = text.end(from: dot + 1, while: Byte.isDigit) >= end
      let isKnown = cloneSuffixes.contains { $0.utf8CodeUnitCount == end - dot - 1 && text.has($0, at: dot + 1) }
      guard isNumber || isKnown else { return end }
      end = dot
    }
  }

  // Return type, template arguments and arguments off, inline namespaces out:
  // `std::__1::vector<int>::at(unsigned long) const` becomes `std::vector::at`.
  private static func dropArguments(_ text: Span<UInt8>) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    func endsInOperator() -> Bool { result.span.has("operator", at: result.count - 8) }
    var angle = 0
    var round = 0
    var previous = UInt8(ascii: " ")
    var index = 0
    scan: while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "<") && !endsInOperator() && !result.span.has("operator<", at: result.count - 9) {
        angle += 1
      } else if byte == UInt8(ascii: ">") && angle > 0 && previous != UInt8(ascii: "-") {
        angle -= 1
      } else if angle == 0 {
        switch byte {
        case UInt8(ascii: "("):
          let anonymous: StaticString = "(anonymous namespace)"
          if round == 0, text.has(anonymous, at: index) {
            result.append(
              contentsOf: UnsafeBufferPointer(start: anonymous.utf8Start, count: anonymous.utf8CodeUnitCount))
            index += anonymous.utf8CodeUnitCount
            previous = UInt8(ascii: ")")
            continue scan
          }
          if !endsInOperator() || round > 0 { round += 1 } else { result.append(byte) }
        case UInt8(ascii: ")"):
          if round > 0 { round -= 1 } else { result.append(byte) }
        case UInt8(ascii: " ") where round == 0 && !endsInOperator():
          // A space outside of brackets ends the return type, or starts `const`.
          if text.has(" const", at: index) || text.has(" [", at: index) { break scan }
          result.removeAll(keepingCapacity: true)
        default: if round == 0 { result.append(byte) }
        }
      }
      previous = byte
      index += 1
    }
    for namespace: StaticString in ["::__1::", "::__cxx11::", "::__detail::"] {
      while let found = result.span.find(namespace, from: 0) {
        result.replaceSubrange(found..<found + namespace.utf8CodeUnitCount, with: "::".utf8)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}

extension Span<UInt8> {
  /// The first occurrence of `word` at or behind `start` that is in no bracket.
  func findOutsideBrackets(_ word: StaticString, from start: Int) -> Range<Int>? {
    var depth = 0
    var previous = UInt8(ascii: " ")
    for index in start..<Swift.max(start, count) {
      let byte = self[index]
      switch byte {
      case UInt8(ascii: "("), UInt8(ascii: "<"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ">") where previous != UInt8(ascii: "-"): depth -= 1
      default: if depth == 0, has(word, at: index) { return index..<index + word.utf8CodeUnitCount }
      }
      previous = byte
    }
    return nil
  }
}

extension Substring {
  /// The first occurrence of `word`.
  fileprivate func range(of word: String) -> Range<Index>? {
    guard let first = word.first else { return nil }
    var index = startIndex
    while let candidate = self[index...].firstIndex(of: first) {
      if self[candidate...].hasPrefix(word) { return candidate..<self.index(candidate, offsetBy: word.count) }
      index = self.index(after: candidate)
    }
    return nil
  }
}

extension String {
  fileprivate func replacingNumberedLambdas() -> String {
    var result = ""
    var rest = Substring(self)
    while let found = rest.range(of: "$_") ?? rest.range(of: "#") {
      result += rest[..<found.lowerBound]
      result += rest[found]
      rest = rest[found.upperBound...].drop(while: \.isNumber)
    }
    return result + rest
  }
}
