import CrashModel
import RecordForge
import TestSupport
import Testing

/// A record with everything that a record can hold.
private func fullForge() -> RecordForge {
  var forge = RecordForge(number: 7)
  forge.images = [
    .init(path: "/opt/orderd/bin/orderd", address: 0x5555_0000_0000, size: 0x10_0000, buildID: Array(1...20)),
    .init(path: "/lib/libc.so.6", address: 0x7fff_0000_0000, size: 0x20_0000, buildID: Array(21...40)),
  ]
  forge.frames = [0x5555_0000_1234, 0x5555_0000_2000, 0x7fff_0000_0100]
  forge.messages = [(2, "free(): double free detected"), (1, "Fatal error: Index out of range")]
  return forge
}

/// The same with a task and other threads: every section that there is.
private func completeForge() -> RecordForge {
  var forge = fullForge()
  forge.task = (17, "nightly export")
  forge.otherThreads = [[0x7fff_0000_0200, 0x5555_0000_5000], [], [0x7fff_0000_0300]]
  return forge
}

@Suite struct CrashRecordReadTests {
  @Test func everyFieldComesBack() throws {
    let record = try CrashRecord.read(bytes: fullForge().bytes())
    #expect(record.hasCrash && record.isComplete && record.notes.isEmpty)
    #expect(record.runState == .alive)
    let report = record.report()
    #expect(report.type == "SIGSEGV")
    #expect(report.signal?.codeName == "SEGV_MAPERR")
    #expect(report.signal?.address == Address(rawValue: 0x10))
    #expect(report.signal?.senderPID == nil)
    #expect(report.service == "orderd" && report.release == "1.4.0" && report.environment == "production")
    #expect(report.userID == "usr_7c1e" && report.operation == "POST /checkout")
    #expect(report.tags == [Tag(key: "region", value: "eu-west")])
    #expect(report.breadcrumbs.map(\.message) == ["started", "cache miss"])
    #expect(report.breadcrumbs.first?.category == "db")
    #expect(report.process?.executable == "/opt/orderd/bin/orderd")
    #expect(report.process?.architecture == "x86_64" && report.process?.id == 4242)
    #expect(report.message == "Fatal error: Index out of range")
    #expect(report.timestamp?.rawValue == 1_790_000_000_123_456_789)
    #expect(report.images.map(\.name) == ["orderd", "libc.so.6"])
    #expect(report.images[0].buildID == BuildID(bytes: 1...20))
    let thread = try #require(report.crashedThread)
    #expect(thread.name == "orderd" && thread.depth == 3 && thread.status == .captured)
    #expect(thread.frames.count == 3)
    #expect(thread.frames[0].captured?.kind == .programCounter)
    #expect(thread.frames[1].captured?.kind == .returnAddress)
    #expect(thread.frames[1].captured?.imageOffset == ImageOffset(rawValue: 0x2000))
    #expect(thread.frames[2].captured?.imageIndex == 1)
    #expect(thread.registers.count == 18)
    #expect(thread.registers.first { $0.name == "rip" }?.value == 0x5555_0000_1234)
  }

  @Test func otherThreadsAndTheTaskComeBack() throws {
    var forge = RecordForge()
    forge.frames = [0x1010, 0x2020]
    forge.otherThreads = [[0x3030, 0x4040, 0x5050], [], [0x6060]]
    forge.task = (17, "nightly export")
    let record = try CrashRecord.read(bytes: forge.bytes())
    #expect(record.isComplete)
    #expect(record.task == TaskInfo(id: 17, name: "nightly export"))
    #expect(record.threads.map(\.id) == [4242, 5000, 5001, 5002])
    #expect(record.threads.map(\.crashed) == [true, false, false, false])
    let addresses = record.threads.map { $0.frames.compactMap { $0.captured?.address.rawValue } }
    #expect(addresses == [[0x1010, 0x2020], [0x3030, 0x4040, 0x5050], [], [0x6060]])
  }

  @Test func idIsTheSameEachTimeAndCarriesTheCrashTime() throws {
    let bytes = fullForge().bytes()
    let id = try CrashRecord.read(bytes: bytes).report().id
    #expect(try CrashRecord.read(bytes: bytes).report().id == id)
    let digits = Array(id)
    #expect(digits.count == 36 && digits[14] == "7" && "89ab".contains(digits[19]))
    let milliseconds = try #require(Hex.value(id.prefix(8) + id.dropFirst(9).prefix(4)))
    #expect(milliseconds == 1_790_000_000_123)
    let other = try CrashRecord.read(bytes: RecordForge(number: 8).bytes()).report().id
    #expect(other != id)
  }

  @Test func deepStackSaysWhatIsMissing() throws {
    var forge = fullForge()
    forge.bottomFrames = [0x5555_0000_3000, 0x5555_0000_4000]
    forge.depth = 100_005
    let thread = try #require(try CrashRecord.read(bytes: forge.bytes()).report().crashedThread)
    #expect(thread.frames.count == 6)
    #expect(thread.frames[3] == .omitted(count: 100_000))
    #expect(thread.frames[5].captured?.address == Address(rawValue: 0x5555_0000_4000))
    #expect(thread.depth == 100_005)
  }

  @Test func addressOnlyWhereTheSignalDefinesIt() throws {
    var forge = fullForge()
    forge.signal = 6
    forge.code = -6
    forge.signalFlags = 2
    let signal = try #require(try CrashRecord.read(bytes: forge.bytes()).signal)
    #expect(signal.address == nil && signal.senderPID == 77)
    #expect(signal.name == "SIGABRT" && signal.codeName == "SI_TKILL")
  }

  @Test func aliveRunHasNoCrash() throws {
    var forge = fullForge()
    forge.crashState = 0
    forge.runState = 2
    let record = try CrashRecord.read(bytes: forge.bytes())
    #expect(!record.hasCrash && !record.isComplete && record.runState == .exited)
    #expect(record.threads.isEmpty && record.notes.isEmpty)
    #expect(record.report().kind == .termination)
  }

  @Test func cxxExceptionTypeIsReadable() throws {
    var forge = fullForge()
    forge.messages = [(3, "St13runtime_error")]
    let report = try CrashRecord.read(bytes: forge.bytes()).report()
    #expect(report.message == "terminate called after throwing an instance of 'std::runtime_error'")
  }

  @Test func ringKeepsOrderByNumber() throws {
    var forge = fullForge()
    forge.breadcrumbs = (1...200).map { "crumb \($0)" }
    let record = try CrashRecord.read(bytes: forge.bytes())
    #expect(record.breadcrumbs.map(\.message) == (73...200).map { "crumb \($0)" })
  }

  @Test func notesBecomeSentences() throws {
    var forge = fullForge()
    forge.notes = [(1, 2, 11, 0x1234), (2, 6, 99, 0x5678), (4, 0, 3, 0), (5, 2, 4242, 0), (77, 0, 0, 0)]
    let record = try CrashRecord.read(bytes: forge.bytes())
    #expect(record.notes.count == 5 && record.isComplete)
    #expect(record.notes[0].contains("SIGSEGV") && record.notes[0].contains("walking the stack"))
    #expect(record.notes[1].contains("Thread 99") && record.notes[1].contains("SIGABRT"))
  }
}

@Suite struct CrashRecordDamageTests {
  @Test func wrongFilesHaveTheirOwnReasons() {
    func error(_ bytes: [UInt8]) -> RecordError? {
      do throws(RecordError) {
        _ = try CrashRecord.read(bytes: bytes)
        return nil
      } catch { return error }
    }
    #expect(error([]) == .empty)
    #expect(error([UInt8](repeating: 0, count: 100_000)) == .notARecord)
    #expect(error(Array("ELF".utf8)) == .notARecord)
    var bytes = fullForge().bytes()
    #expect(error(Array(bytes[..<4095])) == .headerCut(length: 4095))
    bytes.put(UInt32(2), at: 8)
    #expect(error(bytes) == .unsupportedVersion(2))
    bytes.put(UInt32(1), at: 8)
    bytes[40] ^= 1
    #expect(error(bytes) == .headerDamaged)
    bytes[40] ^= 1
    bytes.put(UInt32(33), at: 28)
    RecordForge.seal(&bytes)
    #expect(error(bytes) == .headerInvalid(field: "section_count", value: 33))
    bytes.put(UInt32(11), at: 28)
    bytes.put(UInt64.max, at: 16)
    RecordForge.seal(&bytes)
    #expect(error(bytes) == .headerInvalid(field: "file_size", value: .max))
  }

  /// In four parts, for the processors of the machine: it is a hundred thousand records.
  @Test(arguments: 0..<4) func cutAtEveryByte(part: Int) throws {
    let bytes = completeForge().bytes()
    let runID = try CrashRecord.read(bytes: bytes).runID
    bytes.withUnsafeBytes { buffer in
      for length in stride(from: part, to: bytes.count, by: 4) {
        let isRight: Bool
        do throws(RecordError) {
          let record = try CrashRecord.read(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<length]))
          // Never an answer that looks whole.
          isRight = length >= 4096 && !record.isIntact && !record.notes.isEmpty && record.runID == runID
        } catch {
          isRight = length < 4096 && !error.description.isEmpty
        }
        // Not `#expect` for each: it takes as long as the reading.
        if !isRight { Issue.record("cut to \(length) bytes, the record looks whole, or gives no reason") }
      }
    }
  }

  /// Every bit of the header and of its table: refused, noted, or without an effect.
  @Test func everyFlippedBitOfTheHeader() throws {
    var bytes = completeForge().bytes()
    let whole = try CrashRecord.read(bytes: bytes)
    let states = 72..<84
    var noted = 0
    for position in 0..<88 + 40 * 32 {
      for bit in 0..<8 {
        bytes[position] ^= 1 << bit
        let isRight: Bool
        do throws(RecordError) {
          let record = try CrashRecord.read(bytes: bytes)
          if !record.isIntact { noted += 1 }
          isRight = position >= 68 && (states.contains(position) || !record.isIntact || record == whole)
          _ = record.report()
        } catch {
          isRight = position < 68 && !error.description.isEmpty
        }
        bytes[position] ^= 1 << bit
        if !isRight { Issue.record("bit \(bit) of byte \(position) changes the record without a word") }
      }
    }
    // Of each of the fifteen rows all of type and commit word, and most of offset and length.
    #expect(noted > 15 * (32 + 32 + 100))
  }

  @Test func everyFlippedByteIsNoticedOrHarmless() throws {
    let forge = completeForge()
    let bytes = forge.bytes()
    var damaged = bytes
    var refused = 0
    var noted = 0
    // All of the header and of the small sections; of the large ones every 17th byte, of the padding none.
    var positions = Array(0..<88 + 40 * 32)
    for row in 0..<15 {
      let offset = Int(bytes.get(UInt64.self, at: 88 + 40 * row + 8))
      let length = Int(bytes.get(UInt64.self, at: 88 + 40 * row + 24))
      positions += stride(from: offset, to: offset + length, by: length > 600 ? 17 : 1)
    }
    for index in positions {
      damaged[index] ^= index.isMultiple(of: 2) ? 0xff : UInt8(1 << (index % 8))
      do throws(RecordError) {
        let record = try CrashRecord.read(bytes: damaged)
        if !record.notes.isEmpty { noted += 1 }
        _ = record.report()
      } catch { refused += 1 }
      damaged[index] = bytes[index]
    }
    // The fixed part of the header and its checksum, byte for byte.
    #expect(refused == 68)
    // At least the bytes of the sections with a checksum: process, images, paths, signal, threads, frames, registers,
    // other threads and their frames, and of the larger messages and the task every 17th.
    #expect(noted > 4_448 / 17 + 192 + 35 + 64 + 64 + 48 + 280 + 8_192 / 17 + 2_192 / 17 + 192 + 48)
  }

  @Test func randomDamageWithValidChecksumsNeverTraps() {
    var generator = SeededGenerator(seed: 20_260_101)
    let clean = completeForge().bytes()
    let rows = 15
    var answers = 0
    for _ in 0..<3_000 {
      var bytes = clean
      for _ in 0..<Int.random(in: 1...12, using: &generator) {
        let section = Int.random(in: 0..<rows, using: &generator)
        let row = 88 + 40 * section
        if Bool.random(using: &generator) {
          let field = [0, 8, 16, 24, 32].randomElement(using: &generator)!
          let value: UInt64 =
            [0, 1, 4095, 4096, 8192, UInt64.max, UInt64(Int64.max), UInt64(UInt32.max), 1 << 31].randomElement(
              using: &generator)!
          field == 0 || field == 32
            ? bytes.put(UInt32(truncatingIfNeeded: value % 16), at: row + field) : bytes.put(value, at: row + field)
        } else {
          let offset = Int(clean.get(UInt64.self, at: row + 8))
          let length = Int(clean.get(UInt64.self, at: row + 24))
          guard length > 0 else { continue }
          let position = offset + Int.random(in: 0..<length, using: &generator)
          bytes[position] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &generator)!
          let rowIntact = bytes[row..<row + 40] == clean[row..<row + 40]
          if rowIntact { RecordForge.sealSection(section, in: &bytes) }
        }
      }
      if let record = try? CrashRecord.read(bytes: bytes) {
        answers += 1
        let report = record.report()
        #expect(report.threads.reduce(0) { $0 + $1.frames.count } <= 2_000)
      }
    }
    #expect(answers == 3_000)
  }

  @Test func hugeCountsAreBoundedByTheFile() throws {
    var forge = fullForge()
    forge.frames = (0..<500).map { 0x5555_0000_0000 + UInt64($0) }
    var bytes = forge.bytes()
    // The thread claims four billion frames twice over, and all images share the longest path.
    let threads = Int(bytes.get(UInt64.self, at: 88 + 40 * 6 + 8))
    bytes.put(UInt32.max, at: threads + 28)
    bytes.put(UInt32.max, at: threads + 32)
    bytes.put(UInt64.max, at: threads + 16)
    RecordForge.sealSection(6, in: &bytes)
    let record = try CrashRecord.read(bytes: bytes)
    let thread = try #require(record.threads.first)
    #expect(thread.frames.count <= 501 && thread.status == .partial)
    #expect(record.notes.contains { $0.contains("lost") })
  }

  @Test func sharedPathsDoNotGrow() throws {
    var forge = fullForge()
    forge.images = (0..<1_000).map {
      .init(
        path: $0 == 0 ? String(repeating: "p", count: 4_000) : "", address: UInt64($0) << 20, size: 4096, buildID: [1])
    }
    var bytes = forge.bytes()
    let images = Int(bytes.get(UInt64.self, at: 88 + 40 * 3 + 8))
    for index in 0..<1_000 {
      bytes.put(UInt32(0), at: images + 96 * index + 52)
      bytes.put(UInt16(4_000), at: images + 96 * index + 56)
    }
    RecordForge.sealSection(3, in: &bytes)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.images.reduce(0) { $0 + $1.path.utf8.count } == 4_000)
    #expect(record.notes == ["999 images lost their paths."])
  }

  @Test func overlappingSectionsAreRefusedOneByOne() throws {
    var bytes = fullForge().bytes()
    // Frames moved onto threads.
    bytes.put(bytes.get(UInt64.self, at: 88 + 40 * 6 + 8), at: 88 + 40 * 7 + 8)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.notes.contains { $0.contains("frames is damaged: it overlaps threads") })
    #expect(record.signal != nil && !record.isIntact)
  }

  @Test func tornSlotsAreLeftOutAndTheRestIsUsed() throws {
    var bytes = fullForge().bytes()
    let scope = Int(bytes.get(UInt64.self, at: 88 + 40 * 1 + 8))
    bytes.put(UInt32(3), at: scope + 136)  // release
    let crumbs = Int(bytes.get(UInt64.self, at: 88 + 40 * 2 + 8))
    bytes.put(UInt64(3), at: crumbs + 64 + 256)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.release == nil && record.service == "orderd")
    #expect(record.breadcrumbs.map(\.message) == ["started"])
    #expect(record.notes.count == 2)
  }

  @Test func unfinishedStagesLeaveTheRegisters() throws {
    var forge = fullForge()
    forge.crashState = 1
    var bytes = forge.bytes()
    for section in [6, 7, 9, 10] { bytes.put(UInt32(0), at: 88 + 40 * section + 32) }
    let record = try CrashRecord.read(bytes: bytes)
    let report = record.report()
    #expect(record.hasCrash && !record.isComplete)
    #expect(report.crashedThread?.status == .partial)
    #expect(report.crashedThread?.frames.first?.captured?.imageIndex == 0)
    #expect(report.notes.contains { $0.contains("did not come to its end") })
  }

  @Test func unknownSectionsAreSkipped() throws {
    var bytes = fullForge().bytes()
    // A row more, with the place and the checksum of nothing.
    let rows: UInt32 = bytes.get(UInt32.self, at: 28)
    let row = 88 + 40 * Int(rows)
    bytes.put(rows + 1, at: 28)
    bytes.put(UInt32(9_999), at: row)
    bytes.put(UInt64(bytes.count), at: row + 8)
    bytes.put(UInt32(0x434f_4d4d), at: row + 32)
    RecordForge.seal(&bytes)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.isComplete && record.notes.isEmpty)
  }

  /// A damaged type looks like that of a section that is not known.
  @Test(arguments: [(0, "process"), (5, "signal"), (10, "notes")]) func missingSectionIsNoted(row: Int, name: String)
    throws
  {
    var bytes = fullForge().bytes()
    bytes.put(UInt32(9_999), at: 88 + 40 * row)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(!record.isIntact && record.notes == ["The section \(name) is missing."])
  }
}
