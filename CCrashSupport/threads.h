// The threads of the process: who they are, and how they are stopped for a look at their stacks.

#ifndef CCRASHSUPPORT_THREADS_H
#define CCRASHSUPPORT_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/// Room for this many threads. Further ones run unseen, and are counted.
#define CRASH_THREADS_MAX 4096u

/// Makes the calling thread known. Lock-free. Not async-signal-safe: uses thread-local storage.
void crash_threads_add(void);

/// Forgets the calling thread, which is about to end. Lock-free. Not async-signal-safe.
void crash_threads_remove(void);

/// The kernel's id of the calling thread, without asking it where the thread is known. Not async-signal-safe: uses
/// thread-local storage.
uint32_t crash_threads_own_id(void);

/// Makes the threads known that exist already, by the kernel's list. Not async-signal-safe: opens a directory.
void crash_threads_add_existing(void);

/// Forgets all threads but the calling one, which is all that a child made by fork has. Not async-signal-safe.
void crash_threads_after_fork(void);

/// Learns what stopping needs. After the handlers are installed. Not async-signal-safe.
void crash_threads_prepare(void);

/// A thread other than the calling one.
struct crash_stopped_thread {
  uint32_t id;
  const ucontext_t *context;  ///< where it was interrupted; NULL where it did not answer. Valid until it is let go
  char name[16];
};

/// Makes the calling thread the one that may stop the others, and waits for whoever is until then, at most so long. A crash
/// does not stand back for ever behind a snapshot, and so goes on where this failed; a snapshot gives up. Returns 1, or 0
/// where another thread still is the one. Given back by `crash_threads_let_go`. Async-signal-safe.
int crash_threads_reserve(int64_t patience_ns);

/// How long after the last answer of a thread a crash waits for the others.
#define CRASH_THREADS_SILENCE_NS 500000000ll

/// How threads are stopped.
struct crash_stop {
  int64_t silence_ns;  ///< how long after the last answer the others are waited for
  int64_t total_ns;    ///< how long from the first question on, where there is a limit; else 0
  /// For a look at threads that live on: the main thread is stopped behind the others, which
  /// `crash_threads_let_go_courteously` explains, and the calls that they wait in are noted before.
  int is_courteous;
};

/// Stops all other known threads and waits until they stand still, or for as long as `how` says.
///
/// Each gets signal 33 (glibc's SIGSETXID), which no libc call can block, and waits in its handler. Returns how many there
/// are, the silent ones included. `without_room` becomes the number of threads that are not known. Async-signal-safe; by one
/// thread at a time.
size_t crash_threads_stop(size_t *without_room, const struct crash_stop *how);

/// Whether the last stop was given up at its limit. To be let go all the same. Async-signal-safe.
int crash_threads_gave_up(void);

/// For how long a thread may have stood still by now, in nanoseconds: since the first was asked. Async-signal-safe.
int64_t crash_threads_stopped_for(void);

/// Whether a thread other than the calling one is about to take one of these signals, or can. The calling one has them
/// pending and is about to return from a handler, which would take them from whom the kernel has woken. Reads files of /proc:
/// not for the crash path. Async-signal-safe.
int crash_threads_another_takes(uint64_t signals);

/// The `index`-th of them. Async-signal-safe.
struct crash_stopped_thread crash_threads_stopped(size_t index);

/// To be called when the process is about to end by the default action of `signal` while the others are stopped. Should it
/// not end, because the fault was gone when it was repeated, they end it by that signal three seconds later: without us it
/// would have ended, and nobody is there to let them go. Async-signal-safe.
void crash_threads_expect_death(int signal);

/// Lets them all go on where they were, and gives the signal back to libc. Calls that were interrupted are made again, with
/// their whole timeout where they have one (`crash_arch_restart_call` says which cannot be). Does nothing where none is
/// stopped. Async-signal-safe.
void crash_threads_let_go(void);

/// The same behind a look at threads that live on: a signal that came meanwhile is taken by whom it was for, which may take
/// a few milliseconds, and a call is not made again where a handler of the host's has just run. Needs `rt_sigpending`, which
/// the crash path does without. Async-signal-safe.
void crash_threads_let_go_courteously(void);

#endif
