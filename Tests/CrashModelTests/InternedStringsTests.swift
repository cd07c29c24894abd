import TestSupport
import Testing

@testable import CrashModel

@Suite struct InternedStringsTests {
  /// Texts of all lengths that the hash treats differently, many with the same beginning or end.
  private func texts(_ count: Int) -> [String] {
    (0..<count).map { "\($0 % 7)" + String(repeating: "x", count: $0 % 37) + "\($0)" + (($0 % 11 == 0) ? "é" : "") }
  }

  @Test func oneNumberForEachText() {
    var strings = InternedStrings()
    let texts = texts(5_000)
    let numbers = texts.map { strings.intern($0) }
    #expect(Set(numbers).count == Set(texts).count)
    for (text, number) in zip(texts, numbers) {
      #expect(strings[number] == text && strings.intern(text) == number)
      let bytes = Array(text.utf8)
      bytes.withUnsafeBytes { #expect(strings.intern($0) == number && strings.isEqual(number, $0)) }
    }
    let empty = strings.intern("")
    #expect(strings[empty].isEmpty)
  }

  /// Unicode calls these the same; a group must not depend on which came first.
  @Test func bytesTellTextsApart() {
    var strings = InternedStrings()
    let (composed, decomposed) = (strings.intern("caf\u{e9}"), strings.intern("cafe\u{301}"))
    #expect(composed != decomposed && strings[composed] == strings[decomposed])
    #expect(strings.isBefore(composed, decomposed) != strings.isBefore(decomposed, composed))
    #expect(!strings.isBefore(composed, composed))
  }

  /// What is in use keeps its number, the rest is forgotten, and its numbers are given out again.
  @Test func sweeping() {
    var strings = InternedStrings(room: 100)
    let texts = texts(3_000)
    let numbers = texts.map { strings.intern($0) }
    #expect(strings.wantsSweep && strings.generation == 0)
    var used = strings.noneUsed
    for (index, number) in numbers.enumerated() where index % 3 == 0 { used[Int(number)] = true }
    strings.sweep(using: used)
    #expect(strings.generation == 1 && !strings.wantsSweep)
    for (index, (text, number)) in zip(texts, numbers).enumerated() where index % 3 == 0 {
      #expect(strings[number] == text && strings.intern(text) == number)
    }
    let again = texts.map { strings.intern($0) }
    #expect(Set(again).count == texts.count && again.allSatisfy { Int($0) < texts.count })
    for (text, number) in zip(texts, again) { #expect(strings[number] == text) }
  }
}
