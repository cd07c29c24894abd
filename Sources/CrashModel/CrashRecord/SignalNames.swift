/// Names of signals and their codes on Linux (`signal.h`, `asm-generic/siginfo.h`).
///
/// A table of our own: the reader runs elsewhere than the crash, and `sigabbrev_np` exists only since glibc 2.32.
public enum SignalNames {
  /// `SIGSEGV`; `SIG35` for a number without a name.
  public static func name(_ number: Int32) -> String {
    names[number] ?? "SIG\(number)"
  }

  /// The number of `SIGSEGV`; nil for a name that is none.
  public static func number(_ name: String) -> Int32? {
    if let number = names.first(where: { $0.value == name })?.key { return number }
    return name.hasPrefix("SIG") ? Int32(name.dropFirst(3)) : nil
  }

  private static let names: [Int32: String] = [
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
    23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
    30: "SIGPWR", 31: "SIGSYS",
  ]

  /// `SEGV_MAPERR`; nil for a code without a name.
  public static func codeName(signal: Int32, code: Int32) -> String? {
    // Zero and below say how the signal was sent, whichever it is.
    switch code {
    case 0: return "SI_USER"
    case -1: return "SI_QUEUE"
    case -2: return "SI_TIMER"
    case -3: return "SI_MESGQ"
    case -4: return "SI_ASYNCIO"
    case -5: return "SI_SIGIO"
    case -6: return "SI_TKILL"
    case -7: return "SI_DETHREAD"
    case -60: return "SI_ASYNCNL"
    case 0x80: return "SI_KERNEL"
    default: break
    }
    guard code > 0, let names = codeNames[signal], code <= names.count else { return nil }
    return names[Int(code) - 1]
  }

  /// The names of the codes from 1 upwards.
  private static let codeNames: [Int32: [String]] = [
    4: [
      "ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK",
      "ILL_BADIADDR",
    ],
    5: ["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"],
    7: ["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"],
    8: [
      "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB",
      "FPE_DECOVF", "FPE_DECDIV", "FPE_DECERR", "FPE_INVASC", "FPE_INVDEC", "FPE_FLTUNK", "FPE_CONDTRAP",
    ],
    11: [
      "SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI", "SEGV_ADIDERR", "SEGV_ADIPERR",
      "SEGV_MTEAERR", "SEGV_MTESERR", "SEGV_CPERR",
    ],
    31: ["SYS_SECCOMP", "SYS_USER_DISPATCH"],
  ]
}
