public import CrashModel

/// What the debug information or a symbol table knows of one function at one address.
public struct SymbolicatedFunction: NamedFunction, Hashable, Sendable {
  /// Function and file, shared with other answers of the same.
  public var names: FrameNames
  /// 1-based; 0 for code that the compiler made up.
  public var line: Int?
  /// 1-based; 0 where unknown.
  public var column: Int?
  /// The line where the function is declared.
  public var declarationLine: Int?
  /// The line is the nearest one of the same function: the code itself has none.
  public var approximate: Bool
  /// The function was inlined into the next one.
  public var inlined: Bool
  /// From DWARF rather than from a symbol table.
  public var hasDebugInformation: Bool

  public init(
    function: String? = nil, rawFunction: String? = nil, file: String? = nil, line: Int? = nil, column: Int? = nil,
    declarationLine: Int? = nil, approximate: Bool = false, inlined: Bool = false, hasDebugInformation: Bool = false
  ) {
    self.init(
      names: FrameNames.of(function: function, rawFunction: rawFunction, file: file), line: line, column: column,
      declarationLine: declarationLine, approximate: approximate, inlined: inlined,
      hasDebugInformation: hasDebugInformation)
  }

  package init(
    names: FrameNames, line: Int?, column: Int?, declarationLine: Int?, approximate: Bool, inlined: Bool,
    hasDebugInformation: Bool
  ) {
    self.names = names
    self.line = line
    self.column = column
    self.declarationLine = declarationLine
    self.approximate = approximate
    self.inlined = inlined
    self.hasDebugInformation = hasDebugInformation
  }
}

/// The functions at one address.
public struct ResolvedAddress: Hashable, Sendable {
  /// Innermost first; all but the last are inlined into the next. Empty where nothing is known.
  public var functions: [SymbolicatedFunction]
  /// What a failed check of the Swift runtime says (`arithmetic overflow`).
  ///
  /// In optimized code the compiler leaves the text as the name of an inlined function that does not exist; it is taken
  /// out of `functions`.
  public var runtimeFailure: String?

  public init(functions: [SymbolicatedFunction] = [], runtimeFailure: String? = nil) {
    self.functions = functions
    self.runtimeFailure = runtimeFailure
  }
}
