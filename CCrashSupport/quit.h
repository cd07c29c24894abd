// SIGQUIT as a request for a snapshot: what the stopping of threads has to know of it.

#ifndef CCRASHSUPPORT_QUIT_H
#define CCRASHSUPPORT_QUIT_H

/// Whether a handler is the one that asks for snapshots. Async-signal-safe.
int crash_quit_is_ours(const void *handler);

/// Takes a SIGQUIT that nobody was woken for, because every thread blocks it: it asks for a snapshot like any other. To be
/// called while all threads stand still, by a thread that blocks SIGQUIT; does nothing where SIGQUIT is not ours.
/// Async-signal-safe.
void crash_quit_take_pending(void);

#endif
