extension StackAnalysis {
  /// What is asked for when groups are merged: so many names tell two call paths apart.
  public static let callPathLimit = 6

  /// The named functions of the application and its dependencies from the blamed one outward, neighbours of one name once.
  ///
  /// Computed, as whoever only needs the hash must not pay for it. Empty where no function is blamed by its name, where the
  /// group was asked for, and for a stack overflow, of which the hash already names the whole cycle.
  ///
  /// ```swift
  /// StackHasher().analyze(report).callPath()  // ["orderd.Store.load(id:)", "orderd.Server.handle(_:)", "main"]
  /// ```
  public func callPath(limit: Int = callPathLimit) -> [String] {
    guard reason != .stackOverflow, group == nil, let blamed = frames.firstIndex(where: \.isBlamed),
      frames[blamed].frameClass.name != nil
    else { return [] }
    var path: [String] = []
    for entry in frames[blamed...] {
      guard path.count < limit else { break }
      guard entry.frameClass.kind == .app || entry.frameClass.kind == .lib, let name = entry.frameClass.name,
        path.last != name
      else { continue }
      path.append(name)
    }
    return path
  }

  /// Where in the blamed function the crash happened: its line, counted from the line of the function's declaration, which
  /// edits above the function do not change. Within a closure it is counted from the function that the closure is in.
  ///
  /// nil where no debug information gives both lines, and where the line says nothing about the bug: memory that was
  /// damaged earlier is noticed anywhere, a hang is sampled anywhere, and a stack overflows wherever it ends.
  public var siteLine: Int? {
    guard reason.hasSites, hash.quality == .dwarf, group == nil, !ignoresSite,
      let blamed = frames.firstIndex(where: \.isBlamed),
      let name = frames[blamed].frameClass.name, let line = frames[blamed].frame.line, line > 0,
      let declaration = declarationLine(of: name, from: blamed)
    else { return nil }
    let (distance, overflow) = line.subtractingReportingOverflow(declaration)
    return overflow ? nil : distance
  }

  private func declarationLine(of name: String, from blamed: Int) -> Int? {
    guard let enclosing = Self.enclosingFunction(of: name) else { return frames[blamed].frame.declarationLine }
    return frames[blamed...].lazy.first {
      $0.frameClass.name == enclosing && $0.frame.declarationLine != nil
    }?.frame.declarationLine
  }
  /// The function that a closure is in; nil for other functions.
  ///
  /// A closure is declared where it stands, so that its own line moves with every edit of the function around it.
  static func enclosingFunction(of name: String) -> String? {
    guard let marker = CanonicalName.closureMarker(in: name) else { return nil }
    var enclosing = name
    enclosing.removeSubrange(marker)
    return enclosing
  }
}
