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

// The mapping of this thread's stack. Local-exec would be cheaper, but this file may be part of a shared library.
static _Thread_local void *mapping;
static _Thread_local size_t mapping_size;

int crash_signal_stack_arm(void) {
  stack_t current;
  size_t size = stack_size();
  if (sigaltstack(NULL, &current) == 0 && !(current.ss_flags & SS_DISABLE) && current.ss_size >= size / 2) return 0;
  if (current.ss_flags & SS_ONSTACK) return 0;  // we run on it: it cannot be changed now
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory =
      mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  // Without a guard a handler that needs more than there is would overwrite whatever lies below, in silence.
  stack_t stack = {.ss_sp = memory + page, .ss_size = size};
  if (mprotect(memory, page, PROT_NONE) != 0 || sigaltstack(&stack, NULL) != 0) {
    munmap(memory, size + page);
    return -1;
  }
  mapping = memory;
  mapping_size = size + page;
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
  munmap(mapping, mapping_size);
  mapping = NULL;
}
