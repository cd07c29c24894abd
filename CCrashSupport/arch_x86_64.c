#if defined(__x86_64__)

#include <errno.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

// si_code of SIGSYS from a filter; in <asm-generic/siginfo.h>, which cannot be included beside glibc's own.
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

// Async-signal-safe: a copy. DWARF's order is not the kernel's (psABI 3.6.2, figure 3.36).
void crash_arch_columns(const ucontext_t *context, uint64_t columns[CRASH_ARCH_COLUMNS]) {
  static const uint8_t order[CRASH_ARCH_COLUMNS] = {
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) columns[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

// Async-signal-safe: a copy.
void crash_arch_recorded(const ucontext_t *context, uint64_t values[CRASH_ARCH_RECORDED]) {
  crash_arch_columns(context, values);
  values[CRASH_ARCH_COLUMNS] = (uint64_t)context->uc_mcontext.gregs[REG_EFL];
}

// Async-signal-safe.
uintptr_t crash_arch_stack_pointer(const ucontext_t *context) { return (uintptr_t)context->uc_mcontext.gregs[REG_RSP]; }

// Whether the two bytes before the context's pc are `syscall`. Async-signal-safe.
static int is_behind_syscall(const ucontext_t *context) {
  uint8_t code[2];
  uint64_t pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
  return crash_safe_copy(code, pc - 2, 2) == 2 && code[0] == 0x0f && code[1] == 0x05;
}

// Async-signal-safe. The signal is delivered on the way out of the call: its arguments are still in their registers.
int crash_arch_is_own_tgkill(const ucontext_t *context, int pid, int signal) {
  const greg_t *registers = context->uc_mcontext.gregs;
  return registers[REG_RAX] == 0 && (int)registers[REG_RDI] == pid && (int)registers[REG_RSI] == crash_sys_gettid() &&
         (int)registers[REG_RDX] == signal && is_behind_syscall(context);
}

// Async-signal-safe. The pc is behind an `int3`, as behind every trap of this processor.
int crash_arch_repeats_trap(const ucontext_t *context, const siginfo_t *info) {
  (void)context;
  (void)info;
  return 0;
}

// The number that code which ends at `end` leaves in eax, or -1. Compilers put `mov $n, %eax` or, for 0, `xor %eax, %eax`
// before a system call; behind it there may be loads of arguments from the stack, `mov disp8(%rsp), %reg`, as in those of
// glibc's calls that are cancellation points and have many arguments.
static int number_before(const volatile uint8_t *end, int loads) {
  if (end[-2] == 0x31 && end[-1] == 0xc0) return 0;
  if (end[-5] == 0xb8 && end[-2] == 0 && end[-1] == 0) return end[-4] | end[-3] << 8;
  if (loads == 0 || end[-4] != 0x8b || (end[-3] & 0xc7) != 0x44 || end[-2] != 0x24) return -1;
  int has_prefix = (end[-5] & 0xf0) == 0x40, goes_to_eax = !(end[-3] & 0x38);
  int number = goes_to_eax ? -1 : number_before(end - 4, loads - 1);
  // A prefix, or the last byte of the instruction before.
  if (number < 0 && has_prefix && (!goes_to_eax || (end[-5] & 4))) number = number_before(end - 5, loads - 1);
  return number;
}

#define NUMBER_BYTES 20  // three loads of five bytes, and the number

// The number of the call that the two bytes at `call` make, or -1. Reads no other page than that of the instruction, which
// was just executed: the loads cannot fault, and a fault may be blocked here.
static int call_number(uint64_t call) {
  const volatile uint8_t *code = (const volatile uint8_t *)(uintptr_t)call;
  if ((call & 4095) < NUMBER_BYTES || (call & 4095) == 4095 || code[0] != 0x0f || code[1] != 0x05) return -1;
  return number_before(code, 3);
}

// Async-signal-safe.
int crash_arch_is_in_call(const ucontext_t *context, const struct crash_noted_call *call) {
  static const uint8_t order[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
  const greg_t *registers = context->uc_mcontext.gregs;
  if (!call->is_asleep || call->pc != (uint64_t)registers[REG_RIP] || call->stack_pointer != (uint64_t)registers[REG_RSP])
    return 0;
  for (unsigned i = 0; i < sizeof order; i++)
    if (call->arguments[i] != (uint64_t)registers[order[i]]) return 0;
  return 1;
}

// Async-signal-safe. The kernel has replaced the number of the call by -EINTR; all other registers are as they were.
int crash_arch_restart_call(ucontext_t *context, const struct crash_noted_call *noted) {
  greg_t *registers = context->uc_mcontext.gregs;
  if (registers[REG_RAX] != -EINTR) return 0;
  uint64_t call = (uint64_t)registers[REG_RIP] - 2;
  long number = noted ? (long)noted->number : call_number(call);
  if (!crash_call_is_repeatable(number)) return 0;
  // The kernel has stored what is left of a relative sleep, where it was given a place for it: that is what is slept.
  if (number == SYS_nanosleep && registers[REG_RSI]) registers[REG_RDI] = registers[REG_RSI];
  if (number == SYS_clock_nanosleep && registers[REG_RSI] == 0 && registers[REG_R10])
    registers[REG_RDX] = registers[REG_R10];
  registers[REG_RAX] = number;
  registers[REG_RIP] = (greg_t)call;
  return 1;
}

// Async-signal-safe.
int crash_arch_step_back(ucontext_t *context, int signal, const siginfo_t *info) {
  greg_t *pc = &context->uc_mcontext.gregs[REG_RIP];
  uint8_t code[2];
  if (signal == SIGTRAP && info->si_code == SI_KERNEL && crash_safe_copy(code, (uint64_t)*pc - 2, 2) == 2) {
    if (code[1] == 0xcc) {
      *pc -= 1;
    } else if (code[0] == 0xcd && code[1] == 0x03) {
      *pc -= 2;
    } else {
      return 0;
    }
    return 1;
  }
  // The kernel has put the registers back to what they were before the call, its number included (SECCOMP_RET_TRAP).
  if (signal == SIGSYS && info->si_code == SYS_SECCOMP && is_behind_syscall(context) &&
      context->uc_mcontext.gregs[REG_RAX] == info->si_syscall) {
    *pc -= 2;
    return 1;
  }
  return 0;
}

// Async-signal-safe: fault-safe loads only. A call is `e8 rel32`, or `ff /2` with any addressing mode, which makes it two
// to seven bytes long; the segment-override and REX prefixes in front change nothing for this test.
int crash_arch_follows_call(uint64_t return_address) {
  uint8_t code[8];
  if (return_address < 8 || crash_safe_copy(code, return_address - 8, 8) != 8) return 0;
  if (code[3] == 0xe8) return 1;
  for (int length = 2; length <= 7; length++) {
    const uint8_t *p = code + 8 - length;
    if (p[0] != 0xff || (p[1] & 0x38) != 0x10) continue;
    int mode = p[1] >> 6, base = p[1] & 7, has_sib = mode != 3 && base == 4;
    int expected = 2 + has_sib;
    if (mode == 1) expected += 1;
    if (mode == 2 || (mode == 0 && base == 5)) expected += 4;
    if (mode == 0 && has_sib && length > 2 && (p[2] & 7) == 5) expected += 4;
    if (expected == length) return 1;
  }
  return 0;
}

// Async-signal-safe. The return address is on top of the stack.
int crash_arch_undo_call(uint64_t columns[CRASH_ARCH_COLUMNS]) {
  uint64_t address;
  if (!crash_safe_load(columns[CRASH_ARCH_SP], &address)) return 0;
  columns[CRASH_ARCH_PC] = address;
  columns[CRASH_ARCH_SP] += 8;
  return 1;
}

// Async-signal-safe. `mov $15, %rax; syscall`, libc's restorer, which gdb and libgcc know by these bytes too.
int crash_arch_is_signal_return(uint64_t address) {
  static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  uint8_t code[sizeof restorer];
  if (crash_safe_copy(code, address, sizeof code) != sizeof code) return 0;
  for (unsigned i = 0; i < sizeof code; i++)
    if (code[i] != restorer[i]) return 0;
  return 1;
}

// libc's trampoline has call frame information.
int crash_arch_leave_signal(uint64_t columns[CRASH_ARCH_COLUMNS]) {
  (void)columns;
  return 0;
}

// The two loads that may fault. Written as top-level assembly because the handler must know the exact address of the
// instruction that may fault, and the compiler must not duplicate, move or inline it. `rep movsb` counts rcx down as it
// goes, so that after a fault rcx tells how much is missing.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl crash_safe_load\n"
    ".hidden crash_safe_load\n"
    ".type crash_safe_load,@function\n"
    "crash_safe_load:\n"
    ".cfi_startproc\n"
    ".hidden crash_safe_load_access\n"
    "crash_safe_load_access:\n"
    "  movq (%rdi), %rax\n"
    "  movq %rax, (%rsi)\n"
    "  movl $1, %eax\n"
    "  ret\n"
    ".hidden crash_safe_load_failed\n"
    "crash_safe_load_failed:\n"
    "  xorl %eax, %eax\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_safe_load,.-crash_safe_load\n"
    ".globl crash_safe_load_access, crash_safe_load_failed\n"
    ".p2align 4\n"
    ".globl crash_safe_copy\n"
    ".hidden crash_safe_copy\n"
    ".type crash_safe_copy,@function\n"
    "crash_safe_copy:\n"
    ".cfi_startproc\n"
    "  movq %rdx, %rcx\n"
    ".hidden crash_safe_copy_access\n"
    "crash_safe_copy_access:\n"
    "  rep movsb\n"
    ".hidden crash_safe_copy_failed\n"
    "crash_safe_copy_failed:\n"
    "  movq %rdx, %rax\n"
    "  subq %rcx, %rax\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_safe_copy,.-crash_safe_copy\n"
    ".globl crash_safe_copy_access, crash_safe_copy_failed\n"
    // The recovery point: callee-saved registers, the stack pointer of the caller and the return address.
    ".p2align 4\n"
    ".globl crash_recovery_mark\n"
    ".hidden crash_recovery_mark\n"
    ".type crash_recovery_mark,@function\n"
    "crash_recovery_mark:\n"
    ".cfi_startproc\n"
    "  movq %rbx, 0(%rdi)\n"
    "  movq %rbp, 8(%rdi)\n"
    "  movq %r12, 16(%rdi)\n"
    "  movq %r13, 24(%rdi)\n"
    "  movq %r14, 32(%rdi)\n"
    "  movq %r15, 40(%rdi)\n"
    "  leaq 8(%rsp), %rax\n"
    "  movq %rax, 48(%rdi)\n"
    "  movq (%rsp), %rax\n"
    "  movq %rax, 56(%rdi)\n"
    "  xorl %eax, %eax\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_recovery_mark,.-crash_recovery_mark\n"
    ".p2align 4\n"
    ".globl crash_recovery_resume\n"
    ".hidden crash_recovery_resume\n"
    ".type crash_recovery_resume,@function\n"
    "crash_recovery_resume:\n"
    ".cfi_startproc\n"
    "  movq 0(%rdi), %rbx\n"
    "  movq 8(%rdi), %rbp\n"
    "  movq 16(%rdi), %r12\n"
    "  movq 24(%rdi), %r13\n"
    "  movq 32(%rdi), %r14\n"
    "  movq 40(%rdi), %r15\n"
    "  movq 48(%rdi), %rsp\n"
    "  movl $1, %eax\n"
    "  cld\n"
    "  jmpq *56(%rdi)\n"
    ".cfi_endproc\n"
    ".size crash_recovery_resume,.-crash_recovery_resume\n");

extern const char crash_safe_load_access[] __attribute__((visibility("hidden")));
extern const char crash_safe_load_failed[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_access[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_failed[] __attribute__((visibility("hidden")));

// Async-signal-safe: compares and sets one register of the interrupted context.
int crash_safe_recover(ucontext_t *context) {
  greg_t *pc = &context->uc_mcontext.gregs[REG_RIP];
  if (*pc == (greg_t)(uintptr_t)crash_safe_load_access) {
    *pc = (greg_t)(uintptr_t)crash_safe_load_failed;
    return 1;
  }
  if (*pc == (greg_t)(uintptr_t)crash_safe_copy_access) {
    *pc = (greg_t)(uintptr_t)crash_safe_copy_failed;
    return 1;
  }
  return 0;
}

CRASH_UNINSTRUMENTED_END

#endif
