// Crash capture for Linux: what a daemon embeds. This is the whole public face of the C target.
//
// Swift programs use the module `CrashReporting`, which calls these functions and turns records into reports at the next
// start. C and C++ programs can use them directly; `symbolicate` reads the records that they leave.
//
//     struct crash_support_configuration configuration = {
//         .size = sizeof configuration, .directory = "/var/lib/orderd/crashes/records",
//         .service = "orderd", .release = "1.4.0", .environment = "production"};
//     struct crash_support_error error;
//     if (crash_support_start(&configuration, &error) != CRASH_SUPPORT_STARTED)
//       fprintf(stderr, "no crash capture: %s: %s\n", error.what, strerror(error.number));
//
// Every function says whether it is async-signal-safe. All may be called from any thread.

#ifndef CCRASHSUPPORT_H
#define CCRASHSUPPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct crash_support_configuration {
  size_t size;              ///< sizeof(struct crash_support_configuration), so that the struct can grow
  const char *directory;    ///< where the record is made; must exist, be ours and be writable by nobody else
  const char *folder;       ///< NULL, or where in `directory` it is made; must be the same, and is made where it is missing
  const char *service;      ///< NULL: the executable's name
  const char *release;      ///< NULL: none
  const char *environment;  ///< NULL: "production"
};

enum crash_support_start_result {
  CRASH_SUPPORT_STARTED = 0,
  CRASH_SUPPORT_ALREADY_STARTED = 1,  ///< nothing was changed
  CRASH_SUPPORT_FAILED = 2,           ///< nothing was changed; `error` says what stood in the way
};

struct crash_support_error {
  int number;        ///< errno
  const char *what;  ///< static text: the step that failed
};

/// Prepares the record and installs the handlers. Once per process: a second call changes nothing.
///
/// Copies what it is given. Holds no descriptor afterwards. Not async-signal-safe: allocates and takes the loader's lock.
enum crash_support_start_result crash_support_start(const struct crash_support_configuration *configuration,
                                                    struct crash_support_error *error);

/// Whether the process gained rights by setuid, setgid or file capabilities, in which case `crash_support_start` fails:
/// it must not write where the user who started it says. For callers that make files before. Async-signal-safe.
int crash_support_is_privileged(void);

/// Gives the signals back to their former handlers and removes the record. Not async-signal-safe.
void crash_support_stop(void);

/// Copies the run's id (UUIDv7) to `run_id`, unless that is NULL. Returns 0, or -1 where nothing was started.
/// Async-signal-safe.
int crash_support_run_id(uint8_t run_id[16]);

/// Sets the host program's own opaque id of the user; NULL forgets it.
///
/// Stored as it is, which is why something that is a person's address or number is refused.
/// Returns 0; -1 where the id holds an e-mail address or a run of seven or more digits (nothing was stored).
/// May be called before `crash_support_start`. Not async-signal-safe: takes a lock of its own.
int crash_support_set_user(const char *id, size_t length);

/// Sets what the program is doing: a route, a job. NULL forgets it. At most 256 bytes are kept, redacted.
/// May be called before `crash_support_start`. Not async-signal-safe: takes a lock of its own.
void crash_support_set_operation(const char *operation, size_t length);

/// Sets a tag; a NULL value removes it. Keys up to 56 bytes, values up to 192 bytes, redacted.
/// Returns 0; -1 where there are 50 tags already, or the key is empty or too long (nothing was stored).
/// May be called before `crash_support_start`. Not async-signal-safe: takes a lock of its own.
int crash_support_set_tag(const char *key, size_t key_length, const char *value, size_t value_length);

/// Adds a breadcrumb to the ring of the last 128. Category up to 40 bytes (NULL for none), message up to 192, redacted.
/// May be called before `crash_support_start`. Lock-free, and async-signal-safe.
void crash_support_add_breadcrumb(const char *category, size_t category_length, const char *message,
                                  size_t message_length);

/// Which of the seven signals are handled by somebody who came after the start, as a set: bit `signal - 1`. A crash by one
/// of these is only captured where that handler calls ours. 0 while nothing was started. Async-signal-safe.
uint64_t crash_support_replaced_handlers(void);

/// Whether the calling thread has an alternate stack, without which its own stack overflow leaves nothing.
/// Async-signal-safe.
int crash_support_has_signal_stack(void);

/// Names a task local of Swift whose value goes into a report about a crash in a task that has one: a request's id.
///
/// `key` is the address of the `TaskLocal<String>` or `TaskLocal<String?>` object, which must live for ever (those of
/// `@TaskLocal` do). Names up to 60 bytes; values are redacted and cut at 192 bytes. At most 8; a second registration of a
/// key changes nothing. Returns 0, or -1 where there is no room or the name is empty or too long.
/// May be called before `crash_support_start`. Lock-free, and async-signal-safe.
int crash_support_register_task_local(const char *name, size_t length, const void *key);

/// The process that the reporter was started in: the calling one, where `crash_support_run_id` returns 0. Asks no kernel.
/// Async-signal-safe.
int32_t crash_support_process_id(void);

/// Walks the calling thread's stack, for a report on something that is no crash.
///
/// Fills `addresses` with return addresses, the one into the caller of this function first, and with the places where the
/// callers go on that await it; `awaits` with 1 for these and 0 for the others. Returns how many; 0 where nothing was started.
/// `thread` (may be NULL) becomes the kernel's id of the thread. Uses up to 12 KiB of stack. Any thread; not
/// async-signal-safe: asks the loader, under its lock, whether code was unloaded since the last call.
size_t crash_support_capture_stack(uint64_t *addresses, uint8_t *awaits, size_t capacity, uint32_t *thread);

/// What to take a snapshot of, and why.
struct crash_support_snapshot_request {
  size_t size;              ///< sizeof(struct crash_support_snapshot_request), so that the struct can grow
  const char *watch;        ///< name of what does not answer, at most 60 bytes are kept; NULL: a snapshot, and no hang
  uint32_t thread;          ///< kernel id of the thread that it is about; 0 where that is not known
  uint64_t silent_ns;       ///< for how long there has been no answer
  uint32_t samples;         ///< how often to look at the threads, at least once
  uint32_t pause_us;        ///< between two samples
};

struct crash_support_snapshot {
  char record[48];      ///< name of the file, in the directory of the records
  uint64_t stopped_ns;  ///< how long the threads stood still, the longest of the samples
  uint32_t threads;     ///< how many there were
};

/// Writes the stacks of all threads but the calling one into a record of their own, and lets the process go on.
///
/// The threads stand still while their stacks are walked: some microseconds each. Calls that they wait in go on
/// afterwards; poll(2), epoll_wait(2) and their like begin their timeout anew. The record is complete when this returns,
/// and belongs to whoever works on dead records.
/// Returns 0; -1 with `error` filled in where nothing was started, the record cannot be made, another snapshot or a crash
/// is being captured (EBUSY). Not async-signal-safe: makes a file.
int crash_support_capture_snapshot(const struct crash_support_snapshot_request *request,
                                   struct crash_support_snapshot *snapshot, struct crash_support_error *error);

/// Lets SIGQUIT ask for a snapshot instead of ending the process, where its action is the default one or that of the Swift
/// runtime's backtracer.
///
/// The handler takes none itself: a thread that waits in `crash_support_wait_for_quit` does. Nothing that the process
/// waits in is interrupted by it. Returns 0; -1 where somebody else handles SIGQUIT, or nothing was started.
/// Not async-signal-safe.
int crash_support_catch_quit(void);

/// Exchanges two files of a folder in one step (`renameat2`, which libc before 2.28 and Swift's view of it do not have).
/// Returns 0, or -1 with errno: ENOENT where one is not there. Async-signal-safe but for errno.
int crash_support_exchange(int folder, const char *one, const char *other);

/// Waits for SIGQUITs, and returns how many came since the last call. To be called by one thread. Not
/// async-signal-safe.
uint32_t crash_support_wait_for_quit(void);

/// The kernel's id of the calling thread; 0 where a sandbox does not tell. Async-signal-safe.
uint32_t crash_support_thread_id(void);

/// Does what would take the start some tenths of a millisecond more, and no capture depends on: adds the distribution's
/// name, the boot id and the time at which the process began to the record, and brings into memory what a crash will write
/// to. To be called once behind `crash_support_start`, from any thread; where it was not, reports name the kernel instead
/// of the distribution, and a crash waits for those pages. Nothing happens where nothing was started.
/// Not async-signal-safe: opens files.
void crash_support_describe_process(void);

/// Records the images that were loaded since the start or the last call, so that the handler need not.
///
/// Worth a call after `dlopen`; without it the handler finds them itself. Costs 20 ns where nothing changed.
/// Not async-signal-safe: takes the loader's lock.
void crash_support_refresh_images(void);

#ifdef __cplusplus
}
#endif
#endif
