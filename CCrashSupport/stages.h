// Filling the record at the crash, stage by stage.

#ifndef CCRASHSUPPORT_STAGES_H
#define CCRASHSUPPORT_STAGES_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include "unwind.h"

/// What the kernel hands to the handler, and what the handler learns about it.
struct crash_event {
  int signal;
  siginfo_t *info;
  ucontext_t *context;
  int in_child;  ///< a child made by vfork, which runs in the memory of the process that owns the record
};

/// Learns what the stages compare with. Not async-signal-safe.
void crash_stages_prepare(void);

/// Fills the record with what needs no system call: signal, registers, the stack and the images in it. Faults of loads must
/// be open: SIGSEGV and SIGBUS. By one thread at a time. Async-signal-safe.
void crash_stages_run_silent(const struct crash_event *event);

/// Fills the rest, and closes the record. Behind `crash_stages_run_silent`. Async-signal-safe.
void crash_stages_run_rest(const struct crash_event *event);

/// Brings the two ends of a walk together and adds the callers that await; finds the frames' images. Runs whether the walk
/// came to its end or died on the way. `room` is how many frames there is space for behind the top ones. Returns how many
/// frames the thread has in all. Async-signal-safe.
uint32_t crash_walk_finish(const struct crash_record *record, struct crash_walk *walk, struct crash_record_thread *thread,
                           uint32_t room);

/// Opens the signals that a stage may die of. Async-signal-safe.
void crash_stages_open_faults(void);

/// Waits, without a system call, until the thread in the stages has sealed its stack: a few milliseconds at most.
/// Async-signal-safe.
void crash_stages_wait_for_stack(void);

/// To be called for a fault that the thread in the stages meets while it is there: notes it and goes on with the next
/// stage, and so does not return. Returns where no stage is at work. Async-signal-safe.
void crash_stages_skip(const struct crash_event *event);

/// Whether the stack that was captured last is in `abort`. Async-signal-safe.
int crash_stages_met_abort(void);

/// Makes the record say that nothing crashed, as nothing did. Async-signal-safe.
void crash_stages_take_back(void);

/// Forgets everything, for a new record. Not async-signal-safe.
void crash_stages_reset(void);

#endif
