#include "terminations.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "capture.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

// Those that a service meets and whose default action ends it without being a crash. SIGPIPE is among them because it is how
// services end that never thought of it, in silence.
static const int termination_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,
                                          SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
#define TERMINATION_SIGNAL_COUNT (sizeof termination_signals / sizeof termination_signals[0])

static void note(int signal, const siginfo_t *info) {
  struct crash_record_run *run = crash_capture.record.run;
  run->end_signal = signal;
  run->end_flags = 0;
  if (info) {
    run->end_code = info->si_code;
    run->end_flags |= CRASH_END_HAS_CODE;
    if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) {
      run->sender_pid = info->si_pid;
      run->sender_uid = info->si_uid;
      run->end_flags |= CRASH_END_HAS_SENDER;
    }
  }
  // libc's, which asks no kernel: a sandbox that kills for this system call must not turn a SIGTERM into a SIGSYS.
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  run->end_realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  __atomic_store_n(&run->end, CRASH_END_SIGNAL, __ATOMIC_RELEASE);
}

// Its core is about the signal as it was sent. For the others the plain call is enough, which abort() and raise() need too:
// a sandbox lets it through.
static int dumps_core(int signal) { return signal == SIGQUIT || signal == SIGXCPU || signal == SIGXFSZ; }

// The kernel has put the default action back already (SA_RESETHAND), and blocks the signal until the return: it is
// delivered with the interrupted context, as if this handler had never been. A second one that comes meanwhile ends the
// process at once, as it would have.
static void end_by(int signal, siginfo_t *info) {
  long pid = crash_sys_getpid(), thread = crash_sys_gettid();
  if (info && dumps_core(signal) && crash_syscall(SYS_rt_tgsigqueueinfo, pid, thread, signal, (long)info) == 0) return;
  if (crash_syscall(SYS_tgkill, pid, thread, signal, 0) == 0) return;
  crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
}

// Async-signal-safe. In a child made by fork or vfork too, where there is nothing to note.
static void on_termination(int signal, siginfo_t *info, void *context) {
  (void)context;
  // A handler that was installed over ours and calls it as its predecessor may have no siginfo to hand on, and the action
  // is its own.
  if (!crash_arch_is_signal_return(crash_arch_strip((uint64_t)(uintptr_t)__builtin_return_address(0)))) {
    struct crash_kernel_sigaction standard = {.handler = SIG_DFL};
    crash_sys_sigaction(signal, &standard, NULL);
    info = NULL;
  }
  if (crash_capture_is_owner() && crash_capture_is_own_process()) note(signal, info);
  end_by(signal, info);
}

int crash_termination_is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_termination;
}

int crash_termination_handler_is_ours(const void *handler) {
  return handler == (const void *)(uintptr_t)on_termination;
}

void crash_terminations_install(void) {
  if (crash_capture.pid == 1) return;
  struct sigaction action, former;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_termination;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < TERMINATION_SIGNAL_COUNT; i++) {
    // Looked at and replaced in one step: between two, another thread of the host could have put its own handler there.
    if (sigaction(termination_signals[i], &action, &former) != 0) continue;
    int is_default = !(former.sa_flags & SA_SIGINFO) && former.sa_handler == SIG_DFL;
    if (!is_default && !crash_termination_is_ours(&former)) sigaction(termination_signals[i], &former, NULL);
  }
}

void crash_terminations_uninstall(void) {
  struct sigaction action, standard;
  memset(&standard, 0, sizeof standard);
  standard.sa_handler = SIG_DFL;
  for (size_t i = 0; i < TERMINATION_SIGNAL_COUNT; i++)
    if (sigaction(termination_signals[i], NULL, &action) == 0 && crash_termination_is_ours(&action))
      sigaction(termination_signals[i], &standard, NULL);
}

CRASH_UNINSTRUMENTED_END
