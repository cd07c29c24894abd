// System calls without libc: no errno, no cancellation point, no lazily bound symbol.
//
// The crash path may run while the thread's own state is damaged. A libc wrapper writes errno through the thread pointer
// and may be bound at its first call, inside the loader and with kilobytes of stack; a `syscall` instruction does neither.
// All functions here are async-signal-safe and return what the kernel returns: a value, or -errno.

#ifndef CCRASHSUPPORT_SYSCALLS_H
#define CCRASHSUPPORT_SYSCALLS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"

CRASH_UNINSTRUMENTED_BEGIN

#if defined(__x86_64__)
static inline long crash_syscall(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static inline long crash_syscall(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "crash capture knows x86-64 and aarch64"
#endif

/// The kernel's own sigset: 64 signals in one word, unlike glibc's 128 bytes.
typedef uint64_t crash_kernel_sigset;

/// The kernel's own `struct sigaction`. Saved and given back as it is, so that a former handler keeps even flags and the
/// restorer that libc does not know of. On aarch64 libc uses none, and the field is there all the same (SA_RESTORER in
/// <asm/signal.h>).
struct crash_kernel_sigaction {
  void *handler;
  unsigned long flags;
  void *restorer;
  crash_kernel_sigset mask;
};

static inline crash_kernel_sigset crash_signal_bit(int signal) { return (uint64_t)1 << (signal - 1); }

static inline long crash_sys_getpid(void) { return crash_syscall(SYS_getpid, 0, 0, 0, 0); }
static inline long crash_sys_gettid(void) { return crash_syscall(SYS_gettid, 0, 0, 0, 0); }

/// The calling thread's id as records keep it: 0, which stands for unknown, where a sandbox does not tell.
static inline uint32_t crash_sys_thread_id(void) {
  long thread = crash_sys_gettid();
  return thread > 0 ? (uint32_t)thread : 0;
}

static inline long crash_sys_sigaction(int signal, const struct crash_kernel_sigaction *new_action,
                                       struct crash_kernel_sigaction *old_action) {
  return crash_syscall(SYS_rt_sigaction, signal, (long)new_action, (long)old_action, sizeof(crash_kernel_sigset));
}

static inline long crash_sys_sigprocmask(int how, const crash_kernel_sigset *set, crash_kernel_sigset *old_set) {
  return crash_syscall(SYS_rt_sigprocmask, how, (long)set, (long)old_set, sizeof(crash_kernel_sigset));
}

static inline long crash_sys_clock_gettime(clockid_t clock, struct timespec *time) {
  return crash_syscall(SYS_clock_gettime, clock, (long)time, 0, 0);
}

static inline int64_t crash_clock_ns(clockid_t clock) {
  struct timespec time = {0, 0};
  crash_sys_clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline void crash_sys_sleep_us(long microseconds) {
  struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  crash_syscall(SYS_nanosleep, (long)&time, 0, 0, 0);
}

CRASH_UNINSTRUMENTED_END

#endif
