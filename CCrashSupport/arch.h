// What differs between processors: registers, the two loads that may fault, and the recovery point.
//
// One implementation file per architecture (`arch_x86_64.c`). Everything here is async-signal-safe.

#ifndef CCRASHSUPPORT_ARCH_H
#define CCRASHSUPPORT_ARCH_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "CCrashFormat.h"

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
#else
#error "crash capture is written for x86-64; other architectures need their arch_*.c"
#endif

_Static_assert(CRASH_ARCH_RECORDED <= CRASH_RECORD_REGISTER_MAX, "registers fit the record");

/// The registers of an interrupted context, by DWARF number.
void crash_arch_columns(const ucontext_t *context, uint64_t columns[CRASH_ARCH_COLUMNS]);

/// The registers as section REGISTERS keeps them.
void crash_arch_recorded(const ucontext_t *context, uint64_t values[CRASH_ARCH_RECORDED]);

/// The stack pointer of an interrupted context.
uintptr_t crash_arch_stack_pointer(const ucontext_t *context);

/// Whether the context was interrupted in a `tgkill` by which its thread sent `signal` to itself, as raise() and abort()
/// do. The siginfo cannot tell: any thread of the process may be the sender that it names.
int crash_arch_is_own_tgkill(const ucontext_t *context, int pid, int signal);

/// For a signal that an instruction raised which is executed already, an `int3` or a system call that a seccomp filter
/// traps: sets the context back to it, so that it raises the signal again. Returns 1, or 0 with nothing changed.
int crash_arch_step_back(ucontext_t *context, int signal, const siginfo_t *info);

/// Whether the bytes before `return_address` are a call, that is whether a word with this value may be a return address.
int crash_arch_follows_call(uint64_t return_address);

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

#endif
