#include "message.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"

CRASH_UNINSTRUMENTED_BEGIN

// The Swift runtime keeps its last fatal error text in a std::atomic<const char *>; the function returns the address of
// that atomic (swift/Runtime/Debug.h, Swift 6.0 and later, everywhere but on Darwin). Weak: a C daemon has no Swift
// runtime.
extern void *swift_getFatalErrorMessageBuffer(void) __attribute__((weak));

// Type of the C++ exception that std::terminate was called for. Reads the thread's exception stack and nothing else.
extern void *__cxa_current_exception_type(void) __attribute__((weak));

static uint64_t swift_buffer;  // address of the pointer to the text
static uint64_t abort_buffer;  // address of the pointer to glibc's {unsigned size; char text[]}

// A raw text passes through here, in memory, never through the file. Static: a page on an alternate stack is not free.
static char raw[2 * CRASH_RECORD_MESSAGE_MAX];

void crash_message_prepare(void) {
  if (swift_getFatalErrorMessageBuffer) swift_buffer = (uint64_t)(uintptr_t)swift_getFatalErrorMessageBuffer();
  // A private symbol of glibc that holds the text of a failed assertion and of "stack smashing detected"; there is no
  // public way to it. dlsym finds it without its version.
  abort_buffer = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "__abort_msg");
}

static unsigned store(struct crash_record *record, unsigned index, enum crash_record_message_kind kind,
                      uint64_t address) {
  size_t length = crash_safe_copy(raw, address, sizeof raw);
  size_t end = strnlen(raw, length);
  int cut = end == length;
  if (cut) end = crash_redact_whole(raw, length);
  if (end == 0) return index;
  struct crash_record_message *message = &record->messages[index];
  int truncated = 0;
  message->length = (uint32_t)crash_redact_base(raw, end, message->bytes, sizeof message->bytes, &truncated);
  message->kind = kind;
  message->flags = cut || truncated ? CRASH_MESSAGE_TRUNCATED : 0;
  return message->length ? index + 1 : index;
}

unsigned crash_message_capture(struct crash_record *record, int signal) {
  unsigned count = 0;
  uint64_t text;
  if (swift_buffer && crash_safe_load(swift_buffer, &text) && text)
    count = store(record, count, CRASH_MESSAGE_SWIFT_FATAL_ERROR, text);
  int glibc_aborts = 0;
  if (abort_buffer && crash_safe_load(abort_buffer, &text) && text) {
    glibc_aborts = 1;
    count = store(record, count, CRASH_MESSAGE_ABORT, text + sizeof(unsigned));
  }
  // Only where glibc itself did not abort: that is a damaged heap, with its lock held, and the C++ runtime of a library
  // that was loaded late may allocate the thread's exception state at its first use.
  if (signal == SIGABRT && !glibc_aborts && !count && __cxa_current_exception_type) {
    uint64_t type = (uint64_t)(uintptr_t)__cxa_current_exception_type(), name;
    // Itanium C++ ABI: std::type_info is a vtable pointer and the mangled name; a leading '*' marks a local name.
    if (type && crash_safe_load(type + sizeof(uint64_t), &name) && name) {
      char first = 0;
      if (crash_safe_copy(&first, name, 1) == 1 && first == '*') name++;
      count = store(record, count, CRASH_MESSAGE_CXX_EXCEPTION_TYPE, name);
    }
  }
  return count;
}

CRASH_UNINSTRUMENTED_END
