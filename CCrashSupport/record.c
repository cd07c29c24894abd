#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"
#include "syscalls.h"

CRASH_UNINSTRUMENTED_BEGIN

#define CRASH_RECORD_SUFFIX ".crashrecord"

// Where the file is, for removing it. Names are relative to a directory that may have been renamed since, so it is opened
// again by path; a record whose folder is gone simply stays where it went.
static char directory_path[PATH_MAX];

static int fail(struct crash_support_error *error, const char *what) {
  error->number = errno;
  error->what = what;
  return -1;
}

// RFC 9562: 48 bits of milliseconds, version 7, variant 10, the rest random.
static int make_uuid_v7(uint8_t uuid[16]) {
  if (getrandom(uuid, 16, 0) != 16) return -1;
  uint64_t milliseconds = (uint64_t)(crash_clock_ns(CLOCK_REALTIME) / 1000000);
  for (int i = 0; i < 6; i++) uuid[i] = (uint8_t)(milliseconds >> (40 - 8 * i));
  uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x70);
  uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
  return 0;
}

static void hex(char *output, const uint8_t *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; i++) {
    output[2 * i] = digits[bytes[i] >> 4];
    output[2 * i + 1] = digits[bytes[i] & 15];
  }
  output[2 * count] = 0;
}

struct plan {
  uint32_t type, flags;
  size_t capacity;
};

static size_t pages(size_t bytes) {
  // 4 KiB whatever the machine's page size: the offsets are part of the format, mapping happens once for the whole file.
  return (bytes + CRASH_RECORD_HEADER_SIZE - 1) / CRASH_RECORD_HEADER_SIZE * CRASH_RECORD_HEADER_SIZE;
}

// Opens a directory, which must be ours alone. Returns its descriptor, or -1 with `error`.
static int open_checked(int parent, const char *path, struct crash_support_error *error) {
  int folder = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0) return fail(error, "opening the directory for records");
  // Records hold what a process knew. In a folder that others can write to, they could be swapped for a link.
  struct stat status;
  if (fstat(folder, &status) != 0) {
    fail(error, "reading the directory's owner and mode");
    close(folder);
    return -1;
  }
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    close(folder);
    errno = EPERM;
    return fail(error, "the directory for records must be owned by this user and writable by nobody else");
  }
  return folder;
}

// Opens the folder for records in a directory. Returns its descriptor, or -1 with `error`.
static int open_folder(const char *directory, const char *name, struct crash_support_error *error) {
  // The file is looked for again when the record is removed, and the host may be elsewhere by then.
  if (directory[0] != '/') {
    errno = EINVAL;
    return fail(error, "the path of the directory for records must be absolute");
  }
  int parent = open_checked(AT_FDCWD, directory, error);
  if (parent < 0 || !name) return parent;
  // Opened first, as it is there but for the first time. The umask can only take bits away; a folder that we cannot enter
  // fails right behind this.
  int folder = open_checked(parent, name, error);
  if (folder < 0 && error->number == ENOENT && mkdirat(parent, name, 0700) == 0) folder = open_checked(parent, name, error);
  close(parent);
  return folder;
}

// With a page before and behind that nobody can touch. The kernel puts one mapping beside the other, and large blocks of the
// heap, stacks and a sanitizer's tables are such: who runs over the end of one must not run into the record, and is found out.
static void *map_between_guards(int file, size_t size) {
  size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  size = (size + guard - 1) / guard * guard;
  char *room = mmap(NULL, size + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  void *memory = mmap(room + guard, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (memory == MAP_FAILED) munmap(room, size + 2 * guard);
  return memory;
}

static void unmap_with_guards(void *memory, size_t size) {
  size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  size = (size + guard - 1) / guard * guard;
  munmap((char *)memory - guard, size + 2 * guard);
}

static struct crash_record_section *find_section(const struct crash_record *record, enum crash_record_section_type type) {
  for (uint32_t i = 0; i < record->header->section_count; i++)
    if (record->header->sections[i].type == (uint32_t)type) return &record->header->sections[i];
  return NULL;
}

static size_t section_length(const struct crash_record *record, enum crash_record_section_type type) {
  const struct crash_record_section *section = find_section(record, type);
  return section ? section->length : 0;
}

// Stores the used part of each section, and the header behind all of them: a file whose header is zero is one whose process
// ended in here. Written, not stored through the mapping: there each page would be read in, by a fault or by readahead of
// blocks that hold nothing yet, and faulted a second time by its first store, 400 us on ext4.
static int write_draft(int file, const struct crash_record *draft) {
  const struct crash_record_process *process = draft->process;
  struct crash_record_header *header = draft->header;
  const struct iovec parts[] = {
      {draft->process, offsetof(struct crash_record_process, executable) + process->executable_length},
      {draft->scope, offsetof(struct crash_record_scope, tags)},
      {draft->images, section_length(draft, CRASH_SECTION_IMAGES)},
      {draft->paths, section_length(draft, CRASH_SECTION_PATHS)},
      {header, sizeof *header},
  };
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    off_t offset = (char *)parts[i].iov_base - (char *)header;
    if (pwrite(file, parts[i].iov_base, parts[i].iov_len, offset) != (ssize_t)parts[i].iov_len) return -1;
  }
  return 0;
}

// Makes the file of a draft, locks it, fills it and maps it. Returns the mapping, or NULL with `error` and no file.
//
// In this order: a file of no bytes may be one that is not locked yet, and is left alone by whoever works on dead records;
// one that has bytes is locked for as long as its process lives. So it has its name from the first moment, and a rename,
// 30 us of a service's start, is not needed.
static void *make_file(int folder, const struct crash_record *draft, struct crash_support_error *error) {
  size_t size = draft->size;
  int file = openat(folder, draft->file_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    fail(error, "creating the record");
    return NULL;
  }
  const char *step = NULL;
  void *memory = MAP_FAILED;
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    step = "locking the record";
  } else if ((errno = posix_fallocate(file, 0, (off_t)size)) != 0) {
    // Not ftruncate: a sparse file answers a store with SIGBUS when the disk is full, which is when it is needed.
    step = "reserving disk space for the record";
  } else if (write_draft(file, draft) != 0) {
    step = "writing the record";
  } else {
    memory = map_between_guards(file, size);
    if (memory == MAP_FAILED) step = "mapping the record";
  }
  if (step) {
    fail(error, step);
    unlinkat(folder, draft->file_name, 0);
    close(file);
    return NULL;
  }
  // A child made by fork must neither hold the lock that says "alive" nor write into its parent's record.
  madvise(memory, size, MADV_DONTFORK);
  close(file);
  return memory;
}

static void find_sections(struct crash_record *record, void *memory) {
  void *base[CRASH_RECORD_MAX_SECTIONS] = {0};
  record->header = memory;
  for (uint32_t i = 0; i < record->header->section_count; i++) {
    const struct crash_record_section *section = &record->header->sections[i];
    base[section->type] = (char *)record->header + section->offset;
    if (section->type == CRASH_SECTION_IMAGES)
      record->image_capacity = section->capacity / sizeof(struct crash_record_image);
    if (section->type == CRASH_SECTION_PATHS) record->path_capacity = section->capacity;
  }
  record->process = base[CRASH_SECTION_PROCESS];
  record->run = base[CRASH_SECTION_RUN];
  record->scope = base[CRASH_SECTION_SCOPE];
  record->breadcrumbs = base[CRASH_SECTION_BREADCRUMBS];
  record->images = base[CRASH_SECTION_IMAGES];
  record->paths = base[CRASH_SECTION_PATHS];
  record->signal = base[CRASH_SECTION_SIGNAL];
  record->thread = base[CRASH_SECTION_THREADS];
  record->task = base[CRASH_SECTION_TASK];
  record->other_threads = base[CRASH_SECTION_OTHER_THREADS];
  record->other_frames = base[CRASH_SECTION_OTHER_FRAMES];
  record->other_registers = base[CRASH_SECTION_OTHER_REGISTERS];
  record->frames = base[CRASH_SECTION_FRAMES];
  record->registers = base[CRASH_SECTION_REGISTERS];
  record->messages = base[CRASH_SECTION_MESSAGES];
  record->notes = base[CRASH_SECTION_NOTES];
}

int crash_record_draft(struct crash_record *record, size_t image_capacity, size_t path_capacity,
                       struct crash_support_error *error) {
  const struct plan plan[] = {
      {CRASH_SECTION_PROCESS, 0, sizeof(struct crash_record_process)},
      {CRASH_SECTION_SCOPE, CRASH_SECTION_FLAG_LIVE, sizeof(struct crash_record_scope)},
      {CRASH_SECTION_IMAGES, 0, image_capacity * sizeof(struct crash_record_image)},
      {CRASH_SECTION_PATHS, 0, path_capacity},
      // Up to here the start fills.
      {CRASH_SECTION_BREADCRUMBS, CRASH_SECTION_FLAG_LIVE, sizeof(struct crash_record_breadcrumbs)},
      {CRASH_SECTION_RUN, CRASH_SECTION_FLAG_LIVE, sizeof(struct crash_record_run)},
      {CRASH_SECTION_SIGNAL, 0, sizeof(struct crash_record_signal)},
      {CRASH_SECTION_THREADS, 0, sizeof(struct crash_record_thread)},
      {CRASH_SECTION_FRAMES, 0, CRASH_FRAME_CAPACITY * sizeof(struct crash_record_frame)},
      {CRASH_SECTION_REGISTERS, 0, sizeof(struct crash_record_registers)},
      {CRASH_SECTION_MESSAGES, 0, CRASH_RECORD_MESSAGE_COUNT * sizeof(struct crash_record_message)},
      {CRASH_SECTION_NOTES, 0, CRASH_RECORD_NOTE_COUNT * sizeof(struct crash_record_note)},
      {CRASH_SECTION_TASK, 0, sizeof(struct crash_record_task)},
      // Last, as these are most of the file and seldom needed in full: their pages come into memory when they are.
      {CRASH_SECTION_OTHER_THREADS, 0, CRASH_OTHER_THREADS * sizeof(struct crash_record_thread)},
      {CRASH_SECTION_OTHER_REGISTERS, 0, CRASH_OTHER_REGISTERS * sizeof(struct crash_record_registers)},
      {CRASH_SECTION_OTHER_FRAMES, 0, CRASH_OTHER_FRAMES * sizeof(struct crash_record_frame)},
  };
  const size_t count = sizeof plan / sizeof plan[0];
  memset(record, 0, sizeof *record);

  struct crash_record_section sections[sizeof plan / sizeof plan[0]];
  size_t size = CRASH_RECORD_HEADER_SIZE;
  for (size_t i = 0; i < count; i++) {
    if (plan[i].type == CRASH_SECTION_BREADCRUMBS) record->draft_size = size;
    if (plan[i].type == CRASH_SECTION_OTHER_THREADS) record->resident_size = size;
    sections[i] = (struct crash_record_section){
        .type = plan[i].type, .flags = plan[i].flags, .offset = size, .capacity = pages(plan[i].capacity)};
    size += pages(plan[i].capacity);
  }

  // Beyond this limit the kernel does not only refuse: it sends SIGXFSZ, which would end the host.
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
    errno = EFBIG;
    return fail(error, "the limit for the size of files (RLIMIT_FSIZE) is below the size of a record");
  }

  // As in the file, so that everything finds its section, and only the pages that are filled are there. Not the heap, which
  // would keep them.
  void *memory = mmap(NULL, record->draft_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(error, "memory to prepare the record in");
  struct crash_record_header *header = memory;
  memcpy(header->magic, CRASH_RECORD_MAGIC, sizeof header->magic);
  header->version = CRASH_RECORD_VERSION;
  header->header_size = CRASH_RECORD_HEADER_SIZE;
  header->file_size = size;
  header->architecture = CRASH_ARCH_MACHINE;
  header->section_count = (uint32_t)count;
  memcpy(header->sections, sections, sizeof sections);
  if (make_uuid_v7(header->run_id) != 0 ||
      getrandom(header->report_entropy, sizeof header->report_entropy, 0) != (ssize_t)sizeof header->report_entropy) {
    fail(error, "asking the kernel for random bytes");
    munmap(memory, record->draft_size);
    return -1;
  }
  header->fixed_checksum = crash_record_checksum(0, header, offsetof(struct crash_record_header, fixed_checksum));
  record->size = size;
  find_sections(record, memory);
  // Live sections count from the first moment: their slots guard themselves.
  crash_record_commit(record, CRASH_SECTION_SCOPE, sizeof(struct crash_record_scope));
  crash_record_commit(record, CRASH_SECTION_BREADCRUMBS, sizeof(struct crash_record_breadcrumbs));
  crash_record_commit(record, CRASH_SECTION_RUN, sizeof(struct crash_record_run));
  return 0;
}

int crash_record_create(struct crash_record *record, const char *directory, const char *name,
                        struct crash_support_error *error) {
  void *draft = record->header;
  void *memory = NULL;
  if (!directory) directory = directory_path;
  size_t length = strlen(directory), name_length = name ? strlen(name) + 1 : 0;
  if (length == 0 || length + name_length >= sizeof directory_path) {
    errno = length ? ENAMETOOLONG : EINVAL;
    fail(error, "the path of the directory for records");
  } else {
    hex(record->file_name, record->header->run_id, 16);
    memcpy(record->file_name + 32, CRASH_RECORD_SUFFIX, sizeof CRASH_RECORD_SUFFIX);
    int folder = open_folder(directory, name, error);
    if (folder >= 0) {
      memory = make_file(folder, record, error);
      close(folder);
    }
  }
  if (memory) {
    if (directory != directory_path) memcpy(directory_path, directory, length + 1);
    if (name) {
      directory_path[length] = '/';
      memcpy(directory_path + length + 1, name, name_length);
    }
    find_sections(record, memory);
  }
  munmap(draft, record->draft_size);
  return memory ? 0 : -1;
}

void crash_record_make_resident(const struct crash_record *record) {
  const volatile char *memory = (const char *)record->header;
  for (size_t offset = 0; offset < record->resident_size; offset += CRASH_RECORD_HEADER_SIZE) (void)memory[offset];
}

void crash_record_remove_file(const struct crash_record *record) {
  int folder = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder >= 0) {
    unlinkat(folder, record->file_name, 0);
    close(folder);
  }
}

void crash_record_discard(struct crash_record *record) {
  crash_record_remove_file(record);
  crash_record_close(record);
}

void crash_record_close(struct crash_record *record) {
  unmap_with_guards(record->header, record->size);
  memset(record, 0, sizeof *record);
}

size_t crash_record_length(const struct crash_record *record, enum crash_record_section_type type) {
  const struct crash_record_section *section = find_section(record, type);
  if (!section || __atomic_load_n(&section->commit, __ATOMIC_ACQUIRE) != CRASH_SECTION_COMMITTED) return 0;
  return section->length;
}

void crash_record_reopen(struct crash_record *record, enum crash_record_section_type type) {
  struct crash_record_section *section = find_section(record, type);
  if (!section) return;
  __atomic_store_n(&section->commit, CRASH_SECTION_OPEN, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

void crash_record_commit(struct crash_record *record, enum crash_record_section_type type, size_t length) {
  struct crash_record_section *section = find_section(record, type);
  if (!section) return;
  // A section can be committed again (images grow); while its words disagree it must not be believed.
  crash_record_reopen(record, type);
  section->length = length;
  section->checksum = section->flags & CRASH_SECTION_FLAG_LIVE
                          ? 0
                          : crash_record_checksum(0, (const char *)record->header + section->offset, length);
  __atomic_store_n(&section->commit, CRASH_SECTION_COMMITTED, __ATOMIC_RELEASE);
}

void crash_record_commit_if_open(struct crash_record *record, enum crash_record_section_type type, size_t length) {
  const struct crash_record_section *section = find_section(record, type);
  if (section && __atomic_load_n(&section->commit, __ATOMIC_ACQUIRE) != CRASH_SECTION_COMMITTED)
    crash_record_commit(record, type, length);
}

void crash_record_forget_notes(struct crash_record *record) {
  for (uint32_t i = 0; i < CRASH_RECORD_NOTE_COUNT; i++)
    __atomic_store_n(&record->taken_notes[i].kind, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&record->note_count, 0, __ATOMIC_RELEASE);
}

void crash_record_commit_notes(struct crash_record *record) {
  crash_record_reopen(record, CRASH_SECTION_NOTES);
  uint32_t taken = __atomic_load_n(&record->note_count, __ATOMIC_ACQUIRE), count = 0;
  for (uint32_t i = 0; i < taken && i < CRASH_RECORD_NOTE_COUNT; i++)
    if (__atomic_load_n(&record->taken_notes[i].kind, __ATOMIC_ACQUIRE)) record->notes[count++] = record->taken_notes[i];
  crash_record_commit(record, CRASH_SECTION_NOTES, count * sizeof(struct crash_record_note));
}

void crash_record_note(struct crash_record *record, uint32_t kind, uint32_t stage, uint64_t value, uint64_t address) {
  uint32_t index = __atomic_fetch_add(&record->note_count, 1, __ATOMIC_RELAXED);
  if (index >= CRASH_RECORD_NOTE_COUNT) return;
  struct crash_record_note *note = &record->taken_notes[index];
  note->stage = stage;
  note->value = value;
  note->address = address;
  __atomic_store_n(&note->kind, kind, __ATOMIC_RELEASE);
}

CRASH_UNINSTRUMENTED_END
