#include <pthread.h>
#include <string.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "async.h"
#include "capture.h"
#include "images.h"
#include "syscalls.h"
#include "threads.h"
#include "unwind.h"

CRASH_UNINSTRUMENTED_BEGIN

// More than a report keeps of a thread that did not crash; a recursion that is deeper shows its cycle.
#define STACK_FRAMES 128
#define STACK_CALLERS 32

// Rows of the walks before: a service reports its errors from a few places, and what a walk costs is looking for the rows of
// each frame in tables that nothing else reads, some 4 us a frame when they are not in the processor's caches. Thrown away
// when the loader has loaded or unloaded anything since, which is asked for before the walk: what is unloaded by another
// thread in the middle of it has none of its code on this stack, but for a program that is about to fault there anyway.
static struct crash_cfi_cache rows;
static uint64_t rows_generation;
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;

// Not inlined: the rows of its own are 7 KB of stack, which the other way need not have.
__attribute__((noinline)) static void walk_without_rows(const uint64_t *columns, struct crash_walk *walk) {
  struct crash_cfi_cache own = {0};
  crash_unwind(&crash_capture.record, &own, columns, walk);
}

static void walk_stack(const uint64_t *columns, struct crash_walk *walk) {
  // In a child made by fork nobody may ever give it back: never waited for.
  if (pthread_mutex_trylock(&rows_lock) != 0) return walk_without_rows(columns, walk);
  uint64_t generation = crash_images_generation();
  if (generation != rows_generation) {
    memset(&rows, 0, sizeof rows);
    rows_generation = generation;
  }
  crash_unwind(&crash_capture.record, &rows, columns, walk);
  pthread_mutex_unlock(&rows_lock);
}

__attribute__((noinline)) size_t crash_support_capture_stack(uint64_t *addresses, uint8_t *awaits,
                                                            size_t capacity, uint32_t *thread) {
  if (!crash_capture_is_owner()) return 0;
  if (thread) *thread = crash_threads_own_id();
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns_here(columns);
  struct crash_record_frame frames[STACK_FRAMES + 1], last;
  struct crash_walk walk = {.top = frames, .top_capacity = STACK_FRAMES + 1, .ring = &last, .ring_capacity = 1};
  walk_stack(columns, &walk);
  size_t count = 0;
  struct crash_record_frame callers[STACK_CALLERS];
  uint32_t caller_count = 0;
  if (walk.async_context)
    caller_count = crash_async_follow(&crash_capture.record, walk.async_context, callers, STACK_CALLERS);
  for (uint32_t i = 1; i < walk.top_count && count < capacity; i++) {
    // What awaits the function is further out than it, and further in than the runtime's work on the task.
    if (walk.async_context && i == walk.async_position)
      for (uint32_t caller = 0; caller < caller_count && count < capacity; caller++) {
        awaits[count] = 1;
        addresses[count++] = callers[caller].address;
      }
    if (count == capacity) break;
    awaits[count] = 0;
    addresses[count++] = frames[i].address;
  }
  return count;
}

uint32_t crash_support_thread_id(void) { return crash_sys_thread_id(); }

CRASH_UNINSTRUMENTED_END
