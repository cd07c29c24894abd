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
static uint32_t last_stop;
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
// How long the others stand still for the main thread to go on.
#define MAIN_FIRST_NS 5000000ll

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
// it every signal that it does not block. Returns whether a handler of the host's is about to run here, or has run elsewhere
// instead of here.
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
    if (!pending || i >= patience) break;
    crash_sys_sleep_us(100);
  }
  if (is_main) return is_handled((seen | __atomic_load_n(&waiting_signals, __ATOMIC_ACQUIRE)) & ~mask);
  if (!pending) return 0;
  __atomic_or_fetch(&waiting_signals, pending, __ATOMIC_ACQ_REL);
  return is_handled(pending);
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
  if (__atomic_compare_exchange_n(&slot->state, &late, SLOT_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    crash_arch_restart_call(context, NULL);
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
    crash_arch_restart_call(context, NULL);
    return;
  }
  __atomic_add_fetch(&answered, 1, __ATOMIC_RELEASE);
  futex(&answered, FUTEX_WAKE, 1, NULL);
  // Of the stop that it has answered to: whoever lets go takes the state back first.
  int is_main = (long)id == crash_capture.pid;
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
  int is_in_call = crash_arch_is_in_call(context, &slot->call);
  // EINTR of a thread that was not seen asleep may be that of a handler of the host's which has just run, and which it was
  // about to hear of. A host that has handlers knows how to deal with one EINTR too many.
  if (!let_signals_through(context, is_main) && (is_in_call || !host_handles_signals))
    crash_arch_restart_call(context, is_in_call ? &slot->call : NULL);
  if (!is_main) return;
  __atomic_store_n(&main_is_out, stop, __ATOMIC_RELEASE);
  futex(&main_is_out, FUTEX_WAKE, 1, NULL);
}

// By `tgkill`, which abort() and raise() need too, so that every sandbox lets it through; a call that queues a value with
// the signal may be the end of the process in one.
static int ask(long pid, uint32_t index, int is_courteous) {
  // By the snapshot that was being taken when this crash came: its context is there already.
  if (__atomic_load_n(&slots[index].state, __ATOMIC_ACQUIRE) == SLOT_STOPPED) return 0;
  // The signal of the last time has not come yet: it will do. Two would be one too many.
  uint32_t late = SLOT_LATE;
  if (__atomic_compare_exchange_n(&slots[index].state, &late, SLOT_ASKED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
  __atomic_store_n(&slots[index].context, NULL, __ATOMIC_RELAXED);
  __atomic_store_n(&slots[index].state, SLOT_ASKED, __ATOMIC_RELEASE);
  memset(slots[index].name, 0, sizeof slots[index].name);
  slots[index].call.is_asleep = 0;
  if (is_courteous) crash_note_call(slots[index].id, &slots[index].call);
  long result = crash_syscall(SYS_tgkill, pid, slots[index].id, STOP_SIGNAL, 0);
  if (result == -ESRCH || result == -EINVAL) slots[index].state = SLOT_GONE;
  return result == 0;
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
    if (time - last > silence_ns) break;
    struct timespec wait = {0, silence_ns / 50};
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

size_t crash_threads_stop(size_t *without_room, int64_t silence_ns, int is_courteous) {
  long pid = crash_capture.pid;
  uint32_t self = crash_sys_thread_id(), used = __atomic_load_n(&used_slots, __ATOMIC_ACQUIRE), asked = 0;
  *without_room = __atomic_load_n(&unknown_threads, __ATOMIC_RELAXED);
  stopped_count = 0;
  answered = 0;
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
  host_handles_signals = is_courteous && is_handled(~STANDARD_HANDLERS);
  // The main thread last, and let go first: a signal that comes while it stands still is then taken by no other one, of
  // which it would not hear.
  uint32_t main_slot = UINT32_MAX;
  for (size_t i = 0; i < stopped_count; i++) {
    if (is_courteous && (long)slots[stopped_slots[i]].id == pid)
      main_slot = stopped_slots[i];
    else
      asked += (uint32_t)ask(pid, stopped_slots[i], is_courteous);
  }
  if (main_slot != UINT32_MAX) {
    await_answers(pid, &asked, silence_ns);
    asked = __atomic_load_n(&answered, __ATOMIC_ACQUIRE) + (uint32_t)ask(pid, main_slot, is_courteous);
  }
  await_answers(pid, &asked, silence_ns);
  size_t kept = 0;
  for (size_t i = 0; i < stopped_count; i++)
    if (slots[stopped_slots[i]].state != SLOT_GONE) stopped_slots[kept++] = stopped_slots[i];
  stopped_count = kept;
  return stopped_count;
}

struct crash_stopped_thread crash_threads_stopped(size_t index) {
  const struct slot *slot = &slots[stopped_slots[index]];
  struct crash_stopped_thread thread = {.id = slot->id};
  if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_STOPPED) return thread;
  thread.context = slot->context;
  memcpy(thread.name, slot->name, sizeof thread.name);
  return thread;
}

void crash_threads_expect_death(int signal) { __atomic_store_n(&expected_death, signal, __ATOMIC_RELEASE); }

static void give_back(struct slot *slot) {
  uint32_t asked = SLOT_ASKED;
  if (!__atomic_compare_exchange_n(&slot->state, &asked, SLOT_LATE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    __atomic_store_n(&slot->state, SLOT_IDLE, __ATOMIC_RELEASE);
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
    crash_quit_take_pending();
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
