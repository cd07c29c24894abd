// The signal handler: one crash at a time, captured in stages, then given back.

#include "handlers.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "capture.h"
#include "deadline.h"
#include "hand_over.h"
#include "stages.h"
#include "syscalls.h"
#include "threads.h"

CRASH_UNINSTRUMENTED_BEGIN

// ---- Who owns the crash path ------------------------------------------------------------------------------------

// The thread that crashes first owns the crash path, by its thread pointer: that needs no system call to be known.
static uintptr_t owner;

// Where the owner's handler has its frame, while it is at work. Nothing of the crash path is further below it than this: the
// alternate stacks are larger, so that no other stack of the thread is that near.
static uintptr_t capturing_frame;
#define CAPTURING_STACK ((uintptr_t)64 * 1024)

// Set until the owner is known to be of this process, and not its child made by vfork.
static int owner_is_unconfirmed;

// Set while the signal is with a former handler: where our handler's frame is, and the alternate stack that it is on.
// A handler may leave by siglongjmp, which tells nobody; from then on the frame is gone and the process has recovered.
static struct {
  int active;
  uintptr_t frame;
  uintptr_t stack, stack_size;  // size 0: the handler runs on the thread's own stack
} handed_over;

static uintptr_t thread_pointer(void) { return (uintptr_t)__builtin_thread_pointer(); }

static void note_handed_over(void) {
  stack_t stack = {.ss_flags = SS_DISABLE};
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  crash_syscall(SYS_sigaltstack, 0, (long)&stack, 0, 0);
  int on_it = !(stack.ss_flags & SS_DISABLE) && frame - (uintptr_t)stack.ss_sp < stack.ss_size;
  handed_over.frame = frame;
  handed_over.stack = (uintptr_t)stack.ss_sp;
  handed_over.stack_size = on_it ? stack.ss_size : 0;
  handed_over.active = 1;
}

// Whether code that runs with this stack pointer, on the owner's thread, was called by the handler that has the signal.
static int is_inside_former_handler(uintptr_t stack_pointer) {
  if (!handed_over.active) return 0;
  if (handed_over.stack_size) return stack_pointer - handed_over.stack < handed_over.stack_size;
  return stack_pointer < handed_over.frame;
}

// Whether code that runs with this stack pointer, on the owner's thread, runs inside of the owner's handler. It may not: a
// child made by vfork, which has its parent's thread pointer and memory, may have been killed in there.
static int is_inside_capture(uintptr_t stack_pointer) {
  return !handed_over.active && stack_pointer <= capturing_frame && capturing_frame - stack_pointer < CAPTURING_STACK;
}

static int try_to_own(uintptr_t self) {
  uintptr_t nobody = 0;
  return __atomic_compare_exchange_n(&owner, &nobody, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// The process lives: what was captured is no crash, and we stand ready for the next one.
static void take_back(void) {
  handed_over.active = 0;
  owner_is_unconfirmed = 0;
  crash_threads_let_go();
  crash_stages_take_back();
  crash_former_actions_reinstall();
  __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}

// The same for a capture that had not yet touched more than the record: in a child made by vfork, and behind one that was
// killed there.
static void drop_capture(void) {
  owner_is_unconfirmed = 0;
  crash_stages_take_back();
  __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}

void crash_handlers_notice_recovery(void) {
  if (__atomic_load_n(&owner, __ATOMIC_RELAXED) != thread_pointer()) return;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (!is_inside_former_handler(here) && !is_inside_capture(here)) take_back();
}

// A second thread that crashes waits for the first to end the process: what it would add is noted, its own death would
// cut the first one's report. Returns 1 when it owns the crash path itself, because the first one recovered.
static int wait_for_owner(const struct crash_event *event, uintptr_t self) {
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(event->context, columns);
  crash_record_note(&crash_capture.record, CRASH_NOTE_SECOND_CRASH, (uint32_t)event->signal,
                    crash_sys_thread_id(), columns[CRASH_ARCH_PC]);
  // Short steps first: a host that recovers from faults all the time (a garbage collector's barrier) waits in here.
  int64_t end = crash_clock_ns(CLOCK_MONOTONIC) + (CRASH_DEADLINE_SECONDS + 2) * 1000000000ll;
  long microseconds = 50;
  // By number, too: a sandbox may refuse both the sleep and the clock.
  for (unsigned i = 0; i < 1u << 24 && crash_clock_ns(CLOCK_MONOTONIC) < end; i++) {
    if (try_to_own(self)) return 1;
    crash_sys_sleep_us(microseconds);
    if (microseconds < 10000) microseconds *= 2;
  }
  // Either a former handler takes its time, or it jumped out of the handler and its thread was never seen again. The
  // crash that is known to be one is worth more. Or it was a child's, and the child is gone.
  uintptr_t other = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);
  return (handed_over.active || owner_is_unconfirmed) &&
         __atomic_compare_exchange_n(&owner, &other, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// What a thread sends to itself is its own doing, an abort() inside of a library for example, which does not go on behind
// it.
static int was_sent_by_others(const struct crash_event *event) {
  return event->info->si_code <= 0 && !crash_arch_is_own_tgkill(event->context, crash_capture.pid, event->signal);
}

// ---- The handler ------------------------------------------------------------------------------------------------

static void handle(int signal, siginfo_t *info, void *opaque) {
  struct crash_event event = {signal, info, opaque, 0};
  // The loads that may fault come here thousands of times in an ordinary walk: nothing goes before them.
  if ((signal == SIGSEGV || signal == SIGBUS) && crash_safe_recover(event.context)) return;

  // In a child made by fork the record is not mapped.
  if (!crash_capture_is_owner()) {
    crash_hand_over(&event);
    return;
  }
  uintptr_t self = thread_pointer(), interrupted = crash_arch_stack_pointer(event.context);
  if (__atomic_load_n(&owner, __ATOMIC_ACQUIRE) == self) {
    int inside_capture = is_inside_capture(interrupted), inside_former = is_inside_former_handler(interrupted);
    // Sent by somebody, to a thread that is at work on its last task: too late to matter.
    if (inside_capture && was_sent_by_others(&event)) return;
    if (inside_capture) crash_stages_skip(&event);
    if (inside_capture || handed_over.active) event.in_child = !crash_capture_is_own_process();
    if (event.in_child || inside_capture || inside_former) {
      // The former handler crashed, or ends the process in its own way, by abort() for example. The record is complete
      // and about what came first.
      crash_hand_over(&event);
      return;
    }
    if (handed_over.active)
      take_back();
    else
      drop_capture();
  }
  // Sent, and ignored before us: no crash. Except where abort() sent it, which only the stack tells.
  if (info->si_code <= 0 && signal != SIGABRT && crash_former_action_ignores(signal)) return;

  if (!try_to_own(self)) {
    // The next system call may be the last of the process, and with it of the report that is being made.
    crash_stages_wait_for_stack();
    event.in_child = !crash_capture_is_own_process();
    if (event.in_child || !wait_for_owner(&event, self)) {
      crash_hand_over(&event);
      return;
    }
  }
  handed_over.active = 0;
  capturing_frame = (uintptr_t)__builtin_frame_address(0);
  owner_is_unconfirmed = 1;
  // Called by the kernel, it has the mask that we asked for, and loads may fault. A handler that was installed over ours
  // and calls it has a mask of its own.
  if (!crash_arch_is_signal_return(crash_arch_strip((uint64_t)(uintptr_t)__builtin_return_address(0))))
    crash_stages_open_faults();
  crash_stages_run_silent(&event);
  // The record is the parent's where this is its child made by vfork. That is asked now and not at first: it is a system
  // call, which a sandbox may kill for, and the whole stack is on the disk by now. The parent's thread waits in vfork; its
  // other threads that crash wait for us.
  event.in_child = !crash_capture_is_own_process();
  if (event.in_child) {
    drop_capture();
    crash_hand_over(&event);
    return;
  }
  owner_is_unconfirmed = 0;
  crash_stages_run_rest(&event);
  // Whoever may let the process live, or wants a look at the other threads itself, finds them running. Where the default
  // action is next they stay where they are: a thread that wakes from a call that cannot be restarted could end the process
  // in its own way, before this one does.
  if (crash_former_handler_exists(signal))
    crash_threads_let_go();
  else
    crash_threads_expect_death(signal);
  note_handed_over();
  if (crash_hand_over(&event) == CRASH_OUTCOME_RECOVERED) take_back();
}

uint64_t crash_support_replaced_handlers(void) {
  uint64_t replaced = 0, handler;
  if (!crash_capture_is_owner()) return 0;
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++)
    if (crash_handler_is_replaced(crash_signals[i], &handler)) replaced |= crash_signal_bit(crash_signals[i]);
  return replaced;
}

// ---- Installing -------------------------------------------------------------------------------------------------

static int installed;

int crash_handlers_install(void) {
  if (installed) {
    // In a child made by fork the handlers are there already, and so is what was there before them.
    crash_former_actions_reinstall();
    return 0;
  }
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  // SA_NODEFER: our own loads fault inside the handler.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  // Everything else waits: a profiler's or a timer's handler must not run on top of the crash path. The other signals of
  // a crash too, until a stage is at work: somebody who sends them faster than the handler returns would otherwise pile
  // up handlers until the alternate stack is full.
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGSEGV);
  sigdelset(&action.sa_mask, SIGBUS);
  if (crash_former_actions_replace(&action) != 0) return -1;
  installed = 1;
  return 0;
}

void crash_handlers_uninstall(void) {
  crash_former_actions_restore();
  installed = 0;
}

void crash_handlers_reset(void) {
  crash_deadline_forget();
  crash_stages_reset();
  handed_over.active = 0;
  owner_is_unconfirmed = 0;
  owner = 0;
}

CRASH_UNINSTRUMENTED_END
