#include "CCrashFormat_suspicion.h"

#include <string.h>

// Sixty-four bytes at once: for each kind of byte a number that has a bit for each byte of that kind. What a row of kinds
// is, shifts of those numbers tell for all places together: a digit, a dot and a digit is `D & DOT >> 1 & D >> 2`. The
// longest row that is looked for has fifteen bytes, so that the next sixty-four begin forty-eight further on.
enum { BLOCK = 64, STRIDE = 48 };

typedef uint8_t bytes16 __attribute__((vector_size(16)));

struct block {
  bytes16 part[4];
};

#ifdef __SSE2__
#include <emmintrin.h>
static inline uint64_t bits(bytes16 is) { return (uint32_t)_mm_movemask_epi8((__m128i)is); }
#else
// The lowest bit of each byte into one byte: each is multiplied to a place of its own.
static inline uint64_t bits(bytes16 is) {
  uint64_t half[2];
  memcpy(half, &is, sizeof half);
  uint64_t low = (half[0] & 0x0101010101010101) * 0x0102040810204080 >> 56;
  uint64_t high = (half[1] & 0x0101010101010101) * 0x0102040810204080 >> 56;
  return low | high << 8;
}
#endif

// The bytes for which CONDITION on `v` holds.
#define WHERE(BLOCK_, CONDITION)                                    \
  __extension__({                                                   \
    uint64_t all = 0;                                               \
    for (int k = 0; k < 4; k++) {                                   \
      bytes16 v = (BLOCK_)->part[k];                                \
      all |= bits((bytes16)(CONDITION)) << (16 * k);                \
    }                                                               \
    all;                                                            \
  })
#define IS(BLOCK_, BYTE) WHERE(BLOCK_, v == (BYTE))

// Rows of at least 7, 13 and 15.
static uint64_t row7(uint64_t is) {
  is &= is >> 1;         // 2
  is &= is >> 2;         // 4
  return is & is >> 3;   // 7
}
static uint64_t row13(uint64_t is) {
  is &= is >> 1;
  is &= is >> 2;
  is &= is >> 4;         // 8
  return is & is >> 5;   // 13
}
static uint64_t row15(uint64_t is) {
  is &= is >> 1;
  is &= is >> 2;
  is &= is >> 4;
  return is & is >> 7;   // 15
}

static int is_digit(unsigned char c) { return (unsigned char)(c - '0') < 10; }
static int is_letter(unsigned char c) { return (unsigned char)((c | 32) - 'a') < 26; }
static int is_quote(unsigned char c) { return c == '"' || c == '\'' || c == '`'; }

// The letter in front of `*end`, from 0, behind what joins the words of a name; 26 where there is none.
static unsigned letter_before(const unsigned char *text, size_t *end) {
  size_t at = *end;
  while (at > 0 && *end - at < 64 && (text[at - 1] == '_' || text[at - 1] == '-')) at--;
  if (at == 0 || !is_letter(text[at - 1])) return 26;
  *end = at - 1;
  return (text[at - 1] | 32) - 'a';
}

// Whether a name whose last letters are in the table ends in front of `end`.
static int names_secret(const unsigned char *text, size_t end, const uint32_t *endings) {
  if (end < 2 || !is_letter(text[end - 1])) return 0;
  unsigned last = letter_before(text, &end), second = letter_before(text, &end);
  if (second == 26) return 0;
  uint32_t thirds = endings[last * 26 + second];
  return thirds >> 26 || (thirds && thirds >> letter_before(text, &end) & 1);
}

// The same for the separator at `at`, with what may stand between it and the name: a quote, a bracket, a space.
static int names_value(const unsigned char *text, size_t at, const uint32_t *endings) {
  size_t end = at;
  if (text[at] == '>' && end > 0 && text[end - 1] == '-') end--;
  if (text[at] == '%' && end > 2 && text[end - 3] == '%' && text[end - 2] == '2' && text[end - 1] == '2') end -= 3;
  if (end > 0 && text[end - 1] == ' ') end--;
  if (end > 1 && text[end - 1] == ']' && is_quote(text[end - 2])) end--;
  if (end > 0 && is_quote(text[end - 1])) {
    end--;
    if (end > 0 && text[end - 1] == '\\') end--;
  }
  return names_secret(text, end, endings);
}

// Whether the number at `at` may stand behind a word for a telephone: by the last letters of what is in front of it.
static int follows_phone(const unsigned char *text, size_t at) {
  size_t end = at;
  while (end > 0 && at - end < 5 && !is_letter(text[end - 1]) && !is_digit(text[end - 1])) end--;
  if (end < 2 || end == at || !is_letter(text[end - 1])) return 0;
  unsigned char last = text[end - 1] | 32, second = text[end - 2] | 32, third = end > 2 ? text[end - 3] | 32 : 0;
  switch (last) {
  case 'e': return (second == 'n' && third == 'o') || (second == 'l' && third == 'i');    // phone, mobile
  case 'l': return (second == 'e' && third == 't') || (second == 'i' && third == 'b');    // tel, mobil
  case 'n': return (second == 'o' && third == 'f') || (second == 'd' && third == 's');    // telefon, msisdn
  case 'o': return second == 'n';                                                         // phone no, telefono
  case 'x': return second == 'a';                                                         // fax
  case 'y': return second == 'd';                                                         // handy
  case 'r': return second == 'e' || second == 'n';                                        // number, nummer, nr
  default: return 0;
  }
}

static int begins(const unsigned char *text, size_t at, size_t length, const char *word) {
  for (; *word; word++, at++)
    if (at >= length || (text[at] | 32) != (unsigned char)*word) return 0;
  return 1;
}

// Whether the row of digits, spaces and hyphens that starts at `at` has thirteen digits.
static int has_long_number(const unsigned char *text, size_t at, size_t length) {
  int digits = 0;
  for (; at < length && (is_digit(text[at]) || text[at] == ' ' || text[at] == '-'); at++)
    if (is_digit(text[at]) && ++digits == 13) return 1;
  return 0;
}

uint32_t crash_suspicions(const char *string, size_t length, const uint32_t endings[676],
                          const uint32_t beginnings[512]) {
  const unsigned char *text = (const unsigned char *)string;
  uint32_t found = 0;
  uint64_t all_at = 0, all_scheme = 0;
  unsigned dotted = 0, colons = 0;
  int has_digit = 0, has_long_word = 0, has_beginning = 0;
  for (size_t start = 0; start < length; start += STRIDE) {
    struct block block;
    size_t left = length - start;
    if (left >= BLOCK) {
      memcpy(&block, text + start, BLOCK);
    } else {
      memset(&block, 0, BLOCK);
      memcpy(&block, text + start, left);
    }
    // Where this block has the say; the last one has it to its end.
    uint64_t own = left > BLOCK ? ((uint64_t)1 << STRIDE) - 1 : ~(uint64_t)0;
    unsigned char before = start > 0 ? text[start - 1] : ' ';
    int is_word_before = is_letter(before) || is_digit(before) || before == '_';

    uint64_t D = WHERE(&block, (bytes16)(v - '0') < 10);
    uint64_t L = WHERE(&block, (bytes16)((v | 32) - 'a') < 26);
    uint64_t H = IS(&block, '-'), DOT = IS(&block, '.'), C = IS(&block, ':'), SLASH = IS(&block, '/');
    uint64_t UNDER = IS(&block, '_'), PLUS = IS(&block, '+'), PERCENT = IS(&block, '%'), AT = IS(&block, '@');
    uint64_t SPACE = WHERE(&block, v <= 32);
    uint64_t SEPARATOR = WHERE(&block, (bytes16)(v == '=') | (bytes16)(v == '>')) | C | PERCENT;
    uint64_t BASE = WHERE(&block, (bytes16)(v == '?') | (bytes16)(v == '#') | (bytes16)(v == '\\')) | PERCENT | AT;
    uint64_t WORD = D | L | UNDER;
    // Places at which a word may start.
    uint64_t FREE = ~(WORD << 1 | (uint64_t)is_word_before);

    has_digit |= D != 0;
    all_at |= AT;
    if (WHERE(&block, v >= 0x80)) found |= CRASH_SUSPECT_OTHER_DIGITS;
    if (BASE & own || row7(D) & own) found |= CRASH_SUSPECT_BASE;
    has_long_word |= (row15(WORD | H | DOT) & own) != 0;
    if (H & H >> 1 & H >> 2 & H >> 3 & H >> 4 & own) found |= CRASH_SUSPECT_PRIVATE_KEY;
    all_scheme |= C & SLASH >> 1 & SLASH >> 2 & own;
    if (C & C >> 1 & own) found |= CRASH_SUSPECT_IP6;
    colons += (unsigned)__builtin_popcountll(C & own);
    dotted += (unsigned)__builtin_popcountll(D & DOT >> 1 & D >> 2 & own);
    uint64_t D2 = D & D >> 1, D4 = D2 & D2 >> 2;
    if (L & L >> 1 & D2 >> 2 & FREE & own) found |= CRASH_SUSPECT_ACCOUNT;
    if (D2 & D >> 2 & H >> 3 & D2 >> 4 & H >> 6 & D4 >> 7 & own) found |= CRASH_SUSPECT_SOCIAL_SECURITY;
    if (PLUS & D >> 1 & FREE & own || D2 & D >> 2 & H >> 3 & D4 >> 4 & own) found |= CRASH_SUSPECT_PHONE;
    if (!(found & CRASH_SUSPECT_PHONE)) {
      uint64_t ZERO = IS(&block, '0') & D >> 1;
      if ((ZERO >> 1 & IS(&block, '(') & own) || (ZERO & FREE & (H >> 2 | H >> 3 | H >> 4) & own) ||
          (ZERO & FREE & DOT >> 2 & D2 >> 3 & DOT >> 5 & own))
        found |= CRASH_SUSPECT_PHONE;
      for (uint64_t at = D & FREE & own; at; at &= at - 1)
        if (follows_phone(text, start + (size_t)__builtin_ctzll(at))) {
          found |= CRASH_SUSPECT_PHONE;
          break;
        }
    }
    if ((H & H >> 3 & H >> 6 & H >> 9 & own) || (C & C >> 3 & C >> 6 & C >> 9 & own) || (DOT & DOT >> 5 & own))
      found |= CRASH_SUSPECT_HARDWARE;

    // What a few bytes have to tell, one by one.
    uint64_t NUMBER = D | H | IS(&block, ' ');
    int is_number_before = start > 0 && (is_digit(before) || before == '-' || before == ' ');
    for (uint64_t at = row13(NUMBER) & ~(NUMBER << 1 | (uint64_t)is_number_before) & own; at; at &= at - 1)
      if (has_long_number(text, start + (size_t)__builtin_ctzll(at), length)) found |= CRASH_SUSPECT_CARD;
    if (!(found & CRASH_SUSPECT_NAMED)) {
      for (uint64_t at = SEPARATOR & own; at; at &= at - 1)
        if (names_value(text, start + (size_t)__builtin_ctzll(at), endings)) {
          found |= CRASH_SUSPECT_NAMED;
          break;
        }
      // An option behind a space, `passw…`, and `identified by`.
      uint64_t S = WHERE(&block, (v | 32) == 's'), W = WHERE(&block, (v | 32) == 'w');
      uint64_t Y = WHERE(&block, (v | 32) == 'y');
      uint64_t gap = SPACE << 1 | (uint64_t)(before <= 32);
      if ((H & gap & ~(SPACE >> 1) & own) || (S & S >> 1 & W >> 2 & own)) found |= CRASH_SUSPECT_NAMED;
      for (uint64_t at = Y & SPACE >> 1 & own; at; at &= at - 1) {
        size_t quote = start + (size_t)__builtin_ctzll(at) + 2;
        if (quote < length && is_quote(text[quote])) found |= CRASH_SUSPECT_NAMED;
      }
    }
    for (uint64_t at = SLASH & own; at; at &= at - 1) {
      size_t next = start + (size_t)__builtin_ctzll(at) + 1;
      if (next >= length) break;
      if (text[next] == 'h' || text[next] == 'U' || text[next] == 'r') found |= CRASH_SUSPECT_BASE;
      if (begins(text, next, length, "services/") || begins(text, next, length, "api/webhooks/"))
        found |= CRASH_SUSPECT_CHAT;
    }
    for (uint64_t at = C & L >> 1 & L >> 2 & own; at; at &= at - 1) {
      size_t next = start + (size_t)__builtin_ctzll(at) + 1;
      if (next + 1 < length && text[next] == 'A' && text[next + 1] == 'A') found |= CRASH_SUSPECT_CHAT;
    }
    for (uint64_t at = has_beginning ? 0 : L & FREE & own; at; at &= at - 1) {
      size_t word = start + (size_t)__builtin_ctzll(at);
      unsigned char next = word + 1 < length ? text[word + 1] : 0x80;
      if (next < 0x80 && beginnings[text[word] * 4 + next / 32] >> (next & 31) & 1) has_beginning = 1;
    }
    uint64_t A = WHERE(&block, (bytes16)((v | 32) == 'a') | (bytes16)((v | 32) == 'b') | (bytes16)(v == 'e'));
    for (uint64_t at = A & FREE & own; at; at &= at - 1) {
      size_t word = start + (size_t)__builtin_ctzll(at);
      if (text[word] == 'e') {
        if (begins(text, word, length, "eyj")) found |= CRASH_SUSPECT_WEB_TOKEN;
      } else if (begins(text, word, length, "authorization") || begins(text, word, length, "bearer") ||
                 begins(text, word, length, "basic")) {
        found |= CRASH_SUSPECT_AUTHORIZATION;
      }
    }
    if (left <= BLOCK) break;
  }
  if (has_long_word && has_beginning) found |= CRASH_SUSPECT_KEY;
  if (all_at && all_scheme) found |= CRASH_SUSPECT_CREDENTIALS;
  if (dotted >= 3) found |= CRASH_SUSPECT_IP4;
  if (colons >= 7) found |= CRASH_SUSPECT_IP6;
  if (!has_digit) found &= ~(uint32_t)CRASH_SUSPECT_IP6;
  return found;
}
