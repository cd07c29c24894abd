// The interpreter of call frame information on any bytes in `.eh_frame`: it ends, writes nothing but its arguments, leaves
// the registers alone where it does not step, and answers the same with a warm cache as with a cold one.
//
// Input: 8 bytes of control, then the bytes of the section.
//   0-1  offset of the frame description in the section
//   2-3  how far behind the start of the function the pc is
//   4    bit 0: the sorted table too comes from the input, and starts at the section's first byte
//   5    which registers are unknown: one bit for every fourth column
//   6-7  distance of the stack pointer from the stack's start, in words
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch.h"
#include "cfi.h"
#include "images.h"

#define SECTION 4096u  // zeros behind the input are instructions too (nop), and each costs time
#define STACK_WORDS 4096u

// Two mappings with nothing behind them: table and section in one, the stack in the other.
static uint8_t *table, *section;
static uint64_t *stack;
static int table_is_input;

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "cfi: %s\n", what);
  abort();
}

// What the recorded images would answer.
int crash_images_find_table(const struct crash_record *record, uint64_t pc, struct crash_unwind_table *found) {
  (void)record;
  (void)pc;
  found->eh_frame_hdr = (uint64_t)(uintptr_t)(table_is_input ? section : table);
  found->eh_frame_hdr_end = (uint64_t)(uintptr_t)(section + SECTION);
  found->image_start = (uint64_t)(uintptr_t)table;
  found->image_end = (uint64_t)(uintptr_t)(section + SECTION);
  return 1;
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)info;
  if (crash_safe_recover(context)) return;
  static const char text[] = "cfi: a fault outside of the loads that may fault\n";
  if (write(2, text, sizeof text - 1)) {}
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigaction(signal, &standard, NULL);
}

static void *map(size_t size) {
  uint8_t *memory = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + 4096, size, PROT_READ | PROT_WRITE) != 0) abort();
  return memory + 4096;
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count;
  (void)arguments;
  table = map(4096 + SECTION);
  section = table + 4096;
  stack = map(STACK_WORDS * sizeof *stack);
  // Words that lead somewhere: half of them into the stack itself.
  for (unsigned i = 0; i < STACK_WORDS; i++)
    stack[i] = i % 2 ? (uint64_t)i * 0x9e3779b97f4a7c15 : (uint64_t)(uintptr_t)&stack[(i * 37u) % STACK_WORDS];
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  return 0;
}

static size_t used;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 8 || size - 8 > SECTION) return -1;
  uint16_t control[4];
  memcpy(control, data, sizeof control);
  memset(section, 0, used);
  used = size - 8;
  memcpy(section, data + 8, used);

  // version, encodings of the address of the section, of the count and of the rows; the address; one row: where the
  // function starts, where its description is, both from the table's start.
  uint8_t header[20] = {1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1};
  int32_t start = (int32_t)(section - table), description = start + control[0];
  memcpy(header + 12, &start, 4);
  memcpy(header + 16, &description, 4);
  memcpy(table, header, sizeof header);
  table_is_input = control[2] & 1;

  static struct crash_cfi_cache cache;
  memset(&cache, 0, sizeof cache);
  struct crash_registers registers;
  memset(&registers, 0, sizeof registers);
  registers.known = CRASH_REGISTERS_ALL_KNOWN;
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) {
    registers.values[i] = (uint64_t)(uintptr_t)&stack[(i * 61u) % STACK_WORDS];
    if (control[2] >> (8 + i / 4 % 8) & 1) registers.known &= ~((uint64_t)1 << i);
  }
  uint64_t pc = (uint64_t)(uintptr_t)section + control[1];
  registers.values[CRASH_ARCH_SP] = (uint64_t)(uintptr_t)&stack[control[3] % STACK_WORDS];
  registers.values[CRASH_ARCH_PC] = pc;

  for (int frame = 0; frame < 4; frame++) {
    struct crash_registers before = registers, warm = registers;
    int signal_frame = 0, warm_signal_frame = 0;
    enum crash_cfi_result result = crash_cfi_step(NULL, &cache, pc, &registers, &signal_frame);
    require(result >= CRASH_CFI_STEPPED && result <= CRASH_CFI_NO_STACK, "an unknown answer");
    enum crash_cfi_result again = crash_cfi_step(NULL, &cache, pc, &warm, &warm_signal_frame);
    require(again == result && signal_frame == warm_signal_frame, "another answer from the cache");
    require(memcmp(&registers, &warm, sizeof warm) == 0, "other registers from the cache");
    if (result != CRASH_CFI_STEPPED) {
      require(memcmp(&registers, &before, sizeof before) == 0, "registers changed without a step");
      break;
    }
    pc = registers.values[CRASH_ARCH_PC];
  }
  return 0;
}
