// `pthread_create`, defined here so that every thread of the process starts with an alternate signal stack.
//
// The definition in the executable stands before libc's in the loader's search order, so that libdispatch, Foundation
// and every C library come through here too; no linker flag is needed, as the linker exports a symbol that a shared
// library asks for. Without it a stack overflow off the main thread leaves nothing: the kernel has nowhere to put the
// signal's frame and ends the process in silence. Crashpad does the same.
//
// Costs a sigaltstack for each thread, and a mapping where no thread that ended left one: docs/figures.md.

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "signal_stacks.h"
#include "threads.h"

typedef int pthread_create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// The sanitizers' own definition, which is part of the executable too and would be stepped over by RTLD_NEXT.
extern pthread_create_function __interceptor_pthread_create __attribute__((weak));
// With `--wrap=pthread_create`, which a static executable needs, this is libc's.
extern pthread_create_function __real_pthread_create __attribute__((weak));

static pthread_create_function *next_pthread_create(void) {
  static pthread_create_function *next;
  pthread_create_function *found = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (found) return found;
  if (__interceptor_pthread_create)
    found = __interceptor_pthread_create;
  else if (__real_pthread_create)
    found = __real_pthread_create;
  else
    found = (pthread_create_function *)dlsym(RTLD_NEXT, "pthread_create");
  __atomic_store_n(&next, found, __ATOMIC_RELAXED);
  return found;
}

// What a thread is to do, from its creator to itself. Not from malloc as long as there is room: its first call in a thread,
// which may be our free(), makes an arena for it, and a thread that never allocates would have been without.
struct thread_start {
  void *(*routine)(void *);
  void *argument;
  int taken;
};
#define THREADS_ON_THEIR_WAY 64u
static struct thread_start starts[THREADS_ON_THEIR_WAY];

static struct thread_start *take_start(void) {
  for (unsigned i = 0; i < THREADS_ON_THEIR_WAY; i++) {
    int taken = 0;
    if (__atomic_load_n(&starts[i].taken, __ATOMIC_RELAXED)) continue;
    if (__atomic_compare_exchange_n(&starts[i].taken, &taken, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return &starts[i];
  }
  return malloc(sizeof(struct thread_start));
}

static void give_back(struct thread_start *start) {
  if ((uintptr_t)start - (uintptr_t)starts < sizeof starts)
    __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
  else
    free(start);
}

static pthread_key_t last_destructor;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_exists;

// The stack goes last: the destructors of other keys may crash too. Their order is unspecified, so this one puts itself
// off to the last round that the thread library makes.
static void release_stack(void *round) {
  uintptr_t number = (uintptr_t)round;
  if (number < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(last_destructor, (void *)(number + 1)) == 0) return;
  crash_threads_remove();
  crash_signal_stack_disarm();
}

static void make_key(void) { key_exists = pthread_key_create(&last_destructor, release_stack) == 0; }

// The outermost frame of ours in every thread; its name is what a reader of a stack sees above `start_thread`.
static void *crash_support_thread_start(void *pointer) {
  struct thread_start start = *(struct thread_start *)pointer;
  give_back(pointer);
  crash_signal_stack_arm();
  crash_threads_add();
  pthread_once(&key_once, make_key);
  if (key_exists) pthread_setspecific(last_destructor, (void *)(uintptr_t)1);
  return start.routine(start.argument);
}

// Not async-signal-safe, as libc's is not: allocates.
__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict thread,
                                                          const pthread_attr_t *restrict attributes,
                                                          void *(*routine)(void *), void *restrict argument) {
  pthread_create_function *next = next_pthread_create();
  if (!next) return EAGAIN;  // a static executable without --wrap: no thread library to be found
  struct thread_start *start = take_start();
  if (!start) return next(thread, attributes, routine, argument);
  start->routine = routine;
  start->argument = argument;
  int result = next(thread, attributes, crash_support_thread_start, start);
  if (result != 0) give_back(start);
  return result;
}

// What `--wrap=pthread_create` makes callers call. Not async-signal-safe.
__attribute__((visibility("default"))) int __wrap_pthread_create(pthread_t *restrict thread,
                                                                 const pthread_attr_t *restrict attributes,
                                                                 void *(*routine)(void *), void *restrict argument) {
  return pthread_create(thread, attributes, routine, argument);
}
