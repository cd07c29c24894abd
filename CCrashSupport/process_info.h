// Section PROCESS: which process, on which system.

#ifndef CCRASHSUPPORT_PROCESS_INFO_H
#define CCRASHSUPPORT_PROCESS_INFO_H

#include "record.h"

/// Fills and seals section PROCESS with what a crash report cannot do without: process, user, host, executable. What
/// cannot be read stays empty. Not async-signal-safe.
void crash_process_record(struct crash_record *record);

/// Adds what has to be read from files, a tenth of a millisecond: distribution, boot id, the process's start time. Not
/// async-signal-safe. Callers make sure that one thread at a time does it.
void crash_process_describe(struct crash_record *record);

#endif
