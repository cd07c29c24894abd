private import Glibc

/// A mutex without the value that it guards, for what is reached while the host starts.
///
/// Not `Lock`: a generic class is put together from its mangled name when it is first used, which took 0.03 ms of the
/// time of `CrashReporter.start` for one.
// `@unchecked`: the pointer never changes, and what it points to is made for many threads.
package final class BareLock: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  package init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  package func lock() { pthread_mutex_lock(mutex) }

  package func unlock() { pthread_mutex_unlock(mutex) }
}
