/// Names that depend on the processor, by ELF `e_machine`.
enum Machine {
  /// As `uname -m` prints it; nil for one that no record is written on.
  static func name(_ machine: UInt32) -> String? {
    switch machine {
    case 62: "x86_64"
    case 183: "aarch64"
    default: nil
    }
  }

  /// In the order of the record's values.
  static func registerNames(_ machine: UInt32) -> [String] {
    switch machine {
    case 62: x86
    case 183: arm
    default: []
    }
  }

  private static let x86 = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
    "rflags",
  ]
  private static let arm = (0...30).map { "x\($0)" } + ["sp", "pc", "pstate"]
}
