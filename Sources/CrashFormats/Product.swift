/// What the formats that name their maker are told.
package enum Product {
  package static let name = "swift-crash-reporting"
  package static let version = "0.1.0"
}
