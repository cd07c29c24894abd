private import Glibc

/// What the kernel tells about processes, for a test that gives up on one.
enum ProcessState {
  /// One line for each process of a group and one for each thread: its name, its state, where in the kernel it waits, and
  /// which signals it blocks or has not taken yet.
  static func describe(group: Int32) -> String {
    let processes = members(of: group)
    guard !processes.isEmpty else { return "no process of the group is left: something else holds its pipes open" }
    return processes.map { process in
      let command = text("/proc/\(process)/cmdline").split(separator: "\0").joined(separator: " ")
      let threads = numbers(in: "/proc/\(process)/task").map { "    " + describe(thread: $0, of: process) }
      return (["  process \(process): \(command)"] + threads).joined(separator: "\n")
    }.joined(separator: "\n")
  }

  /// Processes by their group, as the kernel lists them.
  static func members(of group: Int32) -> [Int32] {
    numbers(in: "/proc").filter { process in
      let fields = statFields(text("/proc/\(process)/stat"))
      return fields.count > 2 && fields[2] == "\(group)"
    }
  }

  private static func describe(thread: Int32, of process: Int32) -> String {
    let folder = "/proc/\(process)/task/\(thread)"
    let state = statFields(text("\(folder)/stat")).first ?? "gone"
    let status = text("\(folder)/status").split(separator: "\n")
    let signals = ["SigPnd", "ShdPnd", "SigBlk"].compactMap { name in
      status.first { $0.hasPrefix("\(name):") }.map { line in
        "\(name) \(line.dropFirst(name.utf8.count + 1).drop { $0 == "\t" })"
      }
    }
    // Number and arguments of the system call; "running" where there is none.
    let call = text("\(folder)/syscall").split(separator: "\n").first ?? "not told"
    let place = text("\(folder)/wchan")
    let name = text("\(folder)/comm").split(separator: "\n").first ?? ""
    return "thread \(thread) \"\(name)\" state \(state), waits in \(place.isEmpty ? "?" : place), "
      + "system call \(call), \(signals.joined(separator: " "))"
  }

  /// Behind the name, which may hold anything: state, parent, group.
  private static func statFields(_ line: String) -> [Substring] {
    guard let end = line.lastIndex(of: ")") else { return [] }
    return line[line.index(after: end)...].split(separator: " ")
  }

  private static func numbers(in folder: String) -> [Int32] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var numbers: [Int32] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if let number = Int32(name) { numbers.append(number) }
    }
    return numbers.sorted()
  }

  private static func text(_ path: String) -> String { String(decoding: contents(of: path) ?? [], as: UTF8.self) }
}
