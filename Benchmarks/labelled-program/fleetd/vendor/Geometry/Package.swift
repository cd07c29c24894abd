// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "Geometry",
  products: [.library(name: "Geometry", targets: ["Geometry"])],
  targets: [.target(name: "Geometry")]
)
