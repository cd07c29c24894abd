#include "CCrashFormat_redact.h"

#include <string.h>

#include "CCrashFormat_uninstrumented.h"

CRASH_UNINSTRUMENTED_BEGIN

// The text is read once, in words: maximal runs of the characters of which e-mail addresses' local parts, numbers and hex
// tokens are made. What a word is depends on the word and the few characters around it, so that nothing is decided before
// a whole token is seen, and nothing is looked at more than twice. Everything that is not replaced is copied in one piece.

enum {
  WORD = 1,    // letters, digits, . _ % + - and everything outside of ASCII
  DIGIT = 2,   // also WORD
  BREAK = 4,   // ends a URL and starts a token: white space, quotes, angle brackets, control characters
  SPECIAL = 8, // may start something: : / ? #
};

#define D (WORD | DIGIT)
static const uint8_t class_of[256] = {
    BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK,
    BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK, BREAK,
    [' '] = BREAK, ['"'] = BREAK, ['\''] = BREAK, ['`'] = BREAK, ['<'] = BREAK, ['>'] = BREAK, [127] = BREAK,
    [':'] = SPECIAL, ['/'] = SPECIAL, ['?'] = SPECIAL, ['#'] = SPECIAL,
    ['.'] = WORD, ['_'] = WORD, ['%'] = WORD, ['+'] = WORD, ['-'] = WORD,
    ['0'] = D, ['1'] = D, ['2'] = D, ['3'] = D, ['4'] = D, ['5'] = D, ['6'] = D, ['7'] = D, ['8'] = D, ['9'] = D,
    ['A' ... 'Z'] = WORD, ['a' ... 'z'] = WORD, [0x80 ... 0xff] = WORD,
};
#undef D

static const char token[] = "[redacted]";
#define TOKEN_LENGTH (sizeof token - 1)
// For those who want to see what was there.
static const char email_token[] = "[email]";
static const char number_token[] = "[number]";
#define DIGITS 7
#ifndef PASSES
#define PASSES 8
#endif

struct output {
  const char *text;
  size_t flushed;  // what is before it was copied or replaced
  char *bytes;
  size_t length, capacity;
  int full;
  int in_place;  // the text is in `bytes` too, behind what is written
  int replaced;  // anything
  int kinds;     // each kind has a token of its own
};

// As much of `length` bytes as `room` has place for, in whole characters.
static size_t fitting(const char *text, size_t length, size_t room) {
  if (length <= room) return length;
  while (room > 0 && ((unsigned char)text[room] & 0xc0) == 0x80) room--;
  return room;
}

// Copies the text up to `end`; when there is no room for all, as many whole characters as fit.
static void copy_up_to(struct output *out, size_t end) {
  if (out->full) return;
  const char *start = out->text + out->flushed;
  size_t length = fitting(start, end - out->flushed, out->capacity - out->length);
  out->full = length < end - out->flushed;
  memmove(out->bytes + out->length, start, length);
  out->length += length;
  out->flushed = end;
}

// Replaces the text in [start, end). A replacement that does not fit ends the output in front of it.
static void replace(struct output *out, size_t start, size_t end, const char *by, size_t length) {
  copy_up_to(out, start);
  out->replaced = 1;
  // Not over what is still to be read.
  size_t limit = out->in_place ? (size_t)(out->text + end - out->bytes) : out->capacity;
  if (!out->full && length > limit - out->length) out->full = 1;
  if (!out->full) {
    memcpy(out->bytes + out->length, by, length);
    out->length += length;
  }
  out->flushed = end;
}

static void replace_email(struct output *out, size_t start, size_t end) {
  if (out->kinds)
    replace(out, start, end, email_token, sizeof email_token - 1);
  else
    replace(out, start, end, token, TOKEN_LENGTH);
}

static void replace_number(struct output *out, size_t start, size_t end) {
  if (out->kinds)
    replace(out, start, end, number_token, sizeof number_token - 1);
  else
    replace(out, start, end, token, TOKEN_LENGTH);
}

static int is_hex(unsigned char c) {
  return (class_of[c] & DIGIT) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
static int is_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_alphanumeric(unsigned char c) { return is_letter(c) || (class_of[c] & DIGIT); }

// General punctuation, U+2000 to U+206F: direction marks and zero-width spaces, which belong to no address.
static int is_invisible(const unsigned char *p, size_t left) {
  return left >= 2 && p[0] == 0xe2 && (p[1] == 0x80 || p[1] == 0x81);
}

// Byte by byte instead of memcmp and strlen: the literals are a few bytes long, most comparisons end at the second one,
// and of libc's functions the handler so needs memcpy and memmove only.
static int matches(const unsigned char *text, size_t at, size_t length, const char *literal) {
  for (; *literal; literal++, at++)
    if (at >= length || text[at] != (unsigned char)*literal) return 0;
  return 1;
}

static size_t skip(const unsigned char *text, size_t at, size_t length, unsigned char byte) {
  while (at < length && text[at] == byte) at++;
  return at;
}

// Where the name begins in a user's folder on a drive whose colon may be at `colon`, `C:\Users\name`; 0 where none does.
// Such a file system does not tell capitals from small letters, and a text in quotes has its backslashes twice, in quotes
// in quotes four times.
static size_t drive_folder_name(const unsigned char *text, size_t colon, size_t length) {
  if (colon >= length || text[colon] != ':') return 0;
  size_t folder = skip(text, colon + 1, length, '\\');
  if (folder == colon + 1) return 0;
  for (const char *letter = "users"; *letter; letter++, folder++)
    if (folder >= length || (text[folder] | 0x20) != (unsigned char)*letter) return 0;
  size_t name = skip(text, folder, length, '\\');
  return name > folder ? name : 0;
}

// The end of a domain in [start, end), whose last dots are given (0 for none), or `start` where it is none: labels with a
// dot between them, the last of at least two letters. `@2x.png` names an image's scale.
static size_t checked_domain(const unsigned char *text, size_t start, size_t end, size_t last_dot, size_t dot_before) {
  if (end > start && text[end - 1] == '.') {  // the full stop of a sentence
    end--;
    last_dot = dot_before;
  }
  if (last_dot <= start || end - last_dot < 3) return start;
  if ((class_of[text[last_dot + 1]] | class_of[text[last_dot + 2]]) & DIGIT) return start;
  if (end - start > 3 && class_of[text[start]] & DIGIT && text[start + 1] == 'x' && text[start + 2] == '.') return start;
  return end;
}

// The end of the domain that starts at `start`, or `start` where none does. `com.example.12345678` is none, but becomes
// one when the digits are replaced, and a text that was redacted must hold nothing more to redact: so what stands in front
// of the first such number counts too.
static size_t domain_end(const unsigned char *text, size_t start, size_t length) {
  size_t end = start, last_dot = 0, dot_before = 0, digits = 0, early = start;
  while (end < length) {
    unsigned char c = text[end];
    if (c == '.') {
      if (end == start || text[end - 1] == '.') break;
      dot_before = last_dot;
      last_dot = end;
    } else if (!(is_alphanumeric(c) || c == '-' || c >= 0x80) || is_invisible(text + end, length - end)) {
      break;
    }
    digits = class_of[c] & DIGIT ? digits + 1 : 0;
    if (digits == DIGITS && early == start)
      early = checked_domain(text, start, end + 1 - DIGITS, last_dot, dot_before);
    end++;
  }
  size_t whole = checked_domain(text, start, end, last_dot, dot_before);
  if (whole > start || early > start) return whole > start ? whole : early;
  // The same with the drive of a user's folder, `@x.example.c:\Users\…`, whose letter goes with it.
  if (end > start && is_letter(text[end - 1]) && drive_folder_name(text, end, length) > 0)
    return checked_domain(text, start, end - 1, last_dot, dot_before);
  return start;
}

static int ends_with(const unsigned char *text, size_t start, size_t end, const char *word, size_t length) {
  return end - start >= length && matches(text, end - length, end, word);
}

static int ends_token(const unsigned char *text, size_t start, size_t end) {
  return ends_with(text, start, end, token, TOKEN_LENGTH) ||
         ends_with(text, start, end, email_token, sizeof email_token - 1) ||
         ends_with(text, start, end, number_token, sizeof number_token - 1);
}

// What ends a sentence or closes a bracket stands behind a URL, but for the token of an earlier redaction in its query.
static size_t without_punctuation(const unsigned char *text, size_t start, size_t end) {
  while (end > start) {
    unsigned char c = text[end - 1];
    if (c != ',' && c != '.' && c != ';' && c != ':' && c != '!' && c != '?' && c != ')' && c != ']' && c != '}') break;
    if (c == ']' && ends_token(text, start, end)) break;
    end--;
  }
  return end;
}

// 8-4-4-4-12 hex digits at the start of the word.
static int is_uuid(const unsigned char *word, size_t length) {
  if (length < 36) return 0;
  for (size_t i = 0; i < 36; i++) {
    int hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? word[i] != '-' : !is_hex(word[i])) return 0;
  }
  return length == 36 || !is_alphanumeric(word[36]);
}

// Replaces long digit runs in the word [start, end), except in what is a number of the machine's and not of a person's:
// hex with its prefix, linker names, UUIDs, and hex of sixteen or more digits with a letter among them. Without that
// guard the rule damages two thirds of all zero-padded addresses and four of ten build ids.
static void redact_digits(struct output *out, const unsigned char *text, size_t start, size_t end) {
  unsigned char before = start > 0 ? text[start - 1] : 0;
  if (before == '$' && (text[start] == 's' || text[start] == 'S')) return;
  if (end - start > 2 && text[start] == '_' && (text[start + 1] == 'T' || text[start + 1] == 'Z')) return;
  for (size_t i = start; i < end;) {
    if (!is_alphanumeric(text[i])) {
      i++;
      continue;
    }
    if (is_uuid(text + i, end - i)) {
      i += 36;
      continue;
    }
    size_t stop = i;
    int all_hex = 1, letters = 0;
    while (stop < end && is_alphanumeric(text[stop])) {
      if (!is_hex(text[stop])) all_hex = 0;
      if (is_letter(text[stop])) letters = 1;
      stop++;
    }
    int prefixed = stop - i > 2 && text[i] == '0' && (text[i + 1] == 'x' || text[i + 1] == 'X');
    if (prefixed)
      for (size_t k = i + 2; k < stop; k++)
        if (!is_hex(text[k])) prefixed = 0;
    if (prefixed || (all_hex && letters && stop - i >= 16)) {
      i = stop;
      continue;
    }
    while (i < stop) {
      size_t run = i;
      while (run < stop && class_of[text[run]] & DIGIT) run++;
      if (run - i >= DIGITS) replace_number(out, i, run);
      i = run > i ? run : i + 1;
    }
  }
}

static int is_escaped_slash(const unsigned char *text, size_t at, size_t length) {
  return text[at] == '\\' && at + 1 < length && text[at + 1] == '/';
}

// The end of a user's folder (`/home/name`) that starts at `start`, or `start`. JSON may have a backslash in front of each
// of its slashes.
static size_t user_folder_end(const unsigned char *text, size_t start, size_t length) {
  size_t name;
  if (start > 0 && text[start - 1] == '~') return start;  // inside of a folder that was replaced
  if (matches(text, start, length, "/home/") || matches(text, start, length, "/home\\/")) {
    name = start + 5;
  } else if (matches(text, start, length, "/Users/") || matches(text, start, length, "/Users\\/")) {
    name = start + 6;
  } else if (matches(text, start, length, "/root")) {
    unsigned char before = start > 0 ? text[start - 1] : ' ';
    size_t end = start + 5;
    if (class_of[before] & WORD || before == '/' || before == '~') return start;
    return end == length || !(class_of[text[end]] & WORD) ? end : start;
  } else {
    return start;
  }
  // Any number of slashes, as the kernel reads it.
  while (name < length && (text[name] == '/' || is_escaped_slash(text, name, length))) name++;
  size_t end = name;
  while (end < length && text[end] != '/' && !is_escaped_slash(text, end, length) && text[end] != ':' &&
         text[end] != ',' && text[end] != ')' && text[end] != ';' && text[end] != '?' && text[end] != '#' &&
         !(class_of[text[end]] & BREAK))
    end++;
  return end > name ? end : start;
}

// Sixteen bytes at once, in vectors of the compiler's, which has the instructions on both architectures.
typedef uint8_t bytes16 __attribute__((vector_size(16)));

// Whether one of the sixteen bytes can be part of what is replaced.
static int has_trigger(const unsigned char *text) {
  bytes16 block;
  memcpy(&block, text, sizeof block);
  bytes16 is_digit = (bytes16)((block - '0') < 10);
  bytes16 hits = is_digit | (bytes16)(block == '@') | (bytes16)(block == '%') | (bytes16)(block == '?') |
                 (bytes16)(block == '#') | (bytes16)(block == '/') | (bytes16)(block == '\\');
  uint64_t halves[2];
  memcpy(halves, &hits, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

// Whether the text may hold something to replace. Most texts do not, and a breadcrumb has a hundred nanoseconds for
// everything, where the full reading takes four for each byte.
static int is_suspect(const unsigned char *text, size_t length) {
  static const uint8_t trigger[256] = {
      ['0' ... '9'] = 1, ['@'] = 2, ['%'] = 2, ['?'] = 2, ['#'] = 2, ['/'] = 3, ['\\'] = 2};
  size_t i = 0;
  if (length >= 16) {
    while (i + 16 <= length && !has_trigger(text + i)) i += 16;
    // The last block overlaps the one before.
    if (i + 16 > length && !has_trigger(text + length - 16)) return 0;
  }
  unsigned run = 0;
  for (; i < length; i++) {
    uint8_t kind = trigger[text[i]];
    if (__builtin_expect(kind == 0, 1)) {
      run = 0;
    } else if (kind == 1) {
      if (++run == DIGITS) return 1;
    } else {
      run = 0;
      if (kind == 2) return 1;
      // Of all paths only those of users are of interest.
      if (i + 1 < length && (text[i + 1] == 'h' || text[i + 1] == 'U' || text[i + 1] == 'r')) return 1;
    }
  }
  return 0;
}

int crash_redact_suspects(const char *text, size_t length) { return is_suspect((const unsigned char *)text, length); }

// Whether the authority of a URL that starts at `start` has a colon with more behind it than a port: a password, which
// may hold a slash, so that what looks like an e-mail address further on is its end.
static int has_password(const unsigned char *text, size_t start, size_t end) {
  size_t colon = start;
  while (colon < end && text[colon] != ':' && text[colon] != '/' && text[colon] != '[') colon++;
  if (colon == end || text[colon] != ':') return 0;
  for (size_t i = colon + 1; i < end && text[i] != '/';) {
    if (matches(text, i, end, token)) {  // of digits
      i += TOKEN_LENGTH;
    } else if (matches(text, i, end, number_token)) {
      i += sizeof number_token - 1;
    } else {
      if (!(class_of[text[i]] & DIGIT)) return 1;
      i++;
    }
  }
  return 0;
}

// An apostrophe in front of the word (`j.o'neil@…`) joins it to the one before, unless that is longer than the longest
// local part: half of a word is nobody's name, and the other half would be read anew in the result.
static size_t local_start(const unsigned char *text, size_t start, size_t flushed) {
  if (start < flushed + 2 || text[start - 1] != '\'' || !(class_of[text[start - 2]] & WORD)) return start;
  size_t first = start - 1;
  while (first > flushed && start - first <= 64 && class_of[text[first - 1]] & WORD) first--;
  return first > flushed && class_of[text[first - 1]] & WORD ? start : first;
}

// Whether what ends at `end` is the account and the host of a repository, `git@host:path`, and nobody's address. All who
// use the host have the same account, and a log without it does not say where something was fetched from.
static int is_repository(const unsigned char *text, size_t local, size_t at, size_t end, size_t length) {
  if (at - local != 3 || !matches(text, local, at, "git")) return 0;
  if (end + 1 >= length || text[end] != ':') return 0;
  unsigned char next = text[end + 1];
  return is_alphanumeric(next) || next == '/' || next == '~' || next == '_';
}

size_t crash_redact_whole(const char *source, size_t length) {
  enum { LONGEST = 320 };  // of an e-mail address: RFC 5321, 64 + 1 + 255
  const unsigned char *text = (const unsigned char *)source;
  size_t end = length;
  while (end > 0 && length - end < LONGEST &&
         (class_of[text[end - 1]] & WORD || text[end - 1] == '@' || text[end - 1] == '\''))
    end--;
  if (length - end < LONGEST) return end;
  // Longer than any address, so that only its end may be half of something: a character, or a number.
  end = length;
  while (end > 0 && (text[end - 1] >= 0x80 || class_of[text[end - 1]] & DIGIT) && length - end < LONGEST) end--;
  return end;
}

// Reads the text once, and writes it with everything replaced that is found on the way.
static void redact_once(struct output *out, size_t length) {
  const unsigned char *text = (const unsigned char *)out->text;
  size_t token_start = 0;          // of what stands between two breaks
  size_t token_before = 0;         // start of the one before it
  size_t slash = 0;                // behind the last one
  size_t url_end = 0;              // behind the URL that is being read; 0 outside of one
  size_t break_at = 0;             // the first break behind it
  int url_is_file = 0;
  size_t credentials = 0;          // where those of that URL start; 0 where it has none
  size_t i = 0;
  while (i < length && !out->full) {
    uint8_t kind = class_of[text[i]];
    if (kind & WORD) {
      size_t start = i, run = 0, longest = 0;
      int percent = 0;
      for (; i < length && (kind = class_of[text[i]]) & WORD; i++) {
        run = kind & DIGIT ? run + 1 : 0;
        if (run > longest) longest = run;
        if (text[i] == '%') percent = 1;
      }
      if (i < length && text[i] == '@') {
        size_t local = start;
        while (local < i && text[local] >= 0x80 && is_invisible(text + local, i - local)) local += 3;
        size_t end = domain_end(text, i + 1, length);
        if (local == start) local = local_start(text, start, out->flushed);
        if (i < url_end && credentials && credentials < local)
          local = credentials > out->flushed ? credentials : out->flushed;
        if (end > i + 1 && local == start && is_repository(text, start, i, end, length)) {
          i++;
          continue;
        }
        if (end > i + 1 && local < i) {
          if (text[start - (start > 0)] == '\'' && local < start) {
            // The apostrophe is no break then: what was read in front of it goes on behind the address.
            token_start = token_before;
            if (url_end && break_at == start - 1) {
              for (break_at = end; break_at < length && !(class_of[text[break_at]] & BREAK);) break_at++;
              url_end = without_punctuation(text, end, break_at);
            }
          }
          replace_email(out, local, end);
          i = end;
          continue;
        }
      }
      if (percent) {
        int found = 0;
        for (size_t at = start + 1; at + 3 < i && !found; at++) {
          if (text[at] != '%' || text[at + 1] != '4' || text[at + 2] != '0') continue;
          size_t end = domain_end(text, at + 3, i);
          if (end == at + 3) continue;
          replace_email(out, start, end);
          i = end;
          found = 1;
        }
        if (found) continue;
      }
      if (longest >= DIGITS) {
        // The drive of a user's folder goes with that, and makes no hex number of the digits in front of it.
        int is_drive = is_letter(text[i - 1]) && drive_folder_name(text, i, length) > 0;
        redact_digits(out, text, start, i - (size_t)is_drive);
      }
      continue;
    }
    if (kind & BREAK) {
      token_before = token_start;
      token_start = i + 1;
    } else if (kind & SPECIAL) {
      if (text[i] == ':') {
        if (matches(text, i, length, "://")) {
          url_is_file = i >= 4 && matches(text, i - 4, length, "file");
          // Found once for all that stands between two breaks: a text of nothing but `://` stays linear.
          if (break_at <= i)
            for (break_at = i; break_at < length && !(class_of[text[break_at]] & BREAK);) break_at++;
          url_end = without_punctuation(text, i + 3, break_at);
          credentials = !url_is_file && has_password(text, i + 3, url_end) ? i + 3 : 0;
        } else if (i > out->flushed && is_letter(text[i - 1])) {
          size_t end = drive_folder_name(text, i, length);
          if (end > 0) {
            while (end < length && text[end] != '\\' && !(class_of[text[end]] & BREAK)) end++;
            size_t next = skip(text, end, length, '\\');
            // The last one may be a quote's.
            if (next > end && next < length && text[next] == '"') next--;
            replace(out, i - 1, next, "~/", 2);
            i = out->flushed;
            continue;
          }
        }
      } else if (text[i] == '/') {
        slash = i + 1;
        if (i >= url_end || url_is_file) {
          size_t end = user_folder_end(text, i, length);
          if (end > i) {
            // With the backslash that belongs to the slash.
            size_t first = i > out->flushed && text[i - 1] == '\\' ? i - 1 : i;
            replace(out, first, end, "~", 1);
            i = end;
            continue;
          }
        }
      } else if (i < url_end) {
        size_t end = text[i - 1] == '/' ? break_at : url_end;
        replace(out, i, end, "", 0);
        i = end;
        continue;
      } else if (text[i] == '?' && slash > token_start) {
        // A path with a query, as a route is written: `/orders?email=…`. Elsewhere `a?b:c` is an expression.
        size_t key = i + 1;
        while (key < length && class_of[text[key]] & WORD) key++;
        if (key > i + 1 && key < length && text[key] == '=') {
          size_t end = key;
          while (end < length && !(class_of[text[end]] & BREAK)) end++;
          // Behind a slash it would become a name: `/home/?a=b!`.
          if (text[i - 1] != '/') end = without_punctuation(text, i + 1, end);
          replace(out, i, end, "", 0);
          i = end;
          continue;
        }
      }
    }
    i++;
  }
  copy_up_to(out, length);
}

static size_t redact_base(const char *source, size_t length, char *output, size_t capacity, int *truncated, int kinds) {
  if (!is_suspect((const unsigned char *)source, length)) {
    size_t kept = fitting(source, length, capacity);
    memcpy(output, source, kept);
    if (truncated) *truncated = kept < length;
    return kept;
  }
  struct output out = {source, 0, output, 0, capacity, 0, 0, 0, kinds};
  redact_once(&out, length);
  int is_cut = out.full;
  // What was taken out, or cut off, may leave something that looks like a number or an address now. Rules that foresaw all
  // of that would be rules about each other. So the result is read again until nothing is found; as a rule there is nothing
  // in it that could be, and it is not.
  for (int pass = 1; (out.replaced || out.full) && is_suspect((const unsigned char *)output, out.length); pass++) {
    size_t rest = out.length, gap = capacity - rest;
    if (pass == PASSES) {
      // Made for this: each pass uncovers the next finding. All of it goes, so that the time stays linear.
      int fits = capacity >= TOKEN_LENGTH;
      if (fits) memcpy(output, token, TOKEN_LENGTH);
      if (truncated) *truncated = !fits;
      return fits ? TOKEN_LENGTH : 0;
    }
    // In the same memory, from its end to its start: the handler has none to spare.
    memmove(output + gap, output, rest);
    out = (struct output){output + gap, 0, output, 0, capacity, 0, 1, 0, kinds};
    redact_once(&out, rest);
    is_cut |= out.full;
  }
  if (truncated) *truncated = is_cut;
  return out.length;
}

size_t crash_redact_base(const char *source, size_t length, char *output, size_t capacity, int *truncated) {
  return redact_base(source, length, output, capacity, truncated, 0);
}

size_t crash_redact_base_kinds(const char *source, size_t length, char *output, size_t capacity) {
  return redact_base(source, length, output, capacity, NULL, 1);
}

CRASH_UNINSTRUMENTED_END
