/// Whether a core becomes a file `core…` in the directory of the process that died, and is not given to a program.
public let coresBecomeFiles: Bool = {
  let pattern = String(decoding: contents(of: "/proc/sys/kernel/core_pattern") ?? [], as: UTF8.self)
  return pattern.hasPrefix("core") && !pattern.contains("/")
}()

/// Program counters of the crashed thread as gdb finds them in a core, innermost first. Frames that gdb makes up from
/// debug information (inlined functions, tail calls) are left out: they are on no stack.
public func gdbProgramCounters(executable: String, core: String) throws -> [UInt64] {
  let script = """
    f = gdb.newest_frame()
    n = 0
    while f is not None and n < 400:
      if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): print('pc %x' % f.pc())
      f = f.older()
      n += 1
    """
  let directory = try TemporaryDirectory("gdb")
  try write(Array(script.utf8), to: "\(directory.path)/frames.py")
  let outcome = try ChildProcess([
    "/usr/bin/env", "gdb", "-batch", "-nx", "-iex", "set auto-load off", "-ex", "set debuginfod enabled off",
    "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", executable, core, "-x",
    "\(directory.path)/frames.py",
  ]).run()
  var counters: [UInt64] = []
  for line in outcome.text.split(separator: "\n") where line.hasPrefix("pc ") {
    guard let pc = UInt64(line.dropFirst(3), radix: 16), pc != 0 || counters.isEmpty else { continue }
    counters.append(pc)
  }
  return counters
}
