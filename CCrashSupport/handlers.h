// Installing the handler, and its idea of who crashes.

#ifndef CCRASHSUPPORT_HANDLERS_H
#define CCRASHSUPPORT_HANDLERS_H

/// Installs the handler of the seven signals, keeping what was there. Returns 0, or -1 with nothing changed.
/// Not async-signal-safe.
int crash_handlers_install(void);

/// Gives every signal that still is ours back to its former handler, and forgets what was there, so that a later
/// installation looks anew. Not async-signal-safe.
void crash_handlers_uninstall(void);

/// Forgets a capture, for a new record. Not async-signal-safe.
void crash_handlers_reset(void);

/// To be called by ordinary code now and then: where the calling thread crashed, and a former handler of the host's jumped
/// out of the handler, nothing crashed after all. Costs a load and a comparison. Async-signal-safe.
void crash_handlers_notice_recovery(void);

#endif
