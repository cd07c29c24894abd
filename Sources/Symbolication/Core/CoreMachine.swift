internal import CLibdw
internal import CrashModel

/// How a machine's registers stand in a core, and what debug information calls them.
enum CoreMachine {
  case amd64, arm64

  init?(elfMachine: UInt16) {
    switch Int32(elfMachine) {
    case EM_X86_64: self = .amd64
    case EM_AARCH64: self = .arm64
    default: return nil
    }
  }

  var architecture: String { self == .amd64 ? "x86_64" : "aarch64" }

  private static let x86Names = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax",
    "rip", "cs", "rflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
  ]
  private static let armNames = (0...28).map { "x\($0)" } + ["fp", "lr", "sp", "pc", "cpsr"]

  /// In the kernel's order (`struct user_regs_struct`, `struct user_pt_regs`).
  var registerNames: [String] { self == .amd64 ? Self.x86Names : Self.armNames }

  var registerCount: Int { registerNames.count }

  private func index(_ name: String) -> Int { registerNames.firstIndex(of: name) ?? 0 }

  /// Where DWARF's registers stand, by their numbers: 0 to 16 of the System V ABI (16 is the return address), 0 to 31 of
  /// Arm's (31 is the stack pointer).
  var unwoundRegisters: [Int] {
    switch self {
    case .amd64:
      [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "rip",
      ].map(index)
    case .arm64: Array(0...31)
    }
  }

  var programCounter: Int { index(self == .amd64 ? "rip" : "pc") }
  var stackPointer: Int { index(self == .amd64 ? "rsp" : "sp") }
  /// DWARF's number of the stack pointer.
  var stackPointerNumber: UInt32 { self == .amd64 ? 7 : 31 }
  /// Where a call leaves the address that it returns to: in this register, or where nil on the stack.
  var linkRegister: Int? { self == .amd64 ? nil : index("lr") }

  /// As the reports of a record show them.
  func registers(_ values: [UInt64]) -> [ThreadInfo.Register] {
    zip(registerNames, values).compactMap { name, value in
      ["orig_rax", "cs", "ss", "ds", "es", "fs", "gs", "fs_base", "gs_base"].contains(name)
        ? nil : ThreadInfo.Register(name: name, value: value)
    }
  }
}
