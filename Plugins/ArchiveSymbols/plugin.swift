// The interface of PackagePlugin is made of Foundation's URLs. It runs where packages are built, and is linked into nothing.
import Foundation
import PackagePlugin

/// `swift package archive-symbols`: puts the debug files of a build into a symbol store, and makes stripped programs to ship.
///
/// The build's products stay as they are. What is done to their copies is what `objcopy(1)` describes for separate debug
/// files: the debug file keeps all but the code, the program loses all that only debuggers want, and both keep the build id.
@main
struct ArchiveSymbols: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    let request = try Request(arguments)
    guard !request.showsHelp else { return print(Request.help) }
    var files = request.files
    if files.isEmpty {
      for product in try request.chosenProducts(of: context.package) {
        files += try build(product, request.configuration)
      }
    }
    var archived = files
    var shipped: [URL] = []
    if request.strips {
      let output = request.output ?? context.pluginWorkDirectoryURL.appending(path: "stripped")
      (archived, shipped) = try split(files, into: output, context)
    }
    let tool = try context.tool(named: "symbolicate").url
    var command = ["store", "add", "--store", request.store.path(percentEncoded: false)]
    if let release = request.release { command += ["--release", release] }
    try run(tool, command + ["--"] + archived.map { $0.path(percentEncoded: false) })
    for file in shipped { print("stripped  \(file.path(percentEncoded: false))") }
  }

  // MARK: Building

  private func build(_ product: String, _ configuration: PackageManager.BuildConfiguration) throws -> [URL] {
    let result = try packageManager.build(
      .product(product), parameters: .init(configuration: configuration, logging: .concise))
    guard result.succeeded else { throw Failure("\(product) cannot be built:\n\(result.logText)") }
    let files = result.builtArtifacts.filter { $0.kind != .staticLibrary }.map(\.url)
    guard !files.isEmpty else {
      throw Failure("\(product) is neither a program nor a dynamic library, and holds no build to archive")
    }
    return files
  }

  // MARK: Stripping

  /// - Returns: what goes into the store, and the programs that are to be shipped, which are among it.
  private func split(_ files: [URL], into output: URL, _ context: PluginContext) throws -> (
    archived: [URL], shipped: [URL]
  ) {
    let objcopy = try Self.objcopy(context)
    let work = context.pluginWorkDirectoryURL.appending(path: "split-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: work) }
    let kept = context.pluginWorkDirectoryURL.appending(path: "debug")
    for directory in [output, kept] {
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }
    var (archived, shipped): ([URL], [URL]) = ([], [])
    for file in files {
      let name = file.lastPathComponent
      let (debug, program) = (work.appending(path: name + ".debug"), work.appending(path: name))
      let source = file.path(percentEncoded: false)
      try run(objcopy, ["--only-keep-debug", source, debug.path(percentEncoded: false)])
      // The link's checksum is that of the debug file, which therefore comes first.
      try run(
        objcopy,
        [
          "--strip-all", "--add-gnu-debuglink=\(debug.path(percentEncoded: false))", source,
          program.path(percentEncoded: false),
        ])
      // A name is given when the file is whole; the place may be that of the build's own product, if that was asked for.
      archived.append(try Self.place(debug, into: kept))
      shipped.append(try Self.place(program, into: output))
    }
    return (archived + shipped, shipped)
  }

  /// Copies beside the place first, as that may be on another file system.
  private static func place(_ file: URL, into directory: URL) throws -> URL {
    let final = directory.appending(path: file.lastPathComponent)
    let temporary = directory.appending(
      path: ".\(file.lastPathComponent).\(ProcessInfo.processInfo.processIdentifier).tmp")
    try FileManager.default.copyItem(at: file, to: temporary)
    guard rename(temporary.path(percentEncoded: false), final.path(percentEncoded: false)) == 0 else {
      let reason = String(cString: strerror(errno))
      try? FileManager.default.removeItem(at: temporary)
      throw Failure("\(final.path(percentEncoded: false)) cannot be written: \(reason)")
    }
    return final
  }

  private static func objcopy(_ context: PluginContext) throws -> URL {
    let names = ["objcopy", "llvm-objcopy"]
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    for name in names {
      for directory in path.split(separator: ":") {
        let candidate = URL(filePath: String(directory)).appending(path: name)
        if FileManager.default.isExecutableFile(atPath: candidate.path(percentEncoded: false)) { return candidate }
      }
      // The toolchain's own, where it does not lie in PATH.
      if let tool = try? context.tool(named: name) { return tool.url }
    }
    throw Failure(
      "--strip needs objcopy or llvm-objcopy, and neither is in PATH (\(path)) or the toolchain; install binutils, or leave "
        + "--strip out")
  }

  private func run(_ program: URL, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    do { try process.run() } catch {
      throw Failure("\(program.path(percentEncoded: false)) cannot be run: \(error.localizedDescription)")
    }
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      let how = process.terminationReason == .exit ? "exit status" : "signal"
      throw Failure(
        "\(program.lastPathComponent) \(arguments.prefix(2).joined(separator: " ")) ended with \(how) "
          + "\(process.terminationStatus), and said why")
    }
  }
}

/// What the command line asks for.
private struct Request {
  var store = URL(filePath: "/")
  var release: String?
  var configuration = PackageManager.BuildConfiguration.release
  var products: [String] = []
  var strips = false
  var output: URL?
  var files: [URL] = []
  var showsHelp = false

  static let help = """
    Usage: swift package [SWIFTPM-OPTION]... archive-symbols --store DIR [OPTION]... [FILE]...

    Builds the package's programs and dynamic libraries and adds them to a symbol store, where symbolicate --debug-dir, gdb
    and debuginfod find them by build id. With FILE, those files are added, and nothing is built: for a build that was made
    with flags of its own, such as --static-swift-stdlib.

    Options:
      --store DIR              the symbol store; made where it is missing
      --release NAME           the release that the build is part of
      --configuration NAME     release or debug (default: release)
      --product NAME           only this product; may be repeated
      --strip                  the store gets the debug information as a file of its own, and the program is stripped; its
                               build id and a .gnu_debuglink stay (needs objcopy or llvm-objcopy)
      --output DIR             where stripped programs go (default: below .build/plugins)
      --help                   show this help

    SwiftPM's own options stand before archive-symbols. Those that a build is made with (-Xlinker, --swift-sdk) have to be the
    same as ever: with others it is another build, with another build id.

    SwiftPM asks before the plugin writes; --allow-writing-to-package-directory says yes beforehand. Where plugins run in a
    sandbox (macOS), a DIR outside of the package also needs --allow-writing-to-directory DIR, or --disable-sandbox.
    """

  init(_ arguments: [String]) throws {
    var extractor = ArgumentExtractor(arguments)
    showsHelp = extractor.extractFlag(named: "help") > 0
    strips = extractor.extractFlag(named: "strip") > 0
    func single(_ name: String) throws -> String? {
      let values = extractor.extractOption(named: name)
      guard values.count <= 1 else { throw Failure("--\(name) can be given once") }
      guard values.first != "" else { throw Failure("--\(name) needs a value") }
      return values.first
    }
    let store = try single("store")
    release = try single("release")
    switch try single("configuration") {
    case nil, "release": configuration = .release
    case "debug": configuration = .debug
    case let name?: throw Failure("--configuration takes release or debug, not '\(name)'")
    }
    // Relative to where SwiftPM was called, as any path of a command line.
    output = try single("output").map { URL(filePath: $0) }
    products = extractor.extractOption(named: "product")
    if let unknown = extractor.remainingArguments.first(where: { $0.hasPrefix("-") }) {
      throw Failure("unknown option \(unknown); see swift package archive-symbols --help")
    }
    files = extractor.remainingArguments.map { URL(filePath: $0) }
    if showsHelp { return }
    guard let store else { throw Failure("no store; name one with --store DIR") }
    self.store = URL(filePath: store)
    guard files.isEmpty || products.isEmpty else {
      throw Failure("--product has no effect on files that were built before")
    }
    guard output == nil || strips else { throw Failure("--output is for --strip") }
  }

  /// Those that were named, or all that are linked files.
  func chosenProducts(of package: Package) throws -> [String] {
    let names = package.products.filter { product in
      if let library = product as? LibraryProduct { return library.kind == .dynamic }
      return product is ExecutableProduct
    }.map(\.name)
    for name in products where !names.contains(name) {
      throw Failure(
        "no program or dynamic library is a product of this name: \(name); there is "
          + (names.isEmpty ? "none" : names.joined(separator: ", ")))
    }
    guard !names.isEmpty else { throw Failure("the package has neither a program nor a dynamic library") }
    return products.isEmpty ? names : products
  }
}

private struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
