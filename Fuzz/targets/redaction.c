// The base redaction on any text, into a buffer of any size: reads and writes nothing beside them (the sanitizers'
// matter), cuts where it says, and applied to its own output changes nothing.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CCrashFormat_redact.h"

// The same once more, with an end to its patience that inputs can reach: eight passes are more than any needs.
#define PASSES 1
#define crash_redact_base impatient_base
#define crash_redact_whole impatient_whole
#define crash_redact_suspects impatient_suspects
#define crash_redact_base_kinds impatient_kinds
size_t impatient_base(const char *, size_t, char *, size_t, int *);
size_t impatient_whole(const char *, size_t);
int impatient_suspects(const char *, size_t);
size_t impatient_kinds(const char *, size_t, char *, size_t);
#include "../../Sources/CCrashFormat/redact.c"
#undef crash_redact_base
#undef crash_redact_whole
#undef crash_redact_suspects
#undef crash_redact_base_kinds

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "redaction: %s\n", what);
  abort();
}

// Of what was cut, too: a record's texts are redacted again by whoever reads them.
static void check_again(const char *once, size_t length, size_t (*redact)(const char *, size_t, char *, size_t, int *)) {
  size_t room = 10 * length + 16;
  char *twice = malloc(room);
  if (!twice) abort();
  int truncated = 0;
  size_t second = redact(once, length, twice, room, &truncated);
  require(!truncated && second == length && memcmp(once, twice, length) == 0, "its own output changes");
  free(twice);
}

static size_t with_kinds(const char *text, size_t length, char *output, size_t capacity, int *truncated) {
  *truncated = 0;
  return crash_redact_base_kinds(text, length, output, capacity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The first two bytes are the capacity; 0xffff stands for enough. Allocations of the exact size, so that a byte too far
  // is a finding.
  if (size < 2) return 0;
  size_t capacity = data[0] | (size_t)data[1] << 8, length = size - 2;
  int is_enough = capacity == 0xffff;
  // A rule replaces at least one byte by at most the token's ten.
  if (is_enough) capacity = 10 * length + 16;
  char *text = malloc(length ? length : 1), *once = malloc(capacity ? capacity : 1);
  if (!text || !once) abort();
  memcpy(text, data + 2, length);

  size_t whole = crash_redact_whole(text, length);
  require(whole <= length, "more is whole than there is");
  int truncated = 0;
  size_t first = crash_redact_base(text, length, once, capacity, &truncated);
  require(first <= capacity, "more was written than there is room for");
  require(!is_enough || !truncated, "cut although everything fits");
  check_again(once, first, crash_redact_base);
  size_t impatient = impatient_base(text, length, once, capacity, &truncated);
  require(impatient <= capacity, "more was written than there is room for, at the end of patience");
  require(!is_enough || !truncated, "cut although everything fits, at the end of patience");
  check_again(once, impatient, impatient_base);
  size_t kinds = crash_redact_base_kinds(text, length, once, capacity);
  require(kinds <= capacity, "more was written than there is room for, with kinds");
  check_again(once, kinds, with_kinds);
  free(text);
  free(once);
  return 0;
}
