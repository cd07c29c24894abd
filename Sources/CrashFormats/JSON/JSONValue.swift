private import Glibc

/// The tape of a parsed document: see `CJSONReader.h`.
///
/// Every read is bounds-checked, so that a tape that is not what it should be costs an error and not the process.
struct JSONTape {
  let words: UnsafeBufferPointer<UInt64>
  let strings: UnsafeRawBufferPointer

  func word(at index: Int) -> UInt64? { words.indices.contains(index) ? words[index] : nil }

  func text(at index: Int) -> UnsafeRawBufferPointer? {
    guard let word = word(at: index), UInt8(truncatingIfNeeded: word >> 56) == UInt8(ascii: "\"") else { return nil }
    let offset = Int(word & 0x00ff_ffff_ffff_ffff)
    guard offset <= strings.count, strings.count - offset >= 4 else { return nil }
    let length = Int(UInt32(littleEndian: strings.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    guard length <= strings.count - offset - 4 else { return nil }
    return UnsafeRawBufferPointer(rebasing: strings[offset + 4..<offset + 4 + length])
  }
}

/// A value in a parsed document. Valid within `JSONParser.withDocument`.
package struct JSONValue {
  let tape: JSONTape
  let index: Int

  private var tag: UInt8 { tape.word(at: index).map { UInt8(truncatingIfNeeded: $0 >> 56) } ?? 0 }

  var isNull: Bool { tag == UInt8(ascii: "n") }
  package var isObject: Bool { tag == UInt8(ascii: "{") }
  var isArray: Bool { tag == UInt8(ascii: "[") }

  /// For messages: `a number`, `an object`.
  var typeName: String {
    switch tag {
    case UInt8(ascii: "{"): "an object"
    case UInt8(ascii: "["): "an array"
    case UInt8(ascii: "\""): "a string"
    case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): "a number"
    case UInt8(ascii: "t"), UInt8(ascii: "f"): "a boolean"
    case UInt8(ascii: "n"): "null"
    default: "nothing"
    }
  }

  /// Index of the word behind the value.
  fileprivate var end: Int {
    switch tag {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      // Never backwards, so that no walk runs in circles.
      max(index + 1, Int(truncatingIfNeeded: (tape.word(at: index) ?? 0) & 0xffff_ffff))
    case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
    default: index + 1
    }
  }

  package func expected(_ what: String) -> ReportError { ReportError("expected \(what), found \(typeName)") }

  // MARK: Scalars

  package func bytes(_ what: String = "a string") throws(ReportError) -> UnsafeRawBufferPointer {
    guard let text = tape.text(at: index) else { throw expected(what) }
    return text
  }

  package func string(_ what: String = "a string") throws(ReportError) -> String {
    String(decoding: try bytes(what), as: UTF8.self)
  }

  package func bool() throws(ReportError) -> Bool {
    switch tag {
    case UInt8(ascii: "t"): return true
    case UInt8(ascii: "f"): return false
    default: throw expected("true or false")
    }
  }

  package func integer<Integer: FixedWidthInteger>(_ range: ClosedRange<Integer> = Integer.min...Integer.max)
    throws(ReportError) -> Integer
  {
    let value: Integer?
    switch tag {
    case UInt8(ascii: "l"): value = tape.word(at: index + 1).flatMap { Integer(exactly: Int64(bitPattern: $0)) }
    case UInt8(ascii: "u"): value = tape.word(at: index + 1).flatMap { Integer(exactly: $0) }
    case UInt8(ascii: "d"): throw ReportError("expected a whole number, found a fraction")
    default: throw expected("a number")
    }
    guard let value, range.contains(value) else {
      throw ReportError("number out of range; expected \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// A string of `0x` and hex digits.
  package func hex() throws(ReportError) -> UInt64 {
    let text = try bytes("a hex string")
    guard text.count > 2, text.count <= 18, text[0] == UInt8(ascii: "0"), text[1] | 0x20 == UInt8(ascii: "x") else {
      throw ReportError("expected a hex string of 0x and 1 to 16 digits, found \(quoted(text))")
    }
    var value: UInt64 = 0
    for byte in text[2...] {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw ReportError("expected a hex string of 0x and 1 to 16 digits, found \(quoted(text))")
      }
      value = value << 4 | UInt64(digit)
    }
    return value
  }

  // MARK: Containers

  /// Calls `body` with each element; errors get the element's place in front.
  package func forEachElement(_ body: (JSONValue) throws(ReportError) -> Void) throws(ReportError) {
    guard tag == UInt8(ascii: "[") else { throw expected("an array") }
    let last = end - 1
    var next = index + 1
    var number = 0
    while next < last {
      let element = JSONValue(tape: tape, index: next)
      do { try body(element) } catch { throw error.inside(index: number) }
      number += 1
      next = element.end
    }
  }

  /// How many elements to reserve memory for: never more than the document can hold.
  var elementCount: Int {
    guard tag == UInt8(ascii: "["), let word = tape.word(at: index) else { return 0 }
    return min(Int(truncatingIfNeeded: word >> 32 & 0xff_ffff), end - index)
  }

  /// Calls `body` with each member that is not null, in the order of the text; errors get the key in front.
  ///
  /// Null is the same as absent, which is the same as unknown: log pipelines turn one into the other.
  package func forEachMember(_ what: String = "an object", _ body: (JSONKey, JSONValue) throws(ReportError) -> Void)
    throws(ReportError)
  {
    guard tag == UInt8(ascii: "{") else { throw expected(what) }
    let last = end - 1
    var next = index + 1
    while next < last {
      guard let name = tape.text(at: next) else { return }
      let key = JSONKey(bytes: name)
      let value = JSONValue(tape: tape, index: next + 1)
      if !value.isNull {
        do { try body(key, value) } catch { throw error.inside(key: key.string) }
      }
      next = value.end
    }
  }

  /// The value of a key; the last one where it stands twice, nil where it is absent or null.
  package func member(_ name: StaticString) -> JSONValue? {
    var found: JSONValue?
    try? forEachMember { (key, value) throws(ReportError) in
      if name ~= key { found = value }
    }
    return found
  }

  private func quoted(_ text: UnsafeRawBufferPointer) -> String {
    let shown = String(decoding: text.prefix(40), as: UTF8.self)
    return Printable.quoted(shown) + (text.count > 40 ? "…" : "")
  }
}

/// A key of an object: compared as bytes, without making a String of it.
package struct JSONKey {
  let bytes: UnsafeRawBufferPointer

  package var string: String { String(decoding: bytes, as: UTF8.self) }
}

@inline(__always)
package func ~= (pattern: StaticString, key: JSONKey) -> Bool {
  let count = pattern.utf8CodeUnitCount
  guard count == key.bytes.count, let start = key.bytes.baseAddress else { return count == 0 && key.bytes.isEmpty }
  return memcmp(start, pattern.utf8Start, count) == 0
}
