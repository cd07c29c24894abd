#include "CLogScan.h"

#include <string.h>

// One text: its bytes, and where in it the three stand that it is looked for by. Chosen for being rare in logs: not the
// first three, which for "thread" would be those of "the".
#define TEXTS(TEXT) \
  TEXT(" crashed:", 6, 'e', 'd', ':') /* Swift: the crash and its thread */ \
  TEXT("Backtracing from", 3, 'k', 't', 'r') \
  TEXT("Swift runtime failure: ", 0, 'S', 'w', 'i') \
  TEXT("[ra] ", 1, 'r', 'a', ']') /* its frames, where the log begins behind that */ \
  TEXT("Fatal error", 0, 'F', 'a', 't') \
  TEXT("Precondition failed", 0, 'P', 'r', 'e') \
  TEXT("Assertion ", 0, 'A', 's', 's') \
  TEXT("terminate called", 8, 'e', ' ', 'c') \
  TEXT("loc(): ", 2, 'c', '(', ')') \
  TEXT("free(): ", 3, 'e', '(', ')') \
  TEXT("stack smashing", 4, 'k', ' ', 's') \
  TEXT("Current stack trace", 0, 'C', 'u', 'r') \
  TEXT(" Backtrace:", 4, 'k', 't', 'r') \
  TEXT("Stack trace of thread ", 4, 'k', ' ', 't') \
  TEXT(" dumped core", 3, 'm', 'p', 'e') \
  TEXT("PID: ", 0, 'P', 'I', 'D') \
  TEXT("COREDUMP_", 5, 'U', 'M', 'P') \
  TEXT("#0 ", 0, '#', '0', ' ') /* gdb, sanitizers, systemd */ \
  TEXT("#0: ", 0, '#', '0', ':') /* lldb */ \
  TEXT("(LWP ", 0, '(', 'L', 'W') \
  TEXT(" signal SIG", 8, 'S', 'I', 'G') \
  TEXT("thread #", 5, 'd', ' ', '#') \
  TEXT(" stopped", 4, 'p', 'p', 'e') \
  TEXT("Sanitizer: ", 6, 'z', 'e', 'r') \
  TEXT(" runtime error: ", 7, 'e', ' ', 'e') \
  TEXT(")[0x", 0, ')', '[', '0') /* backtrace_symbols */ \
  TEXT("{{{", 0, '{', '{', '{') /* markup */ \
  TEXT("err P ", 2, 'r', ' ', 'P') /* the kubelet cut the line, perhaps in the middle of one of these */ \
  TEXT("out P ", 2, 't', ' ', 'P') \
  TEXT("MESSAGE\":[", 7, '"', ':', '[') /* the journal: bytes as numbers */ \
  TEXT("crashReport", 4, 'h', 'R', 'e') \
  TEXT("crash-report/", 4, 'h', '-', 'r') \
  TEXT("instruction_addr", 10, 'n', '_', 'a')

typedef uint8_t Block __attribute__((vector_size(16)));
typedef uint64_t Halves __attribute__((vector_size(16)));

static Block load(const uint8_t *bytes) {
  Block block;
  memcpy(&block, bytes, sizeof block);
  return block;
}

static int is_text(const uint8_t *bytes, size_t count, size_t at, size_t before, const char *text, size_t length) {
  return at >= before && count - (at - before) >= length && memcmp(bytes + at - before, text, length) == 0;
}

// Returns the offset of a text whose three bytes are at `at`; SIZE_MAX for none.
static size_t text_at(const uint8_t *bytes, size_t count, size_t at) {
#define CHECK(TEXT, BEFORE, A, B, C) \
  _Static_assert(sizeof TEXT - 1 <= CLOGSCAN_LONGEST, "too long"); \
  if (bytes[at] == A && bytes[at + 1] == B && bytes[at + 2] == C \
      && is_text(bytes, count, at, BEFORE, TEXT, sizeof TEXT - 1)) \
    return at - BEFORE;
  TEXTS(CHECK)
#undef CHECK
  return SIZE_MAX;
}

size_t CLogScan_find(const uint8_t *bytes, size_t count) {
  if (count < 3) return count;
  size_t at = 0;
  for (; count - at >= 18; at += 16) {
    const Block first = load(bytes + at), second = load(bytes + at + 1), third = load(bytes + at + 2);
    Block any = {0};
#define MATCH(TEXT, BEFORE, A, B, C) any |= (Block)(first == A) & (Block)(second == B) & (Block)(third == C);
    TEXTS(MATCH)
#undef MATCH
    const Halves halves = (Halves)any;
    if ((halves[0] | halves[1]) == 0) continue;
    for (size_t lane = 0; lane < 16; lane++) {
      const size_t found = text_at(bytes, count, at + lane);
      if (found != SIZE_MAX) return found;
    }
  }
  for (; at + 2 < count; at++) {
    const size_t found = text_at(bytes, count, at);
    if (found != SIZE_MAX) return found;
  }
  return count;
}

size_t CLogScan_count_lines(const uint8_t *bytes, size_t count) {
  size_t lines = 0, at = 0;
  while (count - at >= 16) {
    // A lane counts to 255 at most before it is added up.
    Block sums = {0};
    for (int round = 0; round < 255 && count - at >= 16; round++, at += 16) sums -= (Block)(load(bytes + at) == '\n');
    for (int lane = 0; lane < 16; lane++) lines += sums[lane];
  }
  for (; at < count; at++) lines += bytes[at] == '\n';
  return lines;
}

size_t CLogScan_line_start(const uint8_t *bytes, size_t at) {
  const uint8_t *feed = at == 0 ? NULL : memrchr(bytes, '\n', at);
  return feed == NULL ? 0 : (size_t)(feed - bytes) + 1;
}
