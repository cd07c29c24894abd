internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// `symbolicate check FILE… [--for REPORT]`: what files are good for, and whether they are what a report needs.
struct CheckCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output
  private var documents: DocumentStream
  private var errors = 0

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
    documents = DocumentStream(options, output)
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    let progress = Progress(verbosity: options.verbosity, counting: .file)
    (diagnostics.progress, output.progress) = (progress, progress)
    defer { progress?.erase() }
    let walk = ELFFileWalk(options.operands)
    for skipped in walk.skipped { diagnostics.detail(skipped.path.description, "skipped: \(skipped.reason)") }
    for failure in walk.failures { try fail(failure.path.description, failure.reason) }
    var files: [CheckedFile] = []
    var skipped = walk.skipped.count
    for file in walk.files {
      progress?.step(file.path.description)
      do throws(DebugFileError) {
        let contents = try DebugFileContents(path: file.path)
        // Build directories are full of object files, which nobody asked about.
        if file.isFound, contents.kind == .object || contents.kind == .core {
          skipped += 1
          diagnostics.detail(file.path.description, "skipped: " + contents.remarks.joined(separator: "; "))
        } else {
          files.append(CheckedFile(path: file.path, contents: contents))
        }
      } catch {
        try fail(file.path.description, error.reason + "; it cannot be used")
      }
    }
    let set = CheckedFileSet(files)
    for (index, file) in files.enumerated() {
      let helper = set.helper(for: file)
      if options.format == .text {
        try output.write((index > 0 ? "\n" : "") + file.text(helper: helper))
      } else {
        try documents.add("debug-file/1") { file.write(to: &$0, helper: helper) }
      }
    }
    if files.isEmpty, walk.failures.isEmpty, errors == 0 {
      try fail(options.operands.map(\.description).joined(separator: ", "), "no program, library or debug file in it")
    }
    let reports = try checkReports(set)
    let usable = files.count { $0.contents.isUsable }
    try documents.end([
      "files": files.count, "usable_files": usable, "reports": reports?.count ?? 0,
      "covered_reports": reports?.count(where: \.isCovered) ?? 0, "errors": errors, "skipped": skipped,
    ])
    if let reports {
      guard !reports.isEmpty else { return .nothing }
      return errors == 0 && reports.allSatisfy(\.isCovered) ? .complete : .incomplete
    }
    guard !files.isEmpty else { return .nothing }
    return errors == 0 && files.allSatisfy({ $0.contents.isUsable || set.helper(for: $0) != nil })
      ? .complete : .incomplete
  }

  /// - Returns: nil where no report was named.
  private mutating func checkReports(_ set: CheckedFileSet) throws(Output.Failure) -> [ReportCoverage]? {
    guard !options.debugFiles.reports.isEmpty else { return nil }
    var reportOptions = options
    reportOptions.operands = options.debugFiles.reports
    var source = ReportSource(
      options: reportOptions, diagnostics: diagnostics, symbolicator: options.symbolicator(files: options.executables))
    var coverages: [ReportCoverage] = []
    var (documents, isFirst) = (documents, set.files.isEmpty)
    let (options, output) = (options, output)
    try source.forEach { report, place throws(Output.Failure) in
      let coverage = ReportCoverage(report, place: place, files: set)
      coverages.append(coverage)
      if options.format == .text {
        try output.write((isFirst ? "" : "\n") + coverage.text)
        isFirst = false
      } else {
        try documents.add("debug-coverage/1") { coverage.write(to: &$0) }
      }
      return true
    } onError: { file, line, message throws(Output.Failure) in
      if options.format == .ndjson { try output.write(StreamLines.error(file: file, line: line, message: message)) }
    }
    self.documents = documents
    errors += source.errorCount
    if coverages.isEmpty, source.errorCount == 0 {
      try fail(options.debugFiles.reports.map(\.description).joined(separator: ", "), "no crash in it to check for")
    }
    return coverages
  }

  private mutating func fail(_ subject: String, _ message: String) throws(Output.Failure) {
    errors += 1
    diagnostics.error(subject, message)
    try documents.error(subject, message)
  }
}

/// A file and what it holds.
struct CheckedFile {
  var path: FilePath
  var contents: DebugFileContents

  /// Whether the file bears the image's name, also as its debug file.
  func isNamed(like image: Image) -> Bool {
    let name = path.lastComponent
    return !image.name.isEmpty
      && (name.elementsEqual(image.name.utf8) || name.elementsEqual((image.name + ".debug").utf8))
  }
}

/// The files of one run, by build id.
struct CheckedFileSet {
  let files: [CheckedFile]
  private var best: [BuildID: Int] = [:]

  init(_ files: [CheckedFile]) {
    self.files = files
    for (index, file) in files.enumerated() {
      guard let id = file.contents.buildID, file.contents.kind != .core, file.contents.kind != .object else { continue }
      if let present = best[id], files[present].contents.names >= file.contents.names { continue }
      best[id] = index
    }
  }

  subscript(id: BuildID) -> CheckedFile? { best[id].map { files[$0] } }

  /// The file that has what this one lacks: a stripped program and its debug file are one whole.
  func helper(for file: CheckedFile) -> CheckedFile? {
    guard let id = file.contents.buildID, let best = self[id], best.path != file.path, best.contents.isUsable,
      best.contents.names > file.contents.names
    else { return nil }
    return best
  }
}

extension CheckedFile {
  /// ```
  /// .build/release/orderd
  ///   build id       4f2a…
  ///   file           program, x86-64, 57.9 MB
  ///   holds          DWARF 4 and 5 in 1306 units (C, Swift), line table, 30112 symbols, 2100 dynamic symbols, unwind table
  ///   usable         yes: functions, inlined functions, files and lines
  /// ```
  func text(helper: CheckedFile?) -> String {
    var rows: [(String, String)] = [
      ("build id", contents.buildID?.description ?? "none"),
      ("file", "\(contents.kind.rawValue), \(contents.architecture), \(ByteCount.text(contents.size))"),
      ("holds", holdings.isEmpty ? "nothing that names code" : holdings.joined(separator: ", ")),
    ]
    if !contents.compressedSections.isEmpty {
      let methods = Set(contents.compressedSections.map(\.method)).sorted()
      for method in methods {
        let names = contents.compressedSections.filter { $0.method == method }.map(\.name)
        rows.append(("compressed", "with \(method): \(names.joined(separator: " "))"))
      }
    }
    if let link = contents.debugLink {
      let checksum = link.checksum.map { " (CRC \(Hex.prefixed(UInt64($0))))" } ?? ""
      rows.append((".gnu_debuglink", link.name + checksum + Self.place(link)))
    }
    if let link = contents.alternateLink {
      let id = link.buildID.map { " (build id \($0))" } ?? ""
      rows.append((".gnu_debugaltlink", link.name + id + Self.place(link)))
    }
    rows.append(("usable", verdict(helper: helper)))
    let remarks = contents.remarks
    if let helper { rows.append(("", "\(helper.path) has the same build id and what is missing")) }
    rows += remarks.map { ("", $0) }
    var text = Printable.line(path.description) + "\n"
    for (title, value) in rows {
      text += "  " + title.padded(to: 17) + "  " + Printable.line(value) + "\n"
    }
    return text
  }

  private static func place(_ link: DebugFileContents.Link) -> String {
    link.found.map { "; found: \($0)" } ?? "; not found"
  }

  private var holdings: [String] {
    var list: [String] = []
    if let information = contents.debugInformation {
      if information.units > 0 {
        let versions = information.versions.map(String.init).joined(separator: " and ")
        let languages = information.languages.isEmpty ? "" : " (\(information.languages.joined(separator: ", ")))"
        let units = information.units == 1 ? "1 unit" : "\(information.units) units"
        list.append("DWARF \(versions) in \(units)\(languages)")
      } else {
        list.append("debug information")
      }
      if information.splitUnits > 0 { list.append("split DWARF in \(information.splitUnits) of them") }
    }
    if contents.hasLineTable { list.append("line table") }
    if let symbols = contents.symbols { list.append(symbols == 1 ? "1 symbol" : "\(symbols) symbols") }
    if let symbols = contents.dynamicSymbols {
      list.append(
        (symbols == 1 ? "1 dynamic symbol" : "\(symbols) dynamic symbols") + (contents.symbols == nil ? " only" : ""))
    }
    if !contents.unwindTables.isEmpty { list.append("unwind table (\(contents.unwindTables.joined(separator: ", ")))") }
    if let size = contents.miniDebugInformation { list.append(".gnu_debugdata (\(ByteCount.text(size)))") }
    return list
  }

  private func verdict(helper: CheckedFile?) -> String {
    guard contents.isUsable else {
      if helper != nil { return "not by itself" }
      return contents.buildID == nil || contents.kind == .core || contents.kind == .object || contents.names == .none
        ? "no" : "no: exported functions only"
    }
    switch contents.names {
    case .lines: return "yes: functions, inlined functions, files and lines"
    default:
      return contents.debugInformation.map { $0.units > 0 } == true
        ? "yes: functions and inlined functions, no lines" : "yes: functions, no lines"
    }
  }

  func write(to writer: inout JSONWriter, helper: CheckedFile?) {
    writer.member("file", path.description)
    writer.member("build_id", contents.buildID?.description)
    writer.member("kind", contents.kind.rawValue)
    writer.member("architecture", contents.architecture)
    writer.member("size", contents.size)
    writer.member("code", bool: contents.hasCode)
    writer.member("swift", bool: contents.isSwift)
    if let information = contents.debugInformation {
      writer.key("debug_information")
      writer.beginObject()
      writer.member("units", information.units)
      writer.key("versions")
      writer.beginArray()
      for version in information.versions { writer.integer(version) }
      writer.endArray()
      writer.member("languages", strings: information.languages)
      writer.member("split_units", information.splitUnits)
      writer.member("problem", information.problem)
      writer.endObject()
    }
    writer.member("line_table", bool: contents.hasLineTable)
    writer.member("symbols", contents.symbols)
    writer.member("dynamic_symbols", contents.dynamicSymbols)
    writer.member("unwind_tables", strings: contents.unwindTables)
    writer.member("debugdata_size", contents.miniDebugInformation)
    if !contents.compressedSections.isEmpty {
      writer.key("compressed_sections")
      writer.beginArray()
      for section in contents.compressedSections {
        writer.beginObject()
        writer.member("name", section.name)
        writer.member("method", section.method)
        writer.endObject()
      }
      writer.endArray()
    }
    for (key, link) in [("debug_link", contents.debugLink), ("alternate_link", contents.alternateLink)] {
      guard let link else { continue }
      writer.key(key)
      writer.beginObject()
      writer.member("name", link.name)
      if let checksum = link.checksum {
        writer.key("checksum")
        writer.hex(UInt64(checksum), digits: 8)
      }
      writer.member("build_id", link.buildID?.description)
      writer.member("found", link.found)
      writer.endObject()
    }
    writer.member("names", contents.names.rawValue)
    writer.member("usable", bool: contents.isUsable)
    writer.member("completed_by", helper?.path.description)
    writer.member("remarks", strings: contents.remarks)
  }
}

extension String {
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
