// Programs that are refused a system call from the moment before they crash, and the painted stack.
#include "sandboxes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const char __executable_start[], etext[];

// By the place of the call: the handler is part of this program and makes its calls itself, while abort(), kill() and
// the threads of the program call out of libc. So every fault happens as it does without a sandbox, and what is judged
// is the handler alone.
static void refuse(int call, int error) {
  uint64_t start = (uint64_t)(uintptr_t)__executable_start, end = (uint64_t)(uintptr_t)etext;
  unsigned action = error ? SECCOMP_RET_ERRNO | (unsigned)error : SECCOMP_RET_KILL_PROCESS;
  // A filter compares 32 bits at a time, and the program may lie across a multiple of 4 GiB.
  unsigned end_of_first = start >> 32 == end >> 32 ? (unsigned)end : UINT32_MAX;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 9),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(start >> 32), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)start, 0, 5),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, end_of_first, 4, 3),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(end >> 32), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)end, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(92);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(92);
}

// By name, as numbers differ between processors.
static const struct {
  const char *name;
  int number;
} calls[] = {
#define CALL(name) {#name, SYS_##name}
    CALL(clock_gettime), CALL(close),         CALL(exit_group),      CALL(futex),       CALL(getdents64),
    CALL(getpid),        CALL(gettid),        CALL(kill),            CALL(nanosleep),   CALL(openat),
    CALL(prctl),         CALL(read),          CALL(rt_sigaction),    CALL(rt_sigpending), CALL(rt_sigprocmask),
    CALL(rt_sigqueueinfo), CALL(rt_tgsigqueueinfo), CALL(sched_yield), CALL(sigaltstack), CALL(tgkill),
    CALL(timer_settime),
#undef CALL
};

static int is_word(const char *text, const char *word) {
  size_t length = strlen(word);
  return strncmp(text, word, length) == 0 && text[length] == ':';
}

static const char *parse(const char *name, int *error, int *call) {
  if (!is_word(name, "sandbox")) return NULL;
  name += strlen("sandbox:");
  *error = is_word(name, "EPERM") ? EPERM : is_word(name, "ENOSYS") ? ENOSYS : 0;
  if (!*error && !is_word(name, "KILL")) _exit(64);
  name = strchr(name, ':') + 1;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (!is_word(name, calls[i].name)) continue;
    *call = calls[i].number;
    return strchr(name, ':') + 1;
  }
  _exit(64);
}

const char *sandbox_fault(const char *name) {
  int error, call;
  const char *fault = parse(name, &error, &call);
  return fault ? fault : name;
}

void sandbox_enter(const char *name) {
  int error, call;
  if (parse(name, &error, &call)) refuse(call, error);
}

static uintptr_t handler_frame;

static void note_frame(int number) {
  (void)number;
  handler_frame = (uintptr_t)__builtin_frame_address(0);
}

// What lies above a handler's own frame on a stack that ends at `end`: the kernel's. Measured, as AT_MINSIGSTKSZ is the
// most that the processor could ask for: with AMX 8 KiB more than it pushes for a process that never asked for tiles.
static uint64_t kernels_frame(const unsigned char *end) {
  struct sigaction action = {.sa_handler = note_frame, .sa_flags = SA_ONSTACK}, before;
  if (sigaction(SIGUSR2, &action, &before) || raise(SIGUSR2) || sigaction(SIGUSR2, &before, NULL)) _exit(92);
  return (uintptr_t)end - handler_frame;
}

// The first page is the file's own: the size of the frame that the kernel pushes, which the test takes off.
void paint_alternate_stack(void) {
  const char *path = getenv("FX_PAINT");
  if (!path) return;
  size_t page = 4096, size = 512 * 1024;
  // A file of its own for each thread: two stacks in one would be one memory, in which the frame of a thread that is stopped
  // lies over that of the one that crashed.
  unlink(path);
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, (off_t)(page + size))) _exit(92);
  unsigned char *memory = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) _exit(92);
  close(file);
  stack_t stack = {.ss_sp = memory + page, .ss_size = size};
  if (sigaltstack(&stack, NULL)) _exit(92);
  uint64_t frame = kernels_frame(memory + page + size);
  memcpy(memory, &frame, sizeof frame);
  memset(memory + page, PAINT, size);
}
