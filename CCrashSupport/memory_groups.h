// The memory cgroups that the process is in, and how often something in them was killed for want of memory.

#ifndef CCRASHSUPPORT_MEMORY_GROUPS_H
#define CCRASHSUPPORT_MEMORY_GROUPS_H

#include "record.h"

/// Adds the counters as they stand to the record, for the next start to compare. Not async-signal-safe: opens files.
void crash_memory_groups_record(struct crash_record *record);

#endif
