#ifndef REPORTER_H
#define REPORTER_H
/// Starts the reporter with its records in `folder`. Returns what `crash_support_start` returns; says on standard error
/// why it failed.
int reporter_start(const char *folder);
#endif
