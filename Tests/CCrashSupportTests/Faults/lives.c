// What a program may do with its reporter and its own process before it crashes.
#include "lives.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CCrashSupport.h"
#include "reporter.h"

#define NI __attribute__((noinline, noclone))
static volatile int sink;
#define KEEP() (sink++)
static volatile int *volatile nowhere;

static NI void lx_leaf(void) { *nowhere = 1; KEEP(); }
static NI void lx_top(void) { lx_leaf(); KEEP(); }

static const char *records;
static void start(void) {
  if (records && reporter_start(records) != CRASH_SUPPORT_STARTED) _exit(90);
}
static void stop(void) {
  if (records) crash_support_stop();
}
static const char *second_folder(void) { return records ? getenv("FX_DB2") : NULL; }

static pthread_t spawn(void *(*body)(void *), void *argument, size_t stack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack) pthread_attr_setstacksize(&attributes, stack);
  pthread_t made;
  if (pthread_create(&made, &attributes, body, argument)) {
    perror("pthread_create");
    _exit(93);
  }
  return made;
}

// Tells how a child ended, and waits until the test has looked at the records.
static void tell(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  printf("child %d status %d\n", (int)child, status);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) < 0) _exit(91);
}

// ---- Starting and stopping --------------------------------------------------------------------------------------

static pthread_barrier_t barrier;
static int started, refused;
static void *starts(void *argument) {
  (void)argument;
  pthread_barrier_wait(&barrier);
  int result = records ? reporter_start(records) : CRASH_SUPPORT_STARTED;
  __atomic_add_fetch(result == CRASH_SUPPORT_STARTED ? &started : &refused, 1, __ATOMIC_RELAXED);
  return NULL;
}

static volatile int done;
static void *leaves_breadcrumbs(void *argument) {
  for (unsigned i = 0; !done; i++) {
    char text[32];
    int length = snprintf(text, sizeof text, "crumb %u", i);
    if (records) {
      crash_support_add_breadcrumb("life", 4, text, (size_t)length);
      crash_support_set_tag((char *)argument, 1, text, (size_t)length);
      crash_support_set_operation(text, (size_t)length);
    }
  }
  return NULL;
}

static void stop_and_start_under_load(void) {
  pthread_t writers[4];
  static char names[4][2] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; i++) writers[i] = spawn(leaves_breadcrumbs, names[i], 0);
  for (int i = 0; i < 50; i++) {
    stop();
    start();
  }
  done = 1;
  for (int i = 0; i < 4; i++) pthread_join(writers[i], NULL);
}

// ---- Children ---------------------------------------------------------------------------------------------------

static NI void crash_in_vfork_child(void) {
  pid_t child = vfork();
  if (child == 0) {
    lx_leaf();
    _exit(96);
  }
  tell(child);
}

// ---- Limits -----------------------------------------------------------------------------------------------------

static void limit(int resource, rlim_t value) {
  struct rlimit both = {value, value};
  if (setrlimit(resource, &both)) _exit(92);
}

static void limit_memory_to_what_is_mapped(void) {
  char text[64] = "";
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (read(file, text, sizeof text - 1) <= 0) _exit(92);
  close(file);
  limit(RLIMIT_AS, (rlim_t)strtoul(text, NULL, 10) * 4096);
  if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) _exit(92);
}

static NI void lx_parked(void) {
  for (;;) {
    pause();
    KEEP();
  }
}
static void *parks(void *argument) {
  (void)argument;
  lx_parked();
  return NULL;
}

// What the program holds, one line each, before it crashes.
static void list_what_is_held(void) {
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(folder)) continue;
    printf("descriptor %s\n", entry->d_name);
  }
  closedir(folder);
  folder = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.') printf("thread\n");
  closedir(folder);
  char text[256] = "", path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0 && read(file, text, sizeof text - 1) > 0) printf("children %s\n", text);
  if (file >= 0) close(file);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  for (int i = 1; i <= 64; i++)
    if (sigismember(&mask, i) == 1) printf("blocked %d\n", i);
  fflush(stdout);
}

// ---- The table --------------------------------------------------------------------------------------------------

static int is(const char *name, const char *other) { return strcmp(name, other) == 0; }

int life_exists(const char *name) { return strncmp(name, "life_", 5) == 0; }

int life_run(const char *name, const char *folder) {
  name += 5;
  records = folder;
  if (is(name, "start_twice")) {
    start();
    if (records && reporter_start(records) != CRASH_SUPPORT_ALREADY_STARTED) return 90;
    lx_top();
  } else if (is(name, "start_race")) {
    pthread_t threads[8];
    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 8; i++) threads[i] = spawn(starts, NULL, 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    if (records && (started != 1 || refused != 7)) return 90;
    lx_top();
  } else if (is(name, "stop_then_crash")) {
    start();
    stop();
    lx_top();
  } else if (is(name, "stop_start_crash")) {
    start();
    stop();
    start();
    lx_top();
  } else if (is(name, "stop_race")) {
    start();
    stop_and_start_under_load();
    lx_top();
  } else if (is(name, "at_exit_before_start")) {
    // Runs behind the reporter's own: the process has left in good order by then.
    atexit(lx_top);
    start();
  } else if (is(name, "quick_exit")) {
    start();
    at_quick_exit(lx_top);
    quick_exit(0);
  } else if (is(name, "stop_twice_start_fails")) {
    start();
    stop();
    stop();
    if (records && reporter_start("/nonexistent/records") != CRASH_SUPPORT_FAILED) return 90;
    lx_top();
  } else if (is(name, "fork_starts_and_crashes")) {
    start();
    pid_t child = fork();
    if (child == 0) {
      records = second_folder();
      start();
      lx_top();
      _exit(96);
    }
    tell(child);
  } else if (is(name, "fork_crashes") || is(name, "fork_crashes_then_crash")) {
    start();
    pid_t child = fork();
    if (child == 0) {
      lx_top();
      _exit(96);
    }
    tell(child);
    if (is(name, "fork_crashes_then_crash")) lx_top();
  } else if (is(name, "fork_exits")) {
    start();
    pid_t child = fork();
    if (child == 0) {
      if (records) crash_support_add_breadcrumb("child", 5, "exits", 5);
      exit(7);
    }
    tell(child);
  } else if (is(name, "fork_stops")) {
    start();
    pid_t child = fork();
    if (child == 0) {
      stop();
      exit(7);
    }
    tell(child);
  } else if (is(name, "vfork_crashes") || is(name, "vfork_crashes_then_crash")) {
    start();
    crash_in_vfork_child();
    if (is(name, "vfork_crashes_then_crash")) lx_top();
  } else if (is(name, "closed_stdio")) {
    close(0), close(1), close(2);
    start();
    lx_top();
  } else if (is(name, "no_descriptors_at_start")) {
    limit(RLIMIT_NOFILE, 3);
    if (records && reporter_start(records) != CRASH_SUPPORT_FAILED) return 90;
    lx_top();
  } else if (is(name, "no_descriptors")) {
    start();
    limit(RLIMIT_NOFILE, 0);
    lx_top();
  } else if (is(name, "no_memory")) {
    start();
    limit_memory_to_what_is_mapped();
    lx_top();
  } else if (is(name, "no_processes")) {
    start();
    limit(RLIMIT_NPROC, 1);
    limit(RLIMIT_SIGPENDING, 0);
    lx_top();
  } else if (is(name, "chroot")) {
    start();
    if (chroot(getenv("FX_ROOT")) || chdir("/")) _exit(77);
    lx_top();
  } else if (is(name, "threads5000")) {
    start();
    for (int i = 0; i < 5000; i++) spawn(parks, NULL, 16384 + 16384);
    lx_top();
  } else if (is(name, "lists")) {
    start();
    list_what_is_held();
    lx_top();
  } else {
    return 94;
  }
  return 0;
}
