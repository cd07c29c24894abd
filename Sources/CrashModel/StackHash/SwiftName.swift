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

  /// Whether it begins with `$s`, `$S` or `$e`, an underscore before that or not, or with `_T0`, as names were before
  /// Swift 5.
  static func isSwift(_ rawFunction: String) -> Bool {
    var bytes = rawFunction.utf8.makeIterator()
    var byte = bytes.next()
    if byte == UInt8(ascii: "_") {
      byte = bytes.next()
      if byte == UInt8(ascii: "T") { return bytes.next() == UInt8(ascii: "0") }
    }
    guard byte == UInt8(ascii: "$"), let kind = bytes.next() else { return false }
    return kind == UInt8(ascii: "s") || kind == UInt8(ascii: "S") || kind == UInt8(ascii: "e")
  }

  /// The module alone, without demangling where the mangling says it.
  static func module(of rawFunction: String) -> String? {
    // `TW` is the operator of a protocol witness, the only name of which the text says it better.
    if let module = MangledModule.module(of: rawFunction), !rawFunction.utf8Contains("TW") { return module }
    return SwiftName(rawFunction: rawFunction).module
  }

  init(rawFunction: String) {
    self.init(full: Demangler.full(rawFunction) ?? "")
    // The text of a specialisation starts with its arguments, so what the mangling says comes first.
    if let mangled = MangledModule.module(of: rawFunction), !isModuleOfConformance { module = mangled }
  }

  init(full: String) {
    var full = full
    self = full.withUTF8 { SwiftName(full: $0.span) }
  }

  /// - Parameter text: UTF-8. By bytes, as all marks are ASCII (see `CanonicalName`).
  private init(full text: Span<UInt8>) {
    isForwarder = false
    isMerged = false
    module = nil
    var start = 0
    // Bounded: each round takes something off the front, or ends.
    while true {
      if text.has("merged ", at: start) {
        start += 7
        isMerged = true
      } else if let word = Self.forwarders.first(where: { text.has($0, at: start) }) {
        start += word.utf8CodeUnitCount
        isForwarder = true
      } else if text.has("protocol witness for ", at: start), let name = Self.lastIn(text, from: start) {
        isForwarder = true
        module = Self.firstComponent(text, from: name)
        isModuleOfConformance = true
        return
      } else if text.has("reabstraction thunk ", at: start) {
        isForwarder = true
        return
      } else if let rest = Self.afterCount(text, from: start) {
        start = rest
      } else if text.has("generic ", at: start) || text.has("function signature specialization ", at: start),
        let rest = Self.after(" of ", in: text, from: start)
      {
        // "generic specialization <A, B> of …": behind the " of " that is in no bracket.
        start = rest
      } else if text.has("closure #", at: start) || text.has("implicit closure #", at: start),
        let rest = Self.after(" in ", in: text, from: start)
      {
        start = rest
      } else if let word = Self.prefixes.first(where: { text.has($0, at: start) }) {
        start += word.utf8CodeUnitCount
      } else if text.has("default argument ", at: start) || text.has("outlined ", at: start),
        let rest = Self.after(" of ", in: text, from: start)
      {
        start = rest
      } else {
        break
      }
    }
    module = Self.firstComponent(text, from: start)
  }

  private static let forwarders: [StaticString] = [
    "partial apply forwarder for ", "partial apply for ", "dispatch thunk of ", "curry thunk of ", "vtable thunk for ",
  ]

  private static let prefixes: [StaticString] = [
    "static ", "@objc ", "@nonobjc ", "@Sendable ", "async function pointer to ",
    "variable initialization expression of ", "property wrapper backing initializer of ",
    "property wrapper init from projected value of ", "key path getter for ", "key path setter for ",
    "one-time initialization function for ", "one-time initialization token for ", "type metadata accessor for ",
    "lazy protocol witness table accessor for type ", "coro function pointer to ", "destroy value witness for ",
  ]

  // "(1) await resume partial function for …"
  private static func afterCount(_ text: Span<UInt8>, from start: Int) -> Int? {
    guard text.has("(", at: start) else { return nil }
    let close = text.end(from: start + 1, while: Byte.isDigit)
    let words: [StaticString] = [") await resume partial function for ", ") suspend resume partial function for "]
    return words.first { text.has($0, at: close) }.map { close + $0.utf8CodeUnitCount }
  }

  private static func after(_ word: StaticString, in text: Span<UInt8>, from start: Int) -> Int? {
    text.findOutsideBrackets(word, from: start)?.upperBound
  }

  // The module at the end of "… in conformance Type : Protocol in Module".
  private static func lastIn(_ text: Span<UInt8>, from start: Int) -> Int? {
    var found: Int?
    while let next = after(" in ", in: text, from: found ?? start) { found = next }
    return found
  }

  private static func firstComponent(_ text: Span<UInt8>, from start: Int) -> String? {
    let extended: StaticString = "(extension in "
    var first = start
    var end = start
    if text.has(extended, at: start) {
      first += extended.utf8CodeUnitCount
      end = text.end(from: first) { $0 != UInt8(ascii: ")") }
      guard end < text.count else { return nil }
      return string(text, first..<end)
    }
    // A module may have a name in any script.
    end = text.end(from: start) { Byte.isAlphanumeric($0) || $0 == UInt8(ascii: "_") || $0 >= 0x80 }
    if text.contains(in: start..<end, where: { $0 >= 0x80 }) {
      let name = string(text, start..<end).prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      return name.isEmpty ? nil : String(name)
    }
    return end > start ? string(text, start..<end) : nil
  }

  private static func string(_ text: Span<UInt8>, _ range: Range<Int>) -> String {
    text.extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
  }
}
