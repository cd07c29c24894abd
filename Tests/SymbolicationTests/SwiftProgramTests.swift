import CrashModel
import Foundation
import Symbolication
import Testing

/// What swiftc writes: DWARF 4 without `.debug_aranges`, closures nested in their functions, checks as pseudo-functions.
@Suite struct SwiftProgramTests {
  static let source = """
    import Glibc

    struct Order { var id: Int; var lines: [Int] }

    @inline(never) func load(_ id: Int) -> Order { Order(id: id, lines: (0..<id).map { $0 &* 2 }) }

    @inline(never) func total(_ order: Order) -> Int {
      var sum = 0
      for line in order.lines { sum += line }
      return sum
    }

    @inline(never) func pick(_ order: Order, _ index: Int) -> Int { order.lines[index] }

    @inline(never) func each(_ orders: [Order], _ body: (Order) -> Void) { for order in orders { body(order) } }

    @inline(never) func unwrap(_ text: String) -> Int { Int(text)! }

    func report(_ orders: [Order]) {
      each(orders) { order in
        let names = order.lines.map { line in "\\(order.id):\\(line)" }
        each([order]) { inner in print(names.joined(separator: ","), inner.lines.sorted { $0 > $1 }) }
      }
    }

    let orders = CommandLine.arguments.indices.map(load)
    report(orders)
    print(orders.map(total), pick(orders[0], 3), unwrap(CommandLine.arguments[0]), getpid())
    """

  private func program() throws -> (Workshop, String) {
    let workshop = try Workshop()
    try workshop.write("orders.swift", Self.source)
    try workshop.run(
      "swiftc", "-O", "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "orders", "orders.swift")
    return (workshop, workshop.file("orders"))
  }

  private let exact = Symbolicator(search: DebugFileSearch(systemDirectory: nil), nearestLines: false)
  private let nearest = Symbolicator(search: DebugFileSearch(systemDirectory: nil))

  @Test func agreesWithLLVM() throws {
    let (workshop, path) = try program()
    #expect(try !workshop.run("readelf", "-S", "-W", path).contains(".debug_aranges"))
    let addresses = try workshop.calls(in: path)
    #expect(addresses.count > 100)
    let output = try workshop.run(
      try Workshop.locateToolchain("llvm-symbolizer"), "--output-style=JSON", "--inlines", "--no-demangle",
      "--obj=" + path, input: addresses.map { Hex.prefixed($0) + "\n" }.joined())
    let lines = output.split(separator: "\n")
    #expect(lines.count == addresses.count)
    var inlined = 0
    var closures = 0
    for (resolved, line) in zip(try exact.symbolize(file: path, addresses: addresses), lines) {
      let theirs = try JSONDecoder().decode(LLVMAnswer.self, from: Data(line.utf8)).symbols
      guard resolved.functions.contains(where: \.hasDebugInformation) else { continue }
      #expect(resolved.functions.map(\.rawFunction) == theirs.map { $0.function })
      #expect(resolved.functions.map(\.line) == theirs.map { $0.line })
      #expect(resolved.functions.map(\.column) == theirs.map { $0.column })
      #expect(
        resolved.functions.map(\.file)
          == theirs.map {
            $0.file.hasSuffix("<compiler-generated>") ? "<compiler-generated>" : $0.file
          })
      if theirs.count > 1 { inlined += 1 }
      if resolved.functions.contains(where: { $0.function?.hasPrefix("closure #1") == true }) { closures += 1 }
    }
    #expect(inlined > 10)
    #expect(closures > 3)
  }

  /// The text of a failed check is the name of an inlined function that does not exist.
  @Test func failedCheckBecomesTheReason() throws {
    let (workshop, path) = try program()
    let traps = try workshop.disassemble(path).filter { $0.text.hasPrefix("ud2") || $0.text.hasPrefix("brk") }
    #expect(!traps.isEmpty)
    var texts: Set<String> = []
    for (trap, resolved) in zip(traps, try nearest.symbolize(file: path, addresses: traps.map(\.address))) {
      #expect(!resolved.functions.contains { $0.function?.contains("Swift runtime failure") == true })
      guard let text = resolved.runtimeFailure else { continue }
      texts.insert(text)
      #expect(resolved.functions.last?.inlined == false)
      if trap.symbol.contains("6orders5totaly") {
        #expect(text == "arithmetic overflow")
        #expect(resolved.functions.map(\.function).last == "total(_:)")
        #expect(resolved.functions.last?.line == 9)
      }
    }
    #expect(texts.contains("arithmetic overflow"))
    // In a report it is that of the frame, and of the report.
    let trap = try #require(traps.first { $0.symbol.contains("6orders5totaly") })
    let image = Image(
      path: path, buildID: try? workshop.buildID(of: path), address: Address(rawValue: 0x5000_0000), size: 0x100000)
    let result = nearest.symbolicate(report([frame(0x5000_0000 + trap.address)], image: image))
    #expect(result.runtimeFailure == "arithmetic overflow")
    #expect(result.report.names.last == "total(_:)")
    // Naming it again gives the same, also the reason.
    let again = nearest.symbolicate(result.report)
    #expect(again.report == result.report)
    #expect(again.runtimeFailures == result.runtimeFailures)
  }

  @Test func codeWithoutALineGetsTheNearestOneAndSaysSo() throws {
    let (workshop, path) = try program()
    let addresses = try workshop.calls(in: path)
    var approximated = 0
    for (with, without) in zip(
      try nearest.symbolize(file: path, addresses: addresses), try exact.symbolize(file: path, addresses: addresses))
    {
      #expect(with.functions.map(\.rawFunction) == without.functions.map(\.rawFunction))
      for (near, precise) in zip(with.functions, without.functions) {
        #expect(!precise.approximate)
        if precise.line == 0, near.line != 0 {
          #expect(near.approximate)
          approximated += 1
        } else {
          #expect(near == precise)
        }
      }
    }
    #expect(approximated > 5)
  }

  /// Units of imported clang modules look like split DWARF whose other half is a file of the module cache.
  @Test(.enabled(if: Workshop.exists("strace"))) func noModuleFileIsOpened() throws {
    let (workshop, path) = try program()
    let probe = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("symbolize-probe").path
    try #require(access(probe, X_OK) == 0)
    #expect(try workshop.run("readelf", "--debug-dump=info", path).contains(".pcm"))
    let addresses = try workshop.calls(in: path).map { Hex.prefixed($0) + "\n" }.joined()
    let trace = workshop.file("trace-" + UUID().uuidString)
    let output = try workshop.run(
      "strace", "-f", "-o", trace, "-e", "trace=openat,open,connect,socket", probe, path, input: addresses)
    #expect(output.contains("orders.swift"))
    let calls = try String(contentsOfFile: trace, encoding: .utf8)
    #expect(calls.contains(path))
    #expect(!calls.contains(".pcm"))
    #expect(!calls.contains("AF_INET"))
  }

  /// The test looks itself up: the path from a running process's addresses to names.
  @Test func ownFunctions() throws {
    let returnAddresses = markedFunctionOfTheTest()
    let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let mapping = try #require(
      try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).split(separator: "\n").first { $0.hasSuffix(path) }
    )
    let base = try #require(Hex.value(mapping.prefix { $0 != "-" }))
    let image = Image(
      path: path, buildID: try DebugFile(path: path).buildID, address: Address(rawValue: base), size: 1 << 30)
    let frames = returnAddresses.map { frame($0, .returnAddress, image: nil) }
    let names = exact.symbolicate(report(frames, image: image)).report.threads[0].frames.compactMap(\.symbolicated)
    #expect(
      names.contains {
        $0.function == "markedFunctionOfTheTest()" && $0.file?.hasSuffix("SwiftProgramTests.swift") == true
      })
    #expect(names.contains { $0.function == "SwiftProgramTests.ownFunctions()" && $0.line != nil })
  }
}

/// An answer of `llvm-symbolizer --output-style=JSON`.
private struct LLVMAnswer: Decodable {
  var symbols: [Symbol]

  struct Symbol: Decodable {
    var function: String
    var file: String
    var line: Int
    var column: Int

    enum CodingKeys: String, CodingKey {
      case function = "FunctionName"
      case file = "FileName"
      case line = "Line"
      case column = "Column"
    }
  }

  enum CodingKeys: String, CodingKey { case symbols = "Symbol" }
}

@inline(never) func markedFunctionOfTheTest() -> [UInt64] {
  Thread.callStackReturnAddresses.map { UInt64(truncating: $0) }
}
