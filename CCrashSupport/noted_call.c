#include "noted_call.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "CCrashFormat_uninstrumented.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

// signal(7) and the kernel's sources: sock_intr_errno (a socket with a timeout), ep_poll, do_sigtimedwait and do_semtimedop
// answer -EINTR; poll, select, pause, sigsuspend and message queues -ERESTARTNOHAND; sleeps and futexes with a timeout
// -ERESTART_RESTARTBLOCK; all of these are EINTR where a handler runs.
static const uint16_t repeatable_calls[] = {
#if defined(__x86_64__)  // what newer architectures do not have
    SYS_poll, SYS_select, SYS_epoll_wait, SYS_pause,
#endif
    SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg,
    SYS_sendmmsg, SYS_accept, SYS_accept4, SYS_connect, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
    441 /* epoll_pwait2, in no header before Linux 5.11 */, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex,
    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_semop, SYS_semtimedop, SYS_msgsnd, SYS_msgrcv, SYS_mq_timedsend,
    SYS_mq_timedreceive, SYS_io_getevents};

int crash_call_is_repeatable(long number) {
  for (size_t i = 0; i < sizeof repeatable_calls / sizeof repeatable_calls[0]; i++)
    if (repeatable_calls[i] == number) return 1;
  return 0;
}

// `/proc/self/task/`, the number, and the file.
static void write_path(uint32_t thread, const char file[9], char path[64]) {
  static const char folder[] = "/proc/self/task/";
  char digits[10];
  size_t count = 0, length = sizeof folder - 1;
  do digits[count++] = (char)('0' + thread % 10);
  while (thread /= 10);
  memcpy(path, folder, length);
  while (count) path[length++] = digits[--count];
  memcpy(path + length, file, 9);
}

static const char *read_number(const char *text, unsigned base, uint64_t *number) {
  *number = 0;
  for (;; text++) {
    unsigned digit = *text >= '0' && *text <= '9' ? (unsigned)(*text - '0')
                     : *text >= 'a' && *text <= 'f' ? (unsigned)(*text - 'a' + 10) : 16;
    if (digit >= base) return text;
    *number = *number * base + digit;
  }
}

// "7 0x7ffd… 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd… 0x7f30…", "-1 …" outside of a call, or "running".
static int parse(const char *text, struct crash_noted_call *call) {
  uint64_t *values[] = {&call->arguments[0], &call->arguments[1], &call->arguments[2], &call->arguments[3],
                        &call->arguments[4], &call->arguments[5], &call->stack_pointer, &call->pc};
  if (*text < '0' || *text > '9') return 0;
  text = read_number(text, 10, &call->number);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    if (text[0] != ' ' || text[1] != '0' || text[2] != 'x') return 0;
    text = read_number(text + 3, 16, values[i]);
  }
  return *text == '\n';
}

// Returns how many bytes were read, with a NUL behind them.
static size_t read_file(uint32_t thread, const char name[9], char *text, size_t capacity) {
  char path[64];
  write_path(thread, name, path);
  long file = crash_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return 0;
  long length = crash_syscall(SYS_read, file, (long)text, (long)capacity - 1, 0);
  crash_syscall(SYS_close, file, 0, 0, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  return (size_t)length;
}

void crash_note_call(uint32_t thread, struct crash_noted_call *call) {
  char text[256];
  call->is_asleep = read_file(thread, "/syscall", text, sizeof text) ? (uint64_t)parse(text, call) : 0;
}

int crash_read_blocked_signals(uint32_t thread, uint64_t *blocked) {
  static const char label[] = "\nSigBlk:\t";
  char text[2048];
  size_t length = read_file(thread, "/status\0", text, sizeof text);
  for (size_t i = 0; i + sizeof label + 16 <= length; i++) {
    if (memcmp(text + i, label, sizeof label - 1) != 0) continue;
    read_number(text + i + sizeof label - 1, 16, blocked);
    return 1;
  }
  return 0;
}

CRASH_UNINSTRUMENTED_END
