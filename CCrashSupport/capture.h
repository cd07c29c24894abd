// The state that start, scope and handlers share.

#ifndef CCRASHSUPPORT_CAPTURE_H
#define CCRASHSUPPORT_CAPTURE_H

#include <stdint.h>

#include "CCrashFormat_uninstrumented.h"
#include "record.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

struct crash_capture {
  struct crash_record record;
  int32_t pid;  ///< of the process that owns the record
  /// A word that reads 1 in the process that owns the record and 0 everywhere else, its forked children included: it is
  /// in a page that the kernel wipes in a child (MADV_WIPEONFORK). Points to a constant 0 before the start.
  const volatile uint32_t *owner;
};

extern struct crash_capture crash_capture;

/// Whether this process has a record. False in a child made by fork, where the record is not mapped: nothing may touch it
/// there. Async-signal-safe.
static inline int crash_capture_is_owner(void) { return *crash_capture.owner != 0; }

/// Whether the record's owner is asking, and not its child made by vfork, which runs in the same memory. Where a sandbox
/// does not tell, it is taken for the owner: a crash of its own is likelier. Async-signal-safe.
static inline int crash_capture_is_own_process(void) {
  long pid = crash_sys_getpid();
  return pid < 0 || pid == crash_capture.pid;
}

/// Moves what was set before the start into the record. Not async-signal-safe: takes the scope's lock.
void crash_scope_attach(struct crash_record *record);

/// Stops writing to the record. Not async-signal-safe: takes the scope's lock.
void crash_scope_detach(void);

/// Makes the scope's lock usable in a child made by fork, where the thread that held it does not exist.
void crash_scope_after_fork(void);

/// Makes the lock of snapshots usable in a child made by fork.
void crash_snapshot_after_fork(void);

/// Stores a text that the host gave about itself, unredacted and cut at `capacity`. Not async-signal-safe.
void crash_scope_set_identity(struct crash_record *record, const char *service, const char *release,
                              const char *environment);

CRASH_UNINSTRUMENTED_END

#endif
