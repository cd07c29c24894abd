// Functions of the Swift runtime that no module exports, behind weak references.
//
// All of them are exported by libswiftCore of Swift 6 (dynamic and static). The references are weak, so that a runtime
// that drops one costs a readable name and not the program's start.

#ifndef CSWIFTRUNTIME_H
#define CSWIFTRUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Demangles a Swift, C++ or legacy Rust name to the short form that the runtime's own crash logs show.
///
/// - Returns: a string to be given to `free`, or NULL for a name that is not mangled or a runtime without the function.
///   Allocates: not async-signal-safe.
char *CSwiftRuntime_demangle_simplified(const char *mangled, size_t length);

/// Demangles a Swift name to the full form, with modules, types and attributes.
///
/// - Returns: a string to be given to `free`, or NULL. Allocates: not async-signal-safe.
char *CSwiftRuntime_demangle_full(const char *mangled, size_t length);

/// Whether the function of this mangled name only forwards to another one (a reabstraction, a partial apply).
/// Not async-signal-safe.
int CSwiftRuntime_is_thunk(const char *mangled);

#ifdef __cplusplus
}
#endif
#endif
