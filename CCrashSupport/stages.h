// Filling the record at the crash, stage by stage.

#ifndef CCRASHSUPPORT_STAGES_H
#define CCRASHSUPPORT_STAGES_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/// What the kernel hands to the handler.
struct crash_event {
  int signal;
  siginfo_t *info;
  ucontext_t *context;
};

/// Learns what the stages compare with. Not async-signal-safe.
void crash_stages_prepare(void);

/// Fills the record with `event`. By one thread at a time. Async-signal-safe.
void crash_stages_run(const struct crash_event *event);

/// To be called for a fault that the thread in `crash_stages_run` meets while it is there: notes it and goes on with the
/// next stage, and so does not return. Returns where no stage is at work. Async-signal-safe.
void crash_stages_skip(const struct crash_event *event);

/// Whether the stack that was captured last is in `abort`. Async-signal-safe.
int crash_stages_met_abort(void);

/// Makes the record say that nothing crashed, as nothing did. Async-signal-safe.
void crash_stages_take_back(void);

/// Forgets everything, for a new record. Not async-signal-safe.
void crash_stages_reset(void);

#endif
