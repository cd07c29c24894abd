#ifndef SANDBOXES_H
#define SANDBOXES_H
/// For `sandbox:ACTION:CALL:FAULT`: refuses the system call CALL to the code of this program, and to nothing else, from
/// now on. ACTION is `EPERM`, `ENOSYS`, or `KILL`, which ends the process.
/// Does nothing for other names.
void sandbox_enter(const char *name);
/// FAULT of such a name, or `name` as it is where it is no such name.
const char *sandbox_fault(const char *name);

/// Puts an alternate stack over the file $FX_PAINT, filled with PAINT, where a test can see how deep it was used.
void paint_alternate_stack(void);
#define PAINT 0xa5
#endif
