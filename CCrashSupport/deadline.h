// Ends a crash path that hangs.

#ifndef CCRASHSUPPORT_DEADLINE_H
#define CCRASHSUPPORT_DEADLINE_H

/// How long the crash path may take, in seconds. A handler that hangs keeps a service from being restarted, which is
/// worse than a lost report.
#define CRASH_DEADLINE_SECONDS 4

/// Makes the timer. Without it (no room for a timer) capture works, unwatched. Not async-signal-safe.
void crash_deadline_prepare(void);

/// Deletes the timer. Not async-signal-safe.
void crash_deadline_remove(void);

/// Forgets the timer without deleting it: in a child made by fork it does not exist, and its number may be that of
/// another one. Async-signal-safe.
void crash_deadline_forget(void);

/// From now on the process has CRASH_DEADLINE_SECONDS to live. Async-signal-safe.
void crash_deadline_set(void);

/// Takes that back. Async-signal-safe.
void crash_deadline_clear(void);

#endif
