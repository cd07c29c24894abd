#include <string.h>

#include "CCrashFormat.h"
#include "CCrashFormat_uninstrumented.h"

CRASH_UNINSTRUMENTED_BEGIN

// Eight bytes at a step ("slicing by 8", Kounavis and Berry, 2005), a byte each from eight tables: what the processor does
// for one byte hardly depends on the next, while the plain loop waits for every look into its table. Not the crc32
// instruction, which not every x86-64 has: finding out takes cpuid, which a virtual machine traps.
//
// The tables are derived from the polynomial by the compiler instead of pasted, so that nobody has to trust 2,048 numbers.
// A CRC is linear: the entry of a byte is the XOR of the entries of its bits, and the entry of a bit is the one of the
// next higher bit shifted once through the register. Table k is for a byte that k others follow: 8 k shifts more.
#define SHIFT(c) (((c) & 1u) ? ((c) >> 1) ^ 0x82f63b78u : (c) >> 1)
// Enumerators, not macros: each is evaluated once instead of being expanded 3^63 times. `long` because the values exceed
// INT_MAX, which an enumeration constant of type int cannot hold.
#define EIGHT(k, before)                                                                                           \
  B##k##7 = before, B##k##6 = SHIFT(B##k##7), B##k##5 = SHIFT(B##k##6), B##k##4 = SHIFT(B##k##5),                  \
  B##k##3 = SHIFT(B##k##4), B##k##2 = SHIFT(B##k##3), B##k##1 = SHIFT(B##k##2), B##k##0 = SHIFT(B##k##1)
enum bit_entries {
  EIGHT(0, 0x82f63b78l),
  EIGHT(1, SHIFT(B00)),
  EIGHT(2, SHIFT(B10)),
  EIGHT(3, SHIFT(B20)),
  EIGHT(4, SHIFT(B30)),
  EIGHT(5, SHIFT(B40)),
  EIGHT(6, SHIFT(B50)),
  EIGHT(7, SHIFT(B60)),
};
#define BIT(i, k, n) (((i) >> (n) & 1) ? B##k##n : 0)
#define ENTRY(k, i)                                                                                                \
  ((uint32_t)(BIT(i, k, 0) ^ BIT(i, k, 1) ^ BIT(i, k, 2) ^ BIT(i, k, 3) ^ BIT(i, k, 4) ^ BIT(i, k, 5) ^            \
              BIT(i, k, 6) ^ BIT(i, k, 7)))
#define FOUR(k, i) ENTRY(k, i), ENTRY(k, i + 1), ENTRY(k, i + 2), ENTRY(k, i + 3)
#define ROW(k, i) FOUR(k, i), FOUR(k, i + 4), FOUR(k, i + 8), FOUR(k, i + 12)
#define BLOCK(k, i) ROW(k, i), ROW(k, i + 16), ROW(k, i + 32), ROW(k, i + 48)
#define TABLE(k) {BLOCK(k, 0), BLOCK(k, 64), BLOCK(k, 128), BLOCK(k, 192)}

static const uint32_t tables[8][256] = {TABLE(0), TABLE(1), TABLE(2), TABLE(3), TABLE(4), TABLE(5), TABLE(6), TABLE(7)};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loop takes the first byte from the lowest eight bits");

uint32_t crash_record_checksum(uint32_t checksum, const void *bytes, size_t length) {
  const uint8_t *p = bytes;
  uint32_t c = ~checksum;
  for (; length >= 8; length -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word ^= c;
    c = 0;
    for (unsigned i = 0; i < 8; i++) c ^= tables[7 - i][word >> (8 * i) & 0xff];
  }
  while (length--) c = tables[0][(c ^ *p++) & 0xff] ^ (c >> 8);
  return ~c;
}

CRASH_UNINSTRUMENTED_END
