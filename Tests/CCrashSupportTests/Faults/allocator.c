// An allocator for LD_PRELOAD, such as services use, that bears no reentrance: one lock for everything, and an abort where
// the thread that holds it comes again. Counts into the file $FX_ALLOCATIONS what is asked of it, and apart from that
// what is asked on an alternate stack, which is to say by a signal handler.
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static struct counts {
  uint64_t all, in_handlers;
} unseen, *counts = &unseen;

static uintptr_t holder;

__attribute__((constructor)) static void open_counts(void) {
  const char *path = getenv("FX_ALLOCATIONS");
  int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  if (ftruncate(file, 4096)) _exit(92);
  void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) _exit(92);
  close(file);
  counts = memory;
  // Shows that both are in place. Volatile, or the compiler drops the pair.
  void *volatile block = malloc(1);
  free(block);
}

static void enter(void) {
  stack_t stack = {.ss_flags = 0};
  syscall(SYS_sigaltstack, NULL, &stack);
  __atomic_add_fetch(&counts->all, 1, __ATOMIC_RELAXED);
  if (stack.ss_flags & SS_ONSTACK) __atomic_add_fetch(&counts->in_handlers, 1, __ATOMIC_RELAXED);
  uintptr_t self = (uintptr_t)__builtin_thread_pointer(), nobody = 0;
  if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == self) __builtin_trap();
  while (!__atomic_compare_exchange_n(&holder, &nobody, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    nobody = 0;
    syscall(SYS_sched_yield);
  }
}
static void leave(void) { __atomic_store_n(&holder, 0, __ATOMIC_RELEASE); }

#define LOCKED(call)     \
  enter();               \
  void *result = (call); \
  leave();               \
  return result;

void *malloc(size_t size) { LOCKED(__libc_malloc(size)) }
void *calloc(size_t count, size_t size) { LOCKED(__libc_calloc(count, size)) }
void *realloc(void *old, size_t size) { LOCKED(__libc_realloc(old, size)) }
void *memalign(size_t alignment, size_t size) { LOCKED(__libc_memalign(alignment, size)) }
void *aligned_alloc(size_t alignment, size_t size) { LOCKED(__libc_memalign(alignment, size)) }
int posix_memalign(void **result, size_t alignment, size_t size) {
  enter();
  *result = __libc_memalign(alignment, size);
  leave();
  return *result ? 0 : 12;
}
void free(void *memory) {
  enter();
  __libc_free(memory);
  leave();
}
