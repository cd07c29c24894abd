// Signals whose default action ends the process, as SIGTERM's does: who sent the one that did.

#ifndef CCRASHSUPPORT_TERMINATIONS_H
#define CCRASHSUPPORT_TERMINATIONS_H

#include <signal.h>

/// Puts a handler in place of the default action of those signals, and leaves every other action alone.
///
/// The process ends by the signal as before: the handler stores who sent it and raises it again with the default action.
/// Not in the first process of a pid namespace, which the default action does not end. Not async-signal-safe.
void crash_terminations_install(void);

/// Gives those signals their default action back where ours is still in place. Not async-signal-safe.
void crash_terminations_uninstall(void);

/// Whether an action is the one that `crash_terminations_install` puts in place. Async-signal-safe.
int crash_termination_is_ours(const struct sigaction *action);

/// The same for a handler alone, as the kernel has it. Async-signal-safe.
int crash_termination_handler_is_ours(const void *handler);

#endif
