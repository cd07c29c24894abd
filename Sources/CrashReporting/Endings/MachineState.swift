package import CrashModel
private import Glibc

/// What the machine says about a run that has ended. A value, so that tests can have another machine.
package struct MachineState: Sendable {
  /// 16 bytes; nil for unknown.
  package var bootID: [UInt8]?
  /// Processes that the kernel had killed for want of memory since the boot.
  package var kills: UInt64?
  /// When the process with an id began, in clock ticks since the boot; nil where there is none.
  package var startTicks: @Sendable (Int32) -> UInt64?
  /// What a process that lives is called.
  package var name: @Sendable (Int32) -> String?
  /// A memory cgroup as it is now: the inode of its folder and its counter; nil where it is gone.
  package var memoryGroup: @Sendable (CrashRecord.MemoryGroup) -> (inode: UInt64, kills: UInt64)?

  package init(
    bootID: [UInt8]? = nil, kills: UInt64? = nil, startTicks: @escaping @Sendable (Int32) -> UInt64? = { _ in nil },
    name: @escaping @Sendable (Int32) -> String? = { _ in nil },
    memoryGroup: @escaping @Sendable (CrashRecord.MemoryGroup) -> (inode: UInt64, kills: UInt64)? = { _ in nil }
  ) {
    self.bootID = bootID
    self.kills = kills
    self.startTicks = startTicks
    self.name = name
    self.memoryGroup = memoryGroup
  }

  /// This machine, now.
  package static func current() -> MachineState {
    MachineState(
      bootID: text("/proc/sys/kernel/random/boot_id").flatMap { Hex.bytes($0.filter { $0 != "-" && $0 != "\n" }) },
      kills: counter("oom_kill", in: "/proc/vmstat"),
      startTicks: { pid in
        // Field 22. The second one is the command in parentheses, and may hold anything.
        guard let text = text("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[end...].split(separator: " ")
        return fields.count > 20 ? UInt64(fields[20]) : nil
      },
      name: { pid in
        text("/proc/\(pid)/comm").map { String($0.prefix { $0 != "\n" }) }
      },
      memoryGroup: { group in
        var status = stat()
        guard stat(group.path, &status) == 0,
          let kills = counter(
            "oom_kill", in: group.path + (group.version == 2 ? "/memory.events" : "/memory.oom_control"))
        else { return nil }
        return (UInt64(status.st_ino), kills)
      })
  }

  private static func text(_ path: String) -> String? {
    guard let file = try? Descriptor.open(path, flags: O_RDONLY), let bytes = try? file.read(count: 1 << 16, at: 0)
    else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func counter(_ name: String, in path: String) -> UInt64? {
    for line in (text(path) ?? "").split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count == 2, words[0] == name { return UInt64(words[1]) }
    }
    return nil
  }
}
