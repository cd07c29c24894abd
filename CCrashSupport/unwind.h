// The walk of one stack, from the registers of a crash to its outermost frame.

#ifndef CCRASHSUPPORT_UNWIND_H
#define CCRASHSUPPORT_UNWIND_H

#include <stdint.h>

#include "arch.h"
#include "cfi.h"
#include "record.h"

/// Frames of one walk as they are found: the first ones, the last ones, and how many there were.
///
/// Lives outside the stack, so that a stage that dies in the middle of a walk leaves what it had found.
struct crash_walk {
  struct crash_record_frame *top;  ///< room for `top_capacity` frames
  uint32_t top_capacity;
  uint32_t top_count;
  struct crash_record_frame *ring;  ///< the last frames behind the first `top_capacity`
  uint32_t ring_capacity;
  uint64_t depth;  ///< frames found; those behind `top_capacity` are in the ring at (n - top_capacity) % ring_capacity
  uint32_t end;    ///< enum crash_record_walk_end
  uint64_t async_context;   ///< of the outermost async function on the stack; 0 where there is none
  uint64_t async_position;  ///< how many frames there are up to that function
};

/// Ends a walk that does not end by itself. An 8 MiB stack holds at most half a million frames.
#define CRASH_WALK_FRAME_LIMIT (1u << 21)

/// Walks the stack that starts at the given registers (all columns known). Async-signal-safe; threads may walk at the
/// same time, each with a cache of its own.
void crash_unwind(const struct crash_record *record, struct crash_cfi_cache *cache,
                  const uint64_t columns[CRASH_ARCH_COLUMNS], struct crash_walk *walk);

#endif
