#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "CCrashSupport.h"
#include "async.h"
#include "capture.h"
#include "deadline.h"
#include "handlers.h"
#include "images.h"
#include "memory_groups.h"
#include "message.h"
#include "process_info.h"
#include "signal_stacks.h"
#include "stages.h"
#include "terminations.h"
#include "threads.h"

static const uint32_t nobody;
struct crash_capture crash_capture = {.owner = &nobody};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int process_hooks_registered;

// How much room for images that are loaded after the start: plug-ins, NSS modules, a locale's converters.
#define SPARE_IMAGES 64u
#define SPARE_PATH_BYTES (16u * 1024)

// The child starts without a record: its pages are not mapped there. It may call `crash_support_start` itself.
static void in_forked_child(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&start_lock, &fresh, sizeof start_lock);
  crash_scope_after_fork();
  crash_threads_after_fork();
  crash_snapshot_after_fork();
  crash_handlers_reset();
  crash_capture.owner = &nobody;
  memset(&crash_capture.record, 0, sizeof crash_capture.record);
}

static void note_exit(enum crash_record_end how, int status) {
  if (!crash_capture_is_owner() || getpid() != crash_capture.pid) return;
  crash_handlers_notice_recovery();
  struct crash_record_run *run = crash_capture.record.run;
  run->exit_status = status;
  __atomic_store_n(&run->end, how, __ATOMIC_RELEASE);
  __atomic_store_n(&crash_capture.record.header->run_state, CRASH_RUN_EXITED, __ATOMIC_RELEASE);
}

static void at_quick_exit_too(void) { note_exit(CRASH_END_QUICK_EXIT, 0); }

#ifdef __GLIBC__
static void at_exit(int status, void *unused) {
  (void)unused;
  note_exit(CRASH_END_EXIT, status);
}
#else
static void at_exit(void) { note_exit(CRASH_END_QUICK_EXIT, 0); }
#endif

static int fail(struct crash_support_error *error, const char *what, int number) {
  error->number = number;
  error->what = what;
  return -1;
}

// The word that a forked child reads as 0. A kernel without MADV_WIPEONFORK (before 4.14) leaves it at 1 there; then
// `in_forked_child` sets the pointer back, which covers everything but a raw clone.
static const volatile uint32_t *make_owner_word(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  volatile uint32_t *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (word == MAP_FAILED) return NULL;
  madvise((void *)word, page, MADV_WIPEONFORK);
  *word = 1;
  return word;
}

static void release_owner_word(const volatile uint32_t *word) {
  if (word && word != &nobody) munmap((void *)(uintptr_t)word, (size_t)sysconf(_SC_PAGESIZE));
}

int crash_support_is_privileged(void) { return getauxval(AT_SECURE) != 0; }

static int start(const struct crash_support_configuration *configuration, struct crash_support_error *error) {
  // A process that gained rights by setuid must not write where the user who started it says.
  if (crash_support_is_privileged()) return fail(error, "the process runs with rights that its user does not have", EPERM);
  if (configuration->size < sizeof *configuration || !configuration->directory)
    return fail(error, "the configuration", EINVAL);

  size_t images, path_bytes;
  crash_images_reset();
  crash_images_measure(&images, &path_bytes);
  struct crash_record record;
  if (crash_record_draft(&record, images + SPARE_IMAGES, path_bytes + SPARE_PATH_BYTES, error) != 0) return -1;
  crash_process_record(&record);
  crash_images_record(&record);
  const char *executable = strrchr(record.process->executable, '/');
  crash_scope_set_identity(&record, configuration->service ? configuration->service : executable ? executable + 1 : "",
                           configuration->release, configuration->environment ? configuration->environment : "production");
  if (crash_record_create(&record, configuration->directory, configuration->folder, error) != 0) return -1;

  const volatile uint32_t *owner = make_owner_word();
  if (!owner) {
    fail(error, "a page for the state that children must not inherit", errno);
    crash_record_discard(&record);
    return -1;
  }
  if (!process_hooks_registered) {
    // In this order, and before the handlers: a fork or an exit between the steps finds everything that it needs.
    pthread_atfork(NULL, NULL, in_forked_child);
#ifdef __GLIBC__
    on_exit(at_exit, NULL);  // as atexit, and it is told the status
#else
    atexit(at_exit);
#endif
    at_quick_exit(at_quick_exit_too);
    process_hooks_registered = 1;
  }
  crash_message_prepare();
  crash_stages_prepare();
  crash_async_prepare();
  crash_threads_add_existing();
  crash_signal_stack_arm();
  crash_handlers_reset();
  crash_deadline_prepare();
  crash_capture.record = record;
  crash_capture.pid = (int32_t)getpid();
  crash_capture.owner = owner;
  if (crash_handlers_install() != 0) {
    fail(error, "installing the signal handlers", errno);
    crash_capture.owner = &nobody;
    crash_deadline_remove();
    crash_record_discard(&crash_capture.record);
    release_owner_word(owner);
    return -1;
  }
  crash_threads_prepare();
  crash_terminations_install();
  crash_scope_attach(&crash_capture.record);
  __atomic_store_n(&crash_capture.record.header->run_state, CRASH_RUN_ALIVE, __ATOMIC_RELEASE);
  return 0;
}

enum crash_support_start_result crash_support_start(const struct crash_support_configuration *configuration,
                                                    struct crash_support_error *error) {
  struct crash_support_error ignored;
  if (!error) error = &ignored;
  *error = (struct crash_support_error){0, ""};
  enum crash_support_start_result result = CRASH_SUPPORT_ALREADY_STARTED;
  pthread_mutex_lock(&start_lock);
  if (!crash_capture_is_owner()) result = start(configuration, error) == 0 ? CRASH_SUPPORT_STARTED : CRASH_SUPPORT_FAILED;
  pthread_mutex_unlock(&start_lock);
  return result;
}

void crash_support_stop(void) {
  pthread_mutex_lock(&start_lock);
  if (crash_capture_is_owner()) {
    crash_handlers_uninstall();
    crash_terminations_uninstall();
    crash_scope_detach();
    crash_deadline_remove();
    crash_capture.owner = &nobody;
    // Should the file not be removable any more, a reader must not take this run for a killed one.
    __atomic_store_n(&crash_capture.record.header->run_state, CRASH_RUN_STOPPED, __ATOMIC_RELEASE);
    // The memory stays mapped: another thread may be inside a setter. Without a name it ends with the process.
    crash_record_remove_file(&crash_capture.record);
  }
  pthread_mutex_unlock(&start_lock);
}

int crash_support_run_id(uint8_t run_id[16]) {
  if (!crash_capture_is_owner()) return -1;
  if (run_id) memcpy(run_id, crash_capture.record.header->run_id, 16);
  return 0;
}

int32_t crash_support_process_id(void) { return crash_capture.pid; }

void crash_support_describe_process(void) {
  pthread_mutex_lock(&start_lock);
  if (crash_capture_is_owner()) {
    crash_async_learn(&crash_capture.record);
    crash_record_make_resident(&crash_capture.record);
    crash_process_describe(&crash_capture.record);
    crash_memory_groups_record(&crash_capture.record);
  }
  pthread_mutex_unlock(&start_lock);
  // For its side effect: code and tables that a walk reads are brought into memory, here and not in the first error or crash.
  uint64_t address;
  uint8_t is_awaiting;
  crash_support_capture_stack(&address, &is_awaiting, 1, NULL);
}

void crash_support_refresh_images(void) {
  if (!crash_capture_is_owner() || !crash_images_changed()) return;
  pthread_mutex_lock(&start_lock);
  if (crash_capture_is_owner()) crash_images_record(&crash_capture.record);
  pthread_mutex_unlock(&start_lock);
}
