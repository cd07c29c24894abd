extension CrashReport {
  /// The most that `stackText` holds, in bytes of UTF-8 (and so in characters, too).
  static let stackTextLimit = 4_000

  /// The crashed thread's stack as text, one line a frame, innermost first; nil where there is no frame.
  ///
  /// Without load addresses, so that the same bug in two runs of one build has the same text. Ends with the last frame
  /// that fits.
  public var stackText: String? { stackText(limit: Self.stackTextLimit) }

  /// The same with another limit, in bytes.
  package func stackText(limit: Int) -> String? {
    guard let frames = crashedThread?.frames, !frames.isEmpty else { return nil }
    // As bytes: most of a String's appends would be spent on what it need not know of pieces that are put together.
    var text: [UInt8] = []
    text.reserveCapacity(limit + 256)
    for (index, frame) in frames.enumerated() {
      let start = text.count
      if start > 0 { text.append(UInt8(ascii: "\n")) }
      text.append(contentsOf: String(index).utf8)
      text.append(UInt8(ascii: " "))
      switch frame {
      case .symbolicated(let frame):
        if let function = frame.function {
          text.append(contentsOf: function.utf8)
        } else {
          appendPlace(of: frame.captured, to: &text)
        }
        if let file = frame.file {
          text.append(contentsOf: " at ".utf8)
          text.append(contentsOf: file.utf8)
          if let number = frame.line, number > 0 { text.append(contentsOf: ":\(number)".utf8) }
        }
      case .captured(let frame): appendPlace(of: frame, to: &text)
      case .omitted(let count): text.append(contentsOf: "(\(count) frames not kept)".utf8)
      }
      if text.count > limit {
        // One name alone can be longer (C++ templates): its beginning says more than nothing.
        text.removeSubrange((start > 0 ? start : Self.wholeCharacters(of: text, upTo: limit))...)
        break
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private func appendPlace(of frame: CapturedFrame, to text: inout [UInt8]) {
    guard let index = frame.imageIndex, images.indices.contains(index) else {
      text.append(contentsOf: "(in no image)".utf8)
      return
    }
    let image = images[index]
    text.append(contentsOf: image.name.utf8)
    guard image.isPlaced else { return }
    let offset = frame.imageOffset ?? image.offset(of: frame.address)
    text.append(UInt8(ascii: "+"))
    text.append(contentsOf: Hex.prefixed(offset.rawValue).utf8)
  }

  /// The longest beginning that has at most `count` bytes and ends at a whole character's end.
  private static func wholeCharacters(of text: [UInt8], upTo count: Int) -> Int {
    guard text.count > count else { return text.count }
    var end = count
    while end > 0, text[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }
}
