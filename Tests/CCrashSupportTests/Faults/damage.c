// Crashes of threads whose stack is gone or that are half taken down.
#include "damage.h"

#include "sandboxes.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))
static volatile int sink;
#define KEEP() (sink++)
static volatile int *volatile nowhere;

// ---- The stack pointer ------------------------------------------------------------------------------------------

// A store faults while the stack pointer is wrong, and in the second one the push through it.
static NI void dx_store_on(uintptr_t stack) {
#if defined(__x86_64__)
  __asm__ volatile("movq %0, %%rsp\n\tmovl $1, 0" : : "r"(stack) : "memory");
#else
  __asm__ volatile("mov sp, %0\n\tstr wzr, [%1]" : : "r"(stack), "r"((uintptr_t)0) : "memory");
#endif
}
static NI void dx_push_on(uintptr_t stack) {
#if defined(__x86_64__)
  __asm__ volatile("movq %0, %%rsp\n\tpushq $1" : : "r"(stack) : "memory");
#else
  __asm__ volatile("mov sp, %0\n\tstr xzr, [sp, #-16]!" : : "r"(stack) : "memory");
#endif
}

// ---- The end of a thread ----------------------------------------------------------------------------------------

static NI int dx_recurse(int n) {
  volatile char pad[256];
  pad[0] = (char)n;
  int result = dx_recurse(n + 1) + pad[0];
  KEEP();
  return result;
}
static NI void dx_leaf(void) { *nowhere = 1; KEEP(); }
static NI void dx_destructor_crash(void *argument) { (void)argument; dx_leaf(); KEEP(); }
static NI void dx_destructor_overflow(void *argument) { (void)argument; sink += dx_recurse(1); KEEP(); }

// Where `thread_local` of C++ puts its destructors: they run before those of pthread keys.
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
static pthread_key_t key;
static void *leaves_key(void *argument) { pthread_setspecific(key, argument); return NULL; }
static void (*destructor)(void *);
static void *leaves_thread_local(void *argument) {
  extern char __dso_handle[];
  __cxa_thread_atexit_impl(destructor, argument, __dso_handle);
  return NULL;
}

static void thread(void *(*body)(void *)) {
  pthread_t made;
  if (pthread_create(&made, NULL, body, &key)) _exit(93);
  pthread_join(made, NULL);
}

static void *paints_and_overflows(void *argument) {
  (void)argument;
  paint_alternate_stack();
  sink += dx_recurse(1);
  return NULL;
}

static NI void dx_at_exit(void) { dx_leaf(); KEEP(); }
static NI void dx_at_exit_overflow(void) { sink += dx_recurse(1); KEEP(); }
static NI void dx_on_exit(int status, void *argument) { (void)status, (void)argument; dx_leaf(); KEEP(); }

// ---- The table --------------------------------------------------------------------------------------------------

static int is(const char *name, const char *other) { return strcmp(name, other) == 0; }
// Filled with what is no address: a zero would read as the end of a stack.
static uintptr_t page(int protection) {
  char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 0x41, 8192);
  mprotect(memory, 8192, protection);
  return (uintptr_t)memory + 4096;
}

int damage_exists(const char *name) { return strncmp(name, "damage_", 7) == 0; }

int damage_run(const char *name) {
  name += 7;
  if (is(name, "rsp_null")) dx_store_on(0);
  else if (is(name, "rsp_unmapped")) dx_push_on(0x10000);
  else if (is(name, "rsp_no_access")) dx_push_on(page(PROT_NONE));
  else if (is(name, "rsp_read_only")) dx_push_on(page(PROT_READ));
  else if (is(name, "rsp_non_canonical")) dx_push_on(0x8000000000000000ull);
  else if (is(name, "rsp_top")) dx_store_on(~(uintptr_t)7);
  else if (is(name, "rsp_odd")) dx_store_on(page(PROT_READ | PROT_WRITE) - 4095);
  else if (is(name, "key")) { pthread_key_create(&key, dx_destructor_crash); thread(leaves_key); }
  else if (is(name, "key_overflow")) { pthread_key_create(&key, dx_destructor_overflow); thread(leaves_key); }
  else if (is(name, "thread_local")) { destructor = dx_destructor_crash; thread(leaves_thread_local); }
  else if (is(name, "thread_local_overflow")) { destructor = dx_destructor_overflow; thread(leaves_thread_local); }
  else if (is(name, "paint_thread")) thread(paints_and_overflows);
  else if (is(name, "at_exit")) { atexit(dx_at_exit); return 0; }
  else if (is(name, "at_exit_overflow")) { atexit(dx_at_exit_overflow); return 0; }
  else if (is(name, "on_exit")) { on_exit(dx_on_exit, NULL); return 0; }
  else return 94;
  return 0;
}
