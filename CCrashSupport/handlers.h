// Deadline and recovery of the crash path. Internal to handlers.c and start.c.

#ifndef CCRASHSUPPORT_HANDLERS_H
#define CCRASHSUPPORT_HANDLERS_H

/// Makes the timer that ends a handler that hangs. Without it (no room for a timer) capture works, unwatched.
/// Not async-signal-safe.
void crash_deadline_prepare(void);

/// Deletes that timer. Not async-signal-safe.
void crash_deadline_remove(void);

/// Forgets a capture, for a new record. Not async-signal-safe.
void crash_handlers_reset(void);

#endif
