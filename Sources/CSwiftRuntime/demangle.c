#include "CSwiftRuntime.h"

// Why not the toolchain's `Runtime` module, whose `Symbol.name` is public and gives the same text: it makes every daemon
// load libswiftRuntime, lib_StringProcessing and lib_RegexParser at start (three files, 2.4 MB), and takes four times as
// long for a symbol, because it builds a whole symbol object.
extern char *swift_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_length, uint32_t flags)
    __attribute__((weak));
extern char *_swift_backtrace_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_length)
    __attribute__((weak));
extern _Bool _swift_backtrace_isThunkFunction(const char *mangled) __attribute__((weak));

char *CSwiftRuntime_demangle_simplified(const char *mangled, size_t length) {
  if (!_swift_backtrace_demangle) return CSwiftRuntime_demangle_full(mangled, length);
  return _swift_backtrace_demangle(mangled, length, NULL, NULL);
}

char *CSwiftRuntime_demangle_full(const char *mangled, size_t length) {
  if (!swift_demangle) return NULL;
  return swift_demangle(mangled, length, NULL, NULL, 0);
}

int CSwiftRuntime_is_thunk(const char *mangled) {
  return _swift_backtrace_isThunkFunction && _swift_backtrace_isThunkFunction(mangled);
}
