// SIGQUIT as a request for a snapshot, as Java's virtual machine and Go's runtime have it.

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "capture.h"
#include "hand_over.h"
#include "quit.h"
#include "syscalls.h"
#include "terminations.h"
#include "threads.h"

CRASH_UNINSTRUMENTED_BEGIN

static uint32_t asked;  // futex: SIGQUITs so far
static uint32_t answered;
static uint32_t is_caught;

static void ask(void) {
  __atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);
  crash_syscall(SYS_futex, (long)&asked, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, 0);
}

// The next SIGQUIT is blocked in this thread and wakes another one. It must not be taken from that one by the return from
// here: what it waits in would return EINTR, although no handler ran (threads.c says more).
static void let_next_be_taken(void) {
  crash_kernel_sigset pending = 0;
  for (int i = 0; i < 1200; i++) {
    if (crash_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0) != 0) return;
    if (!(pending & crash_signal_bit(SIGQUIT))) return;
    // 20 milliseconds, and two seconds where there is one that can take it and waits for a processor.
    if (i >= 200 && !crash_threads_another_takes(crash_signal_bit(SIGQUIT))) return;
    crash_sys_sleep_us(i < 200 ? 100 : 2000);
  }
}

// Async-signal-safe. Neither errno nor anything else of the interrupted code changes. SA_RESTART covers the calls that the
// kernel restarts, and the last line the others.
static void on_quit(int signal, siginfo_t *info, void *context) {
  (void)info;
  // A child has no thread that would take the snapshot: it ends, as it would have.
  if (!crash_capture_is_owner() || !crash_capture_is_own_process()) {
    struct crash_kernel_sigaction standard = {.handler = SIG_DFL};
    crash_sys_sigaction(signal, &standard, NULL);
    crash_syscall(SYS_tgkill, crash_sys_getpid(), crash_sys_gettid(), signal, 0);
    return;
  }
  ask();
  let_next_be_taken();
  if (crash_arch_is_signal_return(crash_arch_strip((uint64_t)(uintptr_t)__builtin_return_address(0))))
    crash_arch_restart_call(context, NULL);
}

int crash_quit_is_ours(const void *handler) { return handler == (const void *)(uintptr_t)on_quit; }

void crash_quit_take_pending(void) {
  if (!__atomic_load_n(&is_caught, __ATOMIC_ACQUIRE)) return;
  const crash_kernel_sigset set = crash_signal_bit(SIGQUIT);
  const struct timespec none = {0, 0};
  if (crash_syscall(SYS_rt_sigtimedwait, (long)&set, 0, (long)&none, sizeof set) == SIGQUIT) ask();
}

int crash_support_catch_quit(void) {
  if (!crash_capture_is_owner()) return -1;
  struct sigaction action, former;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_quit;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGQUIT, &action, &former) != 0) return -1;
  // The runtime's backtracer would print all threads and take its time for it: who asks for snapshots means ours.
  if (!(former.sa_flags & SA_SIGINFO) ? former.sa_handler == SIG_DFL
                                      : former.sa_sigaction == on_quit || crash_termination_is_ours(&former) ||
                                            crash_handler_is_runtime((void *)(uintptr_t)former.sa_sigaction)) {
    __atomic_store_n(&is_caught, 1, __ATOMIC_RELEASE);
    return 0;
  }
  sigaction(SIGQUIT, &former, NULL);
  return -1;
}

uint32_t crash_support_wait_for_quit(void) {
  for (;;) {
    uint32_t now = __atomic_load_n(&asked, __ATOMIC_ACQUIRE), count = now - answered;
    answered = now;
    if (count) return count;
    crash_syscall(SYS_futex, (long)&asked, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, 0);
  }
}

CRASH_UNINSTRUMENTED_END
