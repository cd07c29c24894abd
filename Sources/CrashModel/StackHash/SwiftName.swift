/// What a Swift linker name says about where its function is defined.
///
/// The module comes from the mangling (`MangledModule`), the rest from the full demangled form, which also answers where
/// the mangling begins with a type that is no context.
struct SwiftName {
  /// Module that defines the function: the extension's where it is in one.
  var module: String?
  /// The function only forwards (a witness, a reabstraction, a partial apply), or shares its code with others.
  var isForwarder: Bool
  var isMerged: Bool
  // A witness is defined where the conformance is, which is neither the type's module nor the protocol's.
  private var isModuleOfConformance = false

  static func isSwift(_ rawFunction: String) -> Bool {
    for prefix in ["$s", "$S", "_$s", "_$S", "$e", "_$e", "_T0"] where rawFunction.hasPrefix(prefix) { return true }
    return false
  }

  init(rawFunction: String) {
    self.init(full: Demangler.full(rawFunction) ?? "")
    // The text of a specialisation starts with its arguments, so what the mangling says comes first.
    if let mangled = MangledModule.module(of: rawFunction), !isModuleOfConformance { module = mangled }
  }

  init(full: String) {
    var text = Substring(full)
    isForwarder = false
    isMerged = false
    module = nil
    // Bounded: each round takes something off the front, or ends.
    while true {
      if Self.drop("merged ", from: &text) {
        isMerged = true
      } else if Self.drop("partial apply forwarder for ", from: &text)
        || Self.drop("partial apply for ", from: &text) || Self.drop("dispatch thunk of ", from: &text)
        || Self.drop("curry thunk of ", from: &text) || Self.drop("vtable thunk for ", from: &text)
      {
        isForwarder = true
      } else if text.hasPrefix("protocol witness for "), let inModule = Self.lastIn(text) {
        isForwarder = true
        module = Self.firstComponent(inModule)
        isModuleOfConformance = true
        return
      } else if text.hasPrefix("reabstraction thunk ") {
        isForwarder = true
        return
      } else if let rest = Self.afterCount(text) {
        text = rest
      } else if text.hasPrefix("generic ") || text.hasPrefix("function signature specialization "),
        let rest = Self.afterSpecialization(text)
      {
        text = rest
      } else if text.hasPrefix("closure #") || text.hasPrefix("implicit closure #"), let rest = Self.afterIn(text) {
        text = rest
      } else if let word = Self.prefixes.first(where: { text.hasPrefix($0) }) {
        text = text.dropFirst(word.count)
      } else if text.hasPrefix("default argument ") || text.hasPrefix("outlined "),
        let range = Self.firstOf(text)
      {
        text = range
      } else {
        break
      }
    }
    module = Self.firstComponent(text)
  }

  private static let prefixes = [
    "static ", "@objc ", "@nonobjc ", "@Sendable ", "async function pointer to ",
    "variable initialization expression of ", "property wrapper backing initializer of ",
    "property wrapper init from projected value of ", "key path getter for ", "key path setter for ",
    "one-time initialization function for ", "one-time initialization token for ", "type metadata accessor for ",
    "lazy protocol witness table accessor for type ", "coro function pointer to ", "destroy value witness for ",
  ]

  private static func drop(_ word: String, from text: inout Substring) -> Bool {
    guard text.hasPrefix(word) else { return false }
    text = text.dropFirst(word.count)
    return true
  }

  // "(1) await resume partial function for …"
  private static func afterCount(_ text: Substring) -> Substring? {
    guard text.hasPrefix("("), let close = text.firstIndex(of: ")"),
      text[text.index(after: text.startIndex)..<close].allSatisfy(\.isNumber)
    else { return nil }
    for word in [") await resume partial function for ", ") suspend resume partial function for "]
    where text[close...].hasPrefix(word) {
      return text[close...].dropFirst(word.count)
    }
    return nil
  }

  // "generic specialization <A, B> of …": behind the " of " that is in no bracket.
  private static func afterSpecialization(_ text: Substring) -> Substring? { after(" of ", in: text) }

  private static func afterIn(_ text: Substring) -> Substring? { after(" in ", in: text) }

  private static func firstOf(_ text: Substring) -> Substring? { after(" of ", in: text) }

  private static func after(_ word: String, in text: Substring) -> Substring? {
    var depth = 0
    var previous: Character = " "
    var index = text.startIndex
    while index < text.endIndex {
      let character = text[index]
      switch character {
      case "(", "<", "[": depth += 1
      case ")", "]": depth -= 1
      case ">" where previous != "-": depth -= 1
      case " " where depth == 0 && text[index...].hasPrefix(word): return text[index...].dropFirst(word.count)
      default: break
      }
      previous = character
      index = text.index(after: index)
    }
    return nil
  }

  // The module at the end of "… in conformance Type : Protocol in Module".
  private static func lastIn(_ text: Substring) -> Substring? {
    var rest = text
    var found: Substring?
    while let next = afterIn(rest) {
      found = next
      rest = next
    }
    return found
  }

  private static func firstComponent(_ text: Substring) -> String? {
    if text.hasPrefix("(extension in "), let close = text.firstIndex(of: ")") {
      return String(text[..<close].dropFirst("(extension in ".count))
    }
    let end = text.firstIndex { !($0.isLetter || $0.isNumber || $0 == "_") } ?? text.endIndex
    return end > text.startIndex ? String(text[..<end]) : nil
  }
}
