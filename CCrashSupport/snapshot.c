// Snapshots: the stacks of all threads of a process that lives on.
//
// Not part of the crash path: makes a file, and runs on a thread that is well. What it shares with the crash path is how
// threads are stopped, and how a stack is walked.

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CCrashSupport.h"
#include "arch.h"
#include "capture.h"
#include "cfi.h"
#include "images.h"
#include "stages.h"
#include "threads.h"

// A thread that does not answer is one in an uninterruptible wait: nobody stands still for long on its account.
#define SNAPSHOT_SILENCE_NS 50000000ll
// Most of the time that threads stand still is that for which one of them, on a busy machine, waits for a processor to come
// to stand still on. So that the others do not wait with it, a stop that takes longer than this is given up, and tried again
// a little later: threads that all stand still at one time are what tells who waits for whom. The last try, half a second
// later, waits for all: one that runs in circles beside other programs gets no processor sooner, and is what a hang is about.
#define SNAPSHOT_TRY_NS 1300000ll
#define SNAPSHOT_TRIES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fail(struct crash_support_error *error, const char *what, int number) {
  error->number = number;
  error->what = what;
  return -1;
}

static void copy_section(struct crash_record *to, const struct crash_record *from, enum crash_record_section_type type,
                         void *target, const void *source, size_t capacity) {
  size_t length = crash_record_length(from, type);
  if (length > capacity) length = 0;
  memcpy(target, source, length);
  crash_record_commit(to, type, length);
}

// The sections that say what the process is. A slot that is being written is copied as torn, and read as such.
static void copy_process(struct crash_record *to, const struct crash_record *from) {
  copy_section(to, from, CRASH_SECTION_PROCESS, to->process, from->process, sizeof *to->process);
  copy_section(to, from, CRASH_SECTION_SCOPE, to->scope, from->scope, sizeof *to->scope);
  copy_section(to, from, CRASH_SECTION_BREADCRUMBS, to->breadcrumbs, from->breadcrumbs, sizeof *to->breadcrumbs);
  copy_section(to, from, CRASH_SECTION_PATHS, to->paths, from->paths, to->path_capacity);
  copy_section(to, from, CRASH_SECTION_IMAGES, to->images, from->images,
               to->image_capacity * sizeof(struct crash_record_image));
}

// What is written while the threads stand still is brought into memory before: each of these pages would be a fault, and
// on a file system with a journal a wait.
static void touch_pages(struct crash_record *record) {
  volatile char *memory = (char *)record->header;
  for (size_t offset = record->resident_size; offset < record->size; offset += CRASH_RECORD_HEADER_SIZE) memory[offset] = 0;
}

struct places {
  uint32_t threads, frames, registers;
};

static void capture_first(struct crash_record *record, struct crash_cfi_cache *cache, size_t index, size_t count,
                          struct places *used) {
  const struct crash_record *images = &crash_capture.record;
  struct crash_stopped_thread stopped = crash_threads_stopped(index);
  struct crash_record_thread *thread = &record->other_threads[used->threads++];
  *thread = (struct crash_record_thread){.id = stopped.id, .status = CRASH_THREAD_NO_ANSWER,
                                         .registers = CRASH_RECORD_NO_REGISTERS, .first_frame = used->frames};
  if (!stopped.context) return;
  memcpy(thread->name, stopped.name, sizeof thread->name);
  uint32_t part = (CRASH_OTHER_FRAMES - used->frames) / (uint32_t)(count - index);
  if (part > CRASH_OTHER_FRAMES_MAX) part = CRASH_OTHER_FRAMES_MAX;
  if (part == 0) return;
  uint32_t room = part / 4;
  struct crash_record_frame ring[CRASH_OTHER_FRAMES_MAX];
  uint64_t columns[CRASH_ARCH_COLUMNS];
  struct crash_walk walk = {.top = record->other_frames + used->frames, .top_capacity = part - room, .ring = ring,
                            .ring_capacity = room / 2 ? room / 2 : 1, .end = CRASH_WALK_UNREADABLE};
  crash_arch_columns(stopped.context, columns);
  crash_unwind(images, cache, columns, &walk);
  used->frames += crash_walk_finish(images, &walk, thread, room);
}

static int is_same_function(const struct crash_record_frame *one, const struct crash_record_frame *other) {
  uint64_t start, size, place = other->address - (other->kind == CRASH_FRAME_RETURN_ADDRESS);
  return crash_cfi_function(&crash_capture.record, one->address - (one->kind == CRASH_FRAME_RETURN_ADDRESS), &start,
                            &size) &&
         place - start < size;
}

// How many of the outermost frames of two stacks are the same: of equal addresses, and then one more that is another place
// of the same function, which has gone on but not returned.
static uint32_t count_staying(const struct crash_record_frame *one, uint32_t one_count,
                              const struct crash_record_frame *other, uint32_t other_count) {
  uint32_t limit = one_count < other_count ? one_count : other_count, staying = 0;
  while (staying < limit && one[one_count - 1 - staying].address == other[other_count - 1 - staying].address) staying++;
  if (staying < limit && is_same_function(&one[one_count - 1 - staying], &other[other_count - 1 - staying])) staying++;
  return staying;
}

static void compare(struct crash_record *record, struct crash_cfi_cache *cache, size_t index, uint32_t thread_count) {
  const struct crash_record *images = &crash_capture.record;
  struct crash_stopped_thread stopped = crash_threads_stopped(index);
  struct crash_record_thread *thread = record->other_threads, seen = {0};
  const struct crash_record_thread *end = thread + thread_count;
  while (thread < end && thread->id != stopped.id) thread++;
  if (thread == end || thread->top_count == 0) return;
  uint32_t before = thread->top_count + thread->bottom_count;
  if (!stopped.context) {
    // It did not move: in an uninterruptible wait.
    return;
  }
  struct crash_record_frame frames[2 * CRASH_OTHER_FRAMES_MAX], ring[CRASH_OTHER_FRAMES_MAX];
  uint64_t columns[CRASH_ARCH_COLUMNS];
  struct crash_walk walk = {.top = frames, .top_capacity = CRASH_OTHER_FRAMES_MAX - CRASH_OTHER_FRAMES_MAX / 4,
                            .ring = ring, .ring_capacity = CRASH_OTHER_FRAMES_MAX / 8, .end = CRASH_WALK_UNREADABLE};
  crash_arch_columns(stopped.context, columns);
  crash_unwind(images, cache, columns, &walk);
  crash_walk_finish(images, &walk, &seen, CRASH_OTHER_FRAMES_MAX / 4);
  uint32_t staying = count_staying(record->other_frames + thread->first_frame, before, frames,
                                   seen.top_count + seen.bottom_count);
  // Behind the frames that were left out, only stacks of one depth are the same.
  if ((thread->bottom_count || seen.bottom_count) && thread->depth != seen.depth && staying > thread->bottom_count)
    staying = thread->bottom_count;
  if (staying < thread->staying) thread->staying = staying;
}

// Returns how many threads stand still, for this thread to look at, or -1 where somebody else has stopped them. The longest
// time for which they stood still for a try that came to nothing is stored.
static int64_t stop(size_t *without_room, int64_t *wasted) {
  for (unsigned tried = 0;; tried++) {
    // A crash that waits for this one goes on as soon as it is done; one that came first ends the process.
    if (crash_capture.record.header->crash_state != CRASH_STATE_NONE || !crash_threads_reserve(0)) return -1;
    const struct crash_stop how = {.silence_ns = SNAPSHOT_SILENCE_NS,
                                   .total_ns = tried < SNAPSHOT_TRIES ? SNAPSHOT_TRY_NS : 0,
                                   .is_courteous = 1};
    size_t count = crash_threads_stop(without_room, &how);
    if (!crash_threads_gave_up()) return (int64_t)count;
    int64_t duration = crash_threads_stopped_for();
    crash_threads_let_go_courteously();
    if (duration > *wasted) *wasted = duration;
    usleep(1000u << (tried < 5 ? tried : 5));
  }
}

// One look at all threads. Returns how long they stood still, or -1 where somebody else has stopped them.
static int64_t sample(struct crash_record *record, struct places *used, int is_first) {
  struct crash_cfi_cache cache;
  size_t without_room = 0;
  int64_t wasted = 0;
  memset(&cache, 0, sizeof cache);
  int64_t stopped = stop(&without_room, &wasted);
  if (stopped < 0) return -1;
  size_t count = (size_t)stopped;
  if (count > CRASH_OTHER_THREADS) {
    without_room += count - CRASH_OTHER_THREADS;
    count = CRASH_OTHER_THREADS;
  }
  for (size_t i = 0; i < count; i++) {
    if (is_first)
      capture_first(record, &cache, i, count, used);
    else
      compare(record, &cache, i, used->threads);
  }
  crash_threads_let_go_courteously();
  int64_t duration = crash_threads_stopped_for();
  if (is_first && without_room) {
    crash_record_note(record, CRASH_NOTE_THREADS_OVER_CAP, 0, without_room, 0);
    crash_record_commit_notes(record);
  }
  return duration > wasted ? duration : wasted;
}

static void commit_threads(struct crash_record *record, const struct places *used) {
  crash_record_commit(record, CRASH_SECTION_OTHER_FRAMES, used->frames * sizeof(struct crash_record_frame));
  crash_record_commit(record, CRASH_SECTION_OTHER_REGISTERS, 0);
  crash_record_commit(record, CRASH_SECTION_OTHER_THREADS, used->threads * sizeof(struct crash_record_thread));
}

static void describe(struct crash_record *record, const struct crash_support_snapshot_request *request) {
  struct crash_record_run *run = record->run;
  run->kind = request->watch ? CRASH_RECORD_OF_HANG : CRASH_RECORD_OF_SNAPSHOT;
  memcpy(run->of_run, crash_capture.record.header->run_id, sizeof run->of_run);
  run->realtime_ns = crash_clock_ns(CLOCK_REALTIME);
  run->silent_ns = request->silent_ns;
  run->thread = request->thread;
  if (request->watch) {
    size_t length = strnlen(request->watch, 4 * sizeof run->watch);
    run->watch_length = (uint16_t)crash_redact_base(request->watch, length, run->watch, sizeof run->watch, NULL);
  }
}

static int capture(struct crash_record *record, const struct crash_support_snapshot_request *request,
                   struct crash_support_snapshot *snapshot, struct crash_support_error *error) {
  struct places used = {0};
  struct crash_record_run *run = record->run;
  describe(record, request);
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_CAPTURING, __ATOMIC_RELEASE);
  copy_process(record, &crash_capture.record);
  touch_pages(record);
  for (uint32_t i = 0; i == 0 || i < request->samples; i++) {
    if (i) usleep(request->pause_us);
    int64_t duration = sample(record, &used, i == 0);
    if (duration < 0) {
      if (i) break;
      return fail(error, "stopping the threads, which a crash or another snapshot has stopped", EBUSY);
    }
    if (i == 0)
      for (uint32_t thread = 0; thread < used.threads && request->samples > 1; thread++)
        record->other_threads[thread].staying =
            record->other_threads[thread].top_count + record->other_threads[thread].bottom_count;
    if ((uint64_t)duration > run->stopped_ns) run->stopped_ns = (uint64_t)duration;
    run->samples = i + 1;
    // Whole after each of them: somebody who ends a service that hangs does not wait for the last.
    commit_threads(record, &used);
  }
  snapshot->stopped_ns = run->stopped_ns;
  snapshot->threads = used.threads;
  __atomic_store_n(&record->header->crash_state, CRASH_STATE_COMPLETE, __ATOMIC_RELEASE);
  return 0;
}

int crash_support_capture_snapshot(const struct crash_support_snapshot_request *request,
                                   struct crash_support_snapshot *snapshot, struct crash_support_error *error) {
  struct crash_support_error ignored;
  if (!error) error = &ignored;
  *error = (struct crash_support_error){0, ""};
  memset(snapshot, 0, sizeof *snapshot);
  if (request->size < sizeof *request) return fail(error, "the request", EINVAL);
  if (!crash_capture_is_owner()) return fail(error, "nothing was started", ESRCH);
  // Not waited for: the one that is being taken shows the same.
  if (pthread_mutex_trylock(&lock) != 0) return fail(error, "another snapshot is being taken", EBUSY);
  crash_support_refresh_images();
  struct crash_record record;
  int result = crash_record_draft(&record, crash_capture.record.image_capacity, crash_capture.record.path_capacity, error);
  if (result == 0) result = crash_record_create(&record, NULL, NULL, error);
  if (result == 0) {
    memcpy(snapshot->record, record.file_name, sizeof snapshot->record);
    result = capture(&record, request, snapshot, error);
    if (result == 0)
      crash_record_close(&record);
    else
      crash_record_discard(&record);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void crash_snapshot_after_fork(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&lock, &fresh, sizeof lock);
}
