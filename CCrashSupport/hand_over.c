// Gives the signal back, so that the process ends, or goes on, as it would have without us ("hybrid2" of
// docs/capture.md).

#include "hand_over.h"

#include <errno.h>
#include <string.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "capture.h"
#include "images.h"

CRASH_UNINSTRUMENTED_BEGIN

const int crash_signals[CRASH_SIGNAL_COUNT] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

static struct crash_kernel_sigaction former[CRASH_SIGNAL_COUNT];
// Whether the former handler is the Swift runtime's own backtracer. It returns from signals that were sent, after which
// the process goes on as if nothing had happened (swift #89461); a service that was told to die must die. And it never
// recovers from a fault.
static uint8_t is_runtime[CRASH_SIGNAL_COUNT];
static struct crash_kernel_sigaction ours[CRASH_SIGNAL_COUNT];
static unsigned given_back;  // bit by index: taken away from us by ourselves

static int index_of(int signal) {
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++)
    if (crash_signals[i] == signal) return i;
  return -1;
}

static int is_handler(const struct crash_kernel_sigaction *action) {
  return action->handler != (void *)SIG_DFL && action->handler != (void *)SIG_IGN;
}

// ---- Taking and giving back -------------------------------------------------------------------------------------

// Of the runtime's file that has its handler (CrashHandlerLinux.cpp); to be seen where the runtime is linked into this
// very executable, hidden in the library.
extern const char _swift_installCrashHandler[] __attribute__((weak));

// Not by dladdr, which looks at every symbol of the library: 0.15 ms for each of six signals.
static int is_swift_runtime(const struct crash_kernel_sigaction *action) {
  if (!is_handler(action)) return 0;
  uint64_t handler = (uint64_t)(uintptr_t)action->handler, neighbour = (uint64_t)(uintptr_t)_swift_installCrashHandler;
  if (neighbour && handler - neighbour + 0x8000 < 0x10000) return 1;
  return crash_images_is_named(&crash_capture.record, handler, "/libswiftCore.so");
}

int crash_handler_is_runtime(void *handler) {
  const struct crash_kernel_sigaction action = {.handler = handler};
  return is_swift_runtime(&action);
}

int crash_former_actions_replace(const struct sigaction *action) {
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++) {
    struct sigaction mine = *action;
    int failed = crash_sys_sigaction(crash_signals[i], NULL, &former[i]) != 0;
    // A host that goes on after the signal finds the call that was interrupted as it would without us: a handler's own
    // flag decides, and an ignored signal interrupts nothing.
    if (!is_handler(&former[i]) || (former[i].flags & SA_RESTART)) mine.sa_flags |= SA_RESTART;
    if (failed || sigaction(crash_signals[i], &mine, NULL) != 0) {
      int number = errno;
      while (i-- > 0) crash_sys_sigaction(crash_signals[i], &former[i], NULL);
      errno = number;
      return -1;
    }
    // As the kernel has it, with libc's restorer: what is compared and put back later.
    crash_sys_sigaction(crash_signals[i], NULL, &ours[i]);
    is_runtime[i] = (uint8_t)is_swift_runtime(&former[i]);
  }
  given_back = 0;
  return 0;
}

void crash_former_actions_reinstall(void) {
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++)
    if (given_back >> i & 1) crash_sys_sigaction(crash_signals[i], &ours[i], NULL);
  given_back = 0;
}

// Returns 0, or -1 where a sandbox refuses it. A child made by vfork runs in its parent's memory, where what is kept here is
// the parent's; the actions alone are the child's own.
static int put_back(int index, int in_child) {
  if (crash_sys_sigaction(crash_signals[index], &former[index], NULL) != 0) return -1;
  if (!in_child) given_back |= 1u << index;
  return 0;
}

static void give_back_all(int in_child) {
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++) {
    struct crash_kernel_sigaction current;
    if (crash_sys_sigaction(crash_signals[i], NULL, &current) == 0 && current.handler == ours[i].handler)
      put_back(i, in_child);
  }
}

void crash_former_actions_restore(void) { give_back_all(0); }

int crash_former_action_ignores(int signal) {
  int index = index_of(signal);
  return index >= 0 && former[index].handler == (void *)SIG_IGN;
}

int crash_handler_is_replaced(int signal, uint64_t *handler) {
  int index = index_of(signal);
  struct crash_kernel_sigaction current;
  if (index < 0 || (given_back >> index & 1) || crash_sys_sigaction(signal, NULL, &current) != 0) return 0;
  *handler = (uint64_t)(uintptr_t)current.handler;
  return current.handler != ours[index].handler;
}

int crash_former_handler_exists(int signal) {
  int index = index_of(signal);
  return index >= 0 && is_handler(&former[index]);
}

uint64_t crash_former_host_handler(int signal) {
  int index = index_of(signal);
  return index >= 0 && is_handler(&former[index]) && !is_runtime[index] ? (uint64_t)(uintptr_t)former[index].handler : 0;
}

// ---- By the default action --------------------------------------------------------------------------------------

// Whether the instruction at the context's pc raised the signal, so that it will do so again when it is executed again.
// Not so for an `int3` (the pc is behind it), a seccomp trap, a memory error reported late (BUS_MCEERR_AO), a tag check
// reported late (SEGV_MTEAERR, aarch64), and everything that was sent.
static int is_repeatable(const struct crash_event *event) {
  if (event->info->si_code <= 0) return 0;
  if (event->signal == SIGBUS && event->info->si_code == BUS_MCEERR_AO) return 0;
  if (event->signal == SIGSEGV && event->info->si_code == SEGV_MTEAERR) return 0;
  if (event->signal == SIGTRAP) return crash_arch_repeats_trap(event->context, event->info);
  return event->signal == SIGSEGV || event->signal == SIGBUS || event->signal == SIGILL || event->signal == SIGFPE;
}

// Ends the process by the signal, with the siginfo that it came with, as soon as this handler returns.
static void die_by(const struct crash_event *event) {
  int signal = event->signal;
  siginfo_t *info = event->info;
  // Not asked for where it is known: a child made by fork has no record, one made by vfork has another pid.
  long pid = crash_capture_is_owner() && !event->in_child ? crash_capture.pid : crash_sys_getpid();
  long thread = crash_sys_gettid();
  // The kernel drops a signal with the default action for the first process of a pid namespace, unless the kernel itself
  // raised it: a container's main process would go on. Its exit status can still say what happened.
  if (pid == 1) crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
  struct crash_kernel_sigaction standard = {.handler = SIG_DFL};
  // Where a sandbox refuses that, the signal would come to us again, for ever.
  if (crash_sys_sigaction(signal, &standard, NULL) != 0) crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
  // Blocked until the return, which restores the interrupted context's mask: only then is it delivered, and the core
  // shows the place of the crash and not this function.
  crash_kernel_sigset blocked = crash_signal_bit(signal);
  crash_sys_sigprocmask(SIG_BLOCK, &blocked, NULL);
  if (crash_syscall(SYS_rt_tgsigqueueinfo, pid, thread, signal, (long)info) == 0) return;
  if (crash_syscall(SYS_tgkill, pid, thread, signal, 0) == 0) return;
  // To any thread, where a sandbox does not tell which one this is: the default action ends all of them.
  if (pid > 0 && crash_syscall(SYS_kill, pid, signal, 0, 0) == 0) return;
  crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
}

// Restoring and returning is the only way that keeps everything: si_code, si_addr, the core's pc, and the line that the
// kernel writes to its log for a fault that nobody handles. An `int3` and a call that a sandbox refuses become faults of
// this kind by stepping back to the instruction; that also ends the first process of a namespace by the signal itself.
static void die_by_default(int index, const struct crash_event *event) {
  if (!is_repeatable(event) && !crash_arch_step_back(event->context, event->signal, event->info)) {
    die_by(event);
    return;
  }
  // Not only while it is ours: a handler that was installed over ours and calls it as its predecessor is still in front,
  // and returning into the fault would bring us here again, for ever.
  if (put_back(index, event->in_child) == 0) return;
  // A sandbox refuses it. A fault whose signal is blocked ends the process all the same, and in the same way: the kernel
  // puts the default action back itself (force_sig_info_to_task in its signal.c).
  crash_kernel_sigset mask;
  memcpy(&mask, &event->context->uc_sigmask, sizeof mask);
  mask |= crash_signal_bit(event->signal);
  memcpy(&event->context->uc_sigmask, &mask, sizeof mask);
}

// ---- By a former handler ----------------------------------------------------------------------------------------

static void enter(const struct crash_kernel_sigaction *action, const struct crash_event *event) {
  if (action->flags & SA_SIGINFO) {
    ((void (*)(int, siginfo_t *, void *))action->handler)(event->signal, event->info, event->context);
  } else {
    ((void (*)(int))action->handler)(event->signal);
  }
}

// The mask that the kernel would have set for this handler, on top of the interrupted code's.
static crash_kernel_sigset mask_for(const struct crash_kernel_sigaction *action, const struct crash_event *event) {
  crash_kernel_sigset mask;
  memcpy(&mask, &event->context->uc_sigmask, sizeof mask);
  mask |= action->mask;
  if (!(action->flags & SA_NODEFER)) mask |= crash_signal_bit(event->signal);
  return mask;
}

// The runtime's handler starts a thread that reads memory for it and lives by catching its own faults: those signals must
// be open, and not come to us.
static void hand_to_runtime(int index, const struct crash_event *event) {
  give_back_all(event->in_child);
  if (is_repeatable(event)) return;
  crash_kernel_sigset mask = mask_for(&former[index], event);
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++) mask &= ~crash_signal_bit(crash_signals[i]);
  crash_sys_sigprocmask(SIG_SETMASK, &mask, NULL);
  enter(&former[index], event);
  die_by(event);
}

static int is_pending(int signal) {
  crash_kernel_sigset pending = 0;
  crash_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0);
  return (pending & crash_signal_bit(signal)) != 0;
}

// A handler of the host's own may recover: make the page accessible and return (garbage collectors, copy on write in user
// space), or jump out. Giving it the signal back by restoring and returning would leave us disarmed for good when it
// does. So it is called from here, with ours still in front: on the alternate stack, and with two frames of ours below
// its own, which is what differs for it.
static enum crash_outcome hand_to_host(int index, const struct crash_event *event) {
  const struct crash_kernel_sigaction action = former[index];
  struct crash_kernel_sigaction before, after;
  int is_known = crash_sys_sigaction(event->signal, NULL, &before) == 0;
  // As the kernel does before it enters such a handler.
  if ((action.flags & SA_RESETHAND) && !event->in_child) {
    former[index] = (struct crash_kernel_sigaction){.handler = SIG_DFL};
    is_runtime[index] = 0;
  }
  crash_kernel_sigset mask = mask_for(&action, event);
  crash_sys_sigprocmask(SIG_SETMASK, &mask, NULL);
  enter(&action, event);

  // It returned. Where it left the action alone it means to go on: if it repaired nothing, the fault comes again, and to
  // both of us, as it would have to it. Where it put another action in place, a fault is about to end the process by that
  // one; and so is a signal that it raised again and that waits for its return.
  is_known = is_known && crash_sys_sigaction(event->signal, NULL, &after) == 0;
  // Where a sandbox does not tell, the record stays; a process that lives on is noticed later.
  if (!is_known) return CRASH_OUTCOME_DEATH;
  if (after.handler == before.handler) return CRASH_OUTCOME_RECOVERED;
  return is_repeatable(event) || is_pending(event->signal) ? CRASH_OUTCOME_DEATH : CRASH_OUTCOME_RECOVERED;
}

enum crash_outcome crash_hand_over(const struct crash_event *event) {
  int index = index_of(event->signal);
  if (index < 0) return CRASH_OUTCOME_RECOVERED;  // somebody calls our handler for a signal that is not ours
  if (former[index].handler == (void *)SIG_IGN && event->info->si_code <= 0) {
    // abort() sends SIGABRT until the process ends: the next time with the default action, and not to us.
    return event->signal == SIGABRT && crash_stages_met_abort() ? CRASH_OUTCOME_DEATH : CRASH_OUTCOME_RECOVERED;
  }
  if (!is_handler(&former[index])) {
    die_by_default(index, event);
    return CRASH_OUTCOME_DEATH;
  }
  if (is_runtime[index]) {
    hand_to_runtime(index, event);
    return CRASH_OUTCOME_DEATH;
  }
  return hand_to_host(index, event);
}

CRASH_UNINSTRUMENTED_END
