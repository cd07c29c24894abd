#include "signal_stacks.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "CCrashSupport.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

// What a handler of ours and a former one may use together, behind the frame that the kernel pushes. Ours stays under
// 8 KiB; the Swift runtime's, which runs on the same stack after it, was built for 29 KiB. Untouched pages cost nothing.
#define HANDLER_STACK ((size_t)128 * 1024)

// The frame that the kernel pushes grows with the processor's vector state (AVX-512 and AMX exceed the old SIGSTKSZ:
// python #31789, rust #113528), so its size is asked for and not assumed.
static size_t stack_size(void) {
  size_t frame = getauxval(AT_MINSIGSTKSZ);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = HANDLER_STACK + (frame ? frame : MINSIGSTKSZ);
  return (size + page - 1) / page * page;
}

// Stacks of threads that ended, for the next ones: mapping and unmapping one costs more than all else that is done for a
// thread. They are address space and nothing else, as long as no handler ran on them.
#define KEPT_STACKS 16u
static void *kept[KEPT_STACKS];

static void *take_kept(void) {
  for (unsigned i = 0; i < KEPT_STACKS; i++) {
    if (!__atomic_load_n(&kept[i], __ATOMIC_RELAXED)) continue;
    void *memory = __atomic_exchange_n(&kept[i], NULL, __ATOMIC_ACQ_REL);
    if (memory) return memory;
  }
  return NULL;
}

static int keep(void *memory) {
  for (unsigned i = 0; i < KEPT_STACKS; i++) {
    void *none = NULL;
    if (__atomic_compare_exchange_n(&kept[i], &none, memory, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
  }
  return 0;
}

static void *map_with_guard(size_t page, size_t size) {
  void *memory =
      mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  // Without a guard a handler that needs more than there is would overwrite whatever lies below, in silence.
  if (mprotect(memory, page, PROT_NONE) == 0) return memory;
  munmap(memory, size + page);
  return NULL;
}

// The mapping of this thread's stack. Local-exec would be cheaper, but this file may be part of a shared library.
static _Thread_local void *mapping;

int crash_signal_stack_arm(void) {
  stack_t current;
  size_t size = stack_size(), page = (size_t)sysconf(_SC_PAGESIZE);
  if (sigaltstack(NULL, &current) == 0 && !(current.ss_flags & SS_DISABLE) && current.ss_size >= size / 2) return 0;
  if (current.ss_flags & SS_ONSTACK) return 0;  // we run on it: it cannot be changed now
  char *memory = take_kept();
  if (!memory) memory = map_with_guard(page, size);
  if (!memory) return -1;
  stack_t stack = {.ss_sp = memory + page, .ss_size = size};
  if (sigaltstack(&stack, NULL) != 0) {
    munmap(memory, size + page);
    return -1;
  }
  mapping = memory;
  return 1;
}

int crash_support_has_signal_stack(void) {
  stack_t current;
  return sigaltstack(NULL, &current) == 0 && !(current.ss_flags & SS_DISABLE);
}

void crash_signal_stack_disarm(void) {
  if (!mapping) return;
  stack_t current;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (sigaltstack(NULL, &current) == 0) {
    if (current.ss_flags & SS_ONSTACK) return;
    if (current.ss_sp == (char *)mapping + page) {
      stack_t none = {.ss_flags = SS_DISABLE};
      sigaltstack(&none, NULL);
    }
  }
  if (!keep(mapping)) munmap(mapping, stack_size() + page);
  mapping = NULL;
}
