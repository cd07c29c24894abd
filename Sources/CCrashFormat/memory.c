#define CRASH_MEMORY_FUNCTIONS_ARE_HERE
#include "CCrashFormat_uninstrumented.h"

#if defined(CRASH_OWN_MEMORY_FUNCTIONS)

#include <stddef.h>

// For the crash path of programs with a sanitizer, in the place of libc's, which its runtime has replaced. By name only: no
// header declares them, as nobody calls them but through the names that CCrashFormat_uninstrumented.h gives new meanings.
// Async-signal-safe.

CRASH_UNINSTRUMENTED_BEGIN

void *crash_memcpy(void *restrict destination, const void *restrict source, size_t length);
void *crash_memmove(void *destination, const void *source, size_t length);
void *crash_memset(void *destination, int value, size_t length);
int crash_memcmp(const void *left, const void *right, size_t length);
size_t crash_strnlen(const char *text, size_t length);

// Hides from the compiler what a loop does, as it would make a call of memcpy out of it.
#define OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer)::"memory")

void *crash_memcpy(void *restrict destination, const void *restrict source, size_t length) {
  unsigned char *to = destination;
  const unsigned char *from = source;
  while (length-- > 0) {
    *to++ = *from++;
    OPAQUE(to);
  }
  return destination;
}

void *crash_memmove(void *destination, const void *source, size_t length) {
  unsigned char *to = destination;
  const unsigned char *from = source;
  if (to <= from) return crash_memcpy(destination, source, length);
  while (length-- > 0) {
    to[length] = from[length];
    OPAQUE(to);
  }
  return destination;
}

void *crash_memset(void *destination, int value, size_t length) {
  unsigned char *to = destination;
  while (length-- > 0) {
    *to++ = (unsigned char)value;
    OPAQUE(to);
  }
  return destination;
}

int crash_memcmp(const void *left, const void *right, size_t length) {
  const unsigned char *a = left, *b = right;
  for (size_t i = 0; i < length; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

size_t crash_strnlen(const char *text, size_t length) {
  size_t count = 0;
  while (count < length && text[count]) {
    count++;
    OPAQUE(text);
  }
  return count;
}

CRASH_UNINSTRUMENTED_END

#else

// Not an empty file, which the standard does not know.
typedef int crash_memory_functions_are_those_of_libc;

#endif
