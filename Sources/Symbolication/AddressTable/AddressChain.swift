/// The functions at one address, innermost first, as bytes that stay where they were found.
///
/// What `ResolvedAddress` says, for whoever asks millions of times and only copies names to an output: no `String` is made,
/// and the memory of one chain serves for the next. A copy shares that memory: it is one chain for one loop. The bytes are valid until the `ImageLookup` that filled the chain is
/// asked to `prepare` or goes.
package struct AddressChain {
  package struct Function {
    /// The linker's name, UTF-8; nil where only file and line are known.
    package var name: UnsafeRawBufferPointer?
    /// Path of the source file, UTF-8.
    package var file: UnsafeRawBufferPointer?
    /// 1-based; 0 for code that the compiler made up; nil where unknown.
    package var line: UInt32?
    /// 1-based; 0 where unknown.
    package var column: UInt32?
    /// The function was inlined into the next one.
    package var inlined: Bool
    /// The line is the nearest one of the same function: the code itself has none.
    package var approximate: Bool
  }

  /// Plain memory: an array would be asked for each function whether it is shared and whether it is full.
  private final class Storage {
    var memory = UnsafeMutableBufferPointer<Function>.allocate(capacity: 64)
    deinit { memory.deallocate() }
  }

  private let storage = Storage()
  private var memory: UnsafeMutableBufferPointer<Function>
  private var count = 0
  /// What a failed check of the Swift runtime says.
  package private(set) var runtimeFailure: UnsafeRawBufferPointer?

  package init() { memory = storage.memory }

  package var functions: UnsafeBufferPointer<Function> { UnsafeBufferPointer(rebasing: memory[..<count]) }

  @inline(__always)
  mutating func removeAll() {
    count = 0
    runtimeFailure = nil
  }

  /// Adds a function, but for what stands for none: as `FoundDebugFiles.resolve` does it.
  @inline(__always)
  mutating func append(_ function: Function) {
    if function.inlined, let name = function.name, let failure = Self.runtimeFailure(name) {
      if runtimeFailure == nil { runtimeFailure = failure }
      return
    }
    if function.name == nil, function.file == nil { return }
    appendResolved(function)
  }

  /// A function that went through `FoundDebugFiles.resolve`.
  @inline(__always)
  mutating func appendResolved(_ function: Function) {
    if count == memory.count { grow() }
    memory.initializeElement(at: count, to: function)
    count &+= 1
  }

  @inline(never)
  private mutating func grow() {
    let larger = UnsafeMutableBufferPointer<Function>.allocate(capacity: memory.count * 2)
    _ = larger.update(fromContentsOf: memory)
    storage.memory.deallocate()
    storage.memory = larger
    memory = larger
  }

  mutating func setRuntimeFailure(_ text: UnsafeRawBufferPointer?) { runtimeFailure = text }

  @inline(__always)
  private static func runtimeFailure(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    // Most names begin with `$` or `_`.
    guard name.count >= 23, name[0] == UInt8(ascii: "S") else { return nil }
    return longRuntimeFailure(name)
  }

  @inline(never)
  private static func longRuntimeFailure(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    let prefix = FunctionName.runtimeFailurePrefix.utf8
    guard name.starts(with: prefix) else { return nil }
    return UnsafeRawBufferPointer(rebasing: name[prefix.count...])
  }
}
