#include "process_info.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "CCrashSupport.h"
#include "syscalls.h"

// Reads the start of a small file as text. Returns its length, 0 where it cannot be read.
static size_t read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, size - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  return (size_t)length;
}

// Field 22 of /proc/self/stat. The second field is the command in parentheses and may hold anything, parentheses too, so
// that counting starts behind the last one.
static uint64_t start_ticks(void) {
  char text[1024];
  if (!read_text("/proc/self/stat", text, sizeof text)) return 0;
  char *field = strrchr(text, ')');
  for (int i = 2; field && i < 22; i++) {
    field = strchr(field, ' ');
    if (field) field++;
  }
  uint64_t ticks = 0;
  while (field && *field >= '0' && *field <= '9') ticks = ticks * 10 + (uint64_t)(*field++ - '0');
  return ticks;
}

static void read_boot_id(uint8_t id[16]) {
  char text[64];
  size_t length = read_text("/proc/sys/kernel/random/boot_id", text, sizeof text), digits = 0;
  for (size_t i = 0; i < length && digits < 32; i++) {
    char c = text[i];
    int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
    digits++;
  }
}

// The value of PRETTY_NAME in os-release(5), without its quotes.
static size_t pretty_name(char *output, size_t size) {
  char text[2048];
  if (!read_text("/etc/os-release", text, sizeof text) && !read_text("/usr/lib/os-release", text, sizeof text)) return 0;
  const char *line = strncmp(text, "PRETTY_NAME=", 12) == 0 ? text : strstr(text, "\nPRETTY_NAME=");
  if (!line) return 0;
  line = strchr(line, '=') + 1;
  char quote = *line == '"' || *line == '\'' ? *line++ : '\n';
  size_t length = 0;
  while (line[length] && line[length] != quote && line[length] != '\n' && length < size) length++;
  memcpy(output, line, length);
  return length;
}

void crash_process_record(struct crash_record *record) {
  struct crash_record_process *process = record->process;
  process->pid = (int32_t)getpid();
  process->parent_pid = (int32_t)getppid();
  process->user_id = (uint32_t)geteuid();
  process->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
  process->start_realtime_ns = crash_clock_ns(CLOCK_REALTIME);
  process->start_boottime_ns = crash_clock_ns(CLOCK_BOOTTIME);
  struct utsname system;
  if (uname(&system) == 0) {
    size_t length = strnlen(system.nodename, sizeof system.nodename);
    if (length > sizeof process->host) length = sizeof process->host;
    memcpy(process->host, system.nodename, length);
    process->host_length = (uint16_t)length;
    length = strnlen(system.sysname, sizeof system.sysname);
    size_t release_length = strnlen(system.release, sizeof system.release);
    _Static_assert(sizeof process->system > sizeof system.sysname, "the name has room, and a space");
    size_t room = sizeof process->system - length - 1;
    if (release_length > room) release_length = room;
    memcpy(process->system, system.sysname, length);
    process->system[length++] = ' ';
    memcpy(process->system + length, system.release, release_length);
    process->system_length = (uint16_t)(length + release_length);
  }
  ssize_t length = readlink("/proc/self/exe", process->executable, sizeof process->executable);
  process->executable_length = length > 0 ? (uint16_t)length : 0;
  crash_record_commit(record, CRASH_SECTION_PROCESS, sizeof *process);
}

void crash_process_describe(struct crash_record *record) {
  char system[sizeof record->process->system];
  uint8_t boot_id[sizeof record->process->boot_id] = {0};
  uint64_t ticks = start_ticks();
  read_boot_id(boot_id);
  size_t named = pretty_name(system, sizeof system);
  // Everything is at hand, so that the section is open for a moment only. A handler that finds it open seals it.
  crash_record_reopen(record, CRASH_SECTION_PROCESS);
  struct crash_record_process *process = record->process;
  process->start_ticks = ticks;
  memcpy(process->boot_id, boot_id, sizeof boot_id);
  if (named) {
    memcpy(process->system, system, named);
    process->system_length = (uint16_t)named;
  }
  crash_record_commit(record, CRASH_SECTION_PROCESS, sizeof *process);
}

int crash_support_exchange(int folder, const char *one, const char *other) {
  return (int)syscall(SYS_renameat2, folder, one, folder, other, 2 /* RENAME_EXCHANGE */);
}
