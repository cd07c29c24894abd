// The signal handler: fills the record in stages, then gives the signal back, so that the process dies as without us.

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "arch.h"
#include "capture.h"
#include "cfi.h"
#include "handlers.h"
#include "images.h"
#include "message.h"
#include "syscalls.h"
#include "unwind.h"

static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static struct crash_kernel_sigaction previous[SIGNAL_COUNT];
// Whether the former handler is the Swift runtime's own backtracer. It returns from signals that were sent, after which
// the process goes on as if nothing had happened (swift #89461); a service that was told to die must die.
static uint8_t previous_is_runtime[SIGNAL_COUNT];
static struct crash_kernel_sigaction ours;
static int installed;

// ---- One crash at a time ----------------------------------------------------------------------------------------

// The thread that crashes first owns the crash path, by its thread pointer: that needs no system call to be known.
static uintptr_t owner;
static struct crash_recovery recovery;
static volatile int stage_active;
static volatile uint32_t current_stage;

enum stage {
  STAGE_SIGNAL = 1,
  STAGE_WALK = 2,
  STAGE_MESSAGES = 3,
  STAGE_IMAGES = 4,
  STAGE_SEAL = 5,
};

struct crash {
  int signal;
  siginfo_t *info;
  ucontext_t *context;
};

// What the walk has found so far, outside the stack: a fault in the middle of it leaves this.
static struct crash_walk walk;
static struct crash_record_frame walk_ring[CRASH_BOTTOM_FRAMES];
static struct crash_cfi_cache walk_cache;

static uintptr_t thread_pointer(void) { return (uintptr_t)__builtin_thread_pointer(); }

static int signal_index(int signal) {
  for (unsigned i = 0; i < SIGNAL_COUNT; i++)
    if (signals[i] == signal) return (int)i;
  return -1;
}

// ---- Deadline ---------------------------------------------------------------------------------------------------

// A handler that hangs keeps a service from being restarted, which is worse than a lost report. The timer is made at the
// start, as making one allocates in the kernel; the crash path only sets it. Timers are not inherited by fork.
static int deadline_timer;
static int deadline_exists;
#define DEADLINE_SECONDS 4

void crash_deadline_prepare(void) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  deadline_exists =
      crash_syscall(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&deadline_timer, 0) == 0;
}

void crash_deadline_remove(void) {
  if (deadline_exists) crash_syscall(SYS_timer_delete, deadline_timer, 0, 0, 0);
  deadline_exists = 0;
}

// Async-signal-safe.
static void set_deadline(long seconds) {
  if (!deadline_exists) return;
  struct itimerspec time = {{0, 0}, {seconds, 0}};
  crash_syscall(SYS_timer_settime, deadline_timer, 0, (long)&time, 0);
}

// ---- Stages -----------------------------------------------------------------------------------------------------

// First, and with plain stores: should a sandbox kill the process for the next system call, this is on the disk.
static void stage_signal(struct crash_record *record, const struct crash *crash) {
  const siginfo_t *info = crash->info;
  struct crash_record_signal *out = record->signal;
  out->number = crash->signal;
  out->code = info->si_code;
  out->error = info->si_errno;
  out->flags = 0;
  // Codes above zero are the kernel's; SI_KERNEL says that it has no address (a non-canonical one, an `int3`). Of sent
  // signals the same bytes of siginfo hold the sender: swift #87902 prints its pid as the address.
  if (crash->signal == SIGSYS && info->si_code > 0) {
    out->flags |= CRASH_SIGNAL_HAS_SYSCALL;
    out->address = (uint64_t)(uintptr_t)info->si_call_addr;
    out->value = (uint64_t)info->si_syscall;
  } else if (info->si_code > 0 && info->si_code != SI_KERNEL && crash->signal != SIGABRT) {
    out->flags |= CRASH_SIGNAL_HAS_ADDRESS;
    out->address = (uint64_t)(uintptr_t)info->si_addr;
  } else if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) {
    out->flags |= CRASH_SIGNAL_HAS_SENDER;
    out->sender_pid = info->si_pid;
    out->sender_uid = info->si_uid;
  }
  struct crash_record_registers *registers = &record->registers[0];
  registers->count = CRASH_ARCH_RECORDED;
  crash_arch_recorded(crash->context, registers->values);
  crash_record_commit(record, CRASH_SECTION_REGISTERS, sizeof *registers);
  crash_record_commit(record, CRASH_SECTION_SIGNAL, sizeof *out);

  out->realtime_ns = crash_clock_ns(CLOCK_REALTIME);
  out->boottime_ns = crash_clock_ns(CLOCK_BOOTTIME);
  out->thread = (uint32_t)crash_sys_gettid();
  record->header->crash_thread = out->thread;
  crash_record_commit(record, CRASH_SECTION_SIGNAL, sizeof *out);
}

static void stage_walk(struct crash_record *record, const struct crash *crash) {
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(crash->context, columns);
  memset(&walk_cache, 0, sizeof walk_cache);
  walk = (struct crash_walk){.top = record->frames,
                             .top_capacity = CRASH_TOP_FRAMES,
                             .ring = walk_ring,
                             .ring_capacity = CRASH_BOTTOM_FRAMES,
                             .end = CRASH_WALK_UNREADABLE};
  crash_unwind(record, &walk_cache, columns, &walk);
}

static void stage_messages(struct crash_record *record, const struct crash *crash) {
  unsigned count = crash_message_capture(record, crash->signal);
  crash_record_commit(record, CRASH_SECTION_MESSAGES, count * sizeof(struct crash_record_message));
}

static void stage_images(struct crash_record *record, const struct crash *crash) {
  (void)crash;
  crash_images_complete(record);
  crash_images_commit(record);
}

// Brings the two ends of the walk together, finds the frames' images, seals frames and threads. Runs whether the walk
// came to its end or died on the way.
static void stage_seal(struct crash_record *record, const struct crash *crash) {
  (void)crash;
  uint32_t bottom = 0;
  if (walk.depth > walk.top_capacity) {
    uint64_t behind = walk.depth - walk.top_capacity;
    bottom = behind < walk.ring_capacity ? (uint32_t)behind : walk.ring_capacity;
    for (uint32_t i = 0; i < bottom; i++)
      record->frames[walk.top_count + i] = walk.ring[(behind - bottom + i) % walk.ring_capacity];
  }
  uint32_t count = walk.top_count + bottom;
  for (uint32_t i = 0; i < count; i++) {
    struct crash_record_frame *frame = &record->frames[i];
    uint64_t lookup = frame->address - (frame->kind == CRASH_FRAME_RETURN_ADDRESS);
    frame->image = crash_images_index(record, lookup);
  }
  struct crash_record_thread *thread = &record->threads[0];
  thread->id = record->signal->thread;
  thread->flags = CRASH_THREAD_CRASHED | (walk.end == CRASH_WALK_LIMIT ? CRASH_THREAD_DEPTH_CAPPED : 0);
  thread->status = walk.end == CRASH_WALK_OUTERMOST || walk.end == CRASH_WALK_LIMIT ? CRASH_THREAD_CAPTURED
                                                                                     : CRASH_THREAD_PARTIAL;
  thread->registers = 0;
  thread->depth = walk.depth;
  thread->first_frame = 0;
  thread->top_count = walk.top_count;
  thread->bottom_count = bottom;
  if (walk.end != CRASH_WALK_OUTERMOST)
    crash_record_note(record, CRASH_NOTE_WALK_ENDED, walk.end, thread->id, 0);
  // PR_GET_NAME is 16: the calling thread's own name, 16 bytes with its NUL.
  crash_syscall(SYS_prctl, 16, (long)thread->name, 0, 0);
  crash_record_commit(record, CRASH_SECTION_FRAMES, count * sizeof(struct crash_record_frame));
  crash_record_commit(record, CRASH_SECTION_THREADS, sizeof *thread);
}

static void run_stage(enum stage stage, void (*work)(struct crash_record *, const struct crash *),
                      const struct crash *crash) {
  current_stage = stage;
  if (crash_recovery_mark(&recovery) == 0) {
    stage_active = 1;
    work(&crash_capture.record, crash);
  }
  stage_active = 0;
}

static void capture(const struct crash *crash) {
  struct crash_record *record = &crash_capture.record;
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_CAPTURING, __ATOMIC_RELEASE);
  run_stage(STAGE_SIGNAL, stage_signal, crash);
  set_deadline(DEADLINE_SECONDS);
  run_stage(STAGE_WALK, stage_walk, crash);
  run_stage(STAGE_MESSAGES, stage_messages, crash);
  run_stage(STAGE_IMAGES, stage_images, crash);
  run_stage(STAGE_SEAL, stage_seal, crash);
  uint32_t notes = __atomic_load_n(&record->note_count, __ATOMIC_RELAXED);
  if (notes > CRASH_RECORD_NOTE_COUNT) notes = CRASH_RECORD_NOTE_COUNT;
  crash_record_commit(record, CRASH_SECTION_NOTES, notes * sizeof(struct crash_record_note));
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_COMPLETE, __ATOMIC_RELEASE);
  set_deadline(0);  // a former handler may take its time
}

// ---- Handing over -----------------------------------------------------------------------------------------------

// Whether the instruction at the context's pc raised the signal, so that it will do so again when it is executed again.
// Not so for an `int3` (the pc is behind it), a seccomp trap, a memory error reported late (BUS_MCEERR_AO), and
// everything that was sent.
static int is_repeatable(int signal, const siginfo_t *info) {
  if (info->si_code <= 0) return 0;
  if (signal == SIGBUS && info->si_code == BUS_MCEERR_AO) return 0;
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

void crash_handlers_remove(void) {
  for (unsigned i = 0; i < SIGNAL_COUNT; i++) {
    struct crash_kernel_sigaction current;
    if (crash_sys_sigaction(signals[i], NULL, &current) == 0 && current.handler == ours.handler)
      crash_sys_sigaction(signals[i], &previous[i], NULL);
  }
}

void crash_handlers_uninstall(void) {
  crash_handlers_remove();
  installed = 0;
}

static void reinstall(void) {
  for (unsigned i = 0; i < SIGNAL_COUNT; i++) crash_sys_sigaction(signals[i], &ours, NULL);
}

// Ends the process by `signal` with the siginfo that it came with, as soon as this handler returns.
static void die_by(int signal, siginfo_t *info) {
  long pid = crash_sys_getpid(), thread = crash_sys_gettid();
  // The kernel drops a signal with the default action for the first process of a pid namespace, unless the kernel itself
  // raised it: a container's main process would go on. Its exit status can still say what happened.
  if (pid == 1) crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
  struct crash_kernel_sigaction standard = {.handler = SIG_DFL};
  crash_sys_sigaction(signal, &standard, NULL);
  // Blocked until the return, which restores the interrupted context's mask: only then is it delivered, and the core
  // shows the place of the crash and not this function.
  crash_kernel_sigset blocked = crash_signal_bit(signal);
  crash_sys_sigprocmask(SIG_BLOCK, &blocked, NULL);
  if (crash_syscall(SYS_rt_tgsigqueueinfo, pid, thread, signal, (long)info) == 0) return;
  if (crash_syscall(SYS_tgkill, pid, thread, signal, 0) == 0) return;
  crash_syscall(SYS_exit_group, 128 + signal, 0, 0, 0);
}

// Gives the signal to whom it went before us ("hybrid2" of docs/capture.md). Restoring and returning is enough for a
// fault, and the only way that keeps si_code, si_addr and the core's pc: the instruction faults again, in front of the
// former action. A signal that was sent does not come again by itself.
//
// Returns 1 when the process goes on as it would have without us, so that nothing crashed after all.
static int hand_over(int signal, siginfo_t *info, ucontext_t *context) {
  crash_handlers_remove();
  int index = signal_index(signal);
  if (is_repeatable(signal, info)) {
    // A handler that was installed over ours and calls it as its predecessor is still in front: returning into the fault
    // would bring us here again, for ever. What it takes us for, the former action, is next.
    if (index >= 0) crash_sys_sigaction(signal, &previous[index], NULL);
    return 0;
  }
  const struct crash_kernel_sigaction *old = &previous[index];
  if (old->handler == (void *)SIG_DFL) {
    die_by(signal, info);
    return 0;
  }
  // SIGABRT that is ignored: abort() will come again with the default action, and raise() will not. Nobody can tell them
  // apart here; the record stays, as the text that abort() left may be in it.
  if (old->handler == (void *)SIG_IGN) return signal != SIGABRT;

  // A former handler expects to be entered as the kernel would have, above all with the fault signals open: the Swift
  // runtime's starts a thread that lives by catching its own faults.
  crash_kernel_sigset open = 0;
  for (unsigned i = 0; i < SIGNAL_COUNT; i++) open |= crash_signal_bit(signals[i]);
  crash_sys_sigprocmask(SIG_UNBLOCK, &open, NULL);
  if (old->flags & SA_SIGINFO) {
    ((void (*)(int, siginfo_t *, void *))old->handler)(signal, info, context);
  } else {
    ((void (*)(int))old->handler)(signal);
  }
  if (!previous_is_runtime[index]) return 1;
  die_by(signal, info);
  return 0;
}

// ---- The handler ------------------------------------------------------------------------------------------------

// A second thread that crashes waits for the first to end the process: what it would add is noted, its own death would
// cut the first one's report. The wait has an end, in case a former handler let the process live.
static void wait_for_owner(int signal, const ucontext_t *context) {
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(context, columns);
  crash_record_note(&crash_capture.record, CRASH_NOTE_SECOND_CRASH, (uint32_t)signal, (uint64_t)crash_sys_gettid(),
                    columns[CRASH_ARCH_PC]);
  for (int i = 0; i < 100 * (DEADLINE_SECONDS + 2) && __atomic_load_n(&owner, __ATOMIC_ACQUIRE) != 0; i++)
    crash_sys_sleep_ms(10);
}

static void handle(int signal, siginfo_t *info, void *opaque) {
  ucontext_t *context = opaque;
  // The loads that may fault come here thousands of times in an ordinary walk: nothing goes before them.
  if ((signal == SIGSEGV || signal == SIGBUS) && crash_safe_recover(context)) return;

  // In a child made by fork the record is not mapped, in one made by vfork it is the parent's. Neither is ours to write.
  if (!crash_capture_is_owner() || crash_sys_getpid() != crash_capture.pid) {
    hand_over(signal, info, context);
    return;
  }
  uintptr_t self = thread_pointer(), nobody = 0;
  if (!__atomic_compare_exchange_n(&owner, &nobody, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    if (nobody != self) {
      wait_for_owner(signal, context);
      hand_over(signal, info, context);
      return;
    }
    if (stage_active) {
      if (info->si_code <= 0 && info->si_code != SI_TKILL) return;  // sent from outside while we work: too late
      uint64_t columns[CRASH_ARCH_COLUMNS];
      crash_arch_columns(context, columns);
      crash_record_note(&crash_capture.record, CRASH_NOTE_STAGE_FAULT, current_stage, (uint64_t)signal,
                        columns[CRASH_ARCH_PC]);
      stage_active = 0;
      crash_recovery_resume(&recovery);
    }
    hand_over(signal, info, context);
    return;
  }
  int index = signal_index(signal);
  if (info->si_code <= 0 && index >= 0 && previous[index].handler == (void *)SIG_IGN && signal != SIGABRT) {
    __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
    return;  // sent, and ignored before us: no crash
  }

  const struct crash crash = {signal, info, context};
  capture(&crash);
  if (hand_over(signal, info, context)) {
    // The host's own handler took the signal and means to go on: take the record back and stand ready again.
    __atomic_store_n(&crash_capture.record.header->crash_state, CRASH_STATE_NONE, __ATOMIC_RELEASE);
    crash_capture.record.header->crash_thread = 0;
    crash_capture.record.note_count = 0;
    reinstall();
    __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
  }
}

// ---- Installing -------------------------------------------------------------------------------------------------

static int is_swift_runtime(void *handler) {
  Dl_info info;
  if (handler == (void *)SIG_DFL || handler == (void *)SIG_IGN) return 0;
  return dladdr(handler, &info) != 0 && info.dli_fname && strstr(info.dli_fname, "libswiftCore") != NULL;
}

int crash_handlers_install(void) {
  if (installed) {
    // In a child made by fork the handlers are there already, and so is what was there before them.
    reinstall();
    return 0;
  }
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  // SA_NODEFER: our own loads fault inside the handler. No SA_RESTART question arises, as nobody returns to a call.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  // Everything else waits: a profiler's or a timer's handler must not run on top of the crash path.
  sigfillset(&action.sa_mask);
  for (unsigned i = 0; i < SIGNAL_COUNT; i++) sigdelset(&action.sa_mask, signals[i]);
  for (unsigned i = 0; i < SIGNAL_COUNT; i++) {
    if (crash_sys_sigaction(signals[i], NULL, &previous[i]) != 0 || sigaction(signals[i], &action, NULL) != 0) {
      int number = errno;
      while (i-- > 0) crash_sys_sigaction(signals[i], &previous[i], NULL);
      errno = number;
      return -1;
    }
    previous_is_runtime[i] = (uint8_t)is_swift_runtime(previous[i].handler);
  }
  // As the kernel has it, with libc's restorer: what is compared and put back later.
  crash_sys_sigaction(signals[0], NULL, &ours);
  installed = 1;
  return 0;
}

void crash_handlers_reset(void) {
  deadline_exists = 0;  // a child's timer with the same number would be another one
  owner = 0;
  stage_active = 0;
  current_stage = 0;
}
