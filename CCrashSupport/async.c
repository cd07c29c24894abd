#include "async.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "CCrashFormat_uninstrumented.h"
#include "CCrashSupport.h"
#include "arch.h"
#include "cfi.h"
#include "images.h"

CRASH_UNINSTRUMENTED_BEGIN

// The runtime's exported functions (stdlib/public/Concurrency); weak, as a daemon may have no concurrency in it.
extern void swift_job_run(void) __attribute__((weak));
extern void swift_job_run_on_task_executor(void) __attribute__((weak));
extern void swift_job_run_on_serial_and_task_executor(void) __attribute__((weak));
extern void *swift_task_getCurrent(void) __attribute__((weak));
extern uint64_t swift_task_getJobTaskId(void *task) __attribute__((weak));
extern const char *swift_task_getCurrentTaskName(void) __attribute__((weak));
extern void *swift_task_localValueGet(const void *key) __attribute__((weak));

// The header of the file that this code is linked into, by the linker.
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

// ---- Where jobs are run -----------------------------------------------------------------------------------------

// A frame of an async function has its context in the word below its saved frame pointer, as a rule, and nothing else says
// that a frame is one: other functions keep other words there, a stale context for example. What tells is where it is: the
// runtime runs jobs by calling into them, so that the async function is the last frame before the runtime's. Found right
// in every kind of task that was tried, where a look at each frame alone had false ones in every third run.
static struct {
  uint64_t start, size;
} runners[3];
static unsigned runner_count;
// The runtime is a library of its own: all of its code counts, and none of it is an async function of interest.
static int runtime_is_library;
// Where `swift_job_run` is; 0 where there is no Swift concurrency.
static uint64_t job_run;
// Whether the above is filled in. Learning it touches pages of tables that nothing else does, 40 us of a service's start,
// so that it is done afterwards, or by a handler that comes first.
static uint32_t is_learned;

static int is_runner(uint64_t pc) {
  for (unsigned i = 0; i < runner_count; i++)
    if (pc - runners[i].start < runners[i].size) return 1;
  return 0;
}

void crash_async_prepare(void) {
  job_run = (uint64_t)(uintptr_t)swift_job_run;
  if (job_run && __ehdr_start.e_type == ET_EXEC) {
    // In an executable without PIE the address of a function may be a jump in its own procedure linkage table. Only there
    // by name, which no handler may do: the look-up goes through every library, and takes another 40 us.
    void *run = dlsym(RTLD_DEFAULT, "swift_job_run");
    if (run) job_run = (uint64_t)(uintptr_t)run;
  }
  __atomic_store_n(&is_learned, 0, __ATOMIC_RELEASE);
}

void crash_async_learn(const struct crash_record *record) {
  if (__atomic_load_n(&is_learned, __ATOMIC_ACQUIRE)) return;
  // A handler may find another thread in the middle of this, stopped for good. It does the same again: what both store is
  // the same, each word whole, and the number comes last.
  unsigned count = 0;
  int is_library = 0;
  uint16_t image = job_run ? crash_images_index(record, job_run) : CRASH_RECORD_NO_IMAGE;
  uint16_t own = crash_images_index(record, (uint64_t)(uintptr_t)crash_async_learn);
  if (image != CRASH_RECORD_NO_IMAGE && image != own) {
    __atomic_store_n(&runners[0].start, record->images[image].text_address, __ATOMIC_RELAXED);
    __atomic_store_n(&runners[0].size, record->images[image].text_size, __ATOMIC_RELAXED);
    count = 1;
    is_library = 1;
  } else if (job_run) {
    // Linked into the executable: the functions through which every job goes.
    const uint64_t functions[] = {job_run, (uint64_t)(uintptr_t)swift_job_run_on_task_executor,
                                  (uint64_t)(uintptr_t)swift_job_run_on_serial_and_task_executor};
    for (unsigned i = 0; i < 3; i++) {
      uint64_t start, size;
      if (!functions[i] || !crash_cfi_function(record, functions[i], &start, &size)) continue;
      __atomic_store_n(&runners[count].start, start, __ATOMIC_RELAXED);
      __atomic_store_n(&runners[count].size, size, __ATOMIC_RELAXED);
      count++;
    }
  }
  __atomic_store_n(&runtime_is_library, is_library, __ATOMIC_RELAXED);
  __atomic_store_n(&runner_count, count, __ATOMIC_RELAXED);
  __atomic_store_n(&is_learned, 1, __ATOMIC_RELEASE);
}

// ---- From a frame to the callers that await it ------------------------------------------------------------------

// A context begins with the caller's context and the function that goes on there.
static int load_context(const struct crash_record *record, uint64_t context, uint64_t *parent, uint64_t *resume) {
  if (context == 0 || context % 8 != 0) return 0;
  return crash_safe_load(context, parent) && crash_safe_load(context + 8, resume) &&
         crash_images_is_code(record, *resume);
}

// The context of an async function is below its saved frame pointer or, where the function needs it no more (it never
// returns) or not yet, still where it came: in a register that its callees preserve.
static uint64_t context_of_frame(const struct crash_record *record, const struct crash_async_frame *frame) {
  uint64_t context, parent, resume;
  return frame->frame_pointer && crash_safe_load(frame->frame_pointer - 8, &context) &&
                 load_context(record, context, &parent, &resume)
             ? context
             : 0;
}

static uint64_t context_in_register(const struct crash_record *record, const struct crash_async_frame *frame) {
  uint64_t parent, resume;
  return load_context(record, frame->context_register, &parent, &resume) ? frame->context_register : 0;
}

static const struct crash_async_frame *inner_frame(const struct crash_async_trail *trail, uint32_t distance) {
  return &trail->frames[(trail->count - distance) % CRASH_ASYNC_TRAIL];
}

// Looks from a frame of the runtime inwards for the function that it runs.
static uint64_t find_context(const struct crash_record *record, const struct crash_async_trail *trail,
                             uint64_t *found_position) {
  uint32_t known = trail->count < CRASH_ASYNC_TRAIL ? trail->count : CRASH_ASYNC_TRAIL, first = 1;
  uint64_t context = 0;
  if (runtime_is_library) {
    // The function beside the runtime's frames is the one, or there is none.
    while (first <= known && is_runner(inner_frame(trail, first)->pc)) first++;
    if (first < known) known = first;
  }
  for (uint32_t i = first; i <= known && !context; i++) {
    context = context_of_frame(record, inner_frame(trail, i));
    *found_position = inner_frame(trail, i)->position;
  }
  // The runtime's own frame beside the function has the context in that register, too: it is what it passes.
  for (uint32_t i = runtime_is_library ? first : first + 1; i <= known && !context; i++) {
    context = context_in_register(record, inner_frame(trail, i));
    *found_position = inner_frame(trail, i)->position;
  }
  return context;
}

uint64_t crash_async_visit(const struct crash_record *record, struct crash_async_trail *trail,
                           const struct crash_async_frame *frame, uint64_t *found_position) {
  if (runner_count == 0) return 0;
  uint64_t context = is_runner(frame->pc) ? find_context(record, trail, found_position) : 0;
  trail->frames[trail->count++ % CRASH_ASYNC_TRAIL] = *frame;
  return context;
}

uint32_t crash_async_follow(const struct crash_record *record, uint64_t context, struct crash_record_frame *frames,
                            uint32_t capacity) {
  uint32_t count = 0;
  uint64_t parent, resume;
  while (count < capacity && load_context(record, context, &parent, &resume)) {
    frames[count++] = (struct crash_record_frame){.address = resume,
                                                  .kind = CRASH_FRAME_ASYNC_RESUME,
                                                  .trust = CRASH_TRUST_ASYNC,
                                                  .image = CRASH_RECORD_NO_IMAGE};
    context = parent;
  }
  return count;
}

// ---- The task ---------------------------------------------------------------------------------------------------

static struct {
  char name[60];
  uint16_t name_length;
  const void *key;
} registered[CRASH_RECORD_TASK_LOCAL_COUNT];
static uint32_t registered_count;

int crash_support_register_task_local(const char *name, size_t length, const void *key) {
  if (!name || length == 0 || length > sizeof registered[0].name || !key) return -1;
  uint32_t index = __atomic_load_n(&registered_count, __ATOMIC_ACQUIRE);
  do {
    for (uint32_t i = 0; i < index; i++)
      if (registered[i].key == key) return 0;
    if (index == CRASH_RECORD_TASK_LOCAL_COUNT) return -1;
  } while (!__atomic_compare_exchange_n(&registered_count, &index, index + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  memcpy(registered[index].name, name, length);
  registered[index].name_length = (uint16_t)length;
  // Last, and what the handler looks at: a slot without a key is being filled.
  __atomic_store_n(&registered[index].key, key, __ATOMIC_RELEASE);
  return 0;
}

// A raw text passes through here, in memory, never through the file.
static char raw_text[1024];

// Redacts a text that may be cut, and stores it.
static uint16_t store_text(size_t length, char *output, size_t capacity) {
  if (length == sizeof raw_text) length = crash_redact_whole(raw_text, length);
  return (uint16_t)crash_redact_base(raw_text, length, output, capacity, NULL);
}

// The two words of a Swift String (stdlib/public/core/StringObject.swift, 64 bits): up to 15 bytes inline, with their
// number in the lowest half of the last byte, or a count and the address of the text. Strings that are bridged or lazily
// made have no UTF-8 in memory; there are none on Linux. Returns how many bytes are in `raw_text`.
static size_t read_swift_string(uint64_t storage) {
  uint64_t words[2];
  if (crash_safe_copy(words, storage, sizeof words) != sizeof words || words[1] == 0) return 0;  // 0: nil
  unsigned top = (unsigned)(words[1] >> 60);
  if (top & 2) {  // immediate
    size_t length = (size_t)(words[1] >> 56) & 15;
    memcpy(raw_text, words, length);
    return length;
  }
  if (top & 1) return 0;  // foreign
  uint64_t length = words[0] & 0xffffffffffffull;
  if (length > sizeof raw_text) length = sizeof raw_text;
  // Native and literal strings alike: the address is biased by the header of a native one.
  return crash_safe_copy(raw_text, (words[1] & 0x0fffffffffffffffull) + 32, (size_t)length);
}

int crash_async_describe_task(struct crash_record_task *task) {
  memset(task, 0, sizeof *task);
  if (!swift_task_getCurrent || !swift_task_getJobTaskId) return 0;
  void *current = swift_task_getCurrent();
  if (!current) return 0;
  task->id = swift_task_getJobTaskId(current);
  if (swift_task_getCurrentTaskName) {
    const char *name = swift_task_getCurrentTaskName();
    size_t length = name ? crash_safe_copy(raw_text, (uint64_t)(uintptr_t)name, sizeof raw_text) : 0;
    task->name_length = store_text(strnlen(raw_text, length), task->name, sizeof task->name);
  }
  uint32_t count = __atomic_load_n(&registered_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && swift_task_localValueGet; i++) {
    const void *key = __atomic_load_n(&registered[i].key, __ATOMIC_ACQUIRE);
    const void *storage = key ? swift_task_localValueGet(key) : NULL;
    size_t length = storage ? read_swift_string((uint64_t)(uintptr_t)storage) : 0;
    if (length == 0) continue;
    struct crash_record_task_local *local = &task->locals[task->local_count++];
    memcpy(local->name, registered[i].name, registered[i].name_length);
    local->name_length = registered[i].name_length;
    local->value_length = store_text(length, local->value, sizeof local->value);
  }
  return 1;
}

CRASH_UNINSTRUMENTED_END
