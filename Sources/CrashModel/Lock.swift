/// A value that one thread at a time can reach.
///
/// Not `Synchronization.Mutex`: that adds libswiftSynchronization to what every daemon loads at its start.
// `@unchecked`: the value is reached under the lock only.
package final class Lock<Value: Sendable>: @unchecked Sendable {
  private let lock = BareLock()
  private var value: Value

  package init(_ value: Value) { self.value = value }

  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body(&value)
  }
}
