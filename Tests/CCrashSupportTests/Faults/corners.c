// Rare situations: each is a row of docs/fault-matrix.md.
#include "corners.h"

#include "../../../CCrashSupport/capture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"

#define NI __attribute__((noinline, noclone))
static volatile int sink;
#define KEEP() (sink++)

static volatile int *volatile nowhere;
static NI void cx_leaf(void) { *nowhere = 1; KEEP(); }
static NI void cx_top(void) { cx_leaf(); KEEP(); }
static NI void cx_abort(void) { if (!nowhere) abort(); KEEP(); }
static NI int cx_recurse(int n) {
  volatile char room[256];
  room[0] = (char)n;
  int result = cx_recurse(n + 1) + room[0];
  KEEP();
  return result;
}

// ---- A stage of the handler that fails --------------------------------------------------------------------------

// The runtimes come from the toolchain, and are not built with the sanitizer of a program.
CRASH_UNINSTRUMENTED_BEGIN

// The handler asks the C++ runtime for the exception in flight, by a weak reference. In this program that is us.
static volatile int stage_crashes, stage_hangs, second_waits, second_goes;
void *__cxa_current_exception_type(void) {
  if (stage_crashes) *nowhere = 1;
  // The second thread crashes while the first one is at work, and is noted before that goes on.
  if (second_waits) {
    second_goes = 1;
    while (__atomic_load_n(&crash_capture.record.note_count, __ATOMIC_ACQUIRE) == 0) KEEP();
  }
  while (stage_hangs) KEEP();
  return NULL;
}

// It also asks Swift's runtime for the task, which is us here too: the fault is gone when the handler returns to it.
static char *page_to_open;
void *swift_task_getCurrent(void) {
  if (page_to_open) mprotect(page_to_open, 4096, PROT_READ | PROT_WRITE);
  return NULL;
}
uint64_t swift_task_getJobTaskId(void *task) { return task ? 1 : 0; }

CRASH_UNINSTRUMENTED_END

static NI void cx_store(void) { *(volatile char *)page_to_open = 1; KEEP(); }
static void *crashes_second(void *argument) {
  second_waits = 1;
  while (!second_goes) sched_yield();
  *nowhere = 1;
  return argument;
}
static volatile int pausing;
static void *pauses(void *argument) {
  pausing = 1;
  for (;;) pause();
  return argument;
}

// ---- Stacks -----------------------------------------------------------------------------------------------------

static ucontext_t outside, inside;
static NI void cx_on_coroutine(void) { sink += cx_recurse(1); }
static NI void overflow_a_coroutine(void) {
  size_t size = 256 * 1024;
  char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory, 4096, PROT_NONE);
  getcontext(&inside);
  inside.uc_stack.ss_sp = memory + 4096;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext(&inside, cx_on_coroutine, 0);
  swapcontext(&outside, &inside);
  KEEP();
}

// A host's handler that needs more than the alternate stack has: the guard page ends it, in place of a silent overwrite.
static void overflows(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  sink += cx_recurse(1);
}

// ---- Memory -----------------------------------------------------------------------------------------------------

// Writes over the heap from one block to its end, as an overrun does: every list and header of malloc is gone.
static NI void overrun_the_heap(void) {
  char *block = malloc(64);
  memset(block, 0x41, (size_t)((char *)sbrk(0) - block));
}

// ---- Libraries --------------------------------------------------------------------------------------------------

static void *opens_and_closes(void *argument) {
  for (;;) {
    void *library = dlopen(argument, RTLD_NOW);
    if (library) dlclose(library);
  }
  return NULL;
}

// ---- Descriptors and sandboxes ----------------------------------------------------------------------------------

// The host closes everything and opens files of its own at the same numbers: what is in them stays its own.
static void reuse_descriptors(const char *path) {
  syscall(SYS_close_range, 3, ~0u, 0);
  for (int i = 0; i < 32; i++) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || write(file, "mine\n", 5) != 5) _exit(92);
  }
}

static void refuse_open(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(92);
}

// A child that is killed in the middle of the parent's own handler and record, which it shares.
static NI void lose_a_vfork_child(void) {
  int status;
  pid_t child = vfork();
  if (child == 0) {
    cx_leaf();
    _exit(96);
  }
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS) _exit(93);
}

// A handler in front of the reporter's, which calls it with its own mask: the signal is blocked in there.
static struct sigaction behind;
static void calls_the_one_behind(int signal, siginfo_t *info, void *context) {
  behind.sa_sigaction(signal, info, context);
}
static void install_in_front(int signal) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = calls_the_one_behind;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, &behind);
}

static void plain_handler(int signal) {
  (void)signal;
  static const char text[] = "later handler\n";
  if (write(2, text, sizeof text - 1)) {}
  _exit(5);
}

// ---- The table --------------------------------------------------------------------------------------------------

static int is(const char *name, const char *other) { return strcmp(name + 7, other) == 0; }

int corner_exists(const char *name) { return strncmp(name, "corner_", 7) == 0; }

void corner_prepare(const char *name) {
  if (is(name, "ignored_segv")) signal(SIGSEGV, SIG_IGN);
  if (is(name, "deep_handler")) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = overflows;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
  }
}

int corner_run(const char *name) {
  if (is(name, "stage_crashes")) { stage_crashes = 1; cx_abort(); }
  else if (is(name, "stage_hangs")) { stage_hangs = 1; cx_abort(); }
  else if (is(name, "second_crash")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, crashes_second, NULL)) return 93;
    while (!second_waits) sched_yield();
    cx_abort();
  }
  else if (is(name, "fault_vanishes")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, pauses, NULL)) return 93;
    while (!pausing) sched_yield();  // known to the reporter from then on
    page_to_open = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cx_store();
    for (int i = 0; i < 60; i++) sleep(1);
  }
  else if (is(name, "section_open")) {
    if (crash_capture_is_owner()) crash_record_reopen(&crash_capture.record, CRASH_SECTION_PROCESS);
    cx_top();
  }
  else if (is(name, "coroutine_overflow")) overflow_a_coroutine();
  else if (is(name, "deep_handler") || is(name, "ignored_segv")) cx_top();
  else if (is(name, "heap_overrun")) { overrun_the_heap(); cx_top(); }
  else if (is(name, "constructor")) { if (!dlopen(getenv("FX_CONSTRUCTOR"), RTLD_NOW)) return 95; }
  else if (is(name, "library_comes_and_goes")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, opens_and_closes, getenv("FX_LIB"))) return 93;
    for (int i = 0; i < 1000; i++) sched_yield();
    cx_top();
  }
  else if (is(name, "descriptors_reused")) { reuse_descriptors(getenv("FX_FILE")); cx_top(); }
  else if (is(name, "vfork_child_killed")) { lose_a_vfork_child(); crash_support_add_breadcrumb(NULL, 0, "on", 2); }
  else if (is(name, "vfork_child_killed_then_crash")) { lose_a_vfork_child(); cx_top(); }
  else if (is(name, "handler_in_front")) {
    if (getenv("FX_DB")) install_in_front(SIGSEGV);
    ((void (*volatile)(void))8)();
  }
  else if (is(name, "open_kills")) { refuse_open(); cx_top(); }
  else if (is(name, "other_handler_later")) { signal(SIGSEGV, plain_handler); cx_abort(); }
  else return 94;
  return 0;
}
