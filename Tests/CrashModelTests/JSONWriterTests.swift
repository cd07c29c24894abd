import CrashModel
import Testing

@Suite struct JSONWriterTests {
  /// Byte by byte, as RFC 8259 and `HiddenScalars` want it.
  static func expected(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\u{08}": result += "\\b"
      case "\t": result += "\\t"
      case "\n": result += "\\n"
      case "\u{0C}": result += "\\f"
      case "\r": result += "\\r"
      default:
        if HiddenScalars.contains(scalar.value) {
          for unit in String(scalar).utf16 {
            let digits = String(unit, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
          }
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }

  static func written(_ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    write(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Texts are copied sixteen bytes at a time, and the last piece twice: each character at each place.
  @Test(arguments: ["\"", "\\", "\n", "\u{01}", "\u{7f}", "\u{85}", "é", "🚀", "\u{200b}", "\u{e0001}", "~", " "])
  func escapesAtEveryPlace(_ character: String) {
    for length in 0..<50 {
      for place in 0...length {
        let text =
          String(repeating: "a", count: place) + character + String(repeating: "z", count: length - place)
        let found = Self.written { $0.string(text) }
        #expect(found == Self.expected(text), "\(length) \(place)")
      }
    }
  }

  @Test func everyASCIICharacterInLongAndShortText() {
    for value in UInt8(0)..<0x80 {
      for padding in [0, 3, 15, 16, 40] {
        let text = String(Unicode.Scalar(value)) + String(repeating: "x", count: padding)
        #expect(Self.written { $0.string(text) } == Self.expected(text))
        #expect(Self.written { $0.key(text) } == Self.expected(text) + ":")
      }
    }
  }

  @Test func aCopyIsAWriterOfItsOwn() {
    var first = JSONWriter()
    first.beginArray()
    first.string("shared")
    var second = first
    second.string("only in the second")
    first.string("only in the first")
    first.endArray()
    let third = second
    second.removeAll()
    second.bool(true)
    #expect(String(decoding: first.bytes, as: UTF8.self) == #"["shared","only in the first"]"#)
    #expect(String(decoding: third.bytes, as: UTF8.self) == #"["shared","only in the second""#)
    #expect(String(decoding: second.bytes, as: UTF8.self) == "true")
  }

  @Test func growsAndIsUsedAgain() {
    var writer = JSONWriter()
    for round in 0..<3 {
      writer.removeAll()
      writer.beginArray()
      for index in 0..<5_000 { writer.string("element \(index) of round \(round)") }
      writer.endArray()
      let text = "[" + (0..<5_000).map { "\"element \($0) of round \(round)\"" }.joined(separator: ",") + "]"
      #expect(String(decoding: writer.bytes, as: UTF8.self) == text)
      #expect(writer.count == text.utf8.count)
      #expect(writer.withBytes { $0.count } == writer.count)
    }
  }

  @Test func numbers() {
    for value: UInt64 in [0, 1, 9, 10, 99, 100, 12_345, UInt64(Int64.max), .max] {
      #expect(Self.written { $0.integer(value) } == String(value))
    }
    for value: Int64 in [-1, -10, .min, .max] { #expect(Self.written { $0.integer(value) } == String(value)) }
    for (value, digits, text): (UInt64, Int, String) in [
      (0, 1, "0x0"), (0, 16, "0x0000000000000000"), (0xabc, 1, "0xabc"), (0xabc, 2, "0xabc"), (0xabc, 4, "0x0abc"),
      (.max, 1, "0xffffffffffffffff"), (.max, 99, "0xffffffffffffffff"), (1 << 60, 0, "0x1000000000000000"),
    ] {
      #expect(Self.written { $0.hex(value, digits: digits) } == "\"\(text)\"")
    }
  }

  @Test func indentedDocument() {
    var writer = JSONWriter(pretty: true)
    writer.beginObject()
    writer.member("a", 1)
    writer.key("b")
    writer.beginArray()
    writer.string("x")
    writer.beginObject()
    writer.endObject()
    writer.bool(false)
    writer.endArray()
    writer.key("c \"d\"")
    writer.beginArray()
    writer.endArray()
    writer.endObject()
    let text = """
      {
        "a": 1,
        "b": [
          "x",
          {},
          false
        ],
        "c \\"d\\"": []
      }
      """
    #expect(String(decoding: writer.bytes, as: UTF8.self) == text)
  }

  @Test(arguments: [
    (Int64.min, "1677-09-21T00:12:43.145Z"), (.max, "2262-04-11T23:47:16.854Z"), (0, "1970-01-01T00:00:00.000Z"),
    (-1, "1969-12-31T23:59:59.999Z"), (951_782_399_999_999_999, "2000-02-28T23:59:59.999Z"),
    (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
  ])
  func moments(_ nanoseconds: Int64, _ text: String) {
    let moment = Timestamp(rawValue: nanoseconds)
    #expect(moment.rfc3339 == text)
    #expect(Self.written { $0.member("t", moment) } == "\"t\":\"\(text)\"")
  }
}
