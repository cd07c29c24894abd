internal import CrashModel

/// Text of unknown making, made fit for a terminal.
///
/// A report holds strings that an attacker may have chosen (a thread's name, a message, a path). Printed as they are,
/// their escape sequences would move the cursor, rename the window or hide lines; direction marks would reorder what is
/// read, and characters without a shape would make two names look the same.
public enum Printable {
  /// One line: control characters, line ends, direction marks and invisible characters become `\u{1b}` or the usual short
  /// escapes.
  public static func line(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
    var result = ""
    result.reserveCapacity(text.utf8.count + 16)
    for scalar in text.unicodeScalars {
      if isUnsafe(scalar) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }

  /// Several lines, each behind `indentation` but the first; tabs become spaces.
  public static func block(_ text: String, indentation: String) -> String {
    // By scalars: "\r\n" is one Character and would not be seen as a line end.
    text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
      .map { part in
        var line = String(String.UnicodeScalarView(part))
        if line.unicodeScalars.last == "\r" { line.unicodeScalars.removeLast() }
        return Self.line(line)
      }
      .joined(separator: "\n" + indentation)
  }

  /// In double quotes, with quotes and backslashes escaped as well.
  public static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" {
        result += "\\" + String(scalar)
      } else if isUnsafe(scalar) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{\(String(scalar.value, radix: 16))}"
    }
  }

  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool { HiddenScalars.contains(scalar.value) }

  /// Cells that a terminal needs for the text.
  public static func width(of text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + width(of: $1) }
  }

  /// The longest beginning that fits in `width` cells, with an ellipsis where something was left out.
  public static func truncated(_ text: String, toWidth width: Int) -> String {
    guard self.width(of: text) > width else { return text }
    guard width > 0 else { return "" }
    var result = ""
    var used = 1  // the ellipsis
    for character in text {
      used += self.width(of: character)
      if used > width { break }
      result.append(character)
    }
    return result + "…"
  }

  private static func width(of character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    if first.value < 0x300 { return 1 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    // East Asian wide and full-width blocks, and emoji that are drawn as such.
    switch first.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
      0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
      return 2
    default: return first.properties.isEmojiPresentation ? 2 : 1
    }
  }
}
