// The actions that were there before ours, and giving a signal back to them.

#ifndef CCRASHSUPPORT_HAND_OVER_H
#define CCRASHSUPPORT_HAND_OVER_H

#include "stages.h"
#include "syscalls.h"

/// The signals of a crash: SIGABRT SIGSEGV SIGBUS SIGILL SIGFPE SIGTRAP SIGSYS.
#define CRASH_SIGNAL_COUNT 7
extern const int crash_signals[CRASH_SIGNAL_COUNT];

/// What became of a signal that was given back.
enum crash_outcome {
  /// The process ends, now or as soon as the handler returns.
  CRASH_OUTCOME_DEATH,
  /// The process goes on, as it would have without us: nothing crashed after all.
  CRASH_OUTCOME_RECOVERED,
};

/// Remembers what is there and puts `action` in its place, for every signal of a crash.
/// Returns 0, or -1 with errno and nothing changed. Not async-signal-safe.
int crash_former_actions_replace(const struct sigaction *action);

/// Puts our action in front again wherever `crash_former_actions_restore` took it away. Async-signal-safe.
void crash_former_actions_reinstall(void);

/// Gives every signal that still is ours back. Async-signal-safe.
void crash_former_actions_restore(void);

/// Whether the signal, which was sent, was ignored before us. Async-signal-safe.
int crash_former_action_ignores(int signal);

/// Address of the handler that somebody put in front of ours for a signal (SIG_DFL and SIG_IGN as 0 and 1), in `*handler`.
/// Returns 0 where ours is in place, or was given back by ourselves. Async-signal-safe.
int crash_handler_is_replaced(int signal, uint64_t *handler);

/// Whether a handler is the Swift runtime's backtracer. Not async-signal-safe while images are being recorded.
int crash_handler_is_runtime(void *handler);

/// Whether anybody but the kernel gets the signal next. Async-signal-safe.
int crash_former_handler_exists(int signal);

/// Address of the handler of the host's own program that was there before us, which may recover from `signal`; 0 where
/// there was none. The Swift runtime's never recovers. Async-signal-safe.
uint64_t crash_former_host_handler(int signal);

/// Gives a signal that ended a process, or would have, back to whom it went before us.
///
/// May not return: a former handler may leave by `siglongjmp` or end the process. Async-signal-safe.
enum crash_outcome crash_hand_over(const struct crash_event *event);

#endif
