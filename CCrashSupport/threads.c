#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "capture.h"
#include "hand_over.h"
#include "quit.h"
#include "syscalls.h"
#include "terminations.h"

// A thread that stands still may be found in a race with the one that crashes, whose writes to its slot the sanitizer has not
// seen ordered. It then waits, in the handler, for the lock under which the other one reports its fault, which needs what the
// first one holds: one crash in some hundred never ends.
#if !defined(__clang__) && defined(__SANITIZE_THREAD__) && !defined(CRASH_INSTRUMENTED)
#error "GCC's thread sanitizer deadlocks in the crash path: compile it with -fno-sanitize=thread -DCRASH_OWN_MEMORY_FUNCTIONS"
#endif

CRASH_UNINSTRUMENTED_BEGIN

// ---- Who they are -----------------------------------------------------------------------------------------------

// Kept by us, and not read from /proc at the crash: that needs a free descriptor, a mounted /proc and a sandbox that lets
// files be opened.
struct slot {
  uint32_t id;  // 0: free
  uint32_t state;
  const ucontext_t *context;
  char name[16];
  struct crash_noted_call call;  // of a courteous stop
};
enum {
  SLOT_IDLE = 0,
  SLOT_ASKED = 1,
  SLOT_STOPPED = 2,
  SLOT_GONE = 3,
  SLOT_LATE = 4,  // asked, and not waited for any more: the signal is still on its way
};

static struct slot slots[CRASH_THREADS_MAX];
static uint32_t used_slots;  // no slot at or behind this index was ever taken
static uint32_t next_slot;   // where a free one is looked for first
static uint32_t unknown_threads;

static _Thread_local uint32_t own_slot;  // index + 1
static uint32_t stopper;   // kernel id of the thread that stops the others; 0: none
// Futex: the number of the stop that is under way, 0 for none. Threads wait for as long as it is that of their own: one that
// is slow to go on, on a busy machine, is not held for the next stop by the handler of this one.
static uint32_t holding;
static uint32_t holding_main;  // the same for the main thread, which may go first
static uint32_t main_is_out;   // futex: the last stop that the main thread has left
static uint32_t main_is_in;    // whether it is in the handler, where it seems to block everything
static uint32_t last_stop;
static int64_t asked_at;   // when the first thread was asked, by CLOCK_MONOTONIC
static int64_t asked_until;  // when a stop with a limit is over; 0 for none
static uint32_t courtesy;  // how they go on: `let_signals_through`
static int host_handles_signals;

// glibc 2.32; weak, so that older ones only lose the short cut.
extern char __libc_single_threaded __attribute__((weak));

// Takes a slot for a thread. Returns its index + 1, or 0 where all are taken.
static uint32_t take_slot(uint32_t id) {
  if (id == 0) return 0;
  uint32_t first = __atomic_fetch_add(&next_slot, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < CRASH_THREADS_MAX; i++) {
    uint32_t index = (first + i) % CRASH_THREADS_MAX, nobody = 0;
    if (__atomic_load_n(&slots[index].id, __ATOMIC_RELAXED) != 0) continue;
    if (!__atomic_compare_exchange_n(&slots[index].id, &nobody, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    __atomic_store_n(&slots[index].state, SLOT_IDLE, __ATOMIC_RELAXED);
    uint32_t used = __atomic_load_n(&used_slots, __ATOMIC_RELAXED);
    while (used <= index &&
           !__atomic_compare_exchange_n(&used_slots, &used, index + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return index + 1;
  }
  __atomic_add_fetch(&unknown_threads, 1, __ATOMIC_RELAXED);
  return 0;
}

void crash_threads_add(void) {
  if (!own_slot) own_slot = take_slot(crash_sys_thread_id());
}

uint32_t crash_threads_own_id(void) {
  return own_slot ? __atomic_load_n(&slots[own_slot - 1].id, __ATOMIC_RELAXED) : crash_sys_thread_id();
}

void crash_threads_remove(void) {
  if (own_slot) {
    // The lowest free slot is the best next one: the list stays as short as there are threads.
    __atomic_store_n(&slots[own_slot - 1].id, 0, __ATOMIC_RELEASE);
    uint32_t next = __atomic_load_n(&next_slot, __ATOMIC_RELAXED);
    if (own_slot - 1 < next % CRASH_THREADS_MAX) __atomic_store_n(&next_slot, own_slot - 1, __ATOMIC_RELAXED);
    own_slot = 0;
  } else if (__atomic_load_n(&unknown_threads, __ATOMIC_RELAXED) > 0) {
    __atomic_sub_fetch(&unknown_threads, 1, __ATOMIC_RELAXED);
  }
}

void crash_threads_add_existing(void) {
  // A child made by fork before the first start has its parent's list.
  if (own_slot && slots[own_slot - 1].id != crash_sys_thread_id()) crash_threads_after_fork();
  crash_threads_add();
  if (&__libc_single_threaded && __libc_single_threaded) return;
  // As many links as there are threads, and two (proc_task_getattr): where all came through our pthread_create the list
  // need not be read.
  struct stat status;
  uint32_t known_threads = 0;
  if (stat("/proc/self/task", &status) != 0) return;
  for (uint32_t i = 0; i < used_slots; i++) known_threads += __atomic_load_n(&slots[i].id, __ATOMIC_RELAXED) != 0;
  if (status.st_nlink <= (nlink_t)known_threads + 2) return;
  DIR *directory = opendir("/proc/self/task");
  if (!directory) return;
  for (const struct dirent *entry; (entry = readdir(directory));) {
    char *end;
    unsigned long id = strtoul(entry->d_name, &end, 10);
    if (*end || id == 0 || id > UINT32_MAX) continue;
    int known = 0;
    uint32_t used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used && !known; i++) known = slots[i].id == id;
    // Such a thread never gives its slot back; asking for it finds nobody, once it is gone.
    if (!known) take_slot((uint32_t)id);
  }
  closedir(directory);
}

void crash_threads_after_fork(void) {
  memset(slots, 0, used_slots * sizeof slots[0]);
  used_slots = 0;
  next_slot = 0;
  unknown_threads = 0;
  own_slot = 0;
  stopper = 0;
  holding = 0;
  holding_main = 0;
  crash_threads_add();
}

// ---- Stopping them ----------------------------------------------------------------------------------------------

// glibc removes its two internal signals from every mask that it is given, so that this one is open in threads that block
// "everything", as libdispatch's workers do. It stands for setuid() in many threads, which nobody waits for any more.
#define STOP_SIGNAL 33

static uint32_t answered;  // futex: threads that stand still
static int is_given_up;    // by its limit, before all had answered
static int expected_death;  // signal
static size_t stopped_count;
static uint16_t stopped_slots[CRASH_THREADS_MAX];
static struct crash_kernel_sigaction stop_action, former_action;

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
  return crash_syscall(SYS_futex, (long)word, operation | FUTEX_PRIVATE_FLAG, value, (long)timeout);
}

// What libc sent, and not we: its own handler takes it. A thread that never does what setuid() asks of it would hang the
// one that waits for it.
static void forward(int signal, siginfo_t *info, void *context) {
  if (former_action.handler != (void *)SIG_DFL && former_action.handler != (void *)SIG_IGN)
    ((void (*)(int, siginfo_t *, void *))former_action.handler)(signal, info, context);
}

static crash_kernel_sigset waiting_signals;  // came while all stood still, or were taken while the main thread did

// How long others leave a signal to those whom the kernel would have given it, in steps of 100 microseconds.
#define MAIN_PATIENCE 100
#define OTHERS_PATIENCE 300
// And how long where there is somebody who can take it, and who therefore waits for a processor, in steps of 2 milliseconds.
#define LAST_PATIENCE 1000
// How long the others stand still for the main thread to go on. One that finds a signal waiting waits longer.
#define MAIN_FIRST_NS 1000000ll

// Signals of crashes, whose handlers are ours, and libc's own two.
#define STANDARD_HANDLERS                                                                                        \
  (crash_signal_bit(SIGABRT) | crash_signal_bit(SIGSEGV) | crash_signal_bit(SIGBUS) | crash_signal_bit(SIGILL) | \
   crash_signal_bit(SIGFPE) | crash_signal_bit(SIGTRAP) | crash_signal_bit(SIGSYS) | crash_signal_bit(32) |      \
   crash_signal_bit(STOP_SIGNAL))

// Whether a handler of the host's would run for one of these.
static int is_handled(crash_kernel_sigset signals) {
  for (int signal = 1; signal <= 64; signal++) {
    struct crash_kernel_sigaction action;
    if (!(signals & crash_signal_bit(signal)) || crash_sys_sigaction(signal, NULL, &action) != 0) continue;
    if (action.handler != (void *)SIG_DFL && action.handler != (void *)SIG_IGN && !crash_quit_is_ours(action.handler) &&
        !crash_termination_handler_is_ours(action.handler) && !crash_handler_is_runtime(action.handler))
      return 1;
  }
  return 0;
}

// Signals that come while the threads stand still are blocked in all of them, and the first one to return from here would
// take them. Two things would go wrong then:
//
// * A signal for the process that comes when some have returned wakes one of those (complete_signal), and is taken from it by
//   the next one that returns (sigreturn's set_current_blocked finds it). The first one comes out of `epoll_wait` with EINTR
//   although no handler ran, so that nobody could make the call again.
// * A thread that waits for a signal (`while (!done) epoll_wait(…)`) must get EINTR when the handler has run behind our
//   stop, and not find its call made again.
//
// So each waits a little for others to take what is there: the main thread for shorter than all others, as the kernel gives
// it every signal that it does not block. A signal that is still there then is looked after: where another thread does not
// block it, that is the one that was woken for it, and waits for a processor (the kernel wakes another one itself where that
// one blocks it now, or ends: retarget_shared_pending). Only where there is none, it is for whoever comes, and woke nobody.
// Returns whether a handler of the host's is about to run here, or has run elsewhere instead of here.
static int let_signals_through(const ucontext_t *context, int is_main) {
  if (!__atomic_load_n(&courtesy, __ATOMIC_ACQUIRE)) return 0;
  crash_kernel_sigset mask, pending = 0, seen = __atomic_load_n(&waiting_signals, __ATOMIC_ACQUIRE);
  memcpy(&mask, &context->uc_sigmask, sizeof mask);
  // Those that came while all stood still have woken nobody: the main thread takes them at once.
  unsigned patience = is_main ? (seen ? 0 : MAIN_PATIENCE) : OTHERS_PATIENCE;
  for (unsigned i = 0;; i++) {
    if (crash_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0) != 0) return 0;
    pending &= ~mask & ~crash_signal_bit(STOP_SIGNAL);
    seen |= pending;
    if (!pending) break;
    // The main thread takes what the host waits for: it is the one that the kernel would have chosen.
    if (i >= patience && ((is_main && pending != crash_signal_bit(SIGQUIT)) || i - patience >= LAST_PATIENCE ||
                          !crash_threads_another_takes(pending)))
      break;
    crash_sys_sleep_us(i < patience ? 100 : 2000);
  }
  if (is_main) return is_handled((seen | __atomic_load_n(&waiting_signals, __ATOMIC_ACQUIRE)) & ~mask);
  if (!pending) return 0;
  __atomic_or_fetch(&waiting_signals, pending, __ATOMIC_ACQ_REL);
  return is_handled(pending);
}

static int another_leaves_open(uint64_t signals) {
  uint32_t self = crash_sys_thread_id(), used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE);
  if ((long)self != crash_capture.pid && __atomic_load_n(&main_is_in, __ATOMIC_ACQUIRE)) return 1;
  for (uint32_t i = 0; i < used; i++) {
    uint32_t id = __atomic_load_n(&slots[i].id, __ATOMIC_ACQUIRE);
    uint64_t blocked;
    // Those that stand still block everything.
    if (id != 0 && id != self && crash_read_blocked_signals(id, &blocked) && (signals & ~blocked)) return 1;
  }
  return 0;
}

int crash_threads_another_takes(uint64_t signals) {
  // Twice: where the signal was taken while this looked for who would, another may have come since, for another thread.
  for (int look = 0; look < 2; look++) {
    crash_kernel_sigset pending = 0;
    if (another_leaves_open(signals)) return 1;
    if (crash_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0) != 0 || !(pending & signals)) return 0;
  }
  return 0;
}

// The handler in the threads that are stopped. Which slot is its own is looked for, and not kept in thread-local storage:
// in a shared library the first use of that allocates.
static void stand_still(int signal, siginfo_t *info, void *context) {
  uint32_t used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE), id = crash_sys_thread_id(), index = 0;
  while (index < used && __atomic_load_n(&slots[index].id, __ATOMIC_ACQUIRE) != id) index++;
  uint32_t late = SLOT_LATE;
  if (id == 0 || index == used) {
    forward(signal, info, context);
    return;
  }
  struct slot *slot = &slots[index];
  // A copy: as soon as this thread is let go, the next stop may note another call of it.
  const struct crash_noted_call call = slot->call;
  int is_in_call = crash_arch_is_in_call(context, &call);
  // Whether the stop still waits for it or not, it has interrupted a call.
  if (__atomic_compare_exchange_n(&slot->state, &late, SLOT_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    crash_arch_restart_call(context, is_in_call ? &call : NULL);
    return;
  }
  if (late != SLOT_ASKED) {
    forward(signal, info, context);
    return;
  }
  __atomic_store_n(&slot->context, context, __ATOMIC_RELAXED);
  crash_syscall(SYS_prctl, 16 /* PR_GET_NAME */, (long)slot->name, 0, 0);
  uint32_t asked = SLOT_ASKED;
  if (!__atomic_compare_exchange_n(&slot->state, &asked, SLOT_STOPPED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    // Given up in between: this was the signal that was on its way.
    late = SLOT_LATE;
    __atomic_compare_exchange_n(&slot->state, &late, SLOT_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    crash_arch_restart_call(context, is_in_call ? &call : NULL);
    return;
  }
  int is_main = (long)id == crash_capture.pid;
  if (is_main) __atomic_store_n(&main_is_in, 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&answered, 1, __ATOMIC_RELEASE);
  futex(&answered, FUTEX_WAKE, 1, NULL);
  // Of the stop that it has answered to: whoever lets go takes the state back first.
  uint32_t *hold = is_main ? &holding_main : &holding, stop = __atomic_load_n(hold, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_STOPPED) stop = 0;
  // A process that dumps its core takes its time too, but its threads do not run any more then.
  const struct timespec second = {1, 0};
  for (int seconds = 0; stop && __atomic_load_n(hold, __ATOMIC_ACQUIRE) == stop;) {
    int death = __atomic_load_n(&expected_death, __ATOMIC_ACQUIRE);
    if (futex(hold, FUTEX_WAIT, stop, &second) != -ETIMEDOUT || !death) continue;
    if (++seconds == 3) crash_syscall(SYS_kill, crash_capture.pid, death, 0, 0);
    if (seconds == 6) crash_syscall(SYS_kill, crash_capture.pid, SIGKILL, 0, 0);
  }
  // EINTR of a thread that was not seen asleep may be that of a handler of the host's which has just run, and which it was
  // about to hear of. A host that has handlers knows how to deal with one EINTR too many.
  if (!let_signals_through(context, is_main) && (is_in_call || !host_handles_signals))
    crash_arch_restart_call(context, is_in_call ? &call : NULL);
  if (!is_main) return;
  __atomic_store_n(&main_is_in, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&main_is_out, stop, __ATOMIC_RELEASE);
  futex(&main_is_out, FUTEX_WAKE, 1, NULL);
}

// By `tgkill`, which abort() and raise() need too, so that every sandbox lets it through; a call that queues a value with
// the signal may be the end of the process in one.
static int ask(long pid, uint32_t index) {
  // By the snapshot that was being taken when this crash came: its context is there already.
  if (__atomic_load_n(&slots[index].state, __ATOMIC_ACQUIRE) == SLOT_STOPPED) return 0;
  // The signal of the last time has not come yet: it will do. Two would be one too many.
  uint32_t late = SLOT_LATE;
  if (__atomic_compare_exchange_n(&slots[index].state, &late, SLOT_ASKED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
  __atomic_store_n(&slots[index].context, NULL, __ATOMIC_RELAXED);
  __atomic_store_n(&slots[index].state, SLOT_ASKED, __ATOMIC_RELEASE);
  memset(slots[index].name, 0, sizeof slots[index].name);
  long result = crash_syscall(SYS_tgkill, pid, slots[index].id, STOP_SIGNAL, 0);
  if (result == -ESRCH || result == -EINVAL) slots[index].state = SLOT_GONE;
  return result == 0;
}

// Before the first of them is asked: each is some ten microseconds in which those that were asked would stand still.
static void note_calls(int is_courteous) {
  for (size_t i = 0; i < stopped_count; i++) {
    struct slot *slot = &slots[stopped_slots[i]];
    uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
    // What was noted for the signal that is still on its way is what it interrupts.
    if (state == SLOT_LATE || state == SLOT_STOPPED) continue;
    slot->call.is_asleep = 0;
    if (is_courteous) crash_note_call(slot->id, &slot->call);
  }
}

void crash_threads_prepare(void) {
  // Installed by the system call, as libc refuses its own signals; with the restorer that libc gave to another handler.
  crash_sys_sigaction(SIGSEGV, NULL, &stop_action);
  stop_action.handler = (void *)stand_still;
  stop_action.flags &= ~(unsigned long)(SA_NODEFER | SA_RESETHAND);
  stop_action.flags |= SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  stop_action.mask = ~(crash_kernel_sigset)0;
}

int crash_threads_reserve(int64_t patience_ns) {
  uint32_t self = crash_sys_thread_id();
  int64_t end = crash_clock_ns(CLOCK_MONOTONIC) + patience_ns;
  // By number too: a sandbox may refuse the clock and the sleep.
  for (unsigned i = 0; i < 1u << 16; i++) {
    uint32_t other = 0;
    if (__atomic_compare_exchange_n(&stopper, &other, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || other == self)
      return 1;
    if (crash_clock_ns(CLOCK_MONOTONIC) >= end) break;
    crash_sys_sleep_us(50);
  }
  return 0;
}

// Waits until so many threads stand still, `silence_ns` after the last answer at most. All were asked at once, so that one
// that cannot answer (in an uninterruptible wait) costs this time once, and not once for each of its kind. On a busy machine
// the answers trickle in; only silence ends the wait.
static void await_answers(long pid, uint32_t *asked, int64_t silence_ns) {
  uint32_t seen = 0;
  for (int64_t last = crash_clock_ns(CLOCK_MONOTONIC);;) {
    uint32_t now = __atomic_load_n(&answered, __ATOMIC_ACQUIRE);
    if (now >= *asked) break;
    int64_t time = crash_clock_ns(CLOCK_MONOTONIC);
    if (now != seen) {
      seen = now;
      last = time;
    }
    if (time - last > silence_ns || (asked_until && time > asked_until)) break;
    struct timespec wait = {0, asked_until && asked_until - time < silence_ns / 50 ? asked_until - time + 1 : silence_ns / 50};
    if (futex(&answered, FUTEX_WAIT, now, &wait) != -ETIMEDOUT) continue;
    // Threads end on their own, too.
    for (size_t i = 0; i < stopped_count; i++) {
      struct slot *slot = &slots[stopped_slots[i]];
      if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_ASKED) continue;
      if (crash_syscall(SYS_tgkill, pid, slot->id, 0, 0) != -ESRCH) continue;
      slot->state = SLOT_GONE;
      --*asked;
    }
  }
}

// Whether the limit came before the last answer, and is one to give up at.
static int is_over(const struct crash_stop *how, uint32_t asked) {
  is_given_up = how->total_ns && __atomic_load_n(&answered, __ATOMIC_ACQUIRE) < asked;
  return is_given_up;
}

size_t crash_threads_stop(size_t *without_room, const struct crash_stop *how) {
  long pid = crash_capture.pid;
  uint32_t self = crash_sys_thread_id(), used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE), asked = 0;
  *without_room = __atomic_load_n(&unknown_threads, __ATOMIC_RELAXED);
  stopped_count = 0;
  answered = 0;
  is_given_up = 0;
  asked_at = crash_clock_ns(CLOCK_MONOTONIC);
  for (uint32_t i = 0; i < used; i++) {
    uint32_t id = __atomic_load_n(&slots[i].id, __ATOMIC_ACQUIRE);
    if (id != 0 && id != self) stopped_slots[stopped_count++] = (uint16_t)i;
  }
  // Where a sandbox keeps from us who we are we would stop ourselves, and without our handler the signal ends the process.
  // The threads are listed then, without an answer.
  struct crash_kernel_sigaction action;
  if (stopped_count == 0 || self == 0 || crash_sys_sigaction(STOP_SIGNAL, NULL, &action) != 0)
    return stopped_count;
  // Ours is still there when somebody did not answer the last time.
  if (action.handler != stop_action.handler) {
    former_action = action;
    if (crash_sys_sigaction(STOP_SIGNAL, &stop_action, NULL) != 0) return stopped_count;
  }
  // Where a crash could not wait for a snapshot, those that stand still for that one stay.
  if (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE)) {
    if (++last_stop == 0) last_stop = 1;
    __atomic_store_n(&holding_main, last_stop, __ATOMIC_RELEASE);
    __atomic_store_n(&holding, last_stop, __ATOMIC_RELEASE);
  }
  host_handles_signals = how->is_courteous && is_handled(~STANDARD_HANDLERS);
  note_calls(how->is_courteous);
  asked_at = crash_clock_ns(CLOCK_MONOTONIC);
  asked_until = how->total_ns ? asked_at + how->total_ns : 0;
  // The main thread last, and let go first: a signal that comes while it stands still is then taken by no other one, of
  // which it would not hear.
  uint32_t main_slot = UINT32_MAX;
  for (size_t i = 0; i < stopped_count; i++) {
    if (how->is_courteous && (long)slots[stopped_slots[i]].id == pid)
      main_slot = stopped_slots[i];
    else
      asked += (uint32_t)ask(pid, stopped_slots[i]);
  }
  if (main_slot != UINT32_MAX) {
    await_answers(pid, &asked, how->silence_ns);
    if (is_over(how, asked)) return stopped_count;
    asked = __atomic_load_n(&answered, __ATOMIC_ACQUIRE) + (uint32_t)ask(pid, main_slot);
  }
  await_answers(pid, &asked, how->silence_ns);
  is_over(how, asked);
  size_t kept = 0;
  for (size_t i = 0; i < stopped_count; i++)
    if (slots[stopped_slots[i]].state != SLOT_GONE) stopped_slots[kept++] = stopped_slots[i];
  stopped_count = kept;
  return stopped_count;
}

int crash_threads_gave_up(void) { return is_given_up; }

int64_t crash_threads_stopped_for(void) { return crash_clock_ns(CLOCK_MONOTONIC) - asked_at; }

struct crash_stopped_thread crash_threads_stopped(size_t index) {
  const struct slot *slot = &slots[stopped_slots[index]];
  struct crash_stopped_thread thread = {.id = slot->id};
  if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_STOPPED) return thread;
  thread.context = slot->context;
  memcpy(thread.name, slot->name, sizeof thread.name);
  return thread;
}

void crash_threads_expect_death(int signal) { __atomic_store_n(&expected_death, signal, __ATOMIC_RELEASE); }

// One that was not asked this time may still have the signal of an earlier stop on its way: it stays as it is.
static void give_back(struct slot *slot) {
  uint32_t asked = SLOT_ASKED, stopped = SLOT_STOPPED;
  if (!__atomic_compare_exchange_n(&slot->state, &asked, SLOT_LATE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    __atomic_compare_exchange_n(&slot->state, &stopped, SLOT_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void let_main_go_first(void) {
  size_t i = 0;
  while (i < stopped_count && (long)slots[stopped_slots[i]].id != crash_capture.pid) i++;
  if (i == stopped_count || slots[stopped_slots[i]].state != SLOT_STOPPED) return;
  uint32_t stop = __atomic_load_n(&holding_main, __ATOMIC_ACQUIRE), out;
  give_back(&slots[stopped_slots[i]]);
  __atomic_store_n(&holding_main, 0, __ATOMIC_RELEASE);
  futex(&holding_main, FUTEX_WAKE, INT_MAX, NULL);
  for (int64_t end = crash_clock_ns(CLOCK_MONOTONIC) + MAIN_FIRST_NS;;) {
    int64_t left = end - crash_clock_ns(CLOCK_MONOTONIC);
    if ((out = __atomic_load_n(&main_is_out, __ATOMIC_ACQUIRE)) == stop || left <= 0) return;
    struct timespec wait = {0, left};
    futex(&main_is_out, FUTEX_WAIT, out, &wait);
  }
}

static void let_go(int is_courteous) {
  if (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&stopper, 0, __ATOMIC_RELEASE);
    return;
  }
  __atomic_store_n(&expected_death, 0, __ATOMIC_RELEASE);
  crash_kernel_sigset pending = 0;
  if (is_courteous) {
    // Whom it has woken makes its call again only if it was asked: of a stop that was given up the main thread may not be.
    if (!is_given_up) crash_quit_take_pending();
    if (crash_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0) != 0) pending = 0;
  }
  __atomic_store_n(&waiting_signals, pending & ~crash_signal_bit(STOP_SIGNAL), __ATOMIC_RELEASE);
  __atomic_store_n(&courtesy, (uint32_t)is_courteous, __ATOMIC_RELEASE);
  if (is_courteous) let_main_go_first();
  for (size_t i = 0; i < stopped_count; i++) give_back(&slots[stopped_slots[i]]);
  stopped_count = 0;
  // A signal that is still on its way must find our handler: the default action of this one ends the process, and libc's
  // handler would look for a call of setuid() that is not there.
  uint32_t used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE), i = 0;
  while (i < used && __atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) != SLOT_LATE) i++;
  if (i == used) crash_sys_sigaction(STOP_SIGNAL, &former_action, NULL);
  __atomic_store_n(&holding_main, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&holding, 0, __ATOMIC_RELEASE);
  futex(&holding_main, FUTEX_WAKE, INT_MAX, NULL);
  futex(&holding, FUTEX_WAKE, INT_MAX, NULL);
  __atomic_store_n(&stopper, 0, __ATOMIC_RELEASE);
}

void crash_threads_let_go(void) { let_go(0); }

void crash_threads_let_go_courteously(void) { let_go(1); }

CRASH_UNINSTRUMENTED_END
