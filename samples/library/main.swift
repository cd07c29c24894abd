import CrashFormats
import CrashModel
import Symbolication

// library FILE [DIR...]: the crashes of a file, with names from debug files below the directories, as Markdown.
let arguments = CommandLine.arguments.dropFirst()
guard let file = arguments.first, let reader = InputReader() else { fatalError("usage: library FILE [DIR...]") }

// Keeps the files that it opened: one for all reports.
let symbolicator = Symbolicator(search: DebugFileSearch(directories: Array(arguments.dropFirst())))
let hasher = StackHasher()
let redactor = Redactor()

try reader.read(path: file) { event in
  switch event {
  case .report(var report, _):
    // Whoever wrote it: twice changes nothing.
    redactor.redact(&report)
    let result = symbolicator.symbolicate(report)
    report = result.report
    let analysis = hasher.analyze(report, runtimeFailure: result.runtimeFailure)
    report.reason = analysis.reason
    report.stackHash = analysis.hash
    // Marks the frames of the application, which formats show first.
    analysis.decideOwnership(in: &report)
    print(MarkdownReportWriter().text(of: report))
  case .skipped(let why, let line), .problem(let why, let line):
    print("line \(line ?? 1): \(why)")
  }
  return true  // false ends the reading
}
