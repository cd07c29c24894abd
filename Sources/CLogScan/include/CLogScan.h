#ifndef C_LOG_SCAN_H
#define C_LOG_SCAN_H

// The one look that every byte of a log gets: is there anything here that a crash begins with?
//
// A log is gigabytes of lines that are none of our business, and a state machine that asks each line costs a hundred times
// what a comparison of 16 bytes at once does. So the texts that the formats begin with are looked for together, by three
// of their bytes each, and only what passes is compared as a whole.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The offset of the first text that a crash, its message or a report begins with; `count` where there is none.
/// Reads no byte outside of `bytes[0..<count]`. No state: may be called from any thread.
size_t CLogScan_find(const uint8_t *bytes, size_t count);

/// How many line feeds there are.
size_t CLogScan_count_lines(const uint8_t *bytes, size_t count);

/// The offset behind the last line feed in `bytes[0..<at]`; 0 where there is none.
size_t CLogScan_line_start(const uint8_t *bytes, size_t at);

/// The longest text that is looked for, in bytes: so much of a piece's end has to be looked at again with the next one.
enum { CLOGSCAN_LONGEST = 24 };

#ifdef __cplusplus
}
#endif
#endif
