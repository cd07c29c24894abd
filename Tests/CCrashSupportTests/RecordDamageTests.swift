import CrashModel
import Foundation
import TestSupport
import Testing

/// A record that a real crash left, cut and damaged: what the reader says about the rest is true, or it says why not.
@Suite struct RecordDamageTests {
  /// The fixed part of the header ends with its checksum; what changes while the program runs follows; then the table.
  static let fixedSize = 68
  static let statesStart = 72
  static let tableStart = 88
  static let rowSize = 40
  static let rows = 32
  static let page = 4096

  /// The record of a program that was ended by a damaged heap: several threads, a message, notes.
  static let captured = Result {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("damage")
    guard mkdir("\(run.path)/spool", 0o700) == 0 else { throw CocoaError(.fileWriteUnknown) }
    _ = try ChildProcess([host.c, "heap_top"], environment: ["FX_DB": "\(run.path)/spool"], directory: run.path).run()
    guard let record = try CapturedRecord(in: run) else { throw CocoaError(.fileNoSuchFile) }
    return record
  }

  struct Row {
    var type: UInt32
    var offset: Int
    var capacity: Int
    var length: Int
  }

  static func table(_ bytes: [UInt8]) -> [Row] {
    bytes.withUnsafeBytes { buffer in
      (0..<Int(buffer.loadUnaligned(fromByteOffset: 28, as: UInt32.self))).map { index in
        let row = tableStart + rowSize * index
        func word(_ at: Int) -> Int { Int(buffer.loadUnaligned(fromByteOffset: row + at, as: UInt64.self)) }
        return Row(
          type: buffer.loadUnaligned(fromByteOffset: row, as: UInt32.self), offset: word(8), capacity: word(16),
          length: word(24))
      }
    }
  }

  private func read(_ bytes: UnsafeRawBufferPointer) -> Result<CrashRecord, RecordError> {
    do throws(RecordError) { return .success(try CrashRecord.read(bytes: bytes)) } catch { return .failure(error) }
  }

  @Test func theRecordIsWhole() throws {
    let captured = try Self.captured.get()
    #expect(captured.record.isComplete && captured.record.notes.isEmpty)
    #expect(captured.record.messages.count == 1 && captured.addresses.count > 5)
    let table = Self.table(captured.bytes)
    #expect(table.count > 8 && table.allSatisfy { $0.offset + $0.capacity <= captured.bytes.count })
    #expect(table.map { $0.offset + $0.capacity }.max() == captured.bytes.count)
  }

  /// At every byte of the header's page, of what each section uses and one beside it, and of the last page; of the room
  /// that no section uses, half a megabyte of zeros, at every 97th. In four parts, for the processors of the machine.
  @Test(arguments: 0..<4) func cut(part: Int) throws {
    let captured = try Self.captured.get()
    let size = captured.bytes.count
    var lengths = Set(0...Self.page + 1).union(size - Self.page..<size).union(stride(from: 0, to: size, by: 97))
    for row in Self.table(captured.bytes) {
      lengths.formUnion(row.offset - 1...row.offset + row.length + 1)
      lengths.formUnion(row.offset + row.capacity - 1...row.offset + row.capacity + 1)
    }
    let runID = captured.record.runID
    captured.bytes.withUnsafeBytes { buffer in
      for length in lengths where length < size && length % 4 == part {
        let isRight: Bool
        switch read(UnsafeRawBufferPointer(rebasing: buffer[..<length])) {
        case .success(let record):
          // Never an answer that looks whole.
          isRight =
            length >= Self.page && !record.isIntact && !record.isComplete && !record.notes.isEmpty
            && record.runID == runID
          if length.isMultiple(of: 97) { #expect(!record.report().json().isEmpty) }
        case .failure(let error): isRight = length < Self.page && !error.description.isEmpty
        }
        // Not `#expect` for each: it takes as long as the reading.
        if !isRight { Issue.record("cut to \(length) bytes, the record looks whole, or gives no reason") }
      }
    }
  }

  /// Every bit of the header and of the table of sections, used or not.
  @Test func flippedBit() throws {
    let captured = try Self.captured.get()
    var bytes = captured.bytes
    let used = Self.tableStart + Self.rowSize * Self.table(bytes).count
    var noted = 0
    for position in 0..<Self.tableStart + Self.rowSize * Self.rows {
      for bit in 0..<8 {
        bytes[position] ^= 1 << bit
        let result = bytes.withUnsafeBytes { read($0) }
        bytes[position] ^= 1 << bit
        switch result {
        case .failure(let error): #expect(position < Self.fixedSize && !error.description.isEmpty)
        case .success(let record):
          #expect(position >= Self.fixedSize, "bit \(bit) of byte \(position) of the fixed part goes unnoticed")
          // How the run stood is three words that the program changes, so that nothing guards them.
          if Self.statesStart..<Self.tableStart ~= position {
            _ = record.report()
            continue
          }
          // Noticed, or without an effect: flags, checksums of what has none, room that is not used, rows that are not.
          #expect(
            !record.isIntact || record == captured.record,
            "bit \(bit) of byte \(position) changes the record without a note: \(record.report())")
          if !record.isIntact { noted += 1 }
          if position >= used { #expect(record == captured.record) }
        }
      }
    }
    // In each row, 32 bits of type and of the commit word, and most of 64 of offset and length.
    #expect(noted > Self.table(bytes).count * (32 + 32 + 100))
  }
}
