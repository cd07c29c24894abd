private import Glibc

/// The clocks by which a spool's contents age. A value, so that tests can set it.
package struct SpoolClock: Hashable, Sendable {
  /// CLOCK_REALTIME in seconds: may be set to anything at any time.
  package var wall: Int64
  /// CLOCK_BOOTTIME in seconds: only goes forward, while `bootID` is the same.
  package var boot: Int64
  package var bootID: String

  package init(wall: Int64, boot: Int64, bootID: String) {
    self.wall = wall
    self.boot = boot
    self.bootID = bootID
  }

  package static func now() -> SpoolClock {
    var wall = timespec()
    clock_gettime(CLOCK_REALTIME, &wall)
    var boot = timespec()
    clock_gettime(CLOCK_BOOTTIME, &boot)
    var id = "unknown"
    if let file = try? Descriptor.open("/proc/sys/kernel/random/boot_id", flags: O_RDONLY),
      let bytes = try? file.read(count: 64, at: 0)
    {
      id = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    }
    return SpoolClock(wall: Int64(wall.tv_sec), boot: Int64(boot.tv_sec), bootID: id.isEmpty ? "unknown" : id)
  }
}
