/// The words of a closed list, found by their bytes.
///
/// `init(rawValue:)` compares Strings one by one, each as Unicode wants it; a report has hundreds of such words.
struct Vocabulary<Choice: RawRepresentable<String> & CaseIterable & Sendable>: Sendable {
  private let words: [(bytes: [UInt8], choice: Choice)]

  init(_ type: Choice.Type = Choice.self) { words = Choice.allCases.map { (Array($0.rawValue.utf8), $0) } }

  subscript(text: UnsafeRawBufferPointer) -> Choice? {
    for (bytes, choice) in words where bytes.count == text.count && text.elementsEqual(bytes) { return choice }
    return nil
  }
}
