// What differs between processors: registers, the two loads that may fault, and the recovery point.
//
// One implementation file per architecture (`arch_x86_64.c`, `arch_aarch64.c`). Everything here is async-signal-safe.

#ifndef CCRASHSUPPORT_ARCH_H
#define CCRASHSUPPORT_ARCH_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "CCrashFormat.h"
#include "CCrashFormat_uninstrumented.h"
#include "noted_call.h"

CRASH_UNINSTRUMENTED_BEGIN

#if defined(__x86_64__)
/// ELF e_machine.
#define CRASH_ARCH_MACHINE 62u
/// Columns of the CFI table: rax rdx rcx rbx rsi rdi rbp rsp r8-r15, return address.
#define CRASH_ARCH_COLUMNS 17u
#define CRASH_ARCH_SP 7u
#define CRASH_ARCH_FP 6u
#define CRASH_ARCH_PC 16u
/// Holds the async context at the entry of an async function of Swift.
#define CRASH_ARCH_ASYNC_CONTEXT 14u
/// Values in section REGISTERS: the columns (pc last but one) and rflags.
#define CRASH_ARCH_RECORDED 18u
#define CRASH_ARCH_RECOVERY_WORDS 8u
/// A call pushes its return address: no function has its caller's stack pointer.
#define CRASH_ARCH_CALL_PUSHES 1
#elif defined(__aarch64__)
/// ELF e_machine.
#define CRASH_ARCH_MACHINE 183u
/// Columns of the CFI table: x0-x30, sp, pc. Column 34, RA_SIGN_STATE, is no register and kept apart (cfi.c).
#define CRASH_ARCH_COLUMNS 33u
#define CRASH_ARCH_SP 31u
#define CRASH_ARCH_FP 29u
#define CRASH_ARCH_PC 32u
/// Holds the async context at the entry of an async function of Swift: x22.
#define CRASH_ARCH_ASYNC_CONTEXT 22u
/// Values in section REGISTERS: the columns and pstate.
#define CRASH_ARCH_RECORDED 34u
#define CRASH_ARCH_RECOVERY_WORDS 22u
/// A call sets the link register: a function without a frame has its caller's stack pointer.
#define CRASH_ARCH_CALL_PUSHES 0
#else
#error "crash capture is written for x86-64 and aarch64; other architectures need their arch_*.c"
#endif

_Static_assert(CRASH_ARCH_RECORDED <= CRASH_RECORD_REGISTER_MAX, "registers fit the record");

/// The registers of an interrupted context, by DWARF number.
void crash_arch_columns(const ucontext_t *context, uint64_t columns[CRASH_ARCH_COLUMNS]);

/// The registers of the function that this is inlined into, as a walk of its own thread's stack needs them: those that calls
/// preserve, stack pointer and pc. The others are 0. Not getcontext(), which asks the kernel for the signal mask.
static inline __attribute__((always_inline)) void crash_arch_columns_here(uint64_t columns[CRASH_ARCH_COLUMNS]) {
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) columns[i] = 0;
  // One statement, so that all of it is true of one instruction, the last: what follows may use a register for itself.
#if defined(__aarch64__)
  __asm__ volatile(
      "stp x19, x20, [%0, #152]\n\tstp x21, x22, [%0, #168]\n\tstp x23, x24, [%0, #184]\n\t"
      "stp x25, x26, [%0, #200]\n\tstp x27, x28, [%0, #216]\n\tstp x29, x30, [%0, #232]\n\t"
      "mov x9, sp\n\tstr x9, [%0, #248]\n\tadr x9, 0f\n\tstr x9, [%0, #256]\n0:"
      :
      : "r"(columns)
      : "x9", "memory");
#else
  __asm__ volatile(
      "movq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n\tmovq %%rax, 128(%0)\n0:"
      :
      : "r"(columns)
      : "rax", "memory");
#endif
}

/// The registers as section REGISTERS keeps them.
void crash_arch_recorded(const ucontext_t *context, uint64_t values[CRASH_ARCH_RECORDED]);

/// The stack pointer of an interrupted context.
uintptr_t crash_arch_stack_pointer(const ucontext_t *context);

/// Whether the context was interrupted in a `tgkill` by which its thread sent `signal` to itself, as raise() and abort()
/// do. The siginfo cannot tell: any thread of the process may be the sender that it names.
int crash_arch_is_own_tgkill(const ucontext_t *context, int pid, int signal);

/// Whether the SIGTRAP came from an instruction that the context stands on, so that it comes again when the context goes
/// on: a `brk` on aarch64. An `int3` on x86-64 is executed by then.
int crash_arch_repeats_trap(const ucontext_t *context, const siginfo_t *info);

/// For a signal that an instruction raised which is executed already, an `int3` or a system call that a seccomp filter
/// traps: sets the context back to it, so that it raises the signal again. Returns 1, or 0 with nothing changed.
int crash_arch_step_back(ucontext_t *context, int signal, const siginfo_t *info);

/// Whether the context is the return from a call that its thread was seen asleep in.
int crash_arch_is_in_call(const ucontext_t *context, const struct crash_noted_call *call);

/// For a context that a signal interrupted in a system call which does not restart by itself (poll, epoll_wait, sleep): sets
/// it back to the call, so that it is made again and the host sees no EINTR. `noted` is the call that `crash_arch_is_in_call`
/// agreed to, or NULL: on x86-64 the number is then looked for in the code before the call, where nearly all of libc's have
/// it; on aarch64 the call cannot be made again. Returns 1, or 0 with nothing changed.
int crash_arch_restart_call(ucontext_t *context, const struct crash_noted_call *noted);

/// Whether the bytes before `return_address` are a call, that is whether a word with this value may be a return address.
int crash_arch_follows_call(uint64_t return_address);

/// Undoes a call whose function has not begun: sets pc (and the stack pointer where the call changed it) to where the call
/// was to return. Returns 1, or 0 with nothing changed where the registers do not look like that. Whether the new pc is a
/// return address is for the caller to check.
int crash_arch_undo_call(uint64_t columns[CRASH_ARCH_COLUMNS]);

/// Whether the code at an address is what the kernel lets a signal handler return to.
int crash_arch_is_signal_return(uint64_t address);

/// Where pc is in a signal trampoline that has no call frame information: replaces all columns by those of the interrupted
/// code and returns 1. Else returns 0.
int crash_arch_leave_signal(uint64_t columns[CRASH_ARCH_COLUMNS]);

/// A return address without the authentication code in its upper bits. The same instruction takes it out on every
/// processor, whatever its size of addresses; one without pointer authentication executes it as a `nop`.
static inline uint64_t crash_arch_strip(uint64_t address) {
#if defined(__aarch64__)
  register uint64_t x30 __asm__("x30") = address;
  __asm__("hint #7" : "+r"(x30));  // xpaclri, which assemblers know for newer processors only
  return x30;
#else
  return address;
#endif
}

/// Tells the processor that a loop waits for another thread's store.
static inline void crash_arch_pause(void) {
#if defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#else
  __asm__ volatile("pause" ::: "memory");
#endif
}

/// Loads one word that may not be there. Returns 1 and stores the word, or returns 0.
int crash_safe_load(uint64_t address, uint64_t *word);

/// Copies up to `length` bytes that may not be there. Returns how many were copied before the first that faulted.
size_t crash_safe_copy(void *destination, uint64_t source, size_t length);

/// Called first thing by the signal handler: when the fault is one of the two functions' above, makes the context go on
/// in their way out and returns 1 (the handler then returns at once); else returns 0.
int crash_safe_recover(ucontext_t *context);

/// Where to go on after a fault inside a stage of the crash path.
struct crash_recovery {
  uint64_t words[CRASH_ARCH_RECOVERY_WORDS];
};

/// Like `setjmp`: returns 0, and 1 when `crash_recovery_resume` came back to it. Written here because glibc's
/// `siglongjmp` runs cleanup code of the thread library and demangles its buffer with a secret from the thread's own
/// block, both of which may be what is broken. The signal mask is the caller's own business.
int crash_recovery_mark(struct crash_recovery *recovery) __attribute__((returns_twice));
void crash_recovery_resume(const struct crash_recovery *recovery) __attribute__((noreturn));

CRASH_UNINSTRUMENTED_END

#endif
