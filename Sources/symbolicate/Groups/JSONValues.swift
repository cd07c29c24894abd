/// Finds the values in a text of JSON that may be larger than what the parser takes at once: the values at its top, and
/// the elements of one array.
///
/// Looks at brackets and quotes only. Whether a value is JSON, its parser says; so whatever stands in the text, each byte of
/// it goes to a parser.
struct JSONValues {
  enum Failure: Error {
    /// The text ends within what began at this place.
    case unclosed(Int)
    /// The array is there twice.
    case twice(Int)
  }

  /// An object at the top.
  struct Object {
    var range: Range<Int>
    /// Of the array's elements, without the commas; nil where the object has no such array.
    var elements: [Range<Int>]?
    /// What is between the array's brackets.
    var inside: Range<Int>?
  }

  private let bytes: UnsafeRawBufferPointer
  private var index = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The values at the top, one behind the other; for an array, its elements.
  ///
  /// - Parameter key: of the array in an object at the top whose elements are wanted.
  static func read(_ bytes: UnsafeRawBufferPointer, arrayUnder key: StaticString) throws(Failure) -> [Object] {
    var values = JSONValues(bytes)
    values.skipSpace()
    if values.current == UInt8(ascii: "[") {
      return try values.elements().map { Object(range: $0) } + values.rest(key)
    }
    return try values.rest(key)
  }

  private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func rest(_ key: StaticString) throws(Failure) -> [Object] {
    var objects: [Object] = []
    skipSpace()
    while index < bytes.count {
      objects.append(try object(key))
      skipSpace()
    }
    return objects
  }

  private mutating func object(_ key: StaticString) throws(Failure) -> Object {
    let start = index
    guard current == UInt8(ascii: "{") else {
      // No object: up to the end of the line, which is for the parser to refuse.
      while let byte = current, byte != UInt8(ascii: "\n") { index += 1 }
      return Object(range: start..<index)
    }
    var found: (elements: [Range<Int>], inside: Range<Int>)?
    var isKey = true
    index += 1
    while let byte = current {
      switch byte {
      case UInt8(ascii: "}"):
        index += 1
        return Object(range: start..<index, elements: found?.elements, inside: found?.inside)
      case UInt8(ascii: ","):
        isKey = true
        index += 1
      case UInt8(ascii: "\""):
        let text = try string()
        guard isKey, isEqual(text, key) else { continue }
        skipSpace()
        guard current == UInt8(ascii: ":") else { continue }
        index += 1
        skipSpace()
        guard current == UInt8(ascii: "[") else { continue }
        if found != nil { throw .twice(text.lowerBound) }
        let open = index
        let elements = try elements()
        found = (elements, open + 1..<index - 1)
      case UInt8(ascii: ":"):
        isKey = false
        index += 1
      case UInt8(ascii: "{"), UInt8(ascii: "["): try skipContainer()
      default: index += 1
      }
    }
    throw .unclosed(start)
  }

  /// Of the array that begins here; behind it afterwards.
  private mutating func elements() throws(Failure) -> [Range<Int>] {
    let open = index
    var elements: [Range<Int>] = []
    index += 1
    skipSpace()
    if current == UInt8(ascii: "]") {
      index += 1
      return elements
    }
    var start = index
    while let byte = current {
      switch byte {
      case UInt8(ascii: ","), UInt8(ascii: "]"):
        elements.append(start..<index)
        index += 1
        if byte == UInt8(ascii: "]") { return elements }
        skipSpace()
        start = index
      case UInt8(ascii: "\""): _ = try string()
      case UInt8(ascii: "{"), UInt8(ascii: "["): try skipContainer()
      default: index += 1
      }
    }
    throw .unclosed(open)
  }

  /// Without recursion: the depth comes from the text.
  private mutating func skipContainer() throws(Failure) {
    let open = index
    var depth = 0
    while let byte = current {
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 {
          index += 1
          return
        }
      case UInt8(ascii: "\""):
        _ = try string()
        continue
      default: break
      }
      index += 1
    }
    throw .unclosed(open)
  }

  /// - Returns: where the text between the quotes is.
  private mutating func string() throws(Failure) -> Range<Int> {
    let open = index
    index += 1
    while let byte = current {
      index += 1
      if byte == UInt8(ascii: "\\") {
        index += 1
      } else if byte == UInt8(ascii: "\"") {
        return open + 1..<index - 1
      }
    }
    throw .unclosed(open)
  }

  private mutating func skipSpace() {
    while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { index += 1 }
  }

  private func isEqual(_ range: Range<Int>, _ key: StaticString) -> Bool {
    range.count == key.utf8CodeUnitCount
      && range.enumerated().allSatisfy { bytes[$1] == key.utf8Start[$0] }
  }
}
