#include "stages.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "async.h"
#include "capture.h"
#include "cfi.h"
#include "deadline.h"
#include "hand_over.h"
#include "images.h"
#include "message.h"
#include "syscalls.h"
#include "threads.h"
#include "unwind.h"

CRASH_UNINSTRUMENTED_BEGIN

enum stage {
  STAGE_SIGNAL = 1,
  STAGE_WALK = 2,
  STAGE_IMAGES = 3,
  STAGE_SEAL = 4,
  STAGE_FACTS = 5,
  STAGE_MESSAGES = 6,
  STAGE_TASK = 7,
  STAGE_THREADS = 8,
};

static struct crash_recovery recovery;
static volatile int stage_active;
static volatile uint32_t current_stage;
static uint32_t stack_is_sealed;

// What the walk has found so far, outside the stack: a fault in the middle of it leaves this.
static struct crash_walk walk;
static struct crash_record_frame walk_ring[CRASH_BOTTOM_FRAMES];
static struct crash_cfi_cache walk_cache;

// ---- Stages -----------------------------------------------------------------------------------------------------

// With plain stores, as the three that follow: a sandbox may kill the process for any system call, and then all of this is
// on the disk.
static void stage_signal(struct crash_record *record, const struct crash_event *event) {
  const siginfo_t *info = event->info;
  struct crash_record_signal *out = record->signal;
  out->number = event->signal;
  out->code = info->si_code;
  out->error = info->si_errno;
  out->flags = 0;
  // Codes above zero are the kernel's; SI_KERNEL says that it has no address (a non-canonical one, an `int3`). Of sent
  // signals the same bytes of siginfo hold the sender: swift #87902 prints its pid as the address.
  if (event->signal == SIGSYS && info->si_code > 0) {
    out->flags |= CRASH_SIGNAL_HAS_SYSCALL;
    out->address = (uint64_t)(uintptr_t)info->si_call_addr;
    out->value = (uint64_t)info->si_syscall;
  } else if (info->si_code > 0 && info->si_code != SI_KERNEL && event->signal != SIGABRT) {
    out->flags |= CRASH_SIGNAL_HAS_ADDRESS;
    out->address = (uint64_t)(uintptr_t)info->si_addr;
  } else if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) {
    out->flags |= CRASH_SIGNAL_HAS_SENDER;
    out->sender_pid = info->si_pid;
    out->sender_uid = info->si_uid;
  }
  struct crash_record_registers *registers = &record->registers[0];
  registers->count = CRASH_ARCH_RECORDED;
  crash_arch_recorded(event->context, registers->values);
  // Of an earlier crash that a host survived.
  out->realtime_ns = 0;
  out->boottime_ns = 0;
  out->thread = 0;
  crash_record_commit(record, CRASH_SECTION_REGISTERS, sizeof *registers);
  crash_record_commit(record, CRASH_SECTION_SIGNAL, sizeof *out);
}

static void stage_walk(struct crash_record *record, const struct crash_event *event) {
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(event->context, columns);
  memset(&walk_cache, 0, sizeof walk_cache);
  walk = (struct crash_walk){.top = record->frames,
                             .top_capacity = CRASH_TOP_FRAMES,
                             .ring = walk_ring,
                             .ring_capacity = CRASH_BOTTOM_FRAMES,
                             .end = CRASH_WALK_UNREADABLE};
  crash_unwind(record, &walk_cache, columns, &walk);
}

static void stage_messages(struct crash_record *record, const struct crash_event *event) {
  unsigned count = crash_message_capture(record, event->signal);
  crash_record_commit(record, CRASH_SECTION_MESSAGES, count * sizeof(struct crash_record_message));
}

static void stage_images(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  crash_images_complete(record);
  for (uint32_t i = 0; i < walk.top_count; i++)
    crash_images_add_for(record, walk.top[i].address - (walk.top[i].kind == CRASH_FRAME_RETURN_ADDRESS));
  crash_images_commit(record);
}

uint32_t crash_walk_finish(const struct crash_record *record, struct crash_walk *walk, struct crash_record_thread *thread,
                           uint32_t room) {
  uint32_t bottom = 0;
  if (walk->depth > walk->top_capacity) {
    uint64_t behind = walk->depth - walk->top_capacity;
    bottom = behind < walk->ring_capacity ? (uint32_t)behind : walk->ring_capacity;
    if (bottom > room) bottom = room;
    for (uint32_t i = 0; i < bottom; i++)
      walk->top[walk->top_count + i] = walk->ring[(behind - bottom + i) % walk->ring_capacity];
  }
  uint32_t count = walk->top_count + bottom;
  if (walk->async_context) {
    thread->async_count = crash_async_follow(record, walk->async_context, walk->top + count, room - bottom);
    thread->async_position = walk->async_position > UINT32_MAX ? UINT32_MAX : (uint32_t)walk->async_position;
  }
  count += thread->async_count;
  for (uint32_t i = 0; i < count; i++) {
    struct crash_record_frame *frame = &walk->top[i];
    frame->image = crash_images_index(record, frame->address - (frame->kind == CRASH_FRAME_RETURN_ADDRESS));
  }
  if (walk->end == CRASH_WALK_LIMIT) thread->flags |= CRASH_THREAD_DEPTH_CAPPED;
  thread->status = walk->end == CRASH_WALK_OUTERMOST || walk->end == CRASH_WALK_LIMIT ? CRASH_THREAD_CAPTURED
                                                                                     : CRASH_THREAD_PARTIAL;
  thread->depth = walk->depth;
  thread->top_count = walk->top_count;
  thread->bottom_count = bottom;
  return count;
}

static void stage_seal(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  struct crash_record_thread *thread = record->thread;
  *thread = (struct crash_record_thread){.flags = CRASH_THREAD_CRASHED};
  uint32_t count = crash_walk_finish(record, &walk, thread, CRASH_FRAME_CAPACITY - CRASH_TOP_FRAMES);
  crash_record_commit(record, CRASH_SECTION_FRAMES, count * sizeof(struct crash_record_frame));
  crash_record_commit(record, CRASH_SECTION_THREADS, sizeof *thread);
}

// What only the kernel knows: when, and in which thread. Asked first and stored together: a section whose seal does not
// match counts for nothing, and so no call that may be the process's last can be between the stores and the new seal.
static void stage_facts(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  struct crash_record_signal *signal = record->signal;
  struct crash_record_thread *thread = record->thread;
  char name[sizeof thread->name] = "";
  int64_t realtime_ns = crash_clock_ns(CLOCK_REALTIME), boottime_ns = crash_clock_ns(CLOCK_BOOTTIME);
  uint32_t id = crash_sys_thread_id();
  crash_syscall(SYS_prctl, 16 /* PR_GET_NAME */, (long)name, 0, 0);
  signal->realtime_ns = realtime_ns;
  signal->boottime_ns = boottime_ns;
  signal->thread = id;
  crash_record_commit(record, CRASH_SECTION_SIGNAL, sizeof *signal);
  record->header->crash_thread = id;
  if (walk.end != CRASH_WALK_OUTERMOST) crash_record_note(record, CRASH_NOTE_WALK_ENDED, walk.end, id, 0);
  thread->id = id;
  memcpy(thread->name, name, sizeof name);
  crash_record_commit(record, CRASH_SECTION_THREADS, sizeof *thread);
}

static void stage_task(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  int is_there = crash_async_describe_task(record->task);
  crash_record_commit(record, CRASH_SECTION_TASK, is_there ? sizeof *record->task : 0);
}

// A stage may die of any of these; a blocked one would be the end of the process there and then (force_sig_info in the
// kernel's signal.c). Where a sandbox refuses the call, the stages go on without that net.
void crash_stages_open_faults(void) {
  const crash_kernel_sigset faults = crash_signal_bit(SIGABRT) | crash_signal_bit(SIGSEGV) | crash_signal_bit(SIGBUS) |
                                     crash_signal_bit(SIGILL) | crash_signal_bit(SIGFPE) | crash_signal_bit(SIGTRAP);
  crash_sys_sigprocmask(SIG_UNBLOCK, &faults, NULL);
}

static void run_stage(enum stage stage, void (*work)(struct crash_record *, const struct crash_event *),
                      const struct crash_event *event) {
  current_stage = stage;
  if (crash_recovery_mark(&recovery) == 0) {
    stage_active = 1;
    work(&crash_capture.record, event);
  } else {
    crash_stages_open_faults();  // left the handler of the fault without its return, which would have put the mask back
  }
  stage_active = 0;
}

// ---- The other threads ------------------------------------------------------------------------------------------

static struct {
  size_t count, next;
  uint32_t frames, registers;
  struct crash_stopped_thread thread;
  uint32_t room;  // for frames behind the top ones of the thread at work
} others;

// Stopping comes first and by itself: should it fail, nobody is held.
static void stage_stop(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  size_t without_room = 0;
  crash_threads_reserve(2 * CRASH_THREADS_SILENCE_NS);
  const struct crash_stop how = {.silence_ns = CRASH_THREADS_SILENCE_NS};
  others.count = crash_threads_stop(&without_room, &how);
  if (others.count > CRASH_OTHER_THREADS) {
    without_room += others.count - CRASH_OTHER_THREADS;
    others.count = CRASH_OTHER_THREADS;
  }
  if (without_room) crash_record_note(record, CRASH_NOTE_THREADS_OVER_CAP, 0, without_room, 0);
}

static void stage_other_walk(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(others.thread.context, columns);
  crash_unwind(record, &walk_cache, columns, &walk);
}

static void stage_other_finish(struct crash_record *record, const struct crash_event *event) {
  (void)event;
  others.frames += crash_walk_finish(record, &walk, &record->other_threads[others.next], others.room);
}

// One thread, in two stages: what a walk had found when it died is kept.
static void capture_other(struct crash_record *record, const struct crash_event *event) {
  struct crash_record_thread *thread = &record->other_threads[others.next];
  others.thread = crash_threads_stopped(others.next);
  *thread = (struct crash_record_thread){
      .id = others.thread.id, .status = CRASH_THREAD_NO_ANSWER, .registers = CRASH_RECORD_NO_REGISTERS,
      .first_frame = others.frames};
  if (!others.thread.context) return;
  memcpy(thread->name, others.thread.name, sizeof thread->name);
  if (others.registers < CRASH_OTHER_REGISTERS) {
    struct crash_record_registers *registers = &record->other_registers[others.registers];
    registers->count = CRASH_ARCH_RECORDED;
    crash_arch_recorded(others.thread.context, registers->values);
    thread->registers = others.registers++;
  }
  // A fair part of the room that is left, a quarter of it for the outer end.
  uint32_t left = CRASH_OTHER_FRAMES - others.frames;
  uint32_t part = left / (uint32_t)(others.count - others.next);
  if (part > CRASH_OTHER_FRAMES_MAX) part = CRASH_OTHER_FRAMES_MAX;
  if (part < CRASH_OTHER_FRAMES_MIN) part = CRASH_OTHER_FRAMES_MIN < left ? CRASH_OTHER_FRAMES_MIN : left;
  if (part == 0) return;
  others.room = part / 4;
  walk = (struct crash_walk){.top = record->other_frames + others.frames,
                             .top_capacity = part - others.room,
                             .ring = walk_ring,
                             .ring_capacity = others.room / 2 ? others.room / 2 : 1,
                             .end = CRASH_WALK_UNREADABLE};
  run_stage(STAGE_THREADS, stage_other_walk, event);
  run_stage(STAGE_THREADS, stage_other_finish, event);
}

static void capture_others(struct crash_record *record, const struct crash_event *event) {
  memset(&others, 0, sizeof others);
  run_stage(STAGE_THREADS, stage_stop, event);
  // Rows from the time before they stood still may be of code that has gone since.
  if (others.count) memset(&walk_cache, 0, sizeof walk_cache);
  // Sealed as it grows, so that a deadline in the middle leaves the threads up to there.
  for (;;) {
    if (others.next % 64 == 0 || others.next == others.count) {
      crash_record_commit(record, CRASH_SECTION_OTHER_FRAMES, others.frames * sizeof(struct crash_record_frame));
      crash_record_commit(record, CRASH_SECTION_OTHER_REGISTERS,
                          others.registers * sizeof(struct crash_record_registers));
      crash_record_commit(record, CRASH_SECTION_OTHER_THREADS, others.next * sizeof(struct crash_record_thread));
    }
    if (others.next == others.count) return;
    capture_other(record, event);
    others.next++;
  }
}

// ---- All of them ------------------------------------------------------------------------------------------------

// What the reader must know about who else handles these signals.
static void note_handlers(struct crash_record *record, int signal) {
  // Should the host's own handler jump out of ours, and its thread do nothing that we notice until the process is killed,
  // then this is a crash that was none.
  uint64_t handler = crash_former_host_handler(signal);
  if (handler) crash_record_note(record, CRASH_NOTE_HOST_HANDLER, (uint32_t)signal, 0, handler);
  for (int i = 0; i < CRASH_SIGNAL_COUNT; i++)
    if (crash_handler_is_replaced(crash_signals[i], &handler))
      crash_record_note(record, CRASH_NOTE_HANDLER_REPLACED, (uint32_t)crash_signals[i], 0, handler);
}

void crash_stages_run_silent(const struct crash_event *event) {
  struct crash_record *record = &crash_capture.record;
  // A host may have survived an earlier crash: what that one sealed must not be read as part of this one.
  static const enum crash_record_section_type written_here[] = {
      CRASH_SECTION_SIGNAL,        CRASH_SECTION_THREADS,       CRASH_SECTION_FRAMES,
      CRASH_SECTION_REGISTERS,     CRASH_SECTION_MESSAGES,      CRASH_SECTION_NOTES,
      CRASH_SECTION_TASK,          CRASH_SECTION_OTHER_THREADS, CRASH_SECTION_OTHER_FRAMES,
      CRASH_SECTION_OTHER_REGISTERS};
  for (unsigned i = 0; i < sizeof written_here / sizeof written_here[0]; i++) crash_record_reopen(record, written_here[i]);
  __atomic_store_n(&stack_is_sealed, 0, __ATOMIC_RELEASE);
  // Not for the first crash: another thread that crashes at the same time may have noted itself already.
  if (record->header->crash_state != CRASH_STATE_NONE) crash_record_forget_notes(record);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_CAPTURING, __ATOMIC_RELEASE);
  // No deadline yet, as setting it is a system call, and one that few sandboxes think of. What could hang in here are
  // pages that never come, and those of the record and of this code could as well.
  run_stage(STAGE_SIGNAL, stage_signal, event);
  run_stage(STAGE_WALK, stage_walk, event);
  run_stage(STAGE_IMAGES, stage_images, event);
  run_stage(STAGE_SEAL, stage_seal, event);
  __atomic_store_n(&stack_is_sealed, 1, __ATOMIC_RELEASE);
}

void crash_stages_run_rest(const struct crash_event *event) {
  struct crash_record *record = &crash_capture.record;
  run_stage(STAGE_FACTS, stage_facts, event);
  crash_stages_open_faults();
  crash_deadline_set();
  // From here on other people's code runs, which may hang: the stack is on the disk.
  run_stage(STAGE_MESSAGES, stage_messages, event);
  run_stage(STAGE_TASK, stage_task, event);
  note_handlers(record, event->signal);
  crash_record_commit_notes(record);
  capture_others(record, event);
  crash_record_commit_notes(record);
  // A thread that was completing the section stands still by now.
  crash_record_commit_if_open(record, CRASH_SECTION_PROCESS, sizeof *record->process);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_COMPLETE, __ATOMIC_RELEASE);
  crash_deadline_clear();  // a former handler may take its time
}

void crash_stages_wait_for_stack(void) {
  // By number, as a clock is a system call. A walk takes microseconds to a few milliseconds.
  for (unsigned i = 0; i < 1u << 16 && !__atomic_load_n(&stack_is_sealed, __ATOMIC_ACQUIRE); i++) crash_arch_pause();
}

void crash_stages_skip(const struct crash_event *event) {
  if (!stage_active) return;
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(event->context, columns);
  crash_record_note(&crash_capture.record, CRASH_NOTE_STAGE_FAULT, current_stage, (uint64_t)event->signal,
                    columns[CRASH_ARCH_PC]);
  stage_active = 0;
  crash_recovery_resume(&recovery);
}

void crash_stages_take_back(void) {
  struct crash_record *record = &crash_capture.record;
  crash_record_forget_notes(record);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_NONE, __ATOMIC_RELEASE);
  record->header->crash_thread = 0;
}

// ---- abort() ----------------------------------------------------------------------------------------------------

static uint64_t abort_address;

void crash_stages_prepare(void) {
  // By name and not by `&abort`, which in an executable without PIE is a jump in its own procedure linkage table.
  abort_address = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "abort");
}

int crash_stages_met_abort(void) {
  const struct crash_record *record = &crash_capture.record;
  uint64_t start, size;
  if (!abort_address || !crash_cfi_function(record, abort_address, &start, &size)) return 0;
  // raise() and what it is made of are inside of abort(); nothing else is.
  for (uint32_t i = 0; i < record->thread->top_count && i < 8; i++)
    if (record->frames[i].address - 1 - start < size) return 1;
  return 0;
}

void crash_stages_reset(void) {
  stage_active = 0;
  current_stage = 0;
  memset(&walk, 0, sizeof walk);
}

CRASH_UNINSTRUMENTED_END
