package import CrashModel
private import Glibc

/// A folder of address tables, which any number of processes use at once.
///
/// A table is written under a temporary name and renamed, so that a reader sees a whole one or none, whatever ends the
/// writer. Two that build the same one at the same time both do so, and the later rename wins. The size is bounded: after
/// a table is added, those that were not used for the longest time go. Nothing in here is worth keeping: the folder may be
/// removed at any time.
public struct AddressTableCache: Sendable {
  /// Where tables are, as bytes: a file's name need not be UTF-8.
  let directory: FilePath
  /// In bytes.
  let limit: Int

  private static let suffix = ".addrtable"
  private static let spentSuffix = ".spent"
  private static let findingsSuffix = ".findings"
  /// Two paths and some numbers, in bytes.
  private static let findingsLimit = 16 << 10
  private static let temporarySuffix = ".tmp"
  /// A temporary file older than this is nobody's any more. Seconds.
  private static let temporaryAge = 3_600
  /// How exactly the time of the last use is kept. Seconds.
  private static let useResolution = 3_600

  /// - Parameters:
  ///   - directory: absolute; made with mode 0700 when the first table is written, its parent too.
  ///   - limit: in bytes, for all tables together. The one that was added last stays, whatever its size.
  public init(directory: String, limit: Int = 2 << 30) { self.init(directory: FilePath(directory), limit: limit) }

  package init(directory: FilePath, limit: Int = 2 << 30) {
    self.directory = directory
    self.limit = limit
  }

  /// The user's own: `$XDG_CACHE_HOME/symbolicate`, else `~/.cache/symbolicate`; nil where the environment names no home.
  public static var standard: AddressTableCache? {
    for (variable, below) in [("XDG_CACHE_HOME", ["symbolicate"]), ("HOME", [".cache", "symbolicate"])] {
      // What is not absolute counts for nothing (XDG Base Directory Specification).
      guard let value = getenv(variable), value[0] == CChar(UInt8(ascii: "/")) else { continue }
      let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
      return AddressTableCache(directory: below.reduce(FilePath(bytes: bytes)) { $0.appending($1) })
    }
    return nil
  }

  // MARK: Reading

  /// - Returns: nil where there is none, or the one that is there cannot be used; that one is removed.
  func table(for identity: AddressTableIdentity) -> AddressTable? {
    guard isPrivate() else { return nil }
    let path = self.path(of: identity, suffix: Self.suffix)
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return nil }
    let size = Int(status.st_size)
    guard let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), memory != MAP_FAILED else { return nil }
    do throws(AddressTable.Refusal) {
      // The initializer calls `release` itself where it throws, as the object is then gone.
      let table = try AddressTable(
        UnsafeRawBufferPointer(start: memory, count: size), key: identity.key, release: { munmap(memory, size) })
      if Int(time(nil)) - status.st_mtim.tv_sec > Self.useResolution { _ = futimens(descriptor, nil) }
      return table
    } catch {
      _ = path.withCString { unlink($0) }
      return nil
    }
  }

  /// What an earlier search found that looked for the same in the same places, and would find now.
  func findings(key: [UInt8]) -> ImageFindings? {
    guard isPrivate() else { return nil }
    let path = findingsPath(key)
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= Self.findingsLimit
    else { return nil }
    let found = withUnsafeTemporaryAllocation(byteCount: Self.findingsLimit, alignment: 8) { buffer in
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      return RememberedFindings.findings(UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)]), key: key)
    }
    guard let found, !found.conclusiveFiles.isEmpty, found.conclusiveFiles.allSatisfy(\.isCurrent) else {
      _ = path.withCString { unlink($0) }
      return nil
    }
    if Int(time(nil)) - status.st_mtim.tv_sec > Self.useResolution { _ = futimens(descriptor, nil) }
    return found
  }

  /// What answers without the table cost earlier processes, in microseconds.
  func spent(for identity: AddressTableIdentity) -> Int {
    guard isPrivate() else { return 0 }
    let path = self.path(of: identity, suffix: Self.spentSuffix)
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    // A byte for each millisecond, so that processes can add at the same time without reading first.
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return 0 }
    return Int(clamping: status.st_size).multipliedReportingOverflow(by: 1_000).partialValue
  }

  // MARK: Writing

  /// Keeps a table. Never fails: without room there is no table, and the next process builds it again.
  func store(_ table: any WritableAddressTable, for identity: AddressTableIdentity) {
    guard prepare() else { return }
    let path = self.path(of: identity, suffix: Self.suffix)
    let isStored = store(at: path) { write in
      // No fsync: after a power cut the checksums tell, and a table is rebuilt sooner than a disk is waited for.
      table.forEachPiece(write)
    }
    _ = self.path(of: identity, suffix: Self.spentSuffix).withCString { unlink($0) }
    if isStored { evict(except: path) }
  }

  /// Keeps what a search found. Never fails: without room the next process searches again.
  func store(_ findings: ImageFindings, key: [UInt8]) {
    guard prepare() else { return }
    let bytes = RememberedFindings.bytes(findings, key: key)
    _ = store(at: findingsPath(key)) { write in bytes.withUnsafeBytes(write) }
  }

  /// Writes a file under a temporary name, and then names it.
  ///
  /// - Returns: whether it is there.
  private func store(at path: FilePath, _ body: ((UnsafeRawBufferPointer) -> Void) -> Void) -> Bool {
    let random = UInt64.random(in: .min ... .max)
    let temporary = directory.appending(".\(String(random, radix: 16))\(Self.temporarySuffix)")
    let descriptor = temporary.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600) }
    guard descriptor >= 0 else { return false }
    var isWritten = true
    body { if isWritten { isWritten = Self.write($0, to: descriptor) } }
    close(descriptor)
    let isNamed = isWritten && temporary.withCString { from in path.withCString { rename(from, $0) } } == 0
    if !isNamed { _ = temporary.withCString { unlink($0) } }
    return isNamed
  }

  /// Adds to what answers without the table cost, in microseconds.
  func addSpent(_ time: Int, for identity: AddressTableIdentity) {
    guard time > 0, prepare() else { return }
    let path = self.path(of: identity, suffix: Self.spentSuffix)
    let descriptor = path.withCString { open($0, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
    guard descriptor >= 0 else { return }
    // No more than any table takes to build, a minute.
    let bytes = [UInt8](repeating: UInt8(ascii: "."), count: min(max(time / 1_000, 1), 60_000))
    _ = bytes.withUnsafeBytes { Self.write($0, to: descriptor) }
    close(descriptor)
  }

  /// Removes a table that turned out to be damaged.
  func remove(_ identity: AddressTableIdentity) {
    _ = path(of: identity, suffix: Self.suffix).withCString { unlink($0) }
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
      if count > 0 {
        done += count
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }

  private func evict(except added: FilePath) {
    var tables: [(path: FilePath, size: Int, used: Int)] = []
    let now = Int(time(nil))
    for name in DirectoryListing(of: directory, limit: 100_000).names {
      let path = directory.appending(name)
      var status = stat()
      guard path.withCString({ lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      let text = String(decoding: name, as: UTF8.self)
      if text.hasSuffix(Self.suffix) || text.hasSuffix(Self.findingsSuffix) {
        tables.append((path, Int(status.st_blocks) * 512, status.st_mtim.tv_sec))
      } else if text.hasSuffix(Self.temporarySuffix), now - status.st_mtim.tv_sec > Self.temporaryAge {
        _ = path.withCString { unlink($0) }
      } else if text.hasSuffix(Self.spentSuffix), now - status.st_mtim.tv_sec > 30 * 86_400 {
        _ = path.withCString { unlink($0) }
      }
    }
    var total = tables.reduce(0) { $0 + $1.size }
    for table in tables.sorted(by: { ($0.used, $0.path) < ($1.used, $1.path) }) where total > limit {
      guard table.path != added, table.path.withCString({ unlink($0) }) == 0 else { continue }
      total -= table.size
    }
  }

  // MARK: The folder

  private func path(of identity: AddressTableIdentity, suffix: String) -> FilePath {
    directory.appending(identity.name + suffix)
  }

  private func findingsPath(_ key: [UInt8]) -> FilePath {
    directory.appending(Hex.string(key.prefix(16)) + Self.findingsSuffix)
  }

  /// Makes the folder where it is missing.
  private func prepare() -> Bool {
    _ = directory.directory.withCString { mkdir($0, 0o700) }
    _ = directory.withCString { mkdir($0, 0o700) }
    return isPrivate()
  }

  /// Whether the folder is one that nobody else can write to: what is in it ends up in reports.
  private func isPrivate() -> Bool {
    var status = stat()
    return directory.withCString { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
      && status.st_uid == geteuid() && status.st_mode & (S_IWGRP | S_IWOTH) == 0
  }
}
