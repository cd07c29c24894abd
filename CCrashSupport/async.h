// Swift concurrency: who awaits the code on a stack, and which task it is.

#ifndef CCRASHSUPPORT_ASYNC_H
#define CCRASHSUPPORT_ASYNC_H

#include <stdint.h>

#include "record.h"

/// How many frames the search for the async function goes back from the runtime's own.
#define CRASH_ASYNC_TRAIL 8u

/// The last frames of a walk: what the search needs of them.
struct crash_async_trail {
  struct crash_async_frame {
    uint64_t pc;
    uint64_t frame_pointer, context_register;  ///< 0: not known
    uint64_t position;                         ///< frames of the walk up to here, this one included
  } frames[CRASH_ASYNC_TRAIL];
  uint32_t count;
};

/// Looks whether the process has Swift concurrency. Where it has none, the rest does nothing. Not async-signal-safe.
void crash_async_prepare(void);

/// Learns where the runtime's code for running jobs is, unless that is known; `crash_async_visit` finds nothing before.
/// May run in several threads at once. Async-signal-safe.
void crash_async_learn(const struct crash_record *record);

/// To be called for each frame of a walk, innermost first.
///
/// When the frame is the runtime's own, and a frame inside of it belongs to an async function, returns that function's
/// context and stores in `*found_position` how many frames there are up to it; otherwise 0. Async-signal-safe.
uint64_t crash_async_visit(const struct crash_record *record, struct crash_async_trail *trail,
                           const struct crash_async_frame *frame, uint64_t *found_position);

/// Follows a context to the callers that await it, innermost first. Returns how many frames it stored, at most `capacity`.
/// Async-signal-safe.
uint32_t crash_async_follow(const struct crash_record *record, uint64_t context, struct crash_record_frame *frames,
                            uint32_t capacity);

/// Describes the task that runs on the calling thread: id, name, registered locals. Returns 0 where there is none.
///
/// Calls the runtime, which follows the task's own pointers: in a stage only, which survives a fault. Async-signal-safe
/// in that sense.
int crash_async_describe_task(struct crash_record_task *task);

#endif
