extension CrashReport {
  /// The most that `stackText` holds, in bytes of UTF-8 (and so in characters, too).
  static let stackTextLimit = 4_000

  /// The crashed thread's stack as text, one line a frame, innermost first; nil where there is no frame.
  ///
  /// Without load addresses, so that the same bug in two runs of one build has the same text. Ends with the last frame
  /// that fits.
  public var stackText: String? {
    guard let frames = crashedThread?.frames, !frames.isEmpty else { return nil }
    var text = ""
    for (index, frame) in frames.enumerated() {
      var line = text.isEmpty ? "" : "\n"
      line += "\(index) "
      switch frame {
      case .symbolicated(let frame):
        line += frame.function ?? place(of: frame.captured)
        if let file = frame.file {
          line += " at \(file)"
          if let number = frame.line, number > 0 { line += ":\(number)" }
        }
      case .captured(let frame): line += place(of: frame)
      case .omitted(let count): line += "(\(count) frames not kept)"
      }
      let room = Self.stackTextLimit - text.utf8.count
      if line.utf8.count <= room {
        text += line
      } else {
        // One name alone can be longer (C++ templates): its beginning says more than nothing.
        if text.isEmpty { text = line.prefix(utf8Count: room) }
        break
      }
    }
    return text
  }

  private func place(of frame: CapturedFrame) -> String {
    guard let index = frame.imageIndex, images.indices.contains(index) else { return "(in no image)" }
    let image = images[index]
    guard image.isPlaced else { return image.name }
    let offset = frame.imageOffset ?? image.offset(of: frame.address)
    return "\(image.name)+\(Hex.prefixed(offset.rawValue))"
  }
}

extension String {
  /// The longest beginning that has at most `count` bytes and ends at a whole character's end.
  fileprivate func prefix(utf8Count count: Int) -> String {
    guard utf8.count > count else { return self }
    var end = utf8.index(utf8.startIndex, offsetBy: count)
    while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return String(self[..<end])
  }
}
