// cfi_oracle LIBRARY…: steps out of every function of the given libraries, of libc and of this program, once with the
// project's interpreter and once with libunwind, and compares the registers.
//
// Both start from the same made-up registers over the same made-up stack, at several addresses in each function, so that
// every kind of row is met: prologues, epilogues, expressions of PLT entries and signal trampolines. Prints
// `functions N compared N agree N no-row N outermost N explained N differ N` and the first differences; exit 1 where there
// are any. Explained is one class: functions that switch stacks (setcontext) give the stack pointer a rule of its own,
// which the specification lets stand before the CFA, and which libunwind ignores.

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <link.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "capture.h"
#include "cfi.h"
#include "images.h"

#define WORDS (1u << 16)
static uint64_t stack[WORDS] __attribute__((aligned(4096)));
static struct crash_record record;
static struct crash_cfi_cache cache;
static unsigned long functions, compared, agree, no_row, outermost, explained, differ;

// Faults of either interpreter's reads are part of the comparison: ours are caught by its own loads, and libunwind's
// validation of addresses needs none.
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)info;
  if (crash_safe_recover(context)) return;
  static const char text[] = "cfi_oracle: a fault outside of the safe loads\n";
  if (write(2, text, sizeof text - 1)) {}
  _exit(128 + signal);
}

static uint64_t random_word(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return seed ^ seed >> 31;
}

static const int kept[] = {UNW_X86_64_RBX, UNW_X86_64_RBP, UNW_X86_64_R12, UNW_X86_64_R13,
                           UNW_X86_64_R14, UNW_X86_64_R15, UNW_X86_64_RSP, UNW_X86_64_RIP};
// The same registers by DWARF number.
static const int columns[] = {3, 6, 12, 13, 14, 15, 7, 16};

static void compare(uint64_t pc, const char *library) {
  ucontext_t context;
  memset(&context, 0, sizeof context);
  struct crash_registers ours;
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) ours.values[i] = (uint64_t)(uintptr_t)&stack[WORDS / 2 + 64 * i];
  ours.values[CRASH_ARCH_SP] = (uint64_t)(uintptr_t)&stack[WORDS / 4];
  ours.values[CRASH_ARCH_FP] = (uint64_t)(uintptr_t)&stack[WORDS / 4 + 4096];
  ours.values[CRASH_ARCH_PC] = pc;
  ours.known = (1u << CRASH_ARCH_COLUMNS) - 1;
  static const int gregs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                              REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) context.uc_mcontext.gregs[gregs[i]] = (greg_t)ours.values[i];

  int signal_frame = 0;
  enum crash_cfi_result result = crash_cfi_step(&record, &cache, pc, &ours, &signal_frame);
  unw_cursor_t cursor;
  // As a signal frame: the first pc is looked up as it is.
  int theirs = unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME);
  if (theirs == 0) theirs = unw_step(&cursor);
  compared++;
  // Between functions there is no row. libunwind then follows frame pointers, which is not this comparison's matter.
  if (result == CRASH_CFI_MISSING) {
    no_row++;
    return;
  }
  if (result == CRASH_CFI_OUTERMOST && theirs == 0) {
    outermost++;
    return;
  }
  unw_word_t their_sp = 0, their_pc = 0;
  unw_get_reg(&cursor, UNW_X86_64_RSP, &their_sp);
  unw_get_reg(&cursor, UNW_X86_64_RIP, &their_pc);
  int only_sp = theirs > 0 && result == CRASH_CFI_STEPPED && their_pc == ours.values[CRASH_ARCH_PC] &&
                their_sp != ours.values[CRASH_ARCH_SP];
  int same = theirs >= 0 && result == CRASH_CFI_STEPPED;
  for (unsigned i = 0; same && i < sizeof kept / sizeof kept[0]; i++) {
    unw_word_t value = 0;
    if (unw_get_reg(&cursor, kept[i], &value) != 0) continue;  // not recoverable for libunwind
    if (ours.known >> columns[i] & 1 && ours.values[columns[i]] != value) same = 0;
  }
  if (same) {
    agree++;
    return;
  }
  if (only_sp) {
    explained++;
    return;
  }
  if (differ++ < 10) {
    printf("%s pc %#lx: ours %d, libunwind %d:", library, (unsigned long)pc, (int)result, theirs);
    for (unsigned i = 0; i < sizeof kept / sizeof kept[0]; i++) {
      unw_word_t value = 0;
      unw_get_reg(&cursor, kept[i], &value);
      printf(" %d:%lx/%lx", columns[i], (unsigned long)ours.values[columns[i]], (unsigned long)value);
    }
    printf("\n");
  }
}

static int each_library(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  (void)data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME) continue;
    const uint8_t *header = (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b) continue;
    uint32_t count;
    memcpy(&count, header + 8, 4);
    const int32_t *table = (const int32_t *)(header + 12);
    for (uint32_t f = 0; f + 1 < count; f++) {
      uint64_t start = (uint64_t)(uintptr_t)header + (uint64_t)(int64_t)table[2 * f];
      uint64_t next = (uint64_t)(uintptr_t)header + (uint64_t)(int64_t)table[2 * f + 2];
      if (next <= start) continue;
      uint64_t length = next - start;
      functions++;
      static const unsigned early[] = {0, 1, 2, 4, 6, 11};
      for (unsigned k = 0; k < sizeof early / sizeof early[0]; k++)
        if (early[k] < length) compare(start + early[k], info->dlpi_name);
      for (unsigned k = 0; k < 2; k++) compare(start + random_word(start + k) % length, info->dlpi_name);
    }
  }
  return 0;
}

int main(int count, char **arguments) {
  for (int i = 1; i < count; i++)
    if (!dlopen(arguments[i], RTLD_NOW)) fprintf(stderr, "cfi_oracle: %s\n", dlerror());
  for (unsigned i = 0; i < WORDS; i++) stack[i] = random_word(i);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);

  size_t images, path_bytes;
  crash_images_measure(&images, &path_bytes);
  struct crash_support_error error;
  char folder[PATH_MAX];
  if (!getcwd(folder, sizeof folder) || crash_record_create(&record, folder, images, path_bytes, &error) != 0) {
    fprintf(stderr, "cfi_oracle: %s\n", error.what);
    return 2;
  }
  crash_images_record(&record);
  // Not inside dl_iterate_phdr's own lock: libunwind takes it for each step, which the lock allows to its holder.
  dl_iterate_phdr(each_library, NULL);
  printf("functions %lu compared %lu agree %lu no-row %lu outermost %lu explained %lu differ %lu\n", functions, compared,
         agree, no_row, outermost, explained, differ);
  crash_record_discard(&record);
  return differ != 0;
}
