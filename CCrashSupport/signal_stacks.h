// Alternate signal stacks: one for every thread, so that a stack overflow has somewhere to be reported from.

#ifndef CCRASHSUPPORT_SIGNAL_STACKS_H
#define CCRASHSUPPORT_SIGNAL_STACKS_H

#include <stddef.h>

/// Gives the calling thread an alternate stack with a guard page below, unless it has one that is large enough.
/// A stack that somebody else set and that is too small is replaced, and not given back to him.
///
/// Returns 1 when it set one, 0 when there was one already, -1 when there is no memory (the thread then runs without).
/// Not async-signal-safe: maps memory.
int crash_signal_stack_arm(void);

/// Takes the calling thread's alternate stack away, if `crash_signal_stack_arm` set it, and keeps it for another thread
/// or unmaps it. Not async-signal-safe.
void crash_signal_stack_disarm(void);

#endif
