// Keeps instrumentation out of code that runs in a signal handler.
//
// What a compiler adds to functions for a sanitizer, a profiler or a coverage tool uses memory of its own, which may be what
// is broken at the crash: the thread sanitizer's stack of calls is full after 65,536 of them, and an instrumented handler
// dies at its first function. So every file of the crash path is written between the two macros:
//
//     #include …                        // all of them
//     CRASH_UNINSTRUMENTED_BEGIN
//     …                                 // the file
//     CRASH_UNINSTRUMENTED_END
//
// Clang leaves out: address, memory, thread and hardware sanitizers, the undefined behaviour sanitizer's checks, coverage
// (-fsanitize-coverage, -fprofile-instr-generate, -fprofile-generate, -fprofile-arcs), -finstrument-functions, -pg and stack
// protectors; split stacks too, but not for a function that is called above its definition (clang 21). GCC has all of that
// as attributes of single functions only, and no way to say it once: there these files are to be compiled without such
// options, which may differ from file to file of a program (docs/capture.md). What it does by default, stack protectors,
// does no harm; its thread sanitizer is refused (threads.c).
//
// The fuzzers define CRASH_INSTRUMENTED: to them, coverage and the sanitizers' checks in these files are the point.

#ifndef CCRASHFORMAT_UNINSTRUMENTED_H
#define CCRASHFORMAT_UNINSTRUMENTED_H

#if defined(__clang__) && !defined(CRASH_INSTRUMENTED)
#define CRASH_ATTRIBUTES_BEGIN(pragma) _Pragma(#pragma)
#define CRASH_UNINSTRUMENTED_BEGIN                                                                              \
  CRASH_ATTRIBUTES_BEGIN(clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)) \
  CRASH_ATTRIBUTES_BEGIN(clang attribute push(__attribute__((no_sanitize("all"))), apply_to = function))        \
  CRASH_ATTRIBUTES_BEGIN(clang attribute push(__attribute__((no_profile_instrument_function, no_instrument_function, \
                                                             no_stack_protector, no_split_stack)), apply_to = function))
#define CRASH_UNINSTRUMENTED_END                                                                                \
  _Pragma("clang attribute pop") _Pragma("clang attribute pop") _Pragma("clang attribute pop")
#else
#define CRASH_UNINSTRUMENTED_BEGIN
#define CRASH_UNINSTRUMENTED_END
#endif

// A sanitizer's runtime puts its own functions in the place of libc's for memory, and these are as instrumented as can be.
// Renamed for the assembler, so that the calls that the compiler makes out of assignments are renamed too, as glibc does in
// its symbol-hacks.h; the functions are in memory.c. Without a sanitizer libc's are used. Whoever compiles these files
// without one for a program that has one defines the macro himself.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(hwaddress_sanitizer)
#define CRASH_OWN_MEMORY_FUNCTIONS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_HWADDRESS__)
#define CRASH_OWN_MEMORY_FUNCTIONS 1
#endif

#if defined(CRASH_OWN_MEMORY_FUNCTIONS) && !defined(CRASH_INSTRUMENTED) && !defined(CRASH_MEMORY_FUNCTIONS_ARE_HERE)
__asm__("memcpy = crash_memcpy\n"
        "memmove = crash_memmove\n"
        "memset = crash_memset\n"
        "memcmp = crash_memcmp\n"
        "bcmp = crash_memcmp\n"
        "strnlen = crash_strnlen\n");
#endif

#endif
