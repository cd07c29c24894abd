// Layout of `crashrecord/1`, the file that one process run leaves behind.
//
// This header is the single description of the bytes. The crash path writes them, the readers (Swift, through this same
// header) read them, so that both cannot drift apart; every struct that reaches the disk is pinned by a `_Static_assert`.
// Prose, a drawing and the version history: docs/crash-record.md.
//
// All integers are little endian; all offsets are in bytes from the start of the file. Texts are UTF-8 as the program
// gave it (so a reader repairs it), not terminated, with their length beside them.

#ifndef CCRASHFORMAT_H
#define CCRASHFORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "CCrashFormat_redact.h"
#include "CCrashFormat_sha256.h"
#include "CCrashFormat_suspicion.h"
#include "CCrashFormat_uninstrumented.h"

#ifdef __cplusplus
extern "C" {
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "crashrecord/1 is written as the machine's own structs, which is right on little-endian machines only"
#endif

/// The first eight bytes of every record.
#define CRASH_RECORD_MAGIC "crashrec"
#define CRASH_RECORD_VERSION 1u
/// The header fills the first page; sections start page-aligned behind it.
#define CRASH_RECORD_HEADER_SIZE 4096u
/// A record larger than this is refused by readers before a byte of it is believed.
#define CRASH_RECORD_MAX_FILE_SIZE (64u * 1024 * 1024)
#define CRASH_RECORD_MAX_SECTIONS 32u
#define CRASH_RECORD_BUILD_ID_MAX 32u

/// What a section holds. Numbers are never reused; a reader skips the ones that it does not know.
enum crash_record_section_type {
  CRASH_SECTION_NONE = 0,
  CRASH_SECTION_PROCESS = 1,      ///< struct crash_record_process, written at start
  CRASH_SECTION_SCOPE = 2,        ///< struct crash_record_scope, live
  CRASH_SECTION_BREADCRUMBS = 3,  ///< struct crash_record_breadcrumbs, live
  CRASH_SECTION_IMAGES = 4,       ///< struct crash_record_image[], start; completed at the crash
  CRASH_SECTION_PATHS = 5,        ///< bytes, the images' paths
  CRASH_SECTION_SIGNAL = 6,       ///< struct crash_record_signal, at the crash
  CRASH_SECTION_THREADS = 7,      ///< struct crash_record_thread, at the crash: the one that crashed
  CRASH_SECTION_FRAMES = 8,       ///< struct crash_record_frame[], at the crash: of that thread
  CRASH_SECTION_REGISTERS = 9,    ///< struct crash_record_registers, at the crash: of that thread
  CRASH_SECTION_MESSAGES = 10,    ///< struct crash_record_message[], at the crash, redacted
  CRASH_SECTION_NOTES = 11,       ///< struct crash_record_note[], what the handler met on its way
  CRASH_SECTION_TASK = 12,             ///< struct crash_record_task, at the crash: the Swift task that crashed
  CRASH_SECTION_OTHER_THREADS = 13,    ///< struct crash_record_thread[], at the crash, after the crashed one is sealed
  CRASH_SECTION_OTHER_FRAMES = 14,     ///< struct crash_record_frame[]: of those threads
  CRASH_SECTION_OTHER_REGISTERS = 15,  ///< struct crash_record_registers[]: of the first of those threads
  CRASH_SECTION_RUN = 16,              ///< struct crash_record_run, live: what the record is of, and how its run ended
};

/// `commit` word of a section. Anything else than these two is a torn or foreign section.
#define CRASH_SECTION_OPEN 0u
#define CRASH_SECTION_COMMITTED 0x434f4d4du  // "MMOC" as bytes

/// Section flags.
enum {
  /// The section changes while the program runs, so it has no checksum; its slots guard themselves by a sequence
  /// counter (odd while it is written).
  CRASH_SECTION_FLAG_LIVE = 1u << 0,
};

/// One row of the table of sections in the header.
struct crash_record_section {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;    ///< from the start of the file, page-aligned
  uint64_t capacity;  ///< bytes reserved
  uint64_t length;    ///< bytes in use, at most `capacity`
  uint32_t commit;    ///< CRASH_SECTION_COMMITTED once `length` and `checksum` hold
  uint32_t checksum;  ///< CRC-32C of the first `length` bytes; 0 for a live section
};
_Static_assert(sizeof(struct crash_record_section) == 40, "on disk");

/// How the run stands. Written with plain stores, so that it survives SIGKILL.
enum crash_record_run_state {
  CRASH_RUN_STARTING = 0,
  CRASH_RUN_ALIVE = 1,
  CRASH_RUN_EXITED = 2,   ///< ran its exit handlers
  CRASH_RUN_STOPPED = 3,  ///< the reporter was stopped on purpose
};

/// How far the crash path came.
enum crash_record_crash_state {
  CRASH_STATE_NONE = 0,
  CRASH_STATE_CAPTURING = 1,  ///< a handler started; sections that are committed can be trusted
  CRASH_STATE_COMPLETE = 2,   ///< all stages ran
};

struct crash_record_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;  ///< CRASH_RECORD_HEADER_SIZE
  uint64_t file_size;
  uint32_t architecture;  ///< ELF e_machine: 62 x86-64, 183 aarch64
  uint32_t section_count;
  uint8_t run_id[16];          ///< UUIDv7 of the run
  uint8_t report_entropy[16];  ///< random bytes for the report's own UUIDv7, so that reading twice gives one id
  uint32_t fixed_checksum;     ///< CRC-32C of the bytes before it
  uint32_t reserved0;
  /* What follows changes while the program runs. */
  uint32_t run_state;    ///< enum crash_record_run_state
  uint32_t crash_state;  ///< enum crash_record_crash_state
  uint32_t crash_thread; ///< kernel thread id that owns the crash path; 0 while nobody does
  uint32_t reserved1;
  struct crash_record_section sections[CRASH_RECORD_MAX_SECTIONS];
};
_Static_assert(offsetof(struct crash_record_header, fixed_checksum) == 64, "on disk");
_Static_assert(offsetof(struct crash_record_header, sections) == 88, "on disk");
_Static_assert(sizeof(struct crash_record_header) == 88 + 40 * CRASH_RECORD_MAX_SECTIONS, "on disk");
_Static_assert(sizeof(struct crash_record_header) <= CRASH_RECORD_HEADER_SIZE, "one page");

/// A text slot that readers may meet half written.
///
/// `sequence` is odd while a writer is inside; a reader of a dead process's record that finds it odd reports the slot as
/// torn and drops it, as the old and the new text may be mixed in it.
#define CRASH_RECORD_TEXT(name, size) \
  struct name {                       \
    uint32_t sequence;                \
    uint16_t length;                  \
    uint16_t reserved;                \
    char bytes[size];                 \
  }
CRASH_RECORD_TEXT(crash_record_text64, 64);
CRASH_RECORD_TEXT(crash_record_text128, 128);
CRASH_RECORD_TEXT(crash_record_text256, 256);
_Static_assert(sizeof(struct crash_record_text256) == 264, "on disk");

/// Section PROCESS.
struct crash_record_process {
  int32_t pid;
  int32_t parent_pid;
  uint32_t user_id;
  uint32_t page_size;
  uint64_t start_ticks;          ///< field 22 of /proc/self/stat
  int64_t start_realtime_ns;     ///< CLOCK_REALTIME
  int64_t start_boottime_ns;     ///< CLOCK_BOOTTIME
  uint8_t boot_id[16];           ///< /proc/sys/kernel/random/boot_id
  uint16_t executable_length;
  uint16_t host_length;
  uint16_t system_length;
  uint16_t reserved;
  char host[72];
  char system[120];  ///< distribution's pretty name, else "Linux" and the kernel's release
  char executable[4096];
};
_Static_assert(sizeof(struct crash_record_process) == 56 + 8 + 72 + 120 + 4096, "on disk");

#define CRASH_RECORD_TAG_COUNT 50u

struct crash_record_tag {
  uint32_t sequence;
  uint16_t key_length;  ///< 0: the slot is free
  uint16_t value_length;
  char key[56];
  char value[192];
};
_Static_assert(sizeof(struct crash_record_tag) == 256, "on disk");

/// Section SCOPE: what the program said about itself. Base redaction is applied before a text is stored.
struct crash_record_scope {
  struct crash_record_text128 service;
  struct crash_record_text128 release;
  struct crash_record_text64 environment;
  struct crash_record_text128 user;
  struct crash_record_text256 operation;
  struct crash_record_tag tags[CRASH_RECORD_TAG_COUNT];
};
_Static_assert(sizeof(struct crash_record_scope) == 3 * 136 + 72 + 264 + 50 * 256, "on disk");

#define CRASH_RECORD_BREADCRUMB_COUNT 128u

struct crash_record_breadcrumb {
  uint64_t sequence;  ///< 2 * (number of the breadcrumb, from 1) once complete; odd while written; 0 never used
  int64_t realtime_ns;
  uint16_t category_length;
  uint16_t message_length;
  uint32_t reserved;
  char category[40];
  char message[192];
};
_Static_assert(sizeof(struct crash_record_breadcrumb) == 256, "on disk");

/// Section BREADCRUMBS: a ring; the slot of number n is (n - 1) % CRASH_RECORD_BREADCRUMB_COUNT.
struct crash_record_breadcrumbs {
  uint64_t count;  ///< numbers given so far
  uint64_t reserved[7];
  struct crash_record_breadcrumb ring[CRASH_RECORD_BREADCRUMB_COUNT];
};
_Static_assert(sizeof(struct crash_record_breadcrumbs) == 64 + 256 * 128, "on disk");

enum {
  CRASH_IMAGE_MAIN_EXECUTABLE = 1u << 0,
  CRASH_IMAGE_VDSO = 1u << 1,
  CRASH_IMAGE_ADDED_AT_CRASH = 1u << 2,  ///< loaded after the last refresh; found by the handler
  CRASH_IMAGE_UNLOADED = 1u << 3,        ///< not loaded any more at the crash; another may be at its place
};

/// Section IMAGES: one ELF file mapped in the process.
struct crash_record_image {
  uint64_t address;       ///< of its first loaded page
  uint64_t size;          ///< up to the end of its last segment
  uint64_t bias;          ///< what to subtract from an address to get the ELF file's virtual address
  uint64_t text_address;  ///< of its executable segments, first to last
  uint64_t text_size;
  uint64_t eh_frame_hdr;  ///< address of PT_GNU_EH_FRAME, 0 where there is none
  uint32_t eh_frame_hdr_size;
  uint32_t path_offset;  ///< in section PATHS
  uint16_t path_length;
  uint8_t build_id_length;
  uint8_t flags;
  uint32_t reserved;
  uint8_t build_id[CRASH_RECORD_BUILD_ID_MAX];
};
_Static_assert(sizeof(struct crash_record_image) == 96, "on disk");

enum {
  CRASH_SIGNAL_HAS_ADDRESS = 1u << 0,  ///< the signal and its code define si_addr
  CRASH_SIGNAL_HAS_SENDER = 1u << 1,   ///< the signal was sent by a process
  CRASH_SIGNAL_HAS_SYSCALL = 1u << 2,  ///< SIGSYS: `address` is the call's address, `value` its number
};

/// Section SIGNAL.
struct crash_record_signal {
  int32_t number;
  int32_t code;
  int32_t error;
  uint32_t flags;
  uint64_t address;
  int32_t sender_pid;
  uint32_t sender_uid;
  uint64_t value;
  int64_t realtime_ns;
  int64_t boottime_ns;
  uint32_t thread;  ///< kernel thread id
  uint32_t reserved;
};
_Static_assert(sizeof(struct crash_record_signal) == 64, "on disk");

enum crash_record_thread_status {
  CRASH_THREAD_CAPTURED = 0,
  CRASH_THREAD_NO_ANSWER = 1,
  CRASH_THREAD_PARTIAL = 2,  ///< a fault or the deadline ended the walk; what is there holds
  CRASH_THREAD_OVER_CAP = 3, ///< more threads than the record has room for
};
enum {
  CRASH_THREAD_CRASHED = 1u << 0,
  CRASH_THREAD_DEPTH_CAPPED = 1u << 1,  ///< the walk was ended at its limit; `depth` is a lower bound
};
#define CRASH_RECORD_NO_REGISTERS 0xffffffffu

/// Sections THREADS and OTHER_THREADS. Frames `first_frame ..< first_frame + top_count` are the innermost ones, the
/// `bottom_count` frames behind them the outermost ones; `depth` counts those between them too. Behind both come
/// `async_count` frames of callers that await, which belong behind the first `async_position` frames of the stack: what is
/// further out there is the runtime's work on the task.
struct crash_record_thread {
  uint32_t id;  ///< kernel thread id
  uint32_t flags;
  uint32_t status;  ///< enum crash_record_thread_status
  uint32_t registers;  ///< index in section REGISTERS, or CRASH_RECORD_NO_REGISTERS
  uint64_t depth;
  uint32_t first_frame;
  uint32_t top_count;
  uint32_t bottom_count;
  uint32_t async_count;
  uint32_t async_position;
  uint32_t staying;  ///< of a hang: so many of the outermost frames were the same in every sample; 0 where not compared
  char name[16];  ///< NUL-padded
};
_Static_assert(sizeof(struct crash_record_thread) == 64, "on disk");

/// What a record is of.
enum crash_record_kind {
  CRASH_RECORD_OF_RUN = 0,       ///< a process run, and its crash where it came to one
  CRASH_RECORD_OF_SNAPSHOT = 1,  ///< all threads of a run that lived on
  CRASH_RECORD_OF_HANG = 2,      ///< the same, because something did not answer
};
/// What the process itself noticed of its end.
enum crash_record_end {
  CRASH_END_NONE = 0,
  CRASH_END_EXIT = 1,        ///< exit handlers ran; `exit_status` holds
  CRASH_END_QUICK_EXIT = 2,  ///< those of quick_exit(3) ran; the status is not told to them
  CRASH_END_SIGNAL = 3,      ///< a signal whose default action ends the process; `end_signal` and what follows hold
};
enum { CRASH_END_HAS_SENDER = 1u << 0, CRASH_END_HAS_CODE = 1u << 1 };

/// A memory cgroup of the process, or one that contains it: how often something in it was killed for want of memory.
struct crash_record_memory_group {
  uint64_t inode;      ///< of its folder; another one at the same path is a group that was made anew
  uint64_t oom_kills;  ///< `oom_kill` of memory.events (version 2) or memory.oom_control (version 1) at the start
  uint32_t version;    ///< 1 or 2
  uint16_t path_length;
  uint16_t reserved;
  char path[488];  ///< of its folder
};
_Static_assert(sizeof(struct crash_record_memory_group) == 512, "on disk");
#define CRASH_RECORD_MEMORY_GROUP_COUNT 6u

/// Section RUN.
struct crash_record_run {
  uint32_t kind;       ///< enum crash_record_kind
  uint32_t end;        ///< enum crash_record_end; stored behind what it says
  int32_t exit_status;
  uint32_t end_flags;
  int32_t end_signal;
  int32_t end_code;    ///< si_code
  int32_t sender_pid;  ///< 0: the kernel, or a process outside of the pid namespace
  uint32_t sender_uid;
  int64_t end_realtime_ns;  ///< 0: not known
  uint64_t machine_oom_kills;  ///< `oom_kill` of /proc/vmstat at the start
  uint32_t has_memory_groups;  ///< 1 once this and the groups hold
  uint32_t memory_group_count;
  /* Snapshots and hangs. */
  uint8_t of_run[16];     ///< id of the run
  int64_t realtime_ns;    ///< when it was taken
  uint64_t stopped_ns;    ///< how long the threads stood still
  uint64_t silent_ns;     ///< of a hang: for how long there had been no answer
  uint32_t samples;       ///< of a hang: how often the threads were looked at
  uint32_t thread;        ///< kernel id of the thread that it is about; 0 where that is not known
  uint16_t watch_length;
  uint16_t reserved0;
  char watch[60];  ///< name of what did not answer
  struct crash_record_memory_group memory_groups[CRASH_RECORD_MEMORY_GROUP_COUNT];
};
_Static_assert(sizeof(struct crash_record_run) == 168 + 512 * CRASH_RECORD_MEMORY_GROUP_COUNT, "on disk");

#define CRASH_RECORD_TASK_LOCAL_COUNT 8u
struct crash_record_task_local {
  uint16_t name_length;
  uint16_t value_length;
  char name[60];
  char value[192];  ///< redacted
};
/// Section TASK.
struct crash_record_task {
  uint64_t id;
  uint16_t name_length;
  uint16_t local_count;
  uint32_t reserved;
  char name[128];  ///< redacted
  struct crash_record_task_local locals[CRASH_RECORD_TASK_LOCAL_COUNT];
};
_Static_assert(sizeof(struct crash_record_task) == 144 + 8 * 256, "on disk");

/// What kind of address a frame has (DESIGN: the look-up adjustment follows from it).
enum crash_record_frame_kind {
  CRASH_FRAME_PROGRAM_COUNTER = 0,
  CRASH_FRAME_RETURN_ADDRESS = 1,
  CRASH_FRAME_ASYNC_RESUME = 2,
};
/// How a frame was found, best first.
enum crash_record_frame_trust {
  CRASH_TRUST_CONTEXT = 0,
  CRASH_TRUST_CFI = 1,
  CRASH_TRUST_FRAME_POINTER = 2,
  CRASH_TRUST_SCAN = 3,
  CRASH_TRUST_ASYNC = 4,
};
#define CRASH_RECORD_NO_IMAGE 0xffffu

/// Section FRAMES, innermost first within a thread.
struct crash_record_frame {
  uint64_t address;
  uint8_t kind;
  uint8_t trust;
  uint16_t image;  ///< index in section IMAGES, or CRASH_RECORD_NO_IMAGE
  uint32_t reserved;
};
_Static_assert(sizeof(struct crash_record_frame) == 16, "on disk");

/// Room for the largest register file written here (aarch64: x0-x30, sp, pc, pstate).
#define CRASH_RECORD_REGISTER_MAX 34u

/// Section REGISTERS. Order by architecture, as in DWARF: x86-64 rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip rflags;
/// aarch64 x0-x30 sp pc pstate.
struct crash_record_registers {
  uint32_t count;
  uint32_t reserved;
  uint64_t values[CRASH_RECORD_REGISTER_MAX];
};
_Static_assert(sizeof(struct crash_record_registers) == 280, "on disk");

enum crash_record_message_kind {
  CRASH_MESSAGE_SWIFT_FATAL_ERROR = 1,  ///< the Swift runtime's fatal error text
  CRASH_MESSAGE_ABORT = 2,              ///< glibc's text: failed assertion, stack smashing
  CRASH_MESSAGE_CXX_EXCEPTION_TYPE = 3, ///< mangled type name of the C++ exception in flight
};
enum { CRASH_MESSAGE_TRUNCATED = 1u << 0 };
#define CRASH_RECORD_MESSAGE_MAX 4080u
#define CRASH_RECORD_MESSAGE_COUNT 3u

/// Section MESSAGES. Redacted before they are stored: no raw message ever reaches the disk.
struct crash_record_message {
  uint32_t kind;  ///< enum crash_record_message_kind
  uint32_t flags;
  uint32_t length;
  uint32_t reserved;
  char bytes[CRASH_RECORD_MESSAGE_MAX];
};
_Static_assert(sizeof(struct crash_record_message) == 4096, "on disk");

enum crash_record_note_kind {
  CRASH_NOTE_STAGE_FAULT = 1,     ///< `stage` died with signal `value` at `address`; the next stage went on
  CRASH_NOTE_SECOND_CRASH = 2,    ///< thread `value` crashed too, with signal `stage`, at pc `address`
  CRASH_NOTE_HANDLER_REPLACED = 3,///< somebody put the handler at `address` in front of ours for signal `stage`
  CRASH_NOTE_IMAGES_FULL = 4,     ///< `value` images found no room
  CRASH_NOTE_WALK_ENDED = 5,      ///< why the walk of thread `value` ended: enum crash_record_walk_end in `stage`
  CRASH_NOTE_HOST_HANDLER = 6,    ///< the host's own handler at `address` got signal `stage` after the record was complete
  CRASH_NOTE_THREADS_OVER_CAP = 7,  ///< `value` threads found no room
};
/// Why the walk of a stack ended.
enum crash_record_walk_end {
  CRASH_WALK_OUTERMOST = 0,    ///< at a frame whose caller is undefined: the whole stack is there
  CRASH_WALK_NO_CALLER = 1,    ///< no unwind data, no frame pointer and nothing found by scanning
  CRASH_WALK_UNREADABLE = 2,   ///< the stack could not be read
  CRASH_WALK_NOT_ADVANCING = 3,///< the caller's stack pointer did not grow
  CRASH_WALK_LIMIT = 4,        ///< frame limit
};
struct crash_record_note {
  uint32_t kind;
  uint32_t stage;
  uint64_t value;
  uint64_t address;
};
_Static_assert(sizeof(struct crash_record_note) == 24, "on disk");
#define CRASH_RECORD_NOTE_COUNT 64u

/// CRC-32C (Castagnoli, reflected, initial and final value ~0) of `length` bytes, continuing from `checksum` (0 to
/// start). Async-signal-safe: reads a constant table, touches nothing else.
uint32_t crash_record_checksum(uint32_t checksum, const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif

#include "CCrashFormat_fields.h"

#endif
