internal import CrashModel
internal import Glibc

/// Where a reader notes what it is about to read, so that whoever started it knows, after its death, what killed it; and
/// what killed readers before it, so that it is not read again.
///
/// The note is in memory that both processes share and that outlives the reader. Only the reader has one: in a process that
/// reads for itself nothing is noted.
final class ReadingWatch {
  /// How far a file is read. Each is asked for by itself: a file whose debug information kills still has its symbols.
  enum Part: UInt8 {
    case headers = 1
    case debugInformation
    case symbols
  }

  /// A part of a file, whatever path leads to it.
  struct Subject: Hashable {
    var device: UInt64
    var inode: UInt64
    /// When it was written, in nanoseconds: the number of a file that was removed soon belongs to another one.
    var modified: UInt64
    var part: Part

    init(device: UInt64, inode: UInt64, modified: UInt64, part: Part) {
      self.device = device
      self.inode = inode
      self.modified = modified
      self.part = part
    }

    init(_ part: Part, of status: stat) {
      let (device, inode, time) = (status.st_dev, status.st_ino, status.st_mtim)
      let seconds = UInt64(truncatingIfNeeded: time.tv_sec)
      self.init(
        device: UInt64(device), inode: UInt64(inode),
        modified: seconds &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec), part: part)
    }
  }

  private let note: ReadingNote
  private let limits: ReaderLimits
  private let endings: [Subject: String]
  private var current: Subject?

  init(note: ReadingNote, limits: ReaderLimits, endings: [Subject: String]) {
    self.note = note
    self.limits = limits
    self.endings = endings
  }

  /// How an earlier reader of this part ended; nil where it is not known to end any.
  func ending(of subject: Subject) -> String? { endings[subject] }

  /// Notes that a part is read from now on, and gives it processor time of its own.
  func begin(_ subject: Subject, size: Int) {
    if subject == current { return }
    current = subject
    note.write(subject)
    allow(seconds: limits.processorSeconds(forSize: size))
  }

  /// Notes that nothing is being read.
  func beginRequest() {
    current = nil
    note.clear()
    allow(seconds: limits.processorSeconds(forSize: 0))
  }

  /// The kernel ends the process with SIGPROF when it has used the processor for so long; nobody needs to look.
  private func allow(seconds: Int) {
    note.seconds = seconds
    var timer = itimerval(it_interval: timeval(), it_value: timeval(tv_sec: seconds, tv_usec: 0))
    _ = setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &timer, nil)
  }
}

/// A page of memory that two processes share.
final class ReadingNote {
  private static let size = 4096
  private let page: UnsafeMutableRawPointer

  /// - Returns: nil where there is no memory.
  init?() {
    guard
      let page = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), page != MAP_FAILED
    else { return nil }
    self.page = page
  }

  deinit { munmap(page, Self.size) }

  /// The processor time that was given for what is read, in seconds.
  var seconds: Int {
    get { Int(page.load(fromByteOffset: 24, as: UInt32.self)) }
    set { page.storeBytes(of: UInt32(clamping: newValue), toByteOffset: 24, as: UInt32.self) }
  }

  func write(_ subject: ReadingWatch.Subject) {
    page.storeBytes(of: subject.device, as: UInt64.self)
    page.storeBytes(of: subject.inode, toByteOffset: 8, as: UInt64.self)
    page.storeBytes(of: subject.modified, toByteOffset: 16, as: UInt64.self)
    page.storeBytes(of: subject.part.rawValue, toByteOffset: 28, as: UInt8.self)
  }

  func clear() { page.storeBytes(of: 0, toByteOffset: 28, as: UInt8.self) }

  /// What was being read; nil for nothing. The reader may have written anything.
  var subject: ReadingWatch.Subject? {
    ReadingWatch.Part(rawValue: page.load(fromByteOffset: 28, as: UInt8.self)).map {
      .init(
        device: page.load(as: UInt64.self), inode: page.load(fromByteOffset: 8, as: UInt64.self),
        modified: page.load(fromByteOffset: 16, as: UInt64.self), part: $0)
    }
  }
}
