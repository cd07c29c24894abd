// The system call that a thread sleeps in, as the kernel tells it from outside.

#ifndef CCRASHSUPPORT_NOTED_CALL_H
#define CCRASHSUPPORT_NOTED_CALL_H

#include <stdint.h>

/// A call that a thread was asleep in. What a signal handler finds in the registers is less: the number on x86-64 and the
/// first argument on aarch64 are overwritten by the result.
struct crash_noted_call {
  uint64_t is_asleep;  ///< 0: nothing else is set
  uint64_t number;
  uint64_t arguments[6];
  uint64_t stack_pointer, pc;  ///< behind the instruction
};

/// Asks `/proc/self/task/<thread>/syscall`. Nothing is noted of a thread that runs or is ready to, and where the file cannot
/// be read. Async-signal-safe, but opens a file: not for the crash path.
void crash_note_call(uint32_t thread, struct crash_noted_call *call);

/// The signals that a thread blocks, by `/proc/self/task/<thread>/status`. Returns 1, or 0 where that cannot be read.
/// Async-signal-safe, but opens a file: not for the crash path.
int crash_read_blocked_signals(uint32_t thread, uint64_t *blocked);

/// Whether a call that returned EINTR under SA_RESTART is right to be made again with the arguments that it had: the kernel
/// did nothing, or keeps what it did (a connection that is being made). Not `close`, whose descriptor is gone by then, nor
/// what is a driver's own affair (`ioctl`). Async-signal-safe.
int crash_call_is_repeatable(long number);

#endif
