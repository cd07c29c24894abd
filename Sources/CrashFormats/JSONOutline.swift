/// What of a JSON text that is read line by line is still open, and what may come next.
struct JSONOutline {
  private enum Token { case nothing, value, comma, colon, objectStart, arrayStart }

  /// The open brackets, outermost first; true for an array.
  private var brackets: [Bool] = []
  private var last = Token.nothing
  private var inString = false
  private var escaped = false
  private var isTooDeep = false

  /// More lines belong to it. A line that ends inside a string is broken: strings hold no line feeds.
  var isOpen: Bool { !brackets.isEmpty && !inString && !isTooDeep }

  /// An object, an array, a number may come next.
  var allowsValue: Bool {
    switch last {
    case .colon, .arrayStart: true
    case .comma: brackets.last == true
    case .nothing: brackets.isEmpty
    case .value, .objectStart: false
    }
  }

  /// The key of a member may come next.
  var allowsKey: Bool { last == .objectStart || last == .comma && brackets.last == false }

  mutating func scan(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      if inString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          inString = false
        }
        continue
      }
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: break
      case UInt8(ascii: "\""):
        inString = true
        last = .value
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        // The parser takes no more either, and the input must not decide how much memory this needs.
        guard brackets.count < JSONParser.maximumDepth else {
          isTooDeep = true
          return
        }
        brackets.append(byte == UInt8(ascii: "["))
        last = byte == UInt8(ascii: "[") ? .arrayStart : .objectStart
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        _ = brackets.popLast()
        last = .value
      case UInt8(ascii: ","): last = .comma
      case UInt8(ascii: ":"): last = .colon
      default: last = .value
      }
    }
  }
}
