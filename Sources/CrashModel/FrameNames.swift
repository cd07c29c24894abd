/// The texts that a frame got: its function's two names and the path of the source.
///
/// An object, so that the frames of one function share it. A frame is copied a dozen times on its way through a batch, and
/// with three Strings in it each copy is three counts of references. What is found out about the texts stays with them: to
/// hash and to compare a linker's name takes longer than all that is decided by it.
// `@unchecked`: what is found out is reached under the lock only; all else never changes.
public final class FrameNames: Hashable, @unchecked Sendable {
  /// The function as people write it.
  public let function: String?
  /// The function as the linker knows it.
  public let rawFunction: String?
  /// Path of the source file.
  public let file: String?

  private var knownFacts: NameCache.Facts?
  private var knownSharing: NameCache.Sharing?
  // One for all: it is held for the time of a load.
  private static let lock = BareLock()

  /// Of all frames without any.
  package static let none = FrameNames(function: nil, rawFunction: nil, file: nil)

  package init(function: String?, rawFunction: String?, file: String?) {
    self.function = function
    self.rawFunction = rawFunction
    self.file = file
  }

  /// - Parameter find: called by whoever asks first.
  func facts(_ find: () -> NameCache.Facts) -> NameCache.Facts {
    if let known = Self.lock.withLock({ knownFacts }) { return known }
    let found = find()
    Self.lock.withLock { knownFacts = found }
    return found
  }

  /// - Parameter find: called by whoever asks first.
  func sharing(_ find: () -> NameCache.Sharing) -> NameCache.Sharing {
    if let known = Self.lock.withLock({ knownSharing }) { return known }
    let found = find()
    Self.lock.withLock { knownSharing = found }
    return found
  }

  package static func of(function: String?, rawFunction: String?, file: String?) -> FrameNames {
    if function == nil, rawFunction == nil, file == nil { return none }
    return FrameNames(function: function, rawFunction: rawFunction, file: file)
  }

  public static func == (left: FrameNames, right: FrameNames) -> Bool {
    left === right
      || left.function == right.function && left.rawFunction == right.rawFunction && left.file == right.file
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(function)
    hasher.combine(rawFunction)
    hasher.combine(file)
  }
}

/// What has the names of a function, and the path of its source.
///
/// The object is shared and never changes: to set one of the texts gives the value another one.
public protocol NamedFunction {
  /// Shared with others of the same names.
  var names: FrameNames { get set }
}

extension NamedFunction {
  /// The function as people write it: demangled and simplified. Nil where only file and line are known.
  public var function: String? {
    @inlinable get { names.function }
    set { names = .of(function: newValue, rawFunction: names.rawFunction, file: names.file) }
  }

  /// The function as the linker knows it.
  public var rawFunction: String? {
    @inlinable get { names.rawFunction }
    set { names = .of(function: names.function, rawFunction: newValue, file: names.file) }
  }

  /// Path as the compiler recorded it, joined with the directory of the compilation; `<compiler-generated>` and the like
  /// stay as they are. It need not exist here, nor be of this machine.
  public var file: String? {
    @inlinable get { names.file }
    set { names = .of(function: names.function, rawFunction: names.rawFunction, file: newValue) }
  }
}

extension FrameNames: CustomReflectable {
  /// The texts: what was found out about them is no part of a report.
  public var customMirror: Mirror {
    Mirror(self, children: ["function": function as Any, "rawFunction": rawFunction as Any, "file": file as Any])
  }
}

extension BareLock {
  fileprivate func withLock<Result>(_ body: () -> Result) -> Result {
    lock()
    defer { unlock() }
    return body()
  }
}
