/// Sizes as people write them: multiples of 1,024.
enum ByteCount {
  private static let units: [Character] = ["K", "M", "G", "T"]

  /// `512 B`, `94.7 MB`.
  static func text(_ bytes: Int) -> String {
    var value = Double(bytes)
    var unit = "B"
    for next in units where value >= 1_000 {
      value /= 1_024
      unit = "\(next)B"
    }
    if unit == "B" { return "\(bytes) B" }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) \(unit)"
  }

  /// `1048576`, `500M`, `2G`, `2GB`.
  ///
  /// - Returns: nil for what is no number above 0.
  static func parse(_ text: String) -> Int? {
    var digits = text[...]
    if let last = digits.last, last == "B" || last == "b" { digits = digits.dropLast() }
    var factor = 1
    if let last = digits.last, let index = units.firstIndex(of: Character(last.uppercased())) {
      digits = digits.dropLast()
      for _ in 0...index { factor *= 1_024 }
    }
    guard let number = Int(digits), number > 0 else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : bytes
  }
}
