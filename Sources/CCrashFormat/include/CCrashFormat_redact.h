// The base redaction: four rules that every text of a user's passes before it is stored.

#ifndef CCRASHFORMAT_REDACT_H
#define CCRASHFORMAT_REDACT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Copies `length` bytes of `text` to `output` with the four base rules applied: e-mail addresses and runs of seven or
/// more digits become `[redacted]`, URL query strings are removed, absolute user paths become `~/…`. Hex tokens
/// (addresses, build ids, UUIDs, symbols) stay whole.
///
/// Linear in `length`, no allocation, no state: async-signal-safe, and the same function that the Swift `Redactor`
/// applies first. Applying it to its own output changes nothing, whatever the text: the output is read again until nothing
/// is found in it, and a text that is not done after eight times is made to deceive and becomes `[redacted]` as a whole.
///
/// - Returns: the number of bytes written, at most `capacity`. When the result does not fit, it is cut at a character
///   boundary and never inside a token that was to be redacted; `*truncated` (may be NULL) then becomes 1.
///
/// The text must be whole: of one that was cut, pass as much as `crash_redact_whole` says.
size_t crash_redact_base(const char *text, size_t length, char *output, size_t capacity, int *truncated);

/// The same, with `[email]` and `[number]` in place of `[redacted]`, for whoever wants to know what was there. `[redacted]`
/// of an earlier redaction stays. Async-signal-safe.
size_t crash_redact_base_kinds(const char *text, size_t length, char *output, size_t capacity);

/// Whether `crash_redact_base` has to read the text with care: 0 where it is certain to change nothing. A few bytes a
/// nanosecond. Async-signal-safe.
int crash_redact_suspects(const char *text, size_t length);

/// How much of a text that was cut behind its first `length` bytes can be judged: what is left of it when the last word
/// goes, which may be the first half of an address or a number that no rule would recognise (`alice@exam`, `123456`).
///
/// Looks at 320 bytes at most; of a longer word only the digits and the broken character at its end go.
/// Async-signal-safe.
size_t crash_redact_whole(const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
