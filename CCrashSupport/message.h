// What the program or its runtime said before it died, redacted on its way into the record.

#ifndef CCRASHSUPPORT_MESSAGE_H
#define CCRASHSUPPORT_MESSAGE_H

#include "record.h"

/// Looks up where the messages will be. Not async-signal-safe: asks the loader.
void crash_message_prepare(void);

/// Copies the messages that there are into section MESSAGES, each through the base redaction, and returns how many.
/// Async-signal-safe.
unsigned crash_message_capture(struct crash_record *record, int signal);

#endif
