internal import CrashModel
private import Glibc

// batch-probe generate REPORTS BUGS SEED   the reports, one a line, on standard output
// batch-probe measure REPORTS BUGS SEED    JSON: what each part of the work costs, over so many reports in memory

func fail(_ message: String) -> Never {
  Array("batch-probe: \(message)\n".utf8).withUnsafeBytes { write($0, to: STDERR_FILENO) }
  exit(64)
}

func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt = STDOUT_FILENO) {
  var written = 0
  while written < bytes.count {
    let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
    if count < 0, errno == EINTR { continue }
    // Whoever read it has enough, or is gone.
    guard count > 0 else { exit(1) }
    written += count
  }
}

let arguments = CommandLine.arguments.dropFirst()
let numbers = arguments.dropFirst().compactMap { Int($0) }
guard arguments.count == 4, numbers.count == 3, numbers.allSatisfy({ $0 >= 0 }) else {
  fail("generate|measure REPORTS BUGS SEED")
}
var generated = GeneratedReports(bugs: numbers[1], seed: UInt64(numbers[2]))
switch arguments.first {
case "generate":
  var writer = JSONWriter()
  for number in 0..<numbers[0] {
    generated.next(number: number).write(to: &writer)
    writer.newline()
    if writer.count >= 1 << 18 || number == numbers[0] - 1 {
      writer.withBytes { write($0) }
      writer.removeAll()
    }
  }
case "measure":
  let lines = (0..<numbers[0]).map { generated.next(number: $0).json() }
  guard let measurements = Measurements(lines) else { fail("no memory") }
  do {
    let grouping = try measurements.grouping(rounds: 3)
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("bytes_per_report", lines.reduce(0) { $0 + $1.count } / max(lines.count, 1))
    writer.member("parsing_megabytes_per_second", Int(try measurements.parsing(rounds: 3)))
    let named = try measurements.grouping(ofNamed: 10)
    writer.member("outlined_megabytes_per_second", Int(named.parsing))
    writer.member("named_reports_per_second", Int(named.grouped))
    writer.member("writing_megabytes_per_second", Int(try measurements.writing(rounds: 3)))
    writer.member("analysed_reports_per_second", Int(grouping.analysed))
    writer.member("grouped_reports_per_second", Int(grouping.known))
    writer.member("shown_reports_per_second", Int(grouping.shown))
    writer.member("groups", grouping.groups)
    writer.endObject()
    writer.newline()
    writer.withBytes { write($0) }
  } catch {
    fail("\(error)")
  }
default: fail("generate|measure REPORTS BUGS SEED")
}
