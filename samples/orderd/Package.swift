// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "orderd",
  dependencies: [
    // A service elsewhere writes the repository's URL and a version here.
    .package(name: "swift-crash-reporting", path: "../..")
  ],
  targets: [
    .target(name: "CLedger"),
    .target(name: "CPricing"),
    .executableTarget(
      name: "orderd",
      dependencies: [
        "CLedger", "CPricing",
        .product(name: "CrashReporting", package: "swift-crash-reporting"),
      ],
      swiftSettings: [.swiftLanguageMode(.v6)]),
  ],
  cxxLanguageStandard: .gnucxx17
)
