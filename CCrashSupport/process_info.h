// Section PROCESS: which process, on which system.

#ifndef CCRASHSUPPORT_PROCESS_INFO_H
#define CCRASHSUPPORT_PROCESS_INFO_H

#include "record.h"

/// Fills and seals section PROCESS from /proc and uname. What cannot be read stays empty. Not async-signal-safe.
void crash_process_record(struct crash_record *record);

#endif
