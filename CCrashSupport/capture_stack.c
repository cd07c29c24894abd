#include <ucontext.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "async.h"
#include "capture.h"
#include "syscalls.h"
#include "unwind.h"

CRASH_UNINSTRUMENTED_BEGIN

// More than a report keeps of a thread that did not crash; a recursion that is deeper shows its cycle.
#define STACK_FRAMES 128
#define STACK_CALLERS 32

__attribute__((noinline)) size_t crash_support_capture_stack(uint64_t *addresses, uint8_t *awaits,
                                                            size_t capacity, uint32_t *thread) {
  if (!crash_capture_is_owner()) return 0;
  if (thread) *thread = crash_sys_thread_id();
  ucontext_t context;
  if (getcontext(&context) != 0) return 0;
  uint64_t columns[CRASH_ARCH_COLUMNS];
  crash_arch_columns(&context, columns);
  struct crash_cfi_cache cache = {0};
  struct crash_record_frame frames[STACK_FRAMES + 1], last;
  struct crash_walk walk = {.top = frames, .top_capacity = STACK_FRAMES + 1, .ring = &last, .ring_capacity = 1};
  crash_unwind(&crash_capture.record, &cache, columns, &walk);
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
