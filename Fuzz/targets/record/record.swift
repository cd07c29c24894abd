// The record reader on any bytes: a record or an error with a reason, never a trap, and a record that can be reported.
//
// An input that begins with the magic is a file as it is. Every other one is a recipe (Recipe.swift): most files would end
// at the first checksum, which no mutation finds, so the file is made here, sealed, from the sections that the recipe holds.

import CrashModel

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  if CrashRecord.matches(prefix: input) {
    check(input)
    return 0
  }
  guard let recipe = Recipe(input) else { return -1 }
  recipe.withFile(check)
  return 0
}

private func check(_ file: UnsafeRawBufferPointer) {
  do throws(RecordError) {
    let record = try CrashRecord.read(bytes: file)
    precondition(file.count >= CrashRecord.headerSize, "a record without a header")
    precondition(record.runID.count == 16 && record.reportEntropy.count == 16, "ids of another length")
    let frames = record.threads.reduce(0) { $0 + $1.frames.count }
    // 16 bytes for each frame, and one that stands for the omitted ones in each thread of 64 bytes.
    precondition(frames <= file.count / 16 + file.count / 64, "more frames than the file has room for")
    let report = record.report()
    precondition(!report.json().isEmpty && report.id.utf8.count == 36, "a report without content")
  } catch {
    precondition(!error.description.isEmpty, "an error without a reason")
  }
}
