import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct AddrTests {
  /// As it was before the part that only binutils knows.
  private func withoutDiscriminators(_ text: String) -> String {
    text.replacing(#/ \(discriminator \d+\)/#, with: "")
  }

  /// Byte for byte, with every combination of the flags, from standard input and from arguments.
  @Test func sameAsAddr2line() throws {
    let programs = try AddrPrograms()
    for (program, functions) in [(programs.c, AddrPrograms.cFunctions), (programs.cpp, AddrPrograms.cppFunctions)] {
      let addresses = try AddrPrograms.addresses(in: program, functions: functions)
      #expect(addresses.count > 30)
      let lines = AddrPrograms.lines(addresses + [0, 0x10, .max])
      for combination in 0..<64 {
        let letters = "afipsC".enumerated().filter { combination >> $0.offset & 1 == 1 }.map { String($0.element) }
        let flags = letters.isEmpty ? [] : ["-" + letters.joined()]
        let expected = try AddrPrograms.run(["/usr/bin/env", "addr2line"] + flags + ["-e", program], input: lines)
        var process = ChildProcess([SymbolicateTool.path, "addr"] + flags + ["-e", program])
        process.input = Array(lines.utf8)
        let outcome = try process.run()
        #expect(outcome.status == .exited(0))
        #expect(outcome.text == withoutDiscriminators(expected), "\(program) \(flags)")
        #expect(outcome.errors.isEmpty)
      }
      let words = addresses.prefix(20).map { String($0, radix: 16) }
      let expected = try AddrPrograms.run(["/usr/bin/env", "addr2line", "-fie", program] + words)
      #expect(
        try AddrPrograms.run([SymbolicateTool.path, "addr", "-fie", program] + words) == withoutDiscriminators(expected)
      )
    }
  }

  @Test func longNames() throws {
    let programs = try AddrPrograms()
    let lines = AddrPrograms.lines(try AddrPrograms.addresses(in: programs.c, functions: ["outer"]))
    let short = try AddrPrograms.run([SymbolicateTool.path, "addr", "-afipsC", "-e", programs.c], input: lines)
    let long = try AddrPrograms.run(
      [
        SymbolicateTool.path, "addr", "--addresses", "--functions", "--inlines", "--pretty-print", "--basenames",
        "--demangle", "--exe=\(programs.c)",
      ], input: lines)
    #expect(short == long)
    #expect(short.contains(": leaf at prog.c:2\n (inlined by) middle at prog.c:"))
  }

  /// Where the answers are others on purpose: `docs/symbolicate-addr.md`.
  @Test func differencesToAddr2line() throws {
    let programs = try AddrPrograms()
    let start = try AddrPrograms.address(of: "_start", in: programs.c)
    // A function without debug information, in an object that has none.
    #expect(
      try AddrPrograms.run([SymbolicateTool.path, "addr", "-fe", programs.c, String(start, radix: 16)])
        == "_start\n??:?\n"
    )
    // binutils takes a symbol's file for the place of a function without debug information; there is no such file.
    let register = try AddrPrograms.address(of: "register_tm_clones", in: programs.c)
    let theirs = try AddrPrograms.run(["/usr/bin/env", "addr2line", "-fe", programs.c, String(register, radix: 16)])
    let ours = try AddrPrograms.run([SymbolicateTool.path, "addr", "-fe", programs.c, String(register, radix: 16)])
    #expect(theirs == "register_tm_clones\ncrtstuff.c:?\n")
    #expect(ours == "register_tm_clones\n??:?\n")
    // A path with `..` and with a character that acts on a terminal.
    let folder = programs.folder
    _ = try folder.file(
      "od\u{1b}d.c", Array("int odd(int x) { return x; }\nint main(int c, char **v) { return odd(c); }\n".utf8))
    _ = try folder.file("below/empty", [])
    let compiled = try ChildProcess(
      ["/usr/bin/gcc", "-g", "-o", "../odd", "../od\u{1b}d.c"], directory: folder.path + "/below"
    ).run()
    #expect(compiled.status == .exited(0))
    let odd = Hex.prefixed(try AddrPrograms.address(of: "odd", in: folder.path + "/odd"))
    let binutils = try AddrPrograms.run(["/usr/bin/env", "addr2line", "-e", folder.path + "/odd", odd])
    #expect(binutils == "\(folder.path)/below/../od\u{1b}d.c:1\n")
    let resolved = try AddrPrograms.run([SymbolicateTool.path, "addr", "-e", folder.path + "/odd", odd])
    #expect(resolved == "\(folder.path)/od\\u{1b}d.c:1\n")
    // `strtoul` reads a beginning; an address is the whole word.
    let outcome = try SymbolicateTool.run("addr", "-ae", programs.c, "12zz")
    #expect(outcome.text == "0x0000000000000000\n??:0\n")
    #expect(outcome.errorText.contains("argument 1: '12zz': no hexadecimal address"))
    #expect(outcome.status == .exited(2))
  }

  @Test func swiftNames() throws {
    let folder = try TemporaryDirectory("addr-swift")
    let source = try folder.file(
      "store.swift",
      Array(
        """
        struct Store {
          var items: [Int]
          @inline(never) func load(id: Int) -> Int { items[id] + twice(id) }
          @inline(__always) func twice(_ x: Int) -> Int { x &* 2 }
        }
        print(Store(items: Array(repeating: 7, count: CommandLine.arguments.count)).load(id: 0))

        """.utf8))
    let program = folder.path + "/store"
    try AddrPrograms.run([
      "/usr/bin/env", "TMPDIR=\(folder.path)", "swiftc", "-O", "-g", "-module-cache-path", folder.path + "/modules",
      "-o",
      program, source,
    ])
    let symbols = try AddrPrograms.run(["/usr/bin/env", "nm", program])
    let name = try #require(
      symbols.split(separator: "\n").first { $0.contains("4load2idS2i_tF") }?.split(separator: " ").last)
    let address = try AddrPrograms.address(of: String(name), in: program)
    let raw = try AddrPrograms.run([SymbolicateTool.path, "addr", "-fie", program, Hex.prefixed(address)])
    #expect(raw.contains("\(name)\n\(source):"))
    let demangled = try AddrPrograms.run([SymbolicateTool.path, "addr", "-fiCe", program, Hex.prefixed(address)])
    #expect(demangled.contains("\nStore.load(id:)\n\(source):"))
    #expect(!demangled.contains("$s"))

    // Code without a line: `?` as addr2line has it, marked where asked for, and never as a line of its own.
    let addresses = try AddrPrograms.addresses(in: program)
    let lines = AddrPrograms.lines(addresses)
    let plain = try AddrPrograms.run([SymbolicateTool.path, "addr", "-e", program], input: lines)
      .split(separator: "\n")
    let nearest = try AddrPrograms.run([SymbolicateTool.path, "addr", "--nearest-lines", "-e", program], input: lines)
      .split(separator: "\n")
    let objects = try objects(
      try AddrPrograms.run([SymbolicateTool.path, "addr", "--format=ndjson", "-e", program], input: lines))
    #expect(plain.count == addresses.count && nearest.count == addresses.count && objects.count == addresses.count)
    var marked = 0
    var failures = 0
    for (index, line) in plain.enumerated() {
      let leaf = (objects[index]["frames"] as? [[String: Any]])?.first
      failures += objects[index]["runtime_failure"] == nil ? 0 : 1
      if nearest[index].hasSuffix(" (nearest line)") {
        marked += 1
        #expect(line.hasSuffix(":?"))
        #expect(leaf?["approximate"] as? Bool == true)
        let number = nearest[index].dropLast(" (nearest line)".count).split(separator: ":").last
        #expect(number.flatMap { Int($0) } == leaf?["line"] as? Int)
      } else {
        #expect(line == nearest[index])
        #expect(leaf?["approximate"] == nil)
      }
    }
    #expect(marked > 0)
    // The index out of range, which is no function.
    #expect(failures > 0)
    #expect(!plain.contains { $0.contains("Swift runtime failure") })
  }

  // MARK: Lines

  @Test func imagesInLines() throws {
    let programs = try AddrPrograms()
    let spaced = programs.folder.path + "/a program"
    try FileManager.default.copyItem(atPath: programs.c, toPath: spaced)
    let total = String(try AddrPrograms.address(of: "total", in: programs.c), radix: 16)
    let main = String(try AddrPrograms.address(of: "main", in: programs.cpp), radix: 16)
    let missing = programs.folder.path + "/missing"
    let outcome = try SymbolicateTool.run(
      "addr", "-fs",
      input: Array(
        """
        \(programs.c) 0x\(total)
        "\(spaced)" 0x\(total)
        '\(spaced)' \(total)
        \(spaced) 0X\(total.uppercased())
        CODE "\(spaced)" 0x\(total)
        CODE \(programs.cpp) \(main)
        \(missing) 0x1
        \(programs.cpp)\t \(main) \r
        \(missing) 0x2
        DATA \(programs.c) 0x\(total)
        0x\(total)
        \(programs.c) \(total)
        """.utf8))
    let expected =
      String(repeating: "total\nprog.c:8\n", count: 5) + "main\nprog.cpp:9\n" + "??\n??:0\n" + "main\nprog.cpp:9\n"
      + String(repeating: "??\n??:0\n", count: 3) + "total\nprog.c:8\n"
    #expect(outcome.text == expected)
    // Once, though asked for twice.
    #expect(outcome.errorText.split(separator: "\n").filter { $0.contains("missing") }.count == 1)
    #expect(outcome.errorText.contains("symbolicate: \(missing): no such file or directory\n"))
    #expect(outcome.errorText.contains("standard input, line 10: 'DATA "))
    #expect(
      outcome.errorText.contains("line 11: '0x\(total)': no file; name it with --exe FILE or write IMAGE ADDRESS"))
    #expect(outcome.status == .exited(1))
  }

  /// More files than are kept open at once, and a long input, which is looked up in another order than it is answered in.
  @Test func manyLines() throws {
    let programs = try AddrPrograms()
    let all = [programs.c, programs.cpp]
    var answers: [String: String] = [:]
    var lines: [String] = []
    for program in all {
      for address in try AddrPrograms.addresses(in: program).prefix(300) {
        let line = "\(program) \(Hex.prefixed(address))"
        lines.append(line)
      }
    }
    // As many as are looked up in the order of the lines, each with a line behind it that ends its answer.
    for start in stride(from: 0, to: lines.count, by: 200) {
      let part = lines[start..<min(start + 200, lines.count)]
      let text = try AddrPrograms.run(
        [SymbolicateTool.path, "addr", "-afip"], input: part.map { "\($0)\n\(programs.c) ffffffff\n" }.joined())
      let parts = text.components(separatedBy: "0x00000000ffffffff: ?? ??:0\n")
      #expect(parts.count == part.count + 1)
      for (line, answer) in zip(part, parts) { answers[line] = answer }
    }
    var generator = SeededGenerator(seed: 3)
    var many = (0..<20_000).compactMap { _ in lines.randomElement(using: &generator) }
    let expected = many.compactMap { answers[$0] }.joined()
    let outcome = try SymbolicateTool.run("addr", "-afip", input: Array(many.joined(separator: "\n").utf8))
    #expect(outcome.text == expected)
    #expect(outcome.status == .exited(0))

    let missing = (0..<600).map { "\(programs.folder.path)/none\($0) 0x1" }
    many = zip(missing, many).flatMap { [$0, $1] }
    let mixed = try SymbolicateTool.run("addr", "-afip", input: Array(many.joined(separator: "\n").utf8))
    #expect(
      mixed.text == many.map { answers[$0] ?? "0x0000000000000001: ?? ??:0\n" }.joined())
    #expect(mixed.status == .exited(1))
    #expect(mixed.errorText.split(separator: "\n").count == 600)
  }

  /// Whoever asks and waits for the answer gets it.
  @Test func answersBeforeTheEndOfInput() throws {
    let programs = try AddrPrograms()
    let total = Hex.prefixed(try AddrPrograms.address(of: "total", in: programs.c))
    let running = try ChildProcess([SymbolicateTool.path, "addr", "-fsp", "-e", programs.c]).start()
    for _ in 0..<3 {
      try running.give("\(total)\n")
      #expect(running.readLine() == "total at prog.c:8")
    }
    // A line that is not complete is not answered; what stands before it is.
    try running.give("0\n\(total.dropLast())")
    #expect(running.readLine() == "?? ??:0")
    try running.give("\(total.suffix(1))\n")
    #expect(running.readLine() == "total at prog.c:8")
    let outcome = try running.finish()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.isEmpty)
  }

  @Test func hostileLines() throws {
    let programs = try AddrPrograms()
    let total = Hex.prefixed(try AddrPrograms.address(of: "total", in: programs.c))
    let bad: [[UInt8]] = [
      [], Array("   ".utf8), [0], Array("0x".utf8), Array("x".utf8), Array("-1".utf8),
      Array("10000000000000000".utf8), Array(repeating: UInt8(ascii: "f"), count: 1 << 20), Array("0x12\u{0}34".utf8),
      Array(repeating: 0, count: 300_000), [0xff, 0xfe], Array("\u{1b}[2J".utf8), Array("CODE".utf8),
      Array("DATA 0x12".utf8), Array(repeating: UInt8(ascii: " "), count: 300_000), Array("\"\"".utf8),
    ]
    var input: [UInt8] = []
    for line in bad { input += line + [10] + Array(total.utf8) + [10] }
    // No line feed at the end.
    input += Array(total.utf8)
    let expected = String(repeating: "??:0\nprog.c:8\n", count: bad.count) + "prog.c:8\n"
    let outcome = try SymbolicateTool.run("addr", "-se", programs.c, input: input)
    #expect(outcome.text == expected)
    #expect(outcome.status == .exited(1))
    #expect(outcome.errorText.split(separator: "\n").count == 11)
    #expect(outcome.errorText.contains("6 more lines without an address"))
    #expect(outcome.errors.allSatisfy { $0 == 10 || $0 >= 0x20 })
    #expect(outcome.errors.count < 10_000)

    // The same as names of files.
    let names = bad.filter { !$0.isEmpty }.flatMap { $0 + Array(" 0x12\n".utf8) }
    let named = try SymbolicateTool.run("addr", "-s", input: names)
    #expect(named.text == String(repeating: "??:0\n", count: bad.count - 1))
    #expect(named.status == .exited(2))
    #expect(named.errorText.contains("its name holds a NUL"))
    for format in ["json", "ndjson"] {
      let text = try SymbolicateTool.run("addr", "-s", "--format", format, input: names + input).text
      let found = try format == "json" ? array(text) : objects(text)
      #expect(found.count == bad.count - 1 + 2 * bad.count + 1)
      #expect(found.allSatisfy { ($0["frames"] as? [Any])?.isEmpty == true && $0["reason"] is String })
    }
  }

  @Test func noAddressIsNoError() throws {
    let programs = try AddrPrograms()
    let outcome = try SymbolicateTool.run("addr", "-e", programs.c)
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.isEmpty)
    #expect(try SymbolicateTool.run("addr", "--format", "json").text == "[]\n")
    let folder = try ChildProcess([
      "/bin/sh", "-c", "exec \"$0\" addr -e \"$1\" < /", SymbolicateTool.path, programs.c,
    ]).run()
    #expect(folder.status == .exited(2))
    #expect(folder.errorText == "symbolicate: standard input: cannot be read: is a directory\n")
  }

  @Test func unreadableFiles() throws {
    let programs = try AddrPrograms()
    let text = try programs.folder.file("text", Array("no program".utf8))
    for (path, reason) in [
      (programs.folder.path, "is not a regular file"), (text, "is not an ELF file"),
      (programs.folder.path + "/none", "no such file or directory"),
    ] {
      let outcome = try SymbolicateTool.run("addr", "-afe", path, "0x12", "13")
      #expect(outcome.text == "0x0000000000000012\n??\n??:0\n0x0000000000000013\n??\n??:0\n")
      #expect(outcome.errorText == "symbolicate: \(path): \(reason)\n")
      #expect(outcome.status == .exited(2))
    }
    let bare = programs.folder.path + "/bare"
    try AddrPrograms.run(["/usr/bin/env", "strip", "-o", bare, programs.c])
    let outer = Hex.prefixed(try AddrPrograms.address(of: "outer", in: programs.c))
    let stripped = try SymbolicateTool.run("addr", "-fe", bare, outer)
    #expect(stripped.text == "??\n??:0\n")
    #expect(
      stripped.errorText.contains(
        "\(bare): has no debug information and is stripped, so that 1 address in it has no name"))
    #expect(stripped.status == .exited(1))
    #expect(try SymbolicateTool.run("addr", "--strict", "-fe", bare, outer).status == .exited(2))
    #expect(try SymbolicateTool.run("addr", "-qfe", bare, outer).errors.isEmpty)
    // By its build id in a directory.
    let found = try SymbolicateTool.run("addr", "-fse", bare, "--debug-dir", programs.folder.path, outer)
    #expect(found.text == "outer\nprog.c:7\n")
    #expect(found.status == .exited(0))
    let none = try SymbolicateTool.run("addr", "-fe", programs.c, "-d", programs.folder.path + "/none", outer)
    #expect(none.status == .exited(1))
    #expect(none.errorText.contains("none: no such file or directory; it is not used"))
  }

  @Test func closedOutput() throws {
    let programs = try AddrPrograms()
    let lines = String(repeating: AddrPrograms.lines([0x1000]), count: 200_000)
    var process = ChildProcess([
      "/bin/bash", "-c", "\"$0\" addr -fie \"$1\" | head -n 1; echo \"${PIPESTATUS[0]}\"", SymbolicateTool.path,
      programs.c,
    ])
    process.input = Array(lines.utf8)
    let outcome = try process.run()
    #expect(outcome.text.split(separator: "\n").last == "0")
    #expect(outcome.errors.isEmpty)
  }

  // MARK: JSON

  private func objects(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  private func array(_ text: String) throws -> [[String: Any]] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
  }

  @Test func json() throws {
    let programs = try AddrPrograms()
    let addresses = try AddrPrograms.addresses(in: programs.c, functions: ["outer"])
    let lines = AddrPrograms.lines(addresses + [0x10])
    let text = try AddrPrograms.run(
      [SymbolicateTool.path, "addr", "--format", "ndjson", "-e", programs.c], input: lines)
    let found = try objects(text)
    #expect(found.count == addresses.count + 1)
    #expect(found.map { $0["address"] as? String } == (addresses + [0x10]).map { Hex.prefixed($0) })
    #expect(found.allSatisfy { $0["image"] as? String == programs.c })
    let deep = try #require(found.compactMap { $0["frames"] as? [[String: Any]] }.first { $0.count == 3 })
    #expect(deep.map { $0["function"] as? String } == ["leaf", "middle", "outer"])
    #expect(deep.map { $0["inlined"] as? Bool } == [true, true, false])
    #expect(deep.map { $0["file"] as? String } == Array(repeating: programs.folder.path + "/prog.c", count: 3))
    #expect(deep.last?["line"] as? Int == 7)
    #expect(deep.last?["column"] as? Int ?? 0 > 0)
    #expect((found.last?["frames"] as? [Any])?.isEmpty == true)
    #expect(found.last?["reason"] as? String == "no function is known there")
    #expect(!text.contains("approximate"))
    let whole = try AddrPrograms.run(
      [SymbolicateTool.path, "addr", "--format", "json", "-e", programs.c], input: lines)
    #expect(try array(whole) as NSArray == found as NSArray)

    // Both names of a function, whatever -C says.
    let price = Hex.prefixed(try AddrPrograms.address(of: "_ZNK4shop5Order5priceEi", in: programs.cpp))
    let frame = try objects(
      AddrPrograms.run([SymbolicateTool.path, "addr", "--format=ndjson", "-e", programs.cpp, price]))[0]
    let first = try #require((frame["frames"] as? [[String: Any]])?.first)
    #expect(first["function"] as? String == "shop::Order::price(int) const")
    #expect(first["raw_function"] as? String == "_ZNK4shop5Order5priceEi")
  }

  // MARK: Tables

  /// With a table from the cache, a damaged one, and none.
  @Test func sameWithTables() throws {
    let programs = try AddrPrograms()
    let cache = try TemporaryDirectory("addr-cache")
    let lines = Array(
      try [programs.c, programs.cpp].map { program in
        try AddrPrograms.addresses(in: program).map { "\(program) \(Hex.prefixed($0))\n" }.joined()
      }.joined().utf8)
    let without = try SymbolicateTool.run("addr", "-afipC", "--no-cache", input: lines)
    #expect(without.text.contains(" (inlined by) "))
    var tables: [String] = []
    for _ in 0..<200 where tables.count < 2 {
      let with = try SymbolicateTool.run("addr", "-afipC", "--cache-dir", cache.path, input: lines)
      #expect(with.text == without.text)
      tables = cache.names().filter { $0.hasSuffix(".addrtable") }
    }
    #expect(tables.count == 2)
    #expect(try SymbolicateTool.run("addr", "-afipC", "--cache-dir", cache.path, input: lines).text == without.text)
    for name in tables {
      let path = cache.path + "/" + name
      let bytes = try #require(contents(of: path))
      // In the middle: where it is found only when it is asked for.
      for place in stride(from: 300, to: bytes.count, by: max(bytes.count / 20, 1)) {
        var damaged = bytes
        damaged[place] ^= 0x41
        try write(damaged, to: path)
        let outcome = try SymbolicateTool.run("addr", "-afipC", "--cache-dir", cache.path, input: lines)
        #expect(outcome.text == without.text, "byte \(place) of \(name)")
        #expect(outcome.status == .exited(0))
      }
      try write(bytes, to: path)
    }
  }

  // MARK: Command line

  @Test(
    arguments: [
      (["addr", "-e", "a", "-e", "b"], "--exe names one file"), (["addr", "--threads", "all"], "no option of 'addr'"),
      (["addr", "-x"], "unknown option -x"), (["addr", "-e"], "-e needs a value"),
      (["addr", "--format", "yaml"], "one of text, json, ndjson"), (["-a", "x"], "-a is no option of 'symbolicate'"),
      (["group", "-p", "x"], "-p is no option of 'group'"), (["addr", "--inline"], "did you mean --inlines?"),
    ] as [([String], String)])
  func usage(arguments: [String], message: String) throws {
    let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
    #expect(outcome.status == .exited(64))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
  }

  @Test func help() throws {
    let help = try SymbolicateTool.run("addr", "--help")
    #expect(help.status == .exited(0))
    #expect(help.text == (try SymbolicateTool.run("help", "addr").text))
    #expect(help.text.hasPrefix("Usage: symbolicate addr [OPTION]... [-e FILE] [ADDRESS]...\n"))
    for flag in [
      "-a, --addresses ", "-e, --exe FILE ", "-f, --functions ", "-i, --inlines ", "-p, --pretty-print ",
      "-s, --basenames ", "-C, --demangle ", "    --nearest-lines ", "    --format text|json|ndjson ",
      "-d, --debug-dir DIR ", "    --no-cache ", "-o, --output FILE ",
    ] { #expect(help.text.contains("  \(flag)"), "\(flag)") }
    #expect(!help.text.contains("--threads"))
    #expect(help.text.split(separator: "\n").allSatisfy { $0.utf8.count <= 140 })
    #expect(try SymbolicateTool.run("--help").text.contains("\n       symbolicate addr [OPTION]..."))
  }

  @Test func outputFile() throws {
    let programs = try AddrPrograms()
    let total = Hex.prefixed(try AddrPrograms.address(of: "total", in: programs.c))
    let path = programs.folder.path + "/answers"
    let outcome = try SymbolicateTool.run("addr", "-fse", programs.c, "-o", path, total)
    #expect(outcome.output.isEmpty)
    #expect(contents(of: path) == Array("total\nprog.c:8\n".utf8))
  }
}
