// Every format that `symbolicate` reads, on any bytes in a file: an event or an error with a reason for each, never a trap,
// never silence. What was read as a report is written, and read again: the same bytes come out.

nonisolated(unsafe) private let input = InputInMemory()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  input.read("", start, count) { input.checkThatItIsReadAgain($0) }
  return 0
}
