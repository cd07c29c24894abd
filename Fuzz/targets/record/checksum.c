// The record's checksum twice: the real one for the reader, whose sanitizers look at the range once instead of at each of
// its bytes, and one by the processor's instruction for the maker of files. Both together were a third of all time.
#include <sanitizer/asan_interface.h>

#pragma clang attribute push(__attribute__((no_sanitize("address"))), apply_to = function)
#define crash_record_checksum checksum_of_bytes
#include "../../../Sources/CCrashFormat/checksum.c"
#undef crash_record_checksum
#pragma clang attribute pop

uint32_t crash_record_checksum(uint32_t checksum, const void *bytes, size_t length);
uint32_t crash_record_checksum(uint32_t checksum, const void *bytes, size_t length) {
  const volatile char *poisoned = __asan_region_is_poisoned((void *)(uintptr_t)bytes, length);
  if (poisoned) (void)*poisoned;  // which AddressSanitizer reports
  return checksum_of_bytes(checksum, bytes, length);
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"), no_sanitize("address")))
static uint32_t checksum_of_words(uint32_t checksum, const uint8_t *p, size_t length) {
  uint64_t c = ~checksum;
  for (; length >= 8; p += 8, length -= 8) {
    uint64_t word;
    __builtin_memcpy(&word, p, sizeof word);
    c = __builtin_ia32_crc32di(c, word);
  }
  for (; length > 0; p++, length--) c = __builtin_ia32_crc32qi((uint32_t)c, *p);
  return ~(uint32_t)c;
}
#endif

uint32_t fuzz_checksum(const void *bytes, size_t length);
uint32_t fuzz_checksum(const void *bytes, size_t length) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return checksum_of_words(0, bytes, length);
#endif
  return checksum_of_bytes(0, bytes, length);
}
