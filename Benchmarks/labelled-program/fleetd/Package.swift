// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "fleetd",
  dependencies: [
    .package(name: "swift-crash-reporting", path: "../../.."),
    .package(path: "vendor/Geometry"),
  ],
  targets: [
    .target(name: "CTelemetry"),
    .target(name: "Routing", dependencies: [.product(name: "Geometry", package: "Geometry")]),
    .executableTarget(
      name: "fleetd",
      dependencies: [
        "CTelemetry", "Routing",
        .product(name: "CrashReporting", package: "swift-crash-reporting"),
        .product(name: "Geometry", package: "Geometry"),
      ],
      swiftSettings: [.swiftLanguageMode(.v5)]),
  ]
)
