// cfi_oracle [--functions N] [--table] FILE…: steps out of the functions of ELF files, once with the project's interpreter of
// call frame information and once with libunwind, and compares the caller's registers: stack pointer (the CFA), return
// address and the callee-saved ones.
//
// The files are mapped as the loader would, but nothing in them runs and nothing is relocated: a file need not be loadable,
// nor its libraries be there. libunwind learns of the unwind table as it does of code that is made at run time
// (_U_dyn_register). Each file is judged in a process of its own, so that nothing is left of one in the caches of either.
//
// Both start from the same made-up registers over the same made-up stack, at up to eight addresses in each function: the
// first ones, where the rows of a prologue change, and two anywhere in it. With --functions N at most N functions of a file,
// evenly spread; without it all.
//
// Prints for each file, with --table, and for all of them:
//
//   functions  in the table of the file
//   steps      addresses at which both were asked
//   agree      both have the same caller
//   outermost  both say that there is no caller
//   no-row     both have no information on the address: gaps between functions
//   no-stack   both say that the caller is in memory that cannot be read
//   explained  libunwind is wrong, in one of two known ways. Each is printed, with its way
//   differ     everything else; the first ones of each file are printed
//
// Exit status 1 where any differ, or a file could not be judged.

#define UNW_LOCAL_ONLY
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libunwind.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cfi.h"
#include "images.h"

#define WORDS (1u << 16)
static uint64_t stack[WORDS] __attribute__((aligned(4096)));
static struct crash_cfi_cache cache;
static struct crash_unwind_table table;

enum verdict { FUNCTIONS, STEPS, AGREE, OUTERMOST, NO_ROW, NO_STACK, EXPLAINED, DIFFER, VERDICTS };
static const char *const names[VERDICTS] = {"functions", "steps",    "agree",     "outermost",
                                            "no-row",    "no-stack", "explained", "differ"};
static unsigned long counts[VERDICTS];

// The interpreter asks this for the table of an address. In the library it is images.c, which knows what is loaded.
int crash_images_find_table(const struct crash_record *record, uint64_t pc, struct crash_unwind_table *found) {
  (void)record;
  if (pc - table.image_start >= table.image_end - table.image_start) return 0;
  *found = table;
  return 1;
}

// ---- Faults -----------------------------------------------------------------------------------------------------

static sigjmp_buf theirs_faulted;
static volatile sig_atomic_t theirs_runs;

// Ours has loads that may fault; libunwind checks addresses itself, but not those that it reads information from.
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)info;
  if (crash_safe_recover(context)) return;
  if (theirs_runs) siglongjmp(theirs_faulted, 1);
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

// ---- One step ---------------------------------------------------------------------------------------------------

static const int kept[] = {UNW_X86_64_RBX, UNW_X86_64_RBP, UNW_X86_64_R12, UNW_X86_64_R13,
                           UNW_X86_64_R14, UNW_X86_64_R15, UNW_X86_64_RSP, UNW_X86_64_RIP};
#define KEPT (sizeof kept / sizeof kept[0])
// The same registers by DWARF number.
static const unsigned columns[KEPT] = {3, 6, 12, 13, 14, 15, 7, 16};

// Rules of hand-written code find the stack pointer in a table on the stack, by an index in a register: `with_indices` has
// small numbers in those that callees need not preserve. Returns 0 where neither could read what a rule leads to.
static int compare_with(uint64_t pc, const char *file, uint64_t bias, int with_indices) {
  ucontext_t context;
  memset(&context, 0, sizeof context);
  struct crash_registers ours;
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) ours.values[i] = (uint64_t)(uintptr_t)&stack[WORDS / 2 + 64 * i];
  static const unsigned scratch[] = {0, 1, 2, 8, 9, 10, 11};
  for (unsigned i = 0; with_indices && i < sizeof scratch / sizeof scratch[0]; i++) ours.values[scratch[i]] = 16 + i;
  ours.values[CRASH_ARCH_SP] = (uint64_t)(uintptr_t)&stack[WORDS / 4];
  ours.values[CRASH_ARCH_FP] = (uint64_t)(uintptr_t)&stack[WORDS / 4 + 4096];
  ours.values[CRASH_ARCH_PC] = pc;
  ours.known = CRASH_REGISTERS_ALL_KNOWN;
  static const int gregs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                              REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) context.uc_mcontext.gregs[gregs[i]] = (greg_t)ours.values[i];

  int signal_frame = 0;
  enum crash_cfi_result result = crash_cfi_step(NULL, &cache, pc, &ours, &signal_frame);
  unw_cursor_t cursor;
  unw_word_t value[KEPT] = {0};
  int known[KEPT] = {0};
  volatile int theirs = -UNW_EUNSPEC;
  theirs_runs = 1;
  if (sigsetjmp(theirs_faulted, 1) == 0) {
    // As a signal frame: the first pc is looked up as it is.
    theirs = unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME);
    if (theirs == 0) theirs = unw_step(&cursor);
    for (unsigned i = 0; i < KEPT && theirs >= 0; i++) known[i] = unw_get_reg(&cursor, kept[i], &value[i]) == 0;
  } else {
    theirs = -UNW_EINVAL;
  }
  theirs_runs = 0;

  int neither = theirs < 0 && (result == CRASH_CFI_NO_STACK || result == CRASH_CFI_UNREADABLE);
  if (neither && !with_indices) return 0;
  counts[STEPS]++;
  // Between functions there is no row. libunwind then follows frame pointers, which is not this comparison's matter; but it
  // must not have information either.
  unw_proc_info_t function;
  if (result == CRASH_CFI_MISSING && unw_get_proc_info_by_ip(unw_local_addr_space, pc, &function, NULL) != 0) {
    counts[NO_ROW]++;
    return 1;
  }
  if (result == CRASH_CFI_OUTERMOST && theirs == 0) {
    counts[OUTERMOST]++;
    return 1;
  }
  if (result == CRASH_CFI_NO_STACK && theirs < 0) {
    counts[NO_STACK]++;
    return 1;
  }
  unsigned different = 0;
  for (unsigned i = 0; i < KEPT; i++)
    if (known[i] && ours.known >> columns[i] & 1 && ours.values[columns[i]] != value[i]) different |= 1u << i;
  if (theirs >= 0 && result == CRASH_CFI_STEPPED && different == 0) {
    counts[AGREE]++;
    return 1;
  }
  // The stack pointer alone: code that switches stacks (setcontext, longjmp) gives it a rule of its own, which the
  // specification lets stand before the CFA, and which libunwind ignores. And libunwind refuses a function that says where
  // it keeps vector registers, which callees need to preserve in Windows' convention only.
  const char *why = NULL;
  if (theirs > 0 && result == CRASH_CFI_STEPPED && different == 1u << 6) why = "a stack pointer with a rule of its own";
  if (theirs == -UNW_EBADREG && result == CRASH_CFI_STEPPED) why = "vector registers with rules";
  if (why) {
    if (counts[EXPLAINED]++ < 10) printf("  explained: %s at %#lx: %s\n", file, (unsigned long)(pc - bias), why);
    return 1;
  }
  if (counts[DIFFER]++ < 5) {
    printf("  %s at %#lx: ours %d, libunwind %d:", file, (unsigned long)(pc - bias), (int)result, theirs);
    for (unsigned i = 0; i < KEPT; i++)
      if (different >> i & 1)
        printf(" register %u is %lx, not %lx", columns[i], (unsigned long)ours.values[columns[i]], (unsigned long)value[i]);
    printf("\n");
  }
  return 1;
}

static void compare(uint64_t pc, const char *file, uint64_t bias) {
  if (!compare_with(pc, file, bias, 0)) compare_with(pc, file, bias, 1);
}

// ---- One file ---------------------------------------------------------------------------------------------------

// A file that has nothing to compare is none of this program's: 0, with `*reason`. -1 for one that should have been judged.
static int map(const char *path, uint64_t *bias, const char **reason) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  Elf64_Ehdr elf;
  *reason = "cannot be opened";
  if (file < 0 || fstat(file, &status) != 0) return -1;
  *reason = "is no ELF program or library for this processor";
  if (pread(file, &elf, sizeof elf, 0) != (ssize_t)sizeof elf || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64 || (elf.e_type != ET_DYN && elf.e_type != ET_EXEC))
    return 0;
  Elf64_Phdr headers[64];
  size_t size = (size_t)elf.e_phnum * sizeof headers[0];
  *reason = "has no program headers that this program can read";
  if (elf.e_phnum > 64 || elf.e_phentsize != sizeof headers[0] ||
      pread(file, headers, size, (off_t)elf.e_phoff) != (ssize_t)size)
    return -1;
  uint64_t first = UINT64_MAX, last = 0;
  const Elf64_Phdr *eh_frame = NULL;
  for (unsigned i = 0; i < elf.e_phnum; i++) {
    if (headers[i].p_type == PT_GNU_EH_FRAME) eh_frame = &headers[i];
    if (headers[i].p_type != PT_LOAD) continue;
    if (headers[i].p_vaddr < first) first = headers[i].p_vaddr;
    if (headers[i].p_vaddr + headers[i].p_memsz > last) last = headers[i].p_vaddr + headers[i].p_memsz;
  }
  *reason = "has no unwind table";
  if (!eh_frame || first == UINT64_MAX || eh_frame->p_filesz == 0) return 0;
  // Debug files keep the program headers of what they belong to, with nothing behind them.
  for (unsigned i = 0; i < elf.e_phnum; i++)
    if (headers[i].p_type == PT_LOAD && headers[i].p_offset + headers[i].p_filesz > (uint64_t)status.st_size) return 0;
  first &= ~4095ull;
  // A program that is not position-independent goes where it is meant to be: its table may have absolute addresses.
  int is_fixed = elf.e_type == ET_EXEC;
  char *room = mmap(is_fixed ? (void *)first : NULL, last - first, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (is_fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  *reason = "finds no room in memory";
  if (room == MAP_FAILED) return -1;
  *bias = (uint64_t)(uintptr_t)room - first;
  *reason = "cannot be mapped";
  for (unsigned i = 0; i < elf.e_phnum; i++) {
    if (headers[i].p_type != PT_LOAD || headers[i].p_filesz == 0) continue;
    uint64_t start = headers[i].p_vaddr & ~4095ull, shift = headers[i].p_vaddr - start;
    if (mmap((void *)(*bias + start), headers[i].p_filesz + shift, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
             (off_t)(headers[i].p_offset - shift)) == MAP_FAILED)
      return -1;
  }
  close(file);
  table.eh_frame_hdr = *bias + eh_frame->p_vaddr;
  table.eh_frame_hdr_end = table.eh_frame_hdr + eh_frame->p_memsz;
  table.image_start = *bias + first;
  table.image_end = *bias + last;
  return 1;
}

// Returns 1, or 0 with `*reason` for a file that there is nothing to compare of, or -1.
static int judge(const char *path, unsigned long limit, const char **reason) {
  uint64_t bias;
  int mapped = map(path, &bias, reason);
  if (mapped <= 0) return mapped;
  const uint8_t *header = (const uint8_t *)(uintptr_t)table.eh_frame_hdr;
  *reason = "has an empty unwind table";
  if (header[2] == 0xff || header[3] == 0xff) return 0;
  *reason = "has an unwind table of another kind";
  if (header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b) return -1;
  uint32_t count;
  memcpy(&count, header + 8, 4);
  if (12 + 8 * (uint64_t)count > table.eh_frame_hdr_end - table.eh_frame_hdr) return -1;
  const int32_t *rows = (const int32_t *)(header + 12);

  static unw_dyn_info_t info;
  memset(&info, 0, sizeof info);
  info.start_ip = table.image_start;
  info.end_ip = table.image_end;
  info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  info.u.rti.segbase = table.eh_frame_hdr;
  info.u.rti.table_data = (unw_word_t)(uintptr_t)rows;
  info.u.rti.table_len = 8 * (unw_word_t)count / sizeof(unw_word_t);
  _U_dyn_register(&info);

  counts[FUNCTIONS] = count;
  unsigned long step = limit && count > limit ? (count + limit - 1) / limit : 1;
  for (uint32_t f = 0; f < count; f += (uint32_t)step) {
    uint64_t start = table.eh_frame_hdr + (uint64_t)(int64_t)rows[2 * f];
    // The last one has no other behind it; its first bytes do.
    uint64_t next = f + 1 < count ? table.eh_frame_hdr + (uint64_t)(int64_t)rows[2 * f + 2] : start + 1;
    if (next <= start) continue;
    static const unsigned early[] = {0, 1, 2, 4, 6, 11};
    for (unsigned k = 0; k < sizeof early / sizeof early[0]; k++)
      if (early[k] < next - start) compare(start + early[k], path, bias);
    // By the file's own addresses, so that every run asks for the same.
    for (unsigned k = 0; k < 2; k++) compare(start + random_word(start - bias + k) % (next - start), path, bias);
  }
  return 1;
}

// ---- All files --------------------------------------------------------------------------------------------------

struct answer {
  int status;
  char reason[96];
  unsigned long counts[VERDICTS];
};

static struct answer ask(const char *path, unsigned long limit) {
  struct answer answer = {.status = -1, .reason = "ended without an answer"};
  int ends[2];
  if (pipe(ends) != 0) return answer;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    const char *reason = "";
    struct answer mine = {.status = judge(path, limit, &reason)};
    snprintf(mine.reason, sizeof mine.reason, "%s", reason);
    memcpy(mine.counts, counts, sizeof counts);
    fflush(stdout);
    _exit(write(ends[1], &mine, sizeof mine) != (ssize_t)sizeof mine);
  }
  close(ends[1]);
  struct answer got;
  if (read(ends[0], &got, sizeof got) == (ssize_t)sizeof got) answer = got;
  close(ends[0]);
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return answer;
}

int main(int count, char **arguments) {
  unsigned long limit = 0, files = 0, skipped = 0, failed = 0, all[VERDICTS] = {0};
  int with_table = 0, first = 1;
  for (; first < count && strncmp(arguments[first], "--", 2) == 0; first++) {
    if (strcmp(arguments[first], "--table") == 0) {
      with_table = 1;
    } else if (strcmp(arguments[first], "--functions") == 0 && first + 1 < count) {
      limit = strtoul(arguments[++first], NULL, 10);
    } else {
      fprintf(stderr, "usage: cfi_oracle [--functions N] [--table] FILE…\n");
      return 64;
    }
  }
  // Every word is the address of another one: code that keeps its caller's stack pointer on the stack has a rule that loads it
  // and goes on from there.
  for (unsigned i = 0; i < WORDS; i++) stack[i] = (uint64_t)(uintptr_t)&stack[WORDS / 4 + random_word(i) % (WORDS / 2)];
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);

  if (with_table) {
    for (unsigned i = 0; i < VERDICTS; i++) printf("%10s ", names[i]);
    printf(" file\n");
  }
  for (int i = first; i < count; i++) {
    struct answer answer = ask(arguments[i], limit);
    if (answer.status < 0) {
      failed++;
      printf("cfi_oracle: %s %s\n", arguments[i], answer.reason);
    } else if (answer.status == 0) {
      skipped++;
    } else {
      files++;
      for (unsigned k = 0; k < VERDICTS; k++) {
        all[k] += answer.counts[k];
        if (with_table) printf("%10lu ", answer.counts[k]);
      }
      if (with_table) printf(" %s\n", arguments[i]);
    }
  }
  printf("files %lu without-table %lu failed %lu", files, skipped, failed);
  for (unsigned k = 0; k < VERDICTS; k++) printf(" %s %lu", names[k], all[k]);
  printf("\n");
  return all[DIFFER] != 0 || failed != 0;
}
