#include "stages.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "arch.h"
#include "capture.h"
#include "cfi.h"
#include "deadline.h"
#include "images.h"
#include "message.h"
#include "syscalls.h"
#include "unwind.h"

enum stage {
  STAGE_SIGNAL = 1,
  STAGE_WALK = 2,
  STAGE_MESSAGES = 3,
  STAGE_IMAGES = 4,
  STAGE_SEAL = 5,
};

static struct crash_recovery recovery;
static volatile int stage_active;
static volatile uint32_t current_stage;

// What the walk has found so far, outside the stack: a fault in the middle of it leaves this.
static struct crash_walk walk;
static struct crash_record_frame walk_ring[CRASH_BOTTOM_FRAMES];
static struct crash_cfi_cache walk_cache;

// ---- Stages -----------------------------------------------------------------------------------------------------

// First, and with plain stores: should a sandbox kill the process for the next system call, this is on the disk.
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
  crash_record_commit(record, CRASH_SECTION_REGISTERS, sizeof *registers);
  crash_record_commit(record, CRASH_SECTION_SIGNAL, sizeof *out);

  // Asked first and stored together: a section whose seal does not match counts for nothing, and so no call that may be
  // the process's last can be between the stores and the new seal.
  int64_t realtime_ns = crash_clock_ns(CLOCK_REALTIME), boottime_ns = crash_clock_ns(CLOCK_BOOTTIME);
  uint32_t thread = crash_sys_thread_id();
  out->realtime_ns = realtime_ns;
  out->boottime_ns = boottime_ns;
  out->thread = thread;
  record->header->crash_thread = thread;
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

// Brings the two ends of the walk together, finds the frames' images, seals frames and threads. Runs whether the walk
// came to its end or died on the way.
static void stage_seal(struct crash_record *record, const struct crash_event *event) {
  (void)event;
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

// A stage may die of any of these; a blocked one would be the end of the process there and then (force_sig_info in the
// kernel's signal.c). Where a sandbox refuses the call, the stages go on without that net.
static void open_faults(void) {
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
    open_faults();  // left the handler of the fault without its return, which would have put the mask back
  }
  stage_active = 0;
}

void crash_stages_run(const struct crash_event *event, uint64_t host_handler) {
  struct crash_record *record = &crash_capture.record;
  // A host may have survived an earlier crash: what that one sealed must not be read as part of this one.
  static const enum crash_record_section_type written_here[] = {
      CRASH_SECTION_SIGNAL,    CRASH_SECTION_THREADS,  CRASH_SECTION_FRAMES,
      CRASH_SECTION_REGISTERS, CRASH_SECTION_MESSAGES, CRASH_SECTION_NOTES};
  for (unsigned i = 0; i < sizeof written_here / sizeof written_here[0]; i++) crash_record_reopen(record, written_here[i]);
  // Not for the first crash: another thread that crashes at the same time may have noted itself already.
  if (record->header->crash_state != CRASH_STATE_NONE) crash_record_forget_notes(record);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_CAPTURING, __ATOMIC_RELEASE);
  run_stage(STAGE_SIGNAL, stage_signal, event);
  open_faults();
  crash_deadline_set();
  run_stage(STAGE_WALK, stage_walk, event);
  run_stage(STAGE_MESSAGES, stage_messages, event);
  run_stage(STAGE_IMAGES, stage_images, event);
  run_stage(STAGE_SEAL, stage_seal, event);
  // Should that one jump out of the handler, and its thread do nothing that we notice until the process is killed, then
  // this is a crash that was none. The reader is told that it may be so.
  if (host_handler) crash_record_note(record, CRASH_NOTE_HOST_HANDLER, (uint32_t)event->signal, 0, host_handler);
  crash_record_commit_notes(record);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_COMPLETE, __ATOMIC_RELEASE);
  crash_deadline_clear();  // a former handler may take its time
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

static uint64_t abort_start, abort_size;

void crash_stages_prepare(void) {
  // By name and not by `&abort`, which in an executable without PIE is a jump in its own procedure linkage table.
  void *function = dlsym(RTLD_DEFAULT, "abort");
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  abort_start = (uint64_t)(uintptr_t)function;
  abort_size = 0;
  if (function && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol)
    abort_size = symbol->st_size;
}

int crash_stages_met_abort(void) {
  // raise() and what it is made of are inside of abort(); nothing else is.
  for (uint32_t i = 0; i < walk.top_count && i < 8; i++)
    if (walk.top[i].address - 1 - abort_start < abort_size) return 1;
  return 0;
}

void crash_stages_reset(void) {
  stage_active = 0;
  current_stage = 0;
  memset(&walk, 0, sizeof walk);
}
