#include "deadline.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "CCrashFormat_uninstrumented.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

// Made at the start, as making one allocates in the kernel and may be refused; the crash path only sets it.
static int timer;
static int timer_exists;

void crash_deadline_prepare(void) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  // SIGKILL, because every other signal may be blocked, ignored or handled by the code that hangs.
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_exists = crash_syscall(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&timer, 0) == 0;
}

void crash_deadline_remove(void) {
  if (timer_exists) crash_syscall(SYS_timer_delete, timer, 0, 0, 0);
  timer_exists = 0;
}

void crash_deadline_forget(void) { timer_exists = 0; }

static void set(long seconds) {
  if (!timer_exists) return;
  struct itimerspec time = {{0, 0}, {seconds, 0}};
  crash_syscall(SYS_timer_settime, timer, 0, (long)&time, 0);
}

void crash_deadline_set(void) { set(CRASH_DEADLINE_SECONDS); }

void crash_deadline_clear(void) { set(0); }

CRASH_UNINSTRUMENTED_END
