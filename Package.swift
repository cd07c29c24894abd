// swift-tools-version: 6.2

import PackageDescription

// No `unsafeFlags` anywhere: SwiftPM refuses a versioned dependency that has them. What they would be used for (warnings
// as errors) comes from the command line of `make`.
let swiftSettings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
let cSettings: [CSetting] = [.define("_GNU_SOURCE")]

let package = Package(
  name: "swift-crash-reporting",
  products: [
    .library(name: "CrashReporting", targets: ["CrashReporting"]),
    .library(name: "Symbolication", targets: ["Symbolication"]),
    .library(name: "CrashFormats", targets: ["CrashFormats"]),
    .library(name: "CrashGrouping", targets: ["CrashGrouping"]),
    .executable(name: "symbolicate", targets: ["symbolicate"]),
    .plugin(name: "archive-symbols", targets: ["ArchiveSymbols"]),
  ],
  targets: [
    // What a daemon embeds: glibc and the Swift runtime, nothing else.
    .target(name: "CCrashFormat", cSettings: cSettings),
    .target(name: "CSwiftRuntime", cSettings: cSettings),
    .target(name: "CCrashSupport", dependencies: ["CCrashFormat"], path: "CCrashSupport", cSettings: cSettings),
    .target(name: "CrashModel", dependencies: ["CCrashFormat", "CSwiftRuntime"], swiftSettings: swiftSettings),
    .target(
      name: "CrashReporting", dependencies: ["CCrashSupport", "CrashModel"], swiftSettings: swiftSettings),

    // What reads crashes elsewhere.
    .systemLibrary(
      name: "CLibdw", pkgConfig: "libdw", providers: [.apt(["libdw-dev"]), .yum(["elfutils-devel"])]),
    // What debug information is compressed with.
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .yum(["zlib-devel"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .yum(["libzstd-devel"])]),
    .systemLibrary(name: "CLZMA", pkgConfig: "liblzma", providers: [.apt(["liblzma-dev"]), .yum(["xz-devel"])]),
    .target(
      name: "Symbolication", dependencies: ["CLZMA", "CLibdw", "CZlib", "CZstd", "CrashModel"],
      swiftSettings: swiftSettings),
    // libsimdjson-dev (apt), simdjson-devel (yum). No system library target: SwiftPM warns at every build about the
    // `-D` in its pkg-config file, and the header and the library lie where compilers look.
    .target(name: "CJSONReader", linkerSettings: [.linkedLibrary("simdjson")]),
    .target(name: "CLogScan", cSettings: cSettings),
    .target(
      name: "CrashFormats", dependencies: ["CCrashFormat", "CJSONReader", "CLogScan", "CrashModel"],
      swiftSettings: swiftSettings),
    .target(name: "CrashGrouping", dependencies: ["CrashModel"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "symbolicate", dependencies: ["CrashFormats", "CrashGrouping", "CrashModel", "Symbolication"],
      swiftSettings: swiftSettings),
    .plugin(
      name: "ArchiveSymbols",
      capability: .command(
        intent: .custom(
          verb: "archive-symbols", description: "puts the debug files of a build into a symbol store"),
        permissions: [
          .writeToPackageDirectory(reason: "the symbol store and stripped programs go where they are asked for")
        ]),
      dependencies: ["symbolicate"]),

    // Tests, and what they share.
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: swiftSettings),
    // `RecordForge` makes records as the crash path would, damage included.
    .target(
      name: "RecordForge", dependencies: ["CCrashFormat", "CrashModel"], path: "Tests/RecordForge",
      swiftSettings: swiftSettings),
    // Lets a script put the reader's answers beside another tool's: Benchmarks/compare-with-llvm-symbolizer.
    .executableTarget(
      name: "symbolize-probe", dependencies: ["CrashModel", "Symbolication"], path: "Tests/symbolize-probe",
      swiftSettings: swiftSettings),
    // Makes reports and measures the parts of a batch: Benchmarks/batch.
    .executableTarget(
      name: "batch-probe", dependencies: ["CrashFormats", "CrashGrouping", "CrashModel"],
      path: "Benchmarks/batch-probe",
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CCrashSupportTests", dependencies: ["CrashModel", "TestSupport", "symbolicate"],
      exclude: ["Faults", "Oracle"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashModelTests", dependencies: ["CCrashFormat", "CrashModel", "TestSupport"], exclude: ["Resources"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashRecordTests", dependencies: ["CCrashFormat", "CrashModel", "RecordForge", "TestSupport"],
      swiftSettings: swiftSettings),
    // Works through a spool in a process of its own, for tests that kill it.
    .executableTarget(
      name: "SpoolRunner", dependencies: ["CrashModel", "CrashReporting"], path: "Tests/SpoolRunner",
      swiftSettings: swiftSettings),
    // Ends, hangs and is looked at in every way, in a process of its own.
    .executableTarget(
      name: "EndingRunner", dependencies: ["CrashReporting"], path: "Tests/EndingRunner", swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashReportingTests",
      dependencies: [
        "CrashModel", "CrashReporting", "EndingRunner", "RecordForge", "SpoolRunner", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    // Changes bytes of a debug file a thousand times and asks each for names, in another process.
    .executableTarget(
      name: "HostileFileRunner", dependencies: ["CrashModel", "Symbolication"], path: "Tests/HostileFileRunner",
      swiftSettings: swiftSettings),
    .testTarget(
      name: "SymbolicationTests",
      dependencies: [
        "CLibdw", "CrashModel", "HostileFileRunner", "Symbolication", "TestSupport", "symbolize-probe",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashFormatsTests", dependencies: ["CrashFormats", "CrashModel", "TestSupport"], exclude: ["Resources"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashGroupingTests", dependencies: ["CrashGrouping", "CrashModel", "TestSupport"],
      swiftSettings: swiftSettings),
    // The program that docs/output-formats.md shows.
    .executableTarget(
      name: "library-example", dependencies: ["CrashFormats", "CrashModel", "Symbolication"], path: "samples/library",
      swiftSettings: swiftSettings),
    .testTarget(
      name: "SymbolicateTests",
      dependencies: ["CrashModel", "RecordForge", "TestSupport", "library-example", "symbolicate"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "EndToEndTests", dependencies: ["CrashModel", "TestSupport", "symbolicate"], swiftSettings: swiftSettings),
  ],
  cLanguageStandard: .gnu11,
  cxxLanguageStandard: .gnucxx17
)
