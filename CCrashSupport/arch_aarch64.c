#if defined(__aarch64__)

#include <errno.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

// si_code of SIGSYS from a filter; in <asm-generic/siginfo.h>, which cannot be included beside glibc's own.
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

#define X0 0
#define X8 8
#define LR 30
#define INSTRUCTION_SVC 0xd4000001u       // svc #0
#define INSTRUCTION_SIGRETURN 0xd2801168u  // mov x8, #139 (rt_sigreturn)

// Async-signal-safe: a copy. DWARF's order is the kernel's (AADWARF64, section 4.1).
void crash_arch_columns(const ucontext_t *context, uint64_t columns[CRASH_ARCH_COLUMNS]) {
  for (unsigned i = 0; i <= LR; i++) columns[i] = context->uc_mcontext.regs[i];
  columns[CRASH_ARCH_SP] = context->uc_mcontext.sp;
  columns[CRASH_ARCH_PC] = context->uc_mcontext.pc;
}

// Async-signal-safe: a copy.
void crash_arch_recorded(const ucontext_t *context, uint64_t values[CRASH_ARCH_RECORDED]) {
  crash_arch_columns(context, values);
  values[CRASH_ARCH_COLUMNS] = context->uc_mcontext.pstate;
}

// Async-signal-safe.
uintptr_t crash_arch_stack_pointer(const ucontext_t *context) { return (uintptr_t)context->uc_mcontext.sp; }

// Async-signal-safe. Instructions are words at multiples of four; 0 is none that this file looks for.
static uint32_t instruction_at(uint64_t address) {
  uint32_t word = 0;
  return address % 4 == 0 && crash_safe_copy(&word, address, sizeof word) == sizeof word ? word : 0;
}

static int is_behind_syscall(const ucontext_t *context) {
  return instruction_at(context->uc_mcontext.pc - 4) == INSTRUCTION_SVC;
}

// Async-signal-safe. The signal is delivered on the way out of the call. Its number and its arguments are still in their
// registers, but for the first, where the result is: the kernel keeps the former x0 out of the signal frame. So `pid`
// cannot be compared; the thread id says the same.
int crash_arch_is_own_tgkill(const ucontext_t *context, int pid, int signal) {
  (void)pid;
  const mcontext_t *machine = &context->uc_mcontext;
  return machine->regs[X8] == SYS_tgkill && machine->regs[X0] == 0 && (int)machine->regs[1] == crash_sys_gettid() &&
         (int)machine->regs[2] == signal && is_behind_syscall(context);
}

// Async-signal-safe. `brk #n` with any n: the pc of the signal is the instruction's own, other than on x86-64.
int crash_arch_repeats_trap(const ucontext_t *context, const siginfo_t *info) {
  return info->si_code == TRAP_BRKPT && (instruction_at(context->uc_mcontext.pc) & 0xffe0001fu) == 0xd4200000u;
}

// Async-signal-safe. The first argument is where the result is now, and cannot be compared.
int crash_arch_is_in_call(const ucontext_t *context, const struct crash_noted_call *call) {
  const mcontext_t *machine = &context->uc_mcontext;
  if (!call->is_asleep || call->pc != machine->pc || call->stack_pointer != machine->sp ||
      call->number != machine->regs[X8])
    return 0;
  for (unsigned i = 1; i < 6; i++)
    if (call->arguments[i] != machine->regs[i]) return 0;
  return 1;
}

// Async-signal-safe. The result is in the register of the first argument, which only a note from outside still has.
int crash_arch_restart_call(ucontext_t *context, const struct crash_noted_call *noted) {
  mcontext_t *machine = &context->uc_mcontext;
  long number = (long)machine->regs[X8];
  if (!noted || machine->regs[X0] != (uint64_t)-EINTR || !crash_call_is_repeatable(number)) return 0;
  machine->regs[X0] = noted->arguments[0];
  // The kernel has stored what is left of a relative sleep, where it was given a place for it: that is what is slept.
  if (number == SYS_nanosleep && machine->regs[1]) machine->regs[X0] = machine->regs[1];
  if (number == SYS_clock_nanosleep && machine->regs[1] == 0 && machine->regs[3]) machine->regs[2] = machine->regs[3];
  machine->pc -= 4;
  return 1;
}

// Async-signal-safe.
int crash_arch_step_back(ucontext_t *context, int signal, const siginfo_t *info) {
  // The kernel has put x0 back to what it was before the call (SECCOMP_RET_TRAP, syscall_rollback).
  if (signal == SIGSYS && info->si_code == SYS_SECCOMP && is_behind_syscall(context) &&
      (int)context->uc_mcontext.regs[X8] == info->si_syscall) {
    context->uc_mcontext.pc -= 4;
    return 1;
  }
  return 0;
}

// Async-signal-safe: a fault-safe load only. `bl`, `blr`, and `blr` with authentication in its four kinds.
int crash_arch_follows_call(uint64_t return_address) {
  uint32_t word = instruction_at(return_address - 4);
  if ((word & 0xfc000000u) == 0x94000000u) return 1;
  if ((word & 0xfefff000u) != 0xd63f0000u) return 0;
  uint32_t authentication = word >> 10 & 0x3f;
  return (word >> 24 & 1) == 0 && authentication == 0 ? (word & 0x1f) == 0 : authentication == 2 || authentication == 3;
}

// Async-signal-safe. A call leaves its return address in the link register and the stack as it was. Where the frame
// pointer's record holds the same address, the function that was called has built its frame already: the frame pointer
// leads further, and keeps itself right.
int crash_arch_undo_call(uint64_t columns[CRASH_ARCH_COLUMNS]) {
  uint64_t address = crash_arch_strip(columns[LR]), saved;
  if (crash_safe_load(columns[CRASH_ARCH_FP] + 8, &saved) && crash_arch_strip(saved) == address) return 0;
  columns[CRASH_ARCH_PC] = address;
  return 1;
}

// Async-signal-safe.
int crash_arch_is_signal_return(uint64_t address) {
  return instruction_at(address) == INSTRUCTION_SIGRETURN && instruction_at(address + 4) == INSTRUCTION_SVC;
}

// Async-signal-safe. The kernel's trampoline in the vdso has no call frame information on purpose: since Linux 5.8 its
// directives are commented out, as they led libgcc astray (arch/arm64/kernel/vdso/sigreturn.S). All unwinders know it by
// its two instructions, which is why the kernel keeps them.
//
// The stack pointer is at the frame that the kernel pushed: siginfo, 128 bytes, then the context (struct rt_sigframe).
int crash_arch_leave_signal(uint64_t columns[CRASH_ARCH_COLUMNS]) {
  uint64_t pc = columns[CRASH_ARCH_PC];
  if (!crash_arch_is_signal_return(pc)) return 0;
  uint64_t registers = columns[CRASH_ARCH_SP] + 128 + offsetof(ucontext_t, uc_mcontext.regs);
  // x0 to x30, sp and pc follow one another in mcontext_t as in the table of columns.
  uint64_t interrupted[CRASH_ARCH_COLUMNS];
  if (crash_safe_copy(interrupted, registers, sizeof interrupted) != sizeof interrupted) return 0;
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) columns[i] = interrupted[i];
  return 1;
}

_Static_assert(offsetof(mcontext_t, sp) == offsetof(mcontext_t, regs) + 8 * CRASH_ARCH_SP, "sp behind x30");
_Static_assert(offsetof(mcontext_t, pc) == offsetof(mcontext_t, regs) + 8 * CRASH_ARCH_PC, "pc behind sp");
_Static_assert(sizeof(siginfo_t) == 128, "the context follows siginfo in the signal frame");

// The loads that may fault, as top-level assembly: the handler must know the exact address of each, and the compiler must
// not duplicate, move or inline them. The copy goes by words; where one faults it goes on by bytes from there, and the
// byte that faults ends it with x3 bytes copied. `hint #34` is `bti c`: a host may be built with branch protection, and
// a veneer of the linker arrives by `br`.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl crash_safe_load\n"
    ".hidden crash_safe_load\n"
    ".type crash_safe_load,%function\n"
    "crash_safe_load:\n"
    ".cfi_startproc\n"
    "  hint #34\n"
    ".globl crash_safe_load_access\n"
    ".hidden crash_safe_load_access\n"
    "crash_safe_load_access:\n"
    "  ldr x2, [x0]\n"
    "  str x2, [x1]\n"
    "  mov w0, #1\n"
    "  ret\n"
    ".globl crash_safe_load_failed\n"
    ".hidden crash_safe_load_failed\n"
    "crash_safe_load_failed:\n"
    "  mov w0, #0\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_safe_load,.-crash_safe_load\n"
    ".p2align 4\n"
    ".globl crash_safe_copy\n"
    ".hidden crash_safe_copy\n"
    ".type crash_safe_copy,%function\n"
    "crash_safe_copy:\n"
    ".cfi_startproc\n"
    "  hint #34\n"
    "  mov x3, #0\n"
    "1:\n"
    "  sub x5, x2, x3\n"
    "  cmp x5, #8\n"
    "  b.lo crash_safe_copy_bytes\n"
    ".globl crash_safe_copy_word_access\n"
    ".hidden crash_safe_copy_word_access\n"
    "crash_safe_copy_word_access:\n"
    "  ldr x4, [x1, x3]\n"
    "  str x4, [x0, x3]\n"
    "  add x3, x3, #8\n"
    "  b 1b\n"
    ".globl crash_safe_copy_bytes\n"
    ".hidden crash_safe_copy_bytes\n"
    "crash_safe_copy_bytes:\n"
    "  cmp x3, x2\n"
    "  b.hs crash_safe_copy_failed\n"
    ".globl crash_safe_copy_access\n"
    ".hidden crash_safe_copy_access\n"
    "crash_safe_copy_access:\n"
    "  ldrb w4, [x1, x3]\n"
    "  strb w4, [x0, x3]\n"
    "  add x3, x3, #1\n"
    "  b crash_safe_copy_bytes\n"
    ".globl crash_safe_copy_failed\n"
    ".hidden crash_safe_copy_failed\n"
    "crash_safe_copy_failed:\n"
    "  mov x0, x3\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_safe_copy,.-crash_safe_copy\n"
    // The recovery point: what a function keeps for its caller (AAPCS64 section 6.1), the low halves of v8 to v15
    // included, the stack pointer and the return address. `ret`, not `br`: no landing pad is needed for it.
    ".p2align 4\n"
    ".globl crash_recovery_mark\n"
    ".hidden crash_recovery_mark\n"
    ".type crash_recovery_mark,%function\n"
    "crash_recovery_mark:\n"
    ".cfi_startproc\n"
    "  hint #34\n"
    "  mov x2, sp\n"
    "  stp x19, x20, [x0]\n"
    "  stp x21, x22, [x0, #16]\n"
    "  stp x23, x24, [x0, #32]\n"
    "  stp x25, x26, [x0, #48]\n"
    "  stp x27, x28, [x0, #64]\n"
    "  stp x29, x30, [x0, #80]\n"
    "  stp d8, d9, [x0, #96]\n"
    "  stp d10, d11, [x0, #112]\n"
    "  stp d12, d13, [x0, #128]\n"
    "  stp d14, d15, [x0, #144]\n"
    "  str x2, [x0, #160]\n"
    "  mov w0, #0\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_recovery_mark,.-crash_recovery_mark\n"
    ".p2align 4\n"
    ".globl crash_recovery_resume\n"
    ".hidden crash_recovery_resume\n"
    ".type crash_recovery_resume,%function\n"
    "crash_recovery_resume:\n"
    ".cfi_startproc\n"
    "  hint #34\n"
    "  ldp x19, x20, [x0]\n"
    "  ldp x21, x22, [x0, #16]\n"
    "  ldp x23, x24, [x0, #32]\n"
    "  ldp x25, x26, [x0, #48]\n"
    "  ldp x27, x28, [x0, #64]\n"
    "  ldp x29, x30, [x0, #80]\n"
    "  ldp d8, d9, [x0, #96]\n"
    "  ldp d10, d11, [x0, #112]\n"
    "  ldp d12, d13, [x0, #128]\n"
    "  ldp d14, d15, [x0, #144]\n"
    "  ldr x2, [x0, #160]\n"
    "  mov sp, x2\n"
    "  mov w0, #1\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size crash_recovery_resume,.-crash_recovery_resume\n");

_Static_assert(CRASH_ARCH_RECOVERY_WORDS * 8 >= 168, "the recovery point's last word is at 160");

extern const char crash_safe_load_access[] __attribute__((visibility("hidden")));
extern const char crash_safe_load_failed[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_word_access[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_bytes[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_access[] __attribute__((visibility("hidden")));
extern const char crash_safe_copy_failed[] __attribute__((visibility("hidden")));

// Async-signal-safe: compares and sets one register of the interrupted context.
int crash_safe_recover(ucontext_t *context) {
  uintptr_t pc = (uintptr_t)context->uc_mcontext.pc, next;
  if (pc == (uintptr_t)crash_safe_load_access)
    next = (uintptr_t)crash_safe_load_failed;
  else if (pc == (uintptr_t)crash_safe_copy_word_access)
    next = (uintptr_t)crash_safe_copy_bytes;
  else if (pc == (uintptr_t)crash_safe_copy_access)
    next = (uintptr_t)crash_safe_copy_failed;
  else
    return 0;
  context->uc_mcontext.pc = next;
  return 1;
}

CRASH_UNINSTRUMENTED_END

#endif
