import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct CheckTests {
  private func check(_ arguments: String...) throws -> ChildProcess.Outcome {
    try ChildProcess([SymbolicateTool.path, "check"] + arguments).run()
  }

  private func facts(_ path: String) throws -> [String: Any] {
    try #require(try objects(try check("-f", "ndjson", path), schema: "debug-file/1").first)
  }

  @Test func aProgramWithEverything() throws {
    let program = try BuiltProgram()
    let outcome = try check(program.path)
    #expect(outcome.status == .exited(0) && outcome.errors.isEmpty)
    #expect(outcome.text.hasPrefix(program.path + "\n  build id           \(program.buildID)\n"), "\(outcome.text)")
    #expect(outcome.text.contains("DWARF 5 in 1 unit (C), line table"))
    #expect(outcome.text.contains(".eh_frame, .eh_frame_hdr"))
    #expect(outcome.text.contains("usable             yes: functions, inlined functions, files and lines\n"))

    let facts = try facts(program.path)
    #expect(facts["build_id"] as? String == program.buildID)
    #expect(facts["kind"] as? String == "program" && facts["usable"] as? Bool == true)
    #expect(facts["names"] as? String == "lines" && facts["remarks"] == nil && facts["swift"] as? Bool == false)
    let information = try #require(facts["debug_information"] as? [String: Any])
    #expect(information["units"] as? Int == 1 && information["versions"] as? [Int] == [5])
    #expect(information["languages"] as? [String] == ["C"] && information["problem"] == nil)
    // What readelf counts, without the entry that means none.
    let symbols = try BuiltProgram.run(["/usr/bin/env", "readelf", "-sW", program.path]).split(separator: "\n")
    let counts = symbols.compactMap { line in
      line.hasPrefix("Symbol table '") ? Int(line.split(separator: " ").dropLast().last ?? "") : nil
    }
    #expect(counts.sorted() == [facts["dynamic_symbols"], facts["symbols"]].compactMap { ($0 as? Int).map { $0 + 1 } })
  }

  /// Each state that makes a file less than it was, and what is said of it.
  @Test func whatIsMissingAndWhy() throws {
    let program = try BuiltProgram()
    let folder = program.folder
    let cases: [(file: String, status: Int32, names: String, remark: String)] = [
      (try BuiltProgram.compile("noid", in: folder, ["-Wl,--build-id=none"]), 1, "lines", "-Xlinker --build-id"),
      (try BuiltProgram.compile("nodebug", in: folder, ["-g0"]), 0, "functions", "compiled without -g"),
      (try program.objcopy("symbols", "--strip-debug"), 0, "functions", "names and no lines"),
      (try program.objcopy("bare", "--strip-all"), 1, "exported", "it is stripped"),
      (
        try BuiltProgram.compile(
          "framed.so", in: folder,
          ["-shared", "-fPIC", "-nostdlib", "-fno-asynchronous-unwind-tables", "-Wl,--no-ld-generated-unwind-info"]), 0,
        "lines",
        "-fno-asynchronous-unwind-tables"
      ),
      (
        try BuiltProgram.compile("split", in: folder, ["-gsplit-dwarf"]), 0, "lines",
        "the functions of 1 of its units are in .dwo files"
      ),
      (try program.objcopy("noline", "--remove-section=.debug_line"), 0, "functions", "no line table"),
      (try BuiltProgram.compile("object.o", in: folder, ["-c", "-Wno-unused"]), 1, "lines", "not linked yet"),
    ]
    for (file, status, names, remark) in cases {
      let outcome = try check(file)
      #expect(outcome.status == .exited(status), "\(outcome.text)\(outcome.errorText)")
      #expect(outcome.text.contains(remark), "\(outcome.text)")
      let facts = try facts(file)
      #expect(facts["names"] as? String == names, "\(file)")
      #expect((facts["remarks"] as? [String])?.contains { $0.contains(remark) } == true, "\(file)")
      #expect(facts["usable"] as? Bool == (status == 0))
    }
    // DWARF of another version, and of two.
    let old = try facts(try BuiltProgram.compile("four", in: folder, ["-gdwarf-4"]))
    #expect((old["debug_information"] as? [String: Any])?["versions"] as? [Int] == [4])
  }

  @Test(arguments: [
    ("zlib-gabi", "zlib", ".debug_info"), ("zlib-gnu", "zlib-gnu", ".zdebug_info"), ("zstd", "zstd", ".debug_info"),
  ])
  func compressedSections(flag: String, method: String, section: String) throws {
    let program = try BuiltProgram()
    // A unit of this size would not get smaller, and then stays as it is.
    let many = (0..<200).map { "int function_\($0)(int value) { return value * \($0) + VALUE; }\n" }.joined()
    let source = try program.folder.file("many.c", Array((BuiltProgram.source + many).utf8))
    let path = program.folder.path + "/many"
    try BuiltProgram.run(["/usr/bin/gcc", "-g", "-O1", "-DVALUE=1", "-Wl,--build-id", "-o", path, source])
    let copy = program.folder.path + "/compressed"
    let made = try ChildProcess(["/usr/bin/objcopy", "--compress-debug-sections=\(flag)", path, copy]).run()
    // binutils without zstd.
    if flag == "zstd", made.status != .exited(0) { return }
    let facts = try facts(copy)
    let sections = try #require(facts["compressed_sections"] as? [[String: String]])
    #expect(sections.contains { $0["name"] == section && $0["method"] == method }, "\(sections)")
    #expect(try check(copy).text.contains("compressed         with \(method): "))
    let information = try #require(facts["debug_information"] as? [String: Any])
    #expect(information["units"] as? Int == 1 && facts["usable"] as? Bool == true)
  }

  /// A stripped program and its debug file are one whole, found by the build id or by the link.
  @Test func partsThatBelongTogether() throws {
    let program = try BuiltProgram()
    let debug = try program.objcopy("program.debug", "--only-keep-debug")
    let bare = try program.objcopy("bare", "--strip-all", "--add-gnu-debuglink=\(debug)")
    let alone = try check(bare)
    #expect(alone.status == .exited(1))
    #expect(alone.text.contains("its debug information is in \(debug); give that file"), "\(alone.text)")
    #expect(alone.text.contains(".gnu_debuglink     program.debug (CRC 0x"))
    let both = try check(bare, debug)
    #expect(both.status == .exited(0), "\(both.text)")
    #expect(both.text.contains("usable             not by itself"))
    #expect(both.text.contains("\(debug) has the same build id and what is missing"))
    let facts = try objects(try check("-f", "ndjson", bare, debug))
    #expect(facts[0]["completed_by"] as? String == debug && facts[1]["kind"] as? String == "debug file")
    #expect(facts[1]["code"] as? Bool == false && facts[1]["usable"] as? Bool == true)
    #expect(facts.last?["usable_files"] as? Int == 1)
    // The file that the link names is of another build: not found.
    try write(try #require(contents(of: BuiltProgram("other", in: program.folder, value: 7).path)), to: debug)
    #expect(try check(bare).text.contains("program.debug, which is not beside it"))
  }

  @Test func alternateLinkAndCompressedSymbols() throws {
    guard access("/usr/bin/dwz", X_OK) == 0, access("/usr/bin/xz", X_OK) == 0 else { return }
    let program = try BuiltProgram()
    let other = try BuiltProgram("other", in: program.folder, value: 2)
    let common = program.folder.path + "/common.debug"
    try BuiltProgram.run(["/usr/bin/dwz", "-m", common, "-M", "common.debug", program.path, other.path])
    var link = try #require(try facts(program.path)["alternate_link"] as? [String: String])
    #expect(link["name"] == "common.debug" && link["found"] == common, "\(link)")
    #expect(link["build_id"] == (try BuiltProgram.buildID(of: common)))
    unlink(common)
    let outcome = try check(program.path)
    link = try #require(try facts(program.path)["alternate_link"] as? [String: String])
    #expect(link["found"] == nil && outcome.text.contains("common.debug (build id "), "\(outcome.text)")

    let symbols = try BuiltProgram("plain", in: program.folder).objcopy("symbols", "--strip-debug")
    try BuiltProgram.run(["/usr/bin/xz", "-k", symbols])
    let mini = program.folder.path + "/mini"
    try BuiltProgram.run([
      "/usr/bin/objcopy", "--strip-all", "--add-section=.gnu_debugdata=\(symbols).xz", symbols, mini,
    ])
    let facts = try facts(mini)
    #expect((facts["debugdata_size"] as? Int ?? 0) > 100)
    #expect(try check(mini).text.contains(".gnu_debugdata ("))
  }

  /// Everything below, each file once, without running in circles.
  @Test func directories() throws {
    let program = try BuiltProgram()
    let folder = program.folder
    _ = try folder.file("deep/er/notes.txt", Array("no ELF file".utf8))
    let below = folder.path + "/deep/er/below"
    try BuiltProgram.run(["/bin/cp", program.path, below])
    #expect(symlink("../..", folder.path + "/deep/er/loop") == 0)
    #expect(symlink("below", folder.path + "/deep/er/alias") == 0)
    #expect(symlink("nowhere", folder.path + "/deep/er/dangling") == 0)
    #expect(mkfifo(folder.path + "/deep/er/fifo", 0o600) == 0)
    let outcome = try check("-v", folder.path + "/deep")
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.text.components(separatedBy: "build id  ").count == 2, "\(outcome.text)")
    for reason in ["notes.txt: skipped: no ELF file", "loop: skipped: a link to a directory", "fifo: skipped"] {
      #expect(outcome.errorText.contains(reason), "\(outcome.errorText)")
    }
    // Never an empty answer.
    let empty = try check(folder.path + "/sources")
    #expect(empty.status == .exited(2) && empty.errorText.contains("no program, library or debug file in it"))
    let missing = try check(folder.path + "/missing")
    #expect(missing.status == .exited(2))
    #expect(missing.errorText.contains("missing: no such file or directory; it cannot be used"))
    let text = try check(folder.path + "/deep/er/notes.txt", program.path)
    #expect(text.status == .exited(1) && text.errorText.contains("is not an ELF file"))
    #expect(try check(folder.path + "/deep/er/fifo").errorText.contains("not a regular file"))
    if geteuid() != 0 {
      chmod(below, 0)
      #expect(try check(folder.path + "/deep").errorText.contains("below: cannot be opened: permission denied"))
    }
  }

  // MARK: For a report

  @Test func whatAReportNeeds() throws {
    let program = try BuiltProgram()
    let folder = program.folder
    let report = try folder.file("crash.json", try program.report(place: "/srv/app/program").json())
    let bare = try program.objcopy("bare", "--strip-all")
    let other = try BuiltProgram("other/program", in: makeDirectory("other", in: folder), value: 9)

    func run(_ files: String...) throws -> (outcome: ChildProcess.Outcome, images: [[String: Any]]) {
      let arguments = ["check", "--for", report] + files
      let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
      let lines = try ChildProcess([SymbolicateTool.path] + arguments + ["-f", "ndjson"]).run()
      #expect(lines.status == outcome.status)
      let coverage = try #require(try objects(lines, schema: "debug-coverage/1").first)
      #expect(coverage["covered"] as? Bool == (outcome.status == .exited(0)))
      return (outcome, try #require(coverage["images"] as? [[String: Any]]))
    }

    let fits = try run(program.path)
    #expect(fits.outcome.status == .exited(0), "\(fits.outcome.text)")
    #expect(fits.outcome.text.contains("crash.json (0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b): covered\n"))
    #expect(fits.images.count == 2 && fits.images[0]["file"] as? String == program.path)
    #expect(fits.images[0]["frames"] as? Int == 2 && fits.images[0]["in_app"] as? Bool == true)
    // The system's libraries come without debug files everywhere.
    #expect(fits.images[1]["status"] as? String == "missing" && fits.images[1]["in_app"] as? Bool == false)
    #expect(fits.outcome.text.contains("of the system: no given file has build id 0102030405"))

    let wrong = try run(other.path)
    #expect(wrong.outcome.status == .exited(1))
    #expect(wrong.images[0]["status"] as? String == "other_build")
    // Both ids are said.
    #expect(wrong.outcome.text.contains("\(other.path) has build id \(other.buildID)"), "\(wrong.outcome.text)")
    #expect(wrong.outcome.text.contains("with build id \(program.buildID)"))

    let stripped = try run(bare)
    #expect(stripped.outcome.status == .exited(1) && stripped.images[0]["status"] as? String == "insufficient")
    #expect(stripped.outcome.text.contains("it is stripped"))

    // The debug file beside the stripped program, and the wrong one too: covered.
    let both = try run(bare, other.path, try program.objcopy("program.debug", "--only-keep-debug"))
    #expect(both.outcome.status == .exited(0), "\(both.outcome.text)")

    let text = try ChildProcess([SymbolicateTool.path, "check", "--for", program.path, program.path]).run()
    #expect(text.status == .exited(2) && text.errorText.contains("program: "), "\(text.errorText)")
    let array = try ChildProcess([SymbolicateTool.path, "check", "-f", "json", "--pretty", "--for", report, bare]).run()
    let values = try #require(try JSONSerialization.jsonObject(with: Data(array.output)) as? [[String: Any]])
    #expect(values.map { $0["schema"] as? String } == ["debug-file/1", "debug-coverage/1"])
  }

  private func makeDirectory(_ name: String, in folder: TemporaryDirectory) throws -> TemporaryDirectory {
    try FileManager.default.createDirectory(atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true)
    return folder
  }

  // MARK: Hostile files

  /// Cut at many places and with bytes changed: always an answer, never the end by a signal.
  @Test func damagedFiles() throws {
    let program = try BuiltProgram()
    let whole = try #require(contents(of: program.path))
    let folder = try TemporaryDirectory("damaged")
    var random = SeededGenerator(seed: 7)
    for number in 0..<150 {
      let length = Int.random(in: 5..<whole.count, using: &random)
      _ = try folder.file("cut/\(number)", Array(whole.prefix(length)))
      var changed = whole
      // The headers most of all: they are what is read.
      for _ in 0..<8 {
        let limit = Bool.random(using: &random) ? 1_024 : changed.count
        changed[Int.random(in: 4..<limit, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let tail = changed.count - Int.random(in: 1...2_048, using: &random)
      changed[tail] = 0xff
      _ = try folder.file("changed/\(number)", changed)
    }
    for directory in ["cut", "changed"] {
      let outcome = try check("-f", "ndjson", "\(folder.path)/\(directory)")
      #expect(outcome.status == .exited(1) || outcome.status == .exited(2), "\(outcome.status)")
      let lines = try objects(outcome)
      // Each file has its answer.
      let skipped = lines.last?["skipped"] as? Int ?? -1
      #expect(lines.count + skipped == 151 && lines.last?["schema"] as? String == "symbolicate-summary/1")
      let store = try SymbolicateTool.run(
        "store", "add", "--store", "\(folder.path)/store", "-f", "ndjson", "\(folder.path)/\(directory)")
      guard case .exited = store.status else {
        Issue.record("store add ended with \(store.status)")
        continue
      }
      let summary = try #require(try objects(store).last)
      let counts = ["files", "errors", "skipped"].map { summary[$0] as? Int ?? -1 }
      #expect(counts.reduce(0, +) == 150, "\(counts)")
    }
  }
}
