// SHA-256 (FIPS 180-4), small enough to embed: 5 MB of libcrypto in every daemon would be the alternative.

#ifndef CCRASHFORMAT_SHA256_H
#define CCRASHFORMAT_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Writes the SHA-256 of `length` bytes to `digest`. Async-signal-safe, no state.
void crash_sha256(const void *bytes, size_t length, uint8_t digest[32]);

#ifdef __cplusplus
}
#endif
#endif
