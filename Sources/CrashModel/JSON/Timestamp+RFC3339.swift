extension Timestamp {
  private static let nanosecondsPerSecond: Int64 = 1_000_000_000
  private static let secondsPerDay: Int64 = 86_400

  /// RFC 3339 in UTC with milliseconds (later digits are dropped): `2026-11-30T05:12:33.042Z`.
  ///
  /// No call of the C library: those follow the time zone of the process, or need a `struct tm` and a locale.
  public var rfc3339: String {
    String(unsafeUninitializedCapacity: Self.rfc3339Length) { buffer in
      guard let start = buffer.baseAddress else { return 0 }
      writeRFC3339(to: start)
      return Self.rfc3339Length
    }
  }

  /// Bytes of the text, always: 64 bits of nanoseconds reach years of four digits.
  static let rfc3339Length = 24

  /// The text as ASCII, without a String: a report holds hundreds of moments.
  func writeRFC3339(to place: UnsafeMutablePointer<UInt8>) {
    let milliseconds = rawValue.flooredQuotient(by: 1_000_000)
    let seconds = milliseconds.flooredQuotient(by: 1_000)
    let days = seconds.flooredQuotient(by: Self.secondsPerDay)
    let date = CivilDate(daysSince1970: days)
    let secondOfDay = seconds - days * Self.secondsPerDay

    func write(_ value: Int64, width: Int, at index: Int, behind mark: Unicode.Scalar) {
      var rest = UInt64(bitPattern: value)
      for position in stride(from: index + width - 1, through: index, by: -1) {
        place[position] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
      place[index + width] = UInt8(ascii: mark)
    }
    write(date.year, width: 4, at: 0, behind: "-")
    write(date.month, width: 2, at: 5, behind: "-")
    write(date.day, width: 2, at: 8, behind: "T")
    write(secondOfDay / 3_600, width: 2, at: 11, behind: ":")
    write(secondOfDay / 60 % 60, width: 2, at: 14, behind: ":")
    write(secondOfDay % 60, width: 2, at: 17, behind: ".")
    write(milliseconds - seconds * 1_000, width: 3, at: 20, behind: "Z")
  }

  /// Reads RFC 3339: any number of digits of a second (nanoseconds are kept), `Z` or an offset.
  ///
  /// A leap second (`:60`) is taken where one can be, in the last minute of a month in UTC, whatever the offset makes of
  /// it; as in POSIX time, it is the first second of the next day.
  ///
  /// - Returns: nil for anything else, for dates that no calendar has, and for those that 64 bits of nanoseconds do not
  ///   reach (before September 1677, after April 2262).
  public init?(rfc3339 text: String) {
    var text = text
    guard let moment = text.withUTF8({ Timestamp(rfc3339: UnsafeRawBufferPointer($0)) }) else { return nil }
    self = moment
  }

  /// The same of the bytes of a text.
  package init?(rfc3339 text: UnsafeRawBufferPointer) {
    var scanner = DigitScanner(text)
    guard let year = scanner.number(digits: 4), scanner.skip("-"),
      let month = scanner.number(digits: 2), scanner.skip("-"),
      let day = scanner.number(digits: 2), scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
      let hour = scanner.number(digits: 2), scanner.skip(":"),
      let minute = scanner.number(digits: 2), scanner.skip(":"),
      let second = scanner.number(digits: 2),
      1...12 ~= month, 1...CivilDate.days(inMonth: month, of: year) ~= day,
      hour < 24, minute < 60, second <= 60
    else { return nil }

    var nanoseconds: Int64 = 0
    if scanner.skip(".") {
      guard let fraction = scanner.fraction() else { return nil }
      nanoseconds = fraction
    }
    var offset: Int64 = 0
    if !(scanner.skip("Z") || scanner.skip("z")) {
      let isNegative = scanner.skip("-")
      guard isNegative || scanner.skip("+"), let hours = scanner.number(digits: 2), scanner.skip(":"),
        let minutes = scanner.number(digits: 2), hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 60 + minutes) * 60 * (isNegative ? -1 : 1)
    }
    guard scanner.isAtEnd else { return nil }
    // Seconds of four-digit years are far from the limits of 64 bits; their nanoseconds are not.
    let days = CivilDate(year: year, month: month, day: day).daysSince1970
    let seconds = days * Self.secondsPerDay + hour * 3_600 + minute * 60 + second - offset
    if second == 60 {
      let (day, rest) = seconds.quotientAndRemainder(dividingBy: Self.secondsPerDay)
      guard rest == 0, CivilDate(daysSince1970: day).day == 1 else { return nil }
    }
    // The product may lie just below the range and the sum in it, so the last second before 1970 is borrowed.
    let (whole, borrowed) =
      seconds < 0 ? (seconds + 1, nanoseconds - Self.nanosecondsPerSecond) : (seconds, nanoseconds)
    let (product, overflow) = whole.multipliedReportingOverflow(by: Self.nanosecondsPerSecond)
    guard !overflow else { return nil }
    let (sum, sumOverflow) = product.addingReportingOverflow(borrowed)
    guard !sumOverflow else { return nil }
    self.init(rawValue: sum)
  }
}

/// A date of the proleptic Gregorian calendar.
private struct CivilDate {
  var year: Int64
  var month: Int64
  var day: Int64

  init(year: Int64, month: Int64, day: Int64) {
    self.year = year
    self.month = month
    self.day = day
  }

  /// Years are counted from March, so that the leap day is the last one of a year, and in eras of 400 years, which all
  /// have 146,097 days; 719,468 days lie between 0000-03-01 and 1970-01-01.
  init(daysSince1970 days: Int64) {
    let shifted = days + 719_468
    let era = shifted.flooredQuotient(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  var daysSince1970: Int64 {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = shiftedYear.flooredQuotient(by: 400)
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  static func days(inMonth month: Int64, of year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

private struct DigitScanner {
  private let text: UnsafeRawBufferPointer
  private var index = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  var isAtEnd: Bool { index == text.count }

  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard index < text.count, text[index] == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  mutating func number(digits: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  /// The digits behind the point, as nanoseconds; nil where there are none.
  mutating func fraction() -> Int64? {
    guard var value = digit() else { return nil }
    var count = 1
    while let digit = digit() {
      if count < 9 { value = value * 10 + digit }
      count = min(count + 1, 9)
    }
    for _ in count..<9 { value *= 10 }
    return value
  }

  private mutating func digit() -> Int64? {
    guard index < text.count, Byte.isDigit(text[index]) else { return nil }
    index += 1
    return Int64(text[index - 1] - UInt8(ascii: "0"))
  }
}

extension Int64 {
  /// The quotient rounded towards negative infinity, so that moments before 1970 count the same way.
  fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
