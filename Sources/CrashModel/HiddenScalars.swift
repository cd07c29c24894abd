/// Characters that a reader does not see, or that change what is seen around them.
///
/// Control characters move a terminal's cursor; direction marks reorder the line; characters without a shape make two
/// names that look the same. In text they are shown as escapes, in JSON they are written as `\uXXXX`, which says the
/// same to a program and cannot fool whoever looks at the file.
package enum HiddenScalars {
  package static func contains(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0..<0x20, 0x7F...0x9F: true  // C0, DEL, C1
    case 0xA0..<0x34F: scalar == 0xAD  // soft hyphen
    case 0x34F, 0x61C: true  // grapheme joiner, Arabic letter mark
    case 0x115F, 0x1160, 0x3164, 0xFFA0: true  // Hangul fillers
    case 0x17B4, 0x17B5, 0x180B...0x180F: true  // Khmer and Mongolian format characters
    case 0x200B...0x200F, 0x2060...0x206F: true  // zero width, direction marks, isolates, invisible operators
    case 0x2028...0x202E: true  // line and paragraph separator, embeddings and overrides
    // U+FE0E and U+FE0F are left out: they choose between text and emoji, and half of all emoji have one.
    case 0xFE00...0xFE0D, 0xFEFF, 0xFFF0...0xFFFB: true  // variants, byte order mark, annotations
    case 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A: true  // shorthand and musical format characters
    case 0xE0000...0xE0FFF: true  // tags, more variants
    default: false
    }
  }
}
