import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// A store in a folder of its own.
struct Store {
  let path: String

  func run(_ command: String, _ arguments: String..., strace: [String] = []) throws -> ChildProcess.Outcome {
    try ChildProcess(strace + [SymbolicateTool.path, "store", command, "--store", path] + arguments).run()
  }

  /// What `store list` says, without the summary.
  func builds() throws -> [[String: Any]] {
    let outcome = try run("list", "-f", "ndjson")
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    return try objects(outcome, schema: "symbol-store-build/1")
  }

  func file(_ id: String, _ suffix: String = "") -> String {
    "\(path)/.build-id/\(id.prefix(2))/\(id.dropFirst(2))\(suffix)"
  }

  /// Relative names of all that is not a directory.
  func names() throws -> [String] {
    try BuiltProgram.run(["/usr/bin/find", path, "-mindepth", "1", "!", "-type", "d", "-printf", "%P\n"])
      .split(separator: "\n").map(String.init).sorted()
  }
}

private func link(_ path: String) -> String? { try? FileManager.default.destinationOfSymbolicLink(atPath: path) }

private func inode(_ path: String) -> UInt {
  var status = stat()
  return stat(path, &status) == 0 ? UInt(status.st_ino) : 0
}

@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct StoreTests {
  @Test func layout() throws {
    let program = try BuiltProgram()
    let id = program.buildID
    let store = Store(path: program.folder.path + "/new/parents/store")
    let added = try store.run("add", "--release", "1.4.0", program.path)
    #expect(added.status == .exited(0) && added.errors.isEmpty, "\(added.errorText)")
    #expect(added.text.hasPrefix("added     \(id)  \(program.path)  program with debug information, "), "\(added.text)")
    #expect(added.text.hasSuffix("for release 1.4.0\n"))
    #expect(contents(of: store.file(id)) == contents(of: program.path))
    #expect(link(store.file(id, ".debug")) == String(id.dropFirst(2)))
    #expect(link("\(store.path)/buildid/\(id)/debuginfo") == "../../.build-id/\(id.prefix(2))/\(id.dropFirst(2)).debug")
    #expect(contents(of: "\(store.path)/buildid/\(id)/executable") == contents(of: program.path))
    let build = try #require(try store.builds().first)
    #expect(build["names"] as? [String] == ["program"] && build["debug_information"] as? Bool == true)
    #expect((build["releases"] as? [[String: String]])?.map { $0["release"] } == ["1.4.0"])
    #expect(build["size"] as? Int == contents(of: program.path)?.count)
    let list = try store.run("list").text
    #expect(list.contains("program  1.4.0     \(id)  debug information, program"), "\(list)")

    // Once more changes nothing, for another release only what is known.
    let (names, before) = (try store.names(), inode(store.file(id)))
    let again = try store.run("add", "--release", "1.4.0", program.path)
    #expect(again.status == .exited(0) && again.text.hasPrefix("present "), "\(again.text)")
    #expect(!again.text.contains("for release"))
    let release = try store.run("add", "--release", "1.4.1", program.path)
    #expect(release.text.hasPrefix("present ") && release.text.contains("for release 1.4.1"))
    #expect(try store.names() == names && inode(store.file(id)) == before)
    #expect(try store.run("list", "--release", "1.4.1").text.contains("1.4.0, 1.4.1"))
    #expect(try store.run("list", "--release", "2").text == "No such builds; the store has 1 others.\n")
    #expect(try store.run("list", "another").text.hasPrefix("No such builds"))
    #expect(try store.run("list", "program").text.contains("1 build, "))
  }

  /// Whatever comes in whatever order: what is there never gets less.
  @Test func theFileThatHoldsMoreStays() throws {
    let program = try BuiltProgram()
    let debug = try program.objcopy("program.debug", "--only-keep-debug")
    let bare = try program.objcopy("stripped/program", in: "stripped", "--strip-all")
    let symbols = try program.objcopy("symbols/program", in: "symbols", "--strip-debug")
    let id = program.buildID
    let files = ["full": program.path, "debug": debug, "bare": bare, "symbols": symbols]
    func order(_ names: String...) throws -> (store: Store, actions: [String]) {
      let store = Store(path: "\(program.folder.path)/\(names.joined(separator: "-"))")
      let actions = try names.map { name in
        let outcome = try store.run("add", try #require(files[name]))
        #expect(outcome.status == .exited(0))
        return String(outcome.text.prefix { $0 != " " })
      }
      // However it came about, there is one build, by one name, and nothing is left over.
      let builds = try store.builds()
      #expect(builds.count == 1 && builds.first?["names"] as? [String] == ["program"])
      #expect(try !store.names().contains { $0.hasPrefix(".incoming") })
      return (store, actions)
    }
    var (store, actions) = try order("bare", "symbols", "full", "bare", "debug", "symbols")
    #expect(actions == ["added", "replaced", "replaced", "kept", "present", "kept"])
    #expect(contents(of: store.file(id)) == contents(of: program.path))

    (store, actions) = try order("debug", "bare", "full", "debug")
    #expect(actions == ["added", "added", "replaced", "present"])
    #expect(contents(of: store.file(id, ".debug")) == contents(of: debug))

    (store, actions) = try order("debug", "bare")
    #expect(contents(of: store.file(id, ".debug")) == contents(of: debug))
    #expect(contents(of: store.file(id)) == contents(of: bare))
    #expect(contents(of: "\(store.path)/buildid/\(id)/executable") == contents(of: bare))

    (store, actions) = try order("bare", "debug")
    #expect(actions == ["added", "added"])
    // A stripped program alone is no debug file.
    (store, actions) = try order("bare")
    #expect(link("\(store.path)/buildid/\(id)/debuginfo") == nil && contents(of: store.file(id, ".debug")) == nil)

    // What was damaged on the disk is not taken for what it was.
    (store, actions) = try order("full", "bare")
    try write(Array(try #require(contents(of: program.path)).prefix(3_000)), to: store.file(id))
    #expect(try store.run("add", program.path).text.hasPrefix("added "))
    #expect(contents(of: store.file(id)) == contents(of: program.path))
    // Nor a damaged note.
    try write(Array("{\"schema\":".utf8), to: store.file(id, ".json"))
    #expect(try store.builds().first?["noted"] as? Bool == false)
    #expect(try store.run("add", program.path).text.hasPrefix("present "))
    #expect(try store.builds().first?["noted"] as? Bool == true)
  }

  @Test func whatIsRefused() throws {
    let program = try BuiltProgram()
    let folder = program.folder
    let store = Store(path: folder.path + "/store")
    let without = try BuiltProgram.compile("without", in: folder, ["-Wl,--build-id=none"])
    let object = try BuiltProgram.compile("object.o", in: folder, ["-c"])
    let long = try BuiltProgram.compile(
      "long", in: folder, ["-Wl,--build-id=0x" + String(repeating: "ab", count: 100)])
    let text = try folder.file("text", Array("text".utf8))
    for (file, message) in [
      (without, "has no build id, by which crashes find it, and was not added; link it with -Xlinker --build-id"),
      (object, "was not added: it is not linked yet"), (long, "a build id of 100 bytes"), (text, "is not an ELF file"),
      (folder.path + "/none", "no such file"),
    ] {
      let outcome = try store.run("add", file)
      #expect(outcome.status == .exited(2) && outcome.output.isEmpty)
      #expect(outcome.errorText.hasPrefix("symbolicate: \(file): "), "\(outcome.errorText)")
      #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
    }
    #expect(try store.names() == [".lock"])
    // In a directory, what is not linked is no mistake, and the store is not added to itself.
    let outcome = try store.run("add", "-v", folder.path)
    #expect(outcome.status == .exited(1) && outcome.text.hasPrefix("added ") && outcome.errorText.contains("without:"))
    #expect(outcome.errorText.contains("object.o: skipped"))
    #expect(outcome.errorText.contains("store: skipped: the store itself"))
    #expect(try store.builds().count == 1)

    let list = try Store(path: folder.path + "/none").run("list")
    #expect(list.status == .exited(2) && list.errorText.contains("there is no symbol store: no such file"))
    #expect(
      try Store(path: folder.path).run("gc").errorText.contains("is no symbol store: it has no .build-id directory"))
    #expect(
      try Store(path: text).run("add", program.path).errorText.contains("text/.build-id: the directory cannot be made"))
    let json = try store.run("add", "-f", "ndjson", without, program.path)
    #expect(
      try objects(json).map { $0["schema"] as? String } == [
        "symbolicate-error/1", "symbol-store-addition/1", "symbolicate-summary/1",
      ])
  }

  @Test func manyAtTheSameTime() throws {
    let folder = try TemporaryDirectory("many")
    let programs = try (0..<4).map { try BuiltProgram("program\($0)", in: folder, value: $0) }
    let store = Store(path: folder.path + "/store")
    let processes = try (0..<12).map { number in
      // Each in another order, some with collectors between.
      let files = programs.indices.map { programs[($0 + number) % programs.count].path }
      let command = number % 4 == 3 ? ["gc", "--keep-releases", "2"] : ["add", "--release", "\(number % 2)"] + files
      return try ChildProcess([SymbolicateTool.path, "store"] + command + ["--store", store.path]).start()
    }
    for (number, process) in processes.enumerated() {
      let outcome = try process.finish()
      // A collector may be sooner than the first add.
      guard number % 4 != 3 else { continue }
      #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    }
    let builds = try store.builds()
    #expect(builds.count == 4)
    for (program, build) in zip(programs, builds) {
      #expect(build["build_id"] as? String == program.buildID)
      #expect((build["releases"] as? [[String: String]])?.compactMap { $0["release"] }.sorted() == ["0", "1"])
      #expect(contents(of: store.file(program.buildID)) == contents(of: program.path))
    }
    // A program, its debug link, its note and two links each, and the lock.
    #expect(try store.names().count == 4 * 5 + 1)
  }

  static let canTrace: Bool = {
    let outcome = try? ChildProcess(["/usr/bin/env", "strace", "-o", "/dev/null", "/bin/true"]).run()
    return outcome?.status == .exited(0)
  }()

  /// Killed at each call that changes the store: what is there is whole, and the next add finishes it.
  @Test(.enabled(if: canTrace, "strace cannot be used")) func killedWhileAdding() throws {
    let program = try BuiltProgram()
    let debug = try program.objcopy("program.debug", "--only-keep-debug")
    let whole: [[UInt8]?] = [contents(of: program.path), contents(of: debug)]
    var kills = 0
    for call in ["write", "fsync", "rename", "symlink", "unlink", "mkdir"] {
      for count in 1... {
        let store = Store(path: "\(program.folder.path)/\(call)-\(count)")
        #expect(mkdir(store.path, 0o700) == 0)
        let inject = ["/usr/bin/env", "strace", "-o", "/dev/null", "-e", "inject=\(call):signal=KILL:when=\(count)"]
        let outcome = try store.run("add", program.path, debug, strace: inject)
        guard outcome.status == .signaled(SIGKILL) else {
          #expect(outcome.status == .exited(0), "\(call) \(count): \(outcome.errorText)")
          break
        }
        kills += 1
        for name in try store.names() where name.hasPrefix(".build-id/") && !name.hasSuffix(".json") {
          #expect(whole.contains(contents(of: "\(store.path)/\(name)")), "\(call) \(count): \(name)")
        }
        if count % 2 == 0, access(store.path + "/.build-id", F_OK) == 0 {
          // A collection removes what an add did not finish, and nothing that it did.
          let gc = try store.run("gc")
          #expect(gc.status == .exited(0), "\(gc.errorText)")
          #expect(try store.builds().allSatisfy { ($0["size"] as? Int ?? 0) > 0 })
        }
        #expect(try store.run("add", program.path, debug).status == .exited(0))
        #expect(try store.names().count == 6, "\(call) \(count)")
        #expect(contents(of: store.file(program.buildID)) == whole[0])
        try FileManager.default.removeItem(atPath: store.path)
      }
    }
    #expect(kills > 10)
  }

  // MARK: Collecting

  @Test func whatIsCollected() throws {
    let folder = try TemporaryDirectory("gc")
    let store = Store(path: folder.path + "/store")
    let programs = try (0..<4).map { number in
      let place = "\(folder.path)/\(number)"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let program = try BuiltProgram("\(number)/orderd", in: folder, value: number)
      #expect(try store.run("add", "--release", "1.\(number)", program.path).status == .exited(0))
      return program
    }
    // Is in the first and the last release: stays with the last.
    #expect(try store.run("add", "--release", "1.0", programs[3].path).status == .exited(0))
    let loose = try BuiltProgram("loose", in: folder, value: 77)
    #expect(try store.run("add", loose.path).status == .exited(0))
    // Put there by something else.
    let foreign = "\(store.path)/.build-id/ab/cdef.debug"
    _ = try folder.file("store/.build-id/ab/cdef.debug", Array("not ours".utf8))
    _ = try folder.file("store/.build-id/\(programs[0].buildID.prefix(2))/notes.txt", Array("mine".utf8))

    let dry = try store.run("gc", "--keep-releases", "2", "--dry-run")
    #expect(dry.status == .exited(0) && dry.text.contains("would remove 2 builds, "), "\(dry.text)")
    #expect(try store.builds().count == 5)
    let outcome = try store.run("gc", "--keep-releases", "2")
    #expect(outcome.status == .exited(0))
    let kept = try store.builds().compactMap { $0["build_id"] as? String }
    // 1.0 was added for once more, and so is one of the two latest.
    #expect(Set(kept) == Set([programs[0], programs[3], loose].map(\.buildID)))
    #expect(outcome.text.contains("  \(programs[1].buildID)  orderd  1.1  "), "\(outcome.text)")
    #expect(outcome.text.contains("none of its releases is one of the latest 2 ("))
    #expect(outcome.text.contains("stays  \(foreign)  is not the store's\n"))
    #expect(outcome.text.contains("/notes.txt  is not the store's\n"))
    #expect(access(foreign, F_OK) == 0)
    #expect(access("\(store.path)/buildid/\(programs[1].buildID)", F_OK) != 0)

    // By age: the time is the note's.
    let note = store.file(loose.buildID, ".json")
    let text = String(decoding: try #require(contents(of: note)), as: UTF8.self)
    let year = try #require(text.range(of: "\"added\": \""))
    try write(
      Array(
        text.replacingCharacters(in: year.upperBound..<text.index(year.upperBound, offsetBy: 4), with: "2001").utf8),
      to: note)
    let old = try store.run("gc", "--older-than", "30")
    #expect(old.text.contains("removed  \(loose.buildID)  loose  no release  ") && old.text.contains("last added "))
    #expect(try store.builds().allSatisfy { $0["build_id"] as? String != loose.buildID })

    // By size: those that were added last stay.
    let one = try #require(contents(of: programs[3].path)).count
    let size = try store.run("gc", "--max-size", "\(one + 100)", "-f", "ndjson")
    let summary = try #require(try objects(size).last)
    #expect(summary["builds"] as? Int == 1 && (summary["size"] as? Int ?? .max) <= one + 100)
    #expect(try objects(size, schema: "symbol-store-removal/1").allSatisfy { $0["removed"] as? Bool == true })
    #expect(try objects(size, schema: "symbol-store-stray/1").count == 2)
    let none = try store.run("gc")
    #expect(none.text.contains("removed 0 builds, 0 B; 1 stays, ") && none.text.contains("no limit was given"))
  }

  /// A file that someone is writing is locked, and stays; one that nobody writes any more goes.
  @Test func whatIsBeingWrittenStays() throws {
    let program = try BuiltProgram()
    let store = Store(path: program.folder.path + "/store")
    #expect(try store.run("add", program.path).status == .exited(0))
    let incoming = try program.folder.file("store/.incoming/1234", Array("half of a".utf8))
    // Children of other tests would hold the lock, too.
    let descriptor = open(incoming, O_RDONLY | O_CLOEXEC)
    #expect(flock(descriptor, LOCK_EX) == 0)
    #expect(try store.run("gc").text.hasPrefix("removed 0 builds"))
    #expect(try store.run("add", program.path).status == .exited(0))
    #expect(access(incoming, F_OK) == 0)
    close(descriptor)
    #expect(try store.run("gc", "--dry-run").text.contains("would remove  \(incoming)  an add did not finish it"))
    #expect(try store.run("gc").text.contains("removed  \(incoming)  an add did not finish it"))
    #expect(access(incoming, F_OK) != 0)
  }

  @Test(
    arguments: [
      (["store"], "'store' is one of 'store add'"), (["store", "add", "x"], "name its directory with --store DIR"),
      (["store", "gc", "--store", "s", "x"], "takes no files"),
      (["store", "add", "--store", "s"], "no input; name a program"),
      (["store", "gc", "--store", "s", "--max-size", "0"], "a number above 0"), (["check"], "no input; name a program"),
      (["store", "gc", "--store", "s", "--max-size", "5X"], "a number above 0"),
      (["store", "list", "--store", "s", "--dry-run"], "no option of 'store list'"),
      (["check", "--store", "s", "x"], "no option of 'check'"),
      (["check", "--threads", "all", "x"], "no option of 'check'"),
      (["check", "--pretty", "x"], "--pretty has no effect on text"),
      (["help", "store", "ad"], "no command 'store ad'"),
      (["store", "add", "--store", "", "x"], "a name that is not empty"),
    ] as [([String], String)])
  func usage(arguments: [String], message: String) throws {
    let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
    #expect(outcome.status == .exited(64) && outcome.output.isEmpty)
    #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
  }

  @Test func help() throws {
    for (command, flag) in [
      ("check", "--for REPORT"), ("store add", "--release NAME"), ("store gc", "--max-size BYTES"),
    ] {
      let words = command.split(separator: " ").map(String.init)
      let outcome = try ChildProcess([SymbolicateTool.path, "help"] + words).run()
      #expect(outcome.status == .exited(0) && outcome.text.hasPrefix("Usage: symbolicate \(command) "))
      #expect(outcome.text.contains(flag) && outcome.text.contains("64 the command line is wrong"))
      #expect(outcome.text == (try ChildProcess([SymbolicateTool.path] + words + ["--help"]).run().text))
      #expect(outcome.text.split(separator: "\n").allSatisfy { $0.utf8.count <= 140 })
    }
    let overview = try SymbolicateTool.run("--help").text
    #expect(overview.contains("symbolicate check ") && overview.contains("symbolicate store add|list|gc "))
  }
}

extension BuiltProgram {
  fileprivate func objcopy(_ name: String, in directory: String, _ flags: String) throws -> String {
    try FileManager.default.createDirectory(atPath: "\(folder.path)/\(directory)", withIntermediateDirectories: true)
    return try objcopy(name, flags)
  }
}
