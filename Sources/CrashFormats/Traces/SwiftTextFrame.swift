internal import CrashModel

/// One line of a stack in the Swift runtime's look:
/// `3 [ra] [inlined] 0x000055cb3e2509e0 inlinedLeaf(_:_:) + 47 in crashdemo at /src/main.swift:7:68`.
///
/// With `symbolicate=off` it ends behind the address, with `preset=friendly` it has none.
struct SwiftTextFrame {
  /// nil for `...` in its place.
  var index: UInt64?
  var isGap = false
  var kind = FrameKind.programCounter
  var isInlined = false
  var isSystem = false
  var address: UInt64?
  var function: String?
  var image: String?
  var file: String?
  var line: Int?
  var column: Int?

  init?(_ bytes: ArraySlice<UInt8>) {
    var scanner = LineScanner(bytes)
    scanner.skipSpaces()
    if scanner.skip("...") {
      scanner.skipSpaces()
      guard scanner.isAtEnd else { return nil }
      isGap = true
      return
    }
    guard scanner.rest.first?.isASCIIDigit == true, let number = scanner.decimal(), number < UInt64(Int32.max),
      scanner.skipSpaces() > 0
    else { return nil }
    index = number
    guard readAttributes(&scanner) else { return nil }
    if scanner.skip("...") {
      isGap = true
      return
    }
    address = scanner.hex()
    if address != nil, scanner.isAtEnd { return }
    guard scanner.skipSpaces() > 0 || address == nil else { return nil }
    readSymbol(scanner.rest)
  }

  /// Only what stands behind the address: `inlinedLeaf(_:_:) + 47`.
  init(symbol: ArraySlice<UInt8>) { readSymbol(symbol) }

  private mutating func readAttributes(_ scanner: inout LineScanner) -> Bool {
    while scanner.skip("[") {
      guard let names = scanner.up(to: "]") else { return false }
      for name in names.split(separator: 0x20) {
        switch true {
        case name.equals("ra"): kind = .returnAddress
        case name.equals("async"): kind = .asyncResume
        case name.equals("inlined"): isInlined = true
        case name.equals("system"): isSystem = true
        case name.equals("thunk"): break
        // A later version's; none has a digit or an upper-case letter, unlike an index into something.
        default: guard name.allSatisfy({ $0.isASCIILetter || $0 == UInt8(ascii: "-") }) else { return false }
        }
      }
      scanner.skipSpaces()
    }
    return true
  }

  private mutating func readSymbol(_ bytes: ArraySlice<UInt8>) {
    var name = bytes
    // The place is last. Names hold ` in ` (`closure #1 in f`) and hardly ever ` at /`.
    if let at = name.firstIndex(of: " at /") ?? name.firstIndex(of: " at <") ?? Self.numberedPlace(in: name) {
      readPlace(name[(at + 4)...])
      name = name[..<at]
    }
    // `name + 47 in image`: what is behind the offset is the image, whatever it is called.
    if let (end, behind) = Self.offset(in: name) {
      if behind.starts(with: " in ") { image = behind.dropFirst(4).string }
      name = name[..<end]
    } else if let last = name.lastIndex(of: " in ") {
      let candidate = name[(last + 4)...]
      // Of a function without an offset: images have no parentheses, the second half of a closure's name has.
      if !candidate.isEmpty,
        !candidate.contains(where: { $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "<") || $0 == 0x20 })
      {
        image = candidate.string
        name = name[..<last]
      }
    }
    let trimmed = name.trimmed
    if !trimmed.isEmpty { function = trimmed.string }
  }

  /// ` at Sources/app/main.swift:7:68`, of a path that is not absolute.
  private static func numberedPlace(in name: ArraySlice<UInt8>) -> Int? {
    guard let at = name.lastIndex(of: " at "), name.last?.isASCIIDigit == true, name[(at + 4)...].contains(":") else {
      return nil
    }
    return at
  }

  /// The last ` + 47` or ` - 8` that ends the name or that ` in ` follows.
  private static func offset(in name: ArraySlice<UInt8>) -> (end: Int, behind: ArraySlice<UInt8>)? {
    var end = name.endIndex
    // Operators have such signs in their names, but few.
    for _ in 0..<8 {
      let signs = [name[..<end].lastIndex(of: " + "), name[..<end].lastIndex(of: " - ")].compactMap { $0 }
      guard let sign = signs.max() else { return nil }
      var scanner = LineScanner(name[(sign + 3)...])
      if scanner.decimal() != nil, scanner.isAtEnd || scanner.starts(with: " in ") { return (sign, scanner.rest) }
      end = sign
    }
    return nil
  }

  /// `/src/main.swift:7:68`; the numbers may be missing.
  private mutating func readPlace(_ bytes: ArraySlice<UInt8>) {
    let place = SourcePlace(bytes)
    (file, line, column) = (place.file, place.line, place.column)
  }

  func frame(imageIndex: Int?) -> SymbolicatedFrame {
    let captured = CapturedFrame(
      kind: kind, trust: kind == .asyncResume ? .async : nil, address: address.map(Address.init(rawValue:)),
      imageIndex: imageIndex)
    return SymbolicatedFrame(
      captured: captured, status: function == nil ? .noSymbols : .resolved, function: function, file: file,
      line: line, column: column, inlined: isInlined, inApp: isSystem ? false : nil,
      // The runtime has places from debug information only.
      hasDebugInformation: file != nil)
  }
}

/// `path:line:column`, as all tools write it: the numbers count from the end.
struct SourcePlace {
  var file: String?
  var line: Int?
  var column: Int?

  init(_ bytes: ArraySlice<UInt8>) {
    var path = bytes.trimmed
    var numbers: [Int] = []
    while numbers.count < 2, let colon = path.lastIndex(of: UInt8(ascii: ":")) {
      let digits = path[(colon + 1)...]
      guard !digits.isEmpty, digits.count <= 9, digits.allSatisfy(\.isASCIIDigit), let number = Int(digits.string)
      else { break }
      numbers.insert(number, at: 0)
      path = path[..<colon]
    }
    guard !path.isEmpty else { return }
    var text = path.string
    // The compiler's own code lies in a directory without a name.
    if text.hasSuffix("/<compiler-generated>") { text = "<compiler-generated>" }
    file = text
    line = numbers.first
    column = numbers.count > 1 ? numbers[1] : nil
  }
}
