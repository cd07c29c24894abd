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

  private static let generated = [
    "thunk for ", "protocol witness for ", "outlined ", "type metadata ", "lazy protocol witness table ",
    "objectdestroy", "block_copy_helper", "block_destroy_helper", "__swift_", "vtable thunk for ",
    "dispatch thunk of ", "curry thunk of ", "implicit closure #", "value witness", "associated type witness",
    "generic protocol witness", "default associated", "key path ",
  ]
  private static let wrappers = [
    "specialized ", "merged ", "partial apply for ", "partial apply forwarder for ", "@objc ", "@nonobjc ", "static ",
    "async ",
  ]

  private static func swift(_ name: String) -> String? {
    var text = Substring(name)
    if let suffix = text.range(of: " with unmangled suffix ") { text = text[..<suffix.lowerBound] }
    var closures = 0
    while true {
      if let wrapper = wrappers.first(where: { text.hasPrefix($0) }) {
        text = text.dropFirst(wrapper.count)
      } else if text.hasPrefix("closure #"), let rest = text.range(of: " in ", outsideBrackets: true) {
        // Numbers count the closures before this one, which an edit changes.
        closures += 1
        text = text[rest.upperBound...]
      } else if text.hasPrefix("implicit closure #"), let rest = text.range(of: " in ", outsideBrackets: true) {
        text = text[rest.upperBound...]
      } else {
        break
      }
    }
    if text.hasPrefix("variable initialization expression of ") || text.hasPrefix("default argument ") {
      // What runs before a function does belongs to its type.
      if let of = text.range(of: " of ", outsideBrackets: true) { text = text[of.upperBound...] }
      while let wrapper = wrappers.first(where: { text.hasPrefix($0) }) { text = text.dropFirst(wrapper.count) }
    }
    if generated.contains(where: { text.hasPrefix($0) }) { return nil }
    let plain = withoutGenericArguments(text)
    // One closure or several nested ones: how many there are is the optimiser's choice too.
    return closures > 0 ? "closure in " + plain : plain
  }

  private static func withoutGenericArguments(_ text: Substring) -> String {
    var result = ""
    var depth = 0
    var previous: Character = " "
    for character in text {
      if character == "<" && isNameCharacter(previous) {
        depth += 1
      } else if character == ">" && depth > 0 && previous != "-" {
        depth -= 1
      } else if depth == 0 {
        result.append(character)
      }
      previous = character
    }
    return result
  }

  private static func isNameCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_" || character == ")"
  }

  private static func cxx(_ name: String) -> String? {
    var text = Substring(name)
    if let at = text.firstIndex(of: "@"), at > text.startIndex { text = text[..<at] }  // GLIBC_2.34
    if let clone = text.range(of: " [clone") { text = text[..<clone.lowerBound] }
    text = withoutCloneSuffixes(withoutInternalAlias(text))
    var plain = dropArguments(text)
    for variant in ["_avx", "_sse", "_evex", "_erms", "_ssse3", "_unaligned"] {
      if plain.hasPrefix("__") || plain.hasPrefix("mem") || plain.hasPrefix("str"),
        let cut = Substring(plain).range(of: variant)
      {
        plain = String(plain[..<cut.lowerBound])
        while plain.hasPrefix("_") { plain.removeFirst() }
      }
    }
    // `$_0` and `{lambda()#2}` number lambdas in their function.
    plain = plain.replacingNumberedLambdas()
    if plain.hasPrefix("non-virtual thunk to ") || plain.hasPrefix("virtual thunk to ") { return nil }
    return plain.isEmpty ? nil : plain
  }

  /// `__GI_raise` is how glibc calls its own `raise`: two names of one function, of which a symbol table gives either.
  static func withoutInternalAlias(_ text: Substring) -> Substring {
    let prefix = "__GI_"
    return text.hasPrefix(prefix) && text.utf8.count > prefix.utf8.count ? text.dropFirst(prefix.utf8.count) : text
  }

  private static let cloneSuffixes: Set<Substring> = [
    "cold", "part", "isra", "constprop", "llvm", "lto_priv", "localalias",
  ]

  private static func withoutCloneSuffixes(_ text: Substring) -> Substring {
    var text = text
    while let dot = text.lastIndex(of: "."), dot > text.startIndex {
      let suffix = text[text.index(after: dot)...]
      guard !suffix.isEmpty, suffix.allSatisfy(\.isNumber) || cloneSuffixes.contains(suffix) else { break }
      text = text[..<dot]
    }
    return text
  }

  // Return type, template arguments and arguments off, inline namespaces out:
  // `std::__1::vector<int>::at(unsigned long) const` becomes `std::vector::at`.
  private static func dropArguments(_ text: Substring) -> String {
    var result = ""
    var angle = 0
    var round = 0
    var previous: Character = " "
    var index = text.startIndex
    while index < text.endIndex {
      let character = text[index]
      if character == "<" && !result.hasSuffix("operator") && !result.hasSuffix("operator<") {
        angle += 1
      } else if character == ">" && angle > 0 && previous != "-" {
        angle -= 1
      } else if angle == 0 {
        if character == "(" {
          if text[index...].hasPrefix("(anonymous namespace)") && round == 0 {
            result += "(anonymous namespace)"
            index = text.index(index, offsetBy: "(anonymous namespace)".count)
            previous = ")"
            continue
          }
          if !result.hasSuffix("operator") || round > 0 { round += 1 } else { result.append(character) }
        } else if character == ")" {
          if round > 0 { round -= 1 } else { result.append(character) }
        } else if round == 0 {
          // A space outside of brackets ends the return type, or starts `const`.
          if character == " " && !result.hasSuffix("operator") {
            if text[index...].hasPrefix(" const") || text[index...].hasPrefix(" [") { break }
            result = ""
          } else {
            result.append(character)
          }
        }
      }
      previous = character
      index = text.index(after: index)
    }
    for namespace in ["::__1::", "::__cxx11::", "::__detail::"] {
      while let range = Substring(result).range(of: namespace) { result.replaceSubrange(range, with: "::") }
    }
    return result
  }
}

extension Substring {
  /// The first occurrence of `word`.
  func range(of word: String) -> Range<Index>? {
    guard let first = word.first else { return nil }
    var index = startIndex
    while let candidate = self[index...].firstIndex(of: first) {
      if self[candidate...].hasPrefix(word) { return candidate..<self.index(candidate, offsetBy: word.count) }
      index = self.index(after: candidate)
    }
    return nil
  }

  /// The first occurrence of `word` that is in no bracket.
  func range(of word: String, outsideBrackets: Bool) -> Range<Index>? {
    var depth = 0
    var previous: Character = " "
    var index = startIndex
    while index < endIndex {
      let character = self[index]
      switch character {
      case "(", "<", "[": depth += 1
      case ")", "]": depth -= 1
      case ">" where previous != "-": depth -= 1
      default:
        if depth == 0 && self[index...].hasPrefix(word) {
          return index..<self.index(index, offsetBy: word.count)
        }
      }
      previous = character
      index = self.index(after: index)
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
