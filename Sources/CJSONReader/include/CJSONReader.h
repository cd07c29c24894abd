// JSON parsing by simdjson, behind a C face: no C++ type and no exception crosses into Swift.
//
// A parse gives the library's own tape: an array of 64-bit words, each an ASCII type byte (the upper 8 bits) and a
// payload (the lower 56). Nothing is copied or converted on the way, so reading costs what parsing costs.
//
//     'r' payload: index of the last word      first and last word of the tape
//     '{' '['                                  lower 32 bits: index of the word behind the matching end
//     '}' ']'                                  index of the matching start
//     '"' payload: offset in `strings` of 4 bytes of length (little endian) and the bytes (UTF-8, unescaped, may hold NUL)
//     'l' 'u' 'd'                              the next word is the int64, the uint64 or the double
//     't' 'f' 'n'                              true, false, null
//
// Keys of an object are '"' words, each followed by its value, in the order of the text; keys that stand twice are there
// twice. Integers beyond 64 bits, numbers beyond double, text that is not UTF-8 and lone surrogates are errors.

#ifndef CJSONREADER_H
#define CJSONREADER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Deeper documents are refused. Reports nest six deep; the tape is walked without recursion anyway.
#define CJSONREADER_MAX_DEPTH 64u
/// Larger documents are refused: the tape takes up to eight times their size.
#define CJSONREADER_MAX_LENGTH 67108864u
/// So many bytes behind a document may be read (never interpreted), where the caller says that they are there.
#define CJSONREADER_PADDING 64u

enum CJSONReader_result {
  CJSONREADER_OK = 0,
  CJSONREADER_EMPTY,         ///< nothing but white space
  CJSONREADER_SYNTAX,        ///< not JSON
  CJSONREADER_UTF8,          ///< not UTF-8
  CJSONREADER_STRING,        ///< a bad escape or an unescaped control character
  CJSONREADER_UNCLOSED,      ///< the text ends inside a string
  CJSONREADER_NUMBER,        ///< not a number, or one beyond 64 bits
  CJSONREADER_TOO_DEEP,      ///< nested deeper than CJSONREADER_MAX_DEPTH
  CJSONREADER_TOO_LONG,      ///< longer than CJSONREADER_MAX_LENGTH
  CJSONREADER_OUT_OF_MEMORY,
};

/// What a parse found. Belongs to the reader and holds until its next call.
struct CJSONReader_document {
  const uint64_t *tape;
  size_t tape_count;
  const uint8_t *strings;
  size_t string_capacity;  ///< bytes allocated; those behind the last string have no meaning
};

typedef struct CJSONReader CJSONReader;

/// A reader, to be used by one thread at a time and given to `CJSONReader_free`; NULL without memory. Keeps the memory of
/// its largest document.
CJSONReader *CJSONReader_make(void);

void CJSONReader_free(CJSONReader *reader);

/// Parses exactly one document.
///
/// - `readable`: how many bytes from `bytes` on may be read, at least `length`. With CJSONREADER_PADDING more than
///   `length` the text is parsed in place, otherwise it is copied first.
/// - `document`: set on CJSONREADER_OK only.
enum CJSONReader_result CJSONReader_parse(CJSONReader *reader, const uint8_t *bytes, size_t length, size_t readable,
                                          struct CJSONReader_document *document);

#ifdef __cplusplus
}
#endif
#endif
