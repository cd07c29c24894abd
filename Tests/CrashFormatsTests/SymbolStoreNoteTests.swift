import CrashFormats
import CrashModel
import Testing

struct SymbolStoreNoteTests {
  private func note() throws -> SymbolStoreNote {
    let start = Timestamp(rawValue: 1_796_015_553_042_000_000)
    var note = SymbolStoreNote(buildID: try #require(BuildID("abcdef0123")), added: start)
    note.add(name: "order\u{202e}d \"x\"", release: "1.4.0", at: start)
    note.add(name: "orderd", release: nil, at: start)
    note.add(name: "orderd", release: "1.5.0", at: Timestamp(rawValue: start.rawValue + 1_000_000))
    return note
  }

  @Test func whatIsWrittenIsRead() throws {
    let note = try note()
    #expect(note.names.count == 2 && note.releases.map(\.name) == ["1.4.0", "1.5.0"])
    #expect(try SymbolStoreNote(json: note.json()) == note)
  }

  @Test func onlyNewsIsNews() throws {
    var note = try note()
    let before = note
    let isNews = note.add(name: "orderd", release: "1.4.0", at: Timestamp(rawValue: 0))
    #expect(!isNews && note == before)
    for number in 0..<2_000 {
      note.add(name: "name\(number)", release: "\(number)", at: Timestamp(rawValue: 7_000_000))
    }
    // It does not grow for ever, and can always be read again.
    #expect(note.names.count == 1_000 && note.releases.last?.name == "1999")
    #expect(try SymbolStoreNote(json: note.json()) == note)
  }

  /// Cut at every byte, and each byte changed: an error or a note, never a trap.
  @Test func damagedNotes() throws {
    let bytes = try note().json()
    for length in bytes.indices.dropLast(2) {
      #expect(throws: ReportError.self) { try SymbolStoreNote(json: Array(bytes.prefix(length))) }
    }
    for index in bytes.indices {
      for value: UInt8 in [0, 0x22, 0x5b, 0x7d, 0xff] {
        var changed = bytes
        changed[index] = value
        _ = try? SymbolStoreNote(json: changed)
      }
    }
  }

  @Test(arguments: [
    ("{}", "expected the schema"), ("[]", "expected an object"), ("", "no JSON"),
    (#"{"schema":"symbol-store-note/1"}"#, "build_id: expected a build id"),
    (#"{"schema":"symbol-store-note/1","build_id":"zz"}"#, "build_id: expected a build id"),
    (#"{"schema":"symbol-store-note/1","build_id":"ab","added":"yesterday"}"#, "added: expected a time"),
    (#"{"schema":"symbol-store-note/1","build_id":"ab","names":[7]}"#, "names[0]: expected a string"),
    (#"{"schema":"symbol-store-note/1","releases":[{"release":"1"}]}"#, "releases[0]: expected"),
  ])
  func whatIsWrongIsSaid(text: String, message: String) {
    let error = #expect(throws: ReportError.self) { try SymbolStoreNote(json: Array(text.utf8)) }
    #expect(error?.description.contains(message) == true, "\(String(describing: error))")
  }
}
