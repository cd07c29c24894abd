/// Whether a core becomes a file `core…` in the directory of the process that died, and is not given to a program.
public let coresBecomeFiles: Bool = {
  let pattern = String(decoding: contents(of: "/proc/sys/kernel/core_pattern") ?? [], as: UTF8.self)
  return pattern.hasPrefix("core") && !pattern.contains("/")
}()

/// Program counters of every thread as gdb finds them in a core, innermost first, by the kernel's number of the thread.
///
/// Frames that gdb makes up from debug information (inlined functions, tail calls) are left out: they are on no stack. At
/// most 400 of each.
public func gdbProgramCounters(executable: String, core: String) throws -> [UInt32: [UInt64]] {
  let script = """
    for thread in gdb.selected_inferior().threads():
      thread.switch()
      found = []
      n = 0
      try:
        f = gdb.newest_frame()
        while f is not None and n < 400:
          if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): found.append('%x' % f.pc())
          f = f.older()
          n += 1
      except gdb.error:
        pass
      print('thread %d %s' % (thread.ptid[1], ' '.join(found)))
    """
  let directory = try TemporaryDirectory("gdb")
  try write(Array(script.utf8), to: "\(directory.path)/frames.py")
  let outcome = try ChildProcess([
    "/usr/bin/env", "gdb", "-batch", "-nx", "-iex", "set auto-load off", "-ex", "set debuginfod enabled off",
    "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", executable, core, "-x",
    "\(directory.path)/frames.py",
  ]).run()
  var threads: [UInt32: [UInt64]] = [:]
  for line in outcome.text.split(separator: "\n") where line.hasPrefix("thread ") {
    let words = line.split(separator: " ")
    guard words.count > 1, let id = UInt32(words[1]) else { continue }
    // Zero ends a stack; as the innermost one it is the call that failed.
    threads[id] = words.dropFirst(2).compactMap { UInt64($0, radix: 16) }.enumerated()
      .filter { $0.offset == 0 || $0.element != 0 }.map(\.element)
  }
  return threads
}
