#include "CJSONReader.h"

#include <new>

#include <simdjson.h>

static_assert(CJSONREADER_PADDING >= simdjson::SIMDJSON_PADDING, "the caller's padding must do for the library");

struct CJSONReader {
  simdjson::dom::parser parser{CJSONREADER_MAX_LENGTH};
  /// What the implementation and the document have room for. Kept here, as the library's own growth is to the exact size
  /// of each document, which in a stream of growing ones allocates anew for every one of them.
  size_t capacity = 0;
};

namespace {

CJSONReader_result result_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::SUCCESS: return CJSONREADER_OK;
    case simdjson::EMPTY: return CJSONREADER_EMPTY;
    case simdjson::UTF8_ERROR: return CJSONREADER_UTF8;
    case simdjson::STRING_ERROR:
    case simdjson::UNESCAPED_CHARS: return CJSONREADER_STRING;
    case simdjson::UNCLOSED_STRING: return CJSONREADER_UNCLOSED;
    case simdjson::NUMBER_ERROR: return CJSONREADER_NUMBER;
    case simdjson::DEPTH_ERROR: return CJSONREADER_TOO_DEEP;
    case simdjson::CAPACITY: return CJSONREADER_TOO_LONG;
    case simdjson::MEMALLOC: return CJSONREADER_OUT_OF_MEMORY;
    default: return CJSONREADER_SYNTAX;
  }
}

bool reserve(CJSONReader &reader, size_t length) {
  if (length <= reader.capacity) return true;
  size_t wanted = 16 * 1024;
  while (wanted < length) wanted *= 2;
  reader.capacity = 0;
  if (reader.parser.allocate(wanted, CJSONREADER_MAX_DEPTH) != simdjson::SUCCESS) return false;
  if (reader.parser.doc.allocate(wanted) != simdjson::SUCCESS) return false;
  reader.capacity = wanted;
  return true;
}

}  // namespace

CJSONReader *CJSONReader_make(void) { return new (std::nothrow) CJSONReader; }

void CJSONReader_free(CJSONReader *reader) { delete reader; }

CJSONReader_result CJSONReader_parse(CJSONReader *reader, const uint8_t *bytes, size_t length, size_t readable,
                                     CJSONReader_document *document) {
  // The calls below answer with error codes; the handler is there for what the library may allocate on the way, because
  // an exception that leaves an `extern "C"` function into Swift ends the program.
  try {
    if (length > CJSONREADER_MAX_LENGTH) return CJSONREADER_TOO_LONG;
    if (length == 0) return CJSONREADER_EMPTY;
    if (!reserve(*reader, length)) return CJSONREADER_OUT_OF_MEMORY;
    const bool copy = readable < length || readable - length < CJSONREADER_PADDING;
    simdjson::dom::element root;
    const auto error = reader->parser.parse(bytes, length, copy).get(root);
    if (error != simdjson::SUCCESS) return result_of(error);

    const simdjson::dom::document &parsed = reader->parser.doc;
    // The payload of the first word is the index of the last one, or one more; both are within the allocation.
    const size_t count = static_cast<size_t>(parsed.tape[0] & 0x00ffffffffffffffULL);
    document->tape = parsed.tape.get();
    document->tape_count = count;
    document->strings = parsed.string_buf.get();
    document->string_capacity = 5 * reader->capacity / 3 + CJSONREADER_PADDING;
    return CJSONREADER_OK;
  } catch (...) {
    return CJSONREADER_OUT_OF_MEMORY;
  }
}
