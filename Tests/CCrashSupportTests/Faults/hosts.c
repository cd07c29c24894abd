// Programs that have plans of their own with the signals of a crash.
#include "faults.h"
#include "hosts.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))
static volatile int sink;
#define KEEP() (sink++)

#define PAGES 64
static char *pages;
static sigjmp_buf back;
static volatile int jumps_left;

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  if (sigaction(signal, &action, NULL)) _exit(91);
}

// ---- Handlers of hosts ------------------------------------------------------------------------------------------

// A garbage collector's: makes its own pages accessible, and lets every other fault be.
static void maps(int signal, siginfo_t *info, void *context) {
  (void)context;
  char *address = info->si_addr;
  if (address >= pages && address < pages + PAGES * 4096) {
    mprotect((void *)((uintptr_t)address & ~4095ul), 4096, PROT_READ | PROT_WRITE);
    return;
  }
  sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void jumps(int signal, siginfo_t *info, void *context) {
  (void)info;
  (void)context;
  if (jumps_left-- > 0) siglongjmp(back, 1);
  sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void aborts(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  abort();
}

static void exits(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  exit(3);
}

static void crashes(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  *(volatile int *)16 = 1;
}

// Puts the default action in place and returns, to end the process by whatever comes again.
static void gives_back(int signal, siginfo_t *info, void *context) {
  (void)info, (void)context;
  sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void tells_its_mask(int signal, siginfo_t *info, void *context) {
  (void)info, (void)context;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  char text[65];
  for (int i = 1; i <= 64; i++) text[i - 1] = sigismember(&mask, i) == 1 ? '1' : '0';
  text[64] = '\n';
  if (write(2, text, sizeof text)) {}
  sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void allocates(int signal, siginfo_t *info, void *context) {
  (void)info, (void)context;
  void *volatile memory = malloc(64);
  free(memory);
  sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void counts(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  sink++;
}

// ---- Crashes ----------------------------------------------------------------------------------------------------

// Through a variable: a store to a literal null pointer may be compiled to nothing at all.
static volatile int *volatile nowhere;
static NI void hx_leaf(void) { *nowhere = 1; KEEP(); }
static NI void hx_top(void) { hx_leaf(); KEEP(); }
// Deeper than the thread sanitizer's own stack of calls, which has room for 64 Ki.
static NI int hx_dive(int left) {
  if (left == 0) hx_leaf();
  else sink += hx_dive(left - 1);
  KEEP();
  return left;
}
static void *dives(void *argument) { sink += hx_dive(200000); return argument; }
static NI void hx_leaf_abort(void) { if (!nowhere) abort(); KEEP(); }
static NI void hx_top_abort(void) { hx_leaf_abort(); KEEP(); }
#if defined(__aarch64__)
static NI void hx_leaf_int3(void) { __asm__ volatile("brk #0"); KEEP(); }
#else
static NI void hx_leaf_int3(void) { __asm__ volatile("int3"); KEEP(); }
#endif
static NI void hx_top_int3(void) { hx_leaf_int3(); KEEP(); }
static NI void hx_leaf_syscall(void) { sink += (int)syscall(SYS_getppid); KEEP(); }
static NI void hx_top_syscall(void) { hx_leaf_syscall(); KEEP(); }
static NI void hx_free(void *memory) { free(memory); KEEP(); }
// A crash in a signal handler: the walk goes through the kernel's frame to the code that was interrupted.
static NI void hx_crashing_handler(int signal) { (void)signal; hx_top(); KEEP(); }
static NI void hx_interrupted(void) { raise(SIGUSR1); KEEP(); }
static NI void hx_call(void (*function)(void)) { function(); KEEP(); }

static NI void touch_pages(int from, int to) {
  for (int i = from; i < to; i++) ((volatile char *)pages)[i * 4096] = 1;
}

static NI int jump_once(void) {
  if (sigsetjmp(back, 1) == 0) {
    hx_top();
    return 0;
  }
  return 1;
}

static void *touches(void *argument) {
  int part = (int)(intptr_t)argument;
  touch_pages(part * PAGES / 4, (part + 1) * PAGES / 4);
  return NULL;
}

static void *jumps_in_thread(void *argument) {
  (void)argument;
  return (void *)(intptr_t)jump_once();
}

static pthread_t main_thread;
static void *storms(void *argument) {
  (void)argument;
  for (;;) pthread_kill(main_thread, SIGFPE);
  return NULL;
}

static void trap_getppid(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(92);
}

static void *library;
static void (*library_crash)(void);
static void load(const char *variable, int other_namespace) {
  const char *path = getenv(variable);
  library = other_namespace ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW);
  if (!library) _exit(95);
  library_crash = (void (*)(void))dlsym(library, "fxlib_crash");
}

// ---- Threads that are hard to stop ------------------------------------------------------------------------------

static pthread_barrier_t ready;
static volatile long ticks;
static NI void hx_spins(void) { for (;;) ticks++; }
static NI void hx_sleeps(void) { for (;;) { pause(); KEEP(); } }
static NI void hx_ticks(void) { for (;;) { usleep(200); ticks++; } }

static void *blocks_everything(void *argument) {
  (void)argument;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  pthread_barrier_wait(&ready);
  hx_sleeps();
  return NULL;
}
// Not through libc, which keeps its own signals open.
static void *blocks_libc_signals(void *argument) {
  (void)argument;
  uint64_t all = ~0ull;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
  pthread_barrier_wait(&ready);
  hx_sleeps();
  return NULL;
}
static void *spins(void *argument) {
  (void)argument;
  pthread_barrier_wait(&ready);
  hx_spins();
  return NULL;
}
static void *sleeps(void *argument) {
  (void)argument;
  pthread_barrier_wait(&ready);
  hx_sleeps();
  return NULL;
}
static void *ticking(void *argument) {
  (void)argument;
  prctl(PR_SET_NAME, "ticker");
  pthread_barrier_wait(&ready);
  hx_ticks();
  return NULL;
}
static void *ends(void *argument) { return argument; }

static void spawn_and_wait(void *(*routine)(void *), unsigned count) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  pthread_barrier_init(&ready, NULL, count + 1);
  for (unsigned i = 0; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, routine, NULL)) _exit(93);
  }
  pthread_barrier_wait(&ready);
}

// ---- The table --------------------------------------------------------------------------------------------------

static int is(const char *name, const char *other) { return strcmp(name, other) == 0; }
static int starts(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

int host_prepare(const char *name) {
  if (strncmp(name, "host_", 5)) return 0;
  name += 5;
  pages = mmap(NULL, PAGES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  main_thread = pthread_self();
  if (starts(name, "maps_once")) install(SIGSEGV, maps, SA_RESETHAND);
  else if (starts(name, "maps")) install(SIGSEGV, maps, 0);
  else if (starts(name, "jumps")) install(SIGSEGV, jumps, SA_ONSTACK);
  else if (starts(name, "aborts")) install(SIGSEGV, aborts, 0);
  else if (starts(name, "exits")) install(SIGSEGV, exits, 0);
  else if (starts(name, "crashes")) install(SIGSEGV, crashes, 0);
  else if (is(name, "allocates")) install(SIGSEGV, allocates, SA_ONSTACK);
  else if (starts(name, "int3_default")) install(SIGTRAP, gives_back, 0);
  else if (starts(name, "abort_ignored")) signal(SIGABRT, SIG_IGN);
  else if (starts(name, "survives_sent")) install(SIGFPE, counts, 0);
  else if (is(name, "mask") || is(name, "mask_open")) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = tells_its_mask;
    action.sa_flags = SA_SIGINFO | (is(name, "mask_open") ? SA_NODEFER : 0);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
  } else if (is(name, "reload") || is(name, "unloaded")) {
    load("FX_LIB", 0);
  }
  return 1;
}

int host_run(const char *name) {
  name += 5;
  if (is(name, "maps")) touch_pages(0, PAGES);
  else if (is(name, "maps_then_crash")) { touch_pages(0, PAGES); hx_top(); }
  else if (is(name, "maps_once")) { touch_pages(0, 1); touch_pages(1, 2); }
  else if (is(name, "maps_threads_then_crash")) {
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
      if (pthread_create(&threads[i], NULL, touches, (void *)i)) return 93;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    hx_top();
  }
  else if (is(name, "jumps")) { jumps_left = 3; for (int i = 0; i < 3; i++) if (!jump_once()) return 96; }
  else if (is(name, "jumps_then_crash")) { jumps_left = 2; for (int i = 0; i < 2; i++) if (!jump_once()) return 96; hx_top_abort(); }
  else if (is(name, "jumps_then_same_crash")) { jumps_left = 1; if (!jump_once()) return 96; hx_top(); }
  else if (is(name, "jumps_in_thread_then_crash")) {
    pthread_t thread;
    jumps_left = 1;
    if (pthread_create(&thread, NULL, jumps_in_thread, NULL)) return 93;
    pthread_join(thread, NULL);
    hx_top_abort();
  }
  else if (is(name, "aborts") || is(name, "exits") || is(name, "crashes") || is(name, "allocates") ||
           starts(name, "mask")) hx_top();
  else if (is(name, "frees_garbage")) hx_free((void *)64);
  else if (is(name, "dives")) {
    pthread_attr_t large;
    pthread_t thread;
    if (pthread_attr_init(&large) || pthread_attr_setstacksize(&large, (size_t)1 << 28) ||
        pthread_create(&thread, &large, dives, NULL))
      return 93;
    pthread_join(thread, NULL);
  }
  else if (is(name, "uses_after_free")) { int *volatile gone = malloc(64); free(gone); sink += *gone; return 97; }
  else if (is(name, "abort_ignored_raise")) raise(SIGABRT);
  else if (is(name, "abort_ignored_raise_then_crash")) { raise(SIGABRT); hx_top(); }
  else if (is(name, "abort_ignored_abort")) hx_top_abort();
  else if (is(name, "survives_sent_then_crash")) { raise(SIGFPE); raise(SIGFPE); hx_top(); }
  else if (is(name, "in_handler")) { signal(SIGUSR1, hx_crashing_handler); hx_interrupted(); }
  else if (is(name, "int3") || is(name, "int3_default")) hx_top_int3();
  else if (is(name, "seccomp_trap")) { trap_getppid(); hx_top_syscall(); }
  else if (is(name, "storm")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, storms, NULL)) return 93;
    for (;;) pause();
  }
  else if (is(name, "threads_blocked")) { spawn_and_wait(blocks_everything, 4); spawn_and_wait(spins, 2); hx_top(); }
  else if (is(name, "threads_silent")) { spawn_and_wait(blocks_libc_signals, 2); spawn_and_wait(sleeps, 2); hx_top(); }
  else if (is(name, "threads_many")) { spawn_and_wait(sleeps, 1100); hx_top(); }
  else if (is(name, "threads_64")) { spawn_and_wait(sleeps, 64); fault_stamp(); hx_top(); }
  else if (is(name, "threads_500")) { spawn_and_wait(sleeps, 500); fault_stamp(); hx_top(); }
  else if (is(name, "threads_come_and_go")) {
    spawn_and_wait(sleeps, 3);
    for (int i = 0; i < 5000; i++) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, ends, NULL)) return 93;
      pthread_join(thread, NULL);
    }
    hx_top();
  }
  else if (is(name, "maps_beside_threads")) {
    // Threads that were stopped and let go go on, with their masks, and can be stopped again.
    spawn_and_wait(ticking, 2);
    for (int i = 0; i < PAGES; i++) {
      touch_pages(i, i + 1);
      for (long seen = ticks; ticks < seen + 3;) usleep(100);
    }
    if (setuid(getuid())) return 97;  // libc's own use of the signal that stops threads
    hx_top();
  }
  else if (is(name, "reload")) { dlclose(library); load("FX_LIB2", 0); hx_call(library_crash); }
  else if (is(name, "unloaded")) { dlclose(library); hx_call(library_crash); }
  else if (is(name, "namespace")) { load("FX_LIB", 1); hx_call(library_crash); }
  else return 94;
  return 0;
}
