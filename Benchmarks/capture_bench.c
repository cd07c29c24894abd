// capture_bench DIRECTORY: what the embedded library costs a process that does not crash, in nanoseconds, and how long
// its handler takes. Without DIRECTORY the same without the library started, for comparison.
// Prints `name value` lines; each value is the median of many.

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "CCrashSupport.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

#define ROUNDS 101
static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, ascending);
  return values[ROUNDS / 2];
}

static void *nothing(void *argument) { return argument; }

static char *page;
static volatile int sink;

// The host's own handler: repairs the fault, so that the same process can meet it again, with everything warm.
static void repair(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

// With main and what is below it a stack of 15 frames.
static __attribute__((noinline)) void fault_below(int frames) {
  if (frames == 0)
    *(volatile char *)page = 1;
  else
    fault_below(frames - 1);
  sink++;
}

int main(int count, char **arguments) {
  double values[ROUNDS], start;
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = repair, .sa_flags = SA_SIGINFO}, NULL);
  if (count > 1) {
    struct crash_support_configuration configuration = {
        .size = sizeof configuration, .directory = arguments[1], .service = "bench", .release = "1"};
    start = now();
    if (crash_support_start(&configuration, NULL) != CRASH_SUPPORT_STARTED) return 1;
    printf("start_ns %.0f\n", now() - start);
  }

  for (int round = 0; round < ROUNDS; round++) {
    mprotect(page, 4096, PROT_NONE);
    start = now();
    fault_below(10);
    values[round] = now() - start;
  }
  printf("fault_ns %.0f\n", median(values));

  static const char plain[] = "cache miss for key orders";
  for (int round = 0; round < ROUNDS; round++) {
    start = now();
    for (int i = 0; i < 1000; i++) crash_support_add_breadcrumb("db", 2, plain, sizeof plain - 1);
    values[round] = (now() - start) / 1000;
  }
  printf("breadcrumb_ns %.1f\n", median(values));

  for (int round = 0; round < ROUNDS; round++) {
    start = now();
    for (int i = 0; i < 1000; i++) crash_support_set_operation("POST /checkout", 14);
    values[round] = (now() - start) / 1000;
  }
  printf("set_operation_ns %.1f\n", median(values));

  for (int round = 0; round < ROUNDS; round++) {
    start = now();
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
    values[round] = now() - start;
  }
  printf("thread_ns %.0f\n", median(values));
  crash_support_stop();
  return 0;
}
