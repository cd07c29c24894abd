#include "CCrashFormat.h"
#include "CCrashFormat_uninstrumented.h"

CRASH_UNINSTRUMENTED_BEGIN

// The table is derived from the polynomial by the compiler instead of pasted, so that nobody has to trust 256 numbers.
// A CRC is linear: the entry of a byte is the XOR of the entries of its bits, and the entry of a bit is the one of the
// next higher bit shifted once through the register.
#define SHIFT(c) (((c) & 1u) ? ((c) >> 1) ^ 0x82f63b78u : (c) >> 1)
// Enumerators, not macros: each is evaluated once instead of being expanded 3^7 times. `long` because the values exceed
// INT_MAX, which an enumeration constant of type int cannot hold.
enum bit_entries {
  B7 = 0x82f63b78l,
  B6 = SHIFT(B7),
  B5 = SHIFT(B6),
  B4 = SHIFT(B5),
  B3 = SHIFT(B4),
  B2 = SHIFT(B3),
  B1 = SHIFT(B2),
  B0 = SHIFT(B1),
};
#define ENTRY(i)                                                                                                   \
  ((uint32_t)((((i) & 1) ? B0 : 0) ^ (((i) & 2) ? B1 : 0) ^ (((i) & 4) ? B2 : 0) ^ (((i) & 8) ? B3 : 0) ^          \
              (((i) & 16) ? B4 : 0) ^ (((i) & 32) ? B5 : 0) ^ (((i) & 64) ? B6 : 0) ^ (((i) & 128) ? B7 : 0)))
#define ROW(i) ENTRY(i), ENTRY(i + 1), ENTRY(i + 2), ENTRY(i + 3), ENTRY(i + 4), ENTRY(i + 5), ENTRY(i + 6), ENTRY(i + 7)
#define BLOCK(i) ROW(i), ROW(i + 8), ROW(i + 16), ROW(i + 24), ROW(i + 32), ROW(i + 40), ROW(i + 48), ROW(i + 56)

static const uint32_t table[256] = {BLOCK(0), BLOCK(64), BLOCK(128), BLOCK(192)};

uint32_t crash_record_checksum(uint32_t checksum, const void *bytes, size_t length) {
  const uint8_t *p = bytes;
  uint32_t c = ~checksum;
  while (length--) c = table[(c ^ *p++) & 0xff] ^ (c >> 8);
  return ~c;
}

CRASH_UNINSTRUMENTED_END
