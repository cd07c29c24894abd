// The record: one mapped, fully allocated file per process run, complete before anything goes wrong.

#ifndef CCRASHSUPPORT_RECORD_H
#define CCRASHSUPPORT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "CCrashFormat.h"
#include "CCrashSupport.h"

/// Room in the record.
enum {
  CRASH_TOP_FRAMES = 512,
  CRASH_BOTTOM_FRAMES = 128,
  CRASH_ASYNC_FRAMES = 128,
  CRASH_FRAME_CAPACITY = CRASH_TOP_FRAMES + CRASH_BOTTOM_FRAMES + CRASH_ASYNC_FRAMES,
  /// Of the threads that did not crash, and how many frames they have together. A thread's part is what is left for each,
  /// within these limits.
  CRASH_OTHER_THREADS = 1024,
  CRASH_OTHER_FRAMES = 24 * CRASH_OTHER_THREADS,
  CRASH_OTHER_FRAMES_MAX = 128,
  CRASH_OTHER_FRAMES_MIN = 16,
  CRASH_OTHER_REGISTERS = 64,
};

/// The mapped record and its sections, as pointers that the crash path can use at once.
struct crash_record {
  struct crash_record_header *header;
  size_t size;
  char file_name[48];
  struct crash_record_process *process;
  struct crash_record_run *run;
  struct crash_record_scope *scope;
  struct crash_record_breadcrumbs *breadcrumbs;
  struct crash_record_image *images;
  size_t image_capacity;
  char *paths;
  size_t path_capacity;
  struct crash_record_signal *signal;
  struct crash_record_thread *thread;
  /// Of the part that is prepared in memory, in bytes.
  size_t draft_size;
  /// Of the beginning of the file, up to the threads that did not crash, in bytes.
  size_t resident_size;
  struct crash_record_frame *frames;
  struct crash_record_registers *registers;
  struct crash_record_task *task;
  struct crash_record_thread *other_threads;
  struct crash_record_frame *other_frames;
  struct crash_record_registers *other_registers;
  struct crash_record_message *messages;
  struct crash_record_note *notes;
  /// What `crash_record_commit_notes` moves into the section. A thread that crashes second may be in the middle of its
  /// note when the first one seals, and nobody may write what is sealed.
  struct crash_record_note taken_notes[CRASH_RECORD_NOTE_COUNT];
  uint32_t note_count;
};

/// Prepares the beginning of a record in memory of its own, up to where `crash_record_create` finds everything that is
/// known at the start: stored there, each page of the file would cost two faults.
///
/// Only the sections PROCESS, SCOPE, IMAGES and PATHS may be filled before the file is made. Returns 0, or -1 with `error`
/// filled in and nothing left behind. Not async-signal-safe.
int crash_record_draft(struct crash_record *record, size_t image_capacity, size_t path_capacity,
                       struct crash_support_error *error);

/// Makes, locks, allocates and maps the file of a draft, in `directory` or, where `folder` is not NULL, in the folder of
/// that name in it.
///
/// The lock (`flock`) is held by the open file description, which the mapping keeps alive after the descriptor is
/// closed: it says "alive" until the process ends or unmaps, and costs the host no descriptor. Returns 0, or -1 with
/// `error` filled in and nothing left behind; the draft is gone in both cases. Not async-signal-safe.
///
/// For a further record of the same process both names may be NULL: the folder of the first one.
int crash_record_create(struct crash_record *record, const char *directory, const char *folder,
                        struct crash_support_error *error);

/// Brings into memory what a crash of one thread writes to: a page that has to be read at the crash may be refused there.
/// Changes nothing, so that it may run beside everything else. Async-signal-safe, but waits for the disk.
void crash_record_make_resident(const struct crash_record *record);

/// Removes the record's file. Not async-signal-safe.
void crash_record_remove_file(const struct crash_record *record);

/// Unmaps the record, with which its lock goes, and leaves the file to whoever works on dead records. Not
/// async-signal-safe.
void crash_record_close(struct crash_record *record);

/// How many bytes of a section are in use; 0 where it is not sealed. Async-signal-safe.
size_t crash_record_length(const struct crash_record *record, enum crash_record_section_type type);

/// Removes the file and unmaps the record, which nobody else may be using yet. Not async-signal-safe.
void crash_record_discard(struct crash_record *record);

/// Seals a section: length, checksum, and only then the commit word. Async-signal-safe.
void crash_record_commit(struct crash_record *record, enum crash_record_section_type type, size_t length);

/// Seals a section that somebody had opened to change it and who may stand still now, as it is. Async-signal-safe.
void crash_record_commit_if_open(struct crash_record *record, enum crash_record_section_type type, size_t length);

/// Breaks the seal of a section, whose content then counts for nothing. Async-signal-safe.
void crash_record_reopen(struct crash_record *record, enum crash_record_section_type type);

/// Forgets the notes of an earlier crash. By the thread that owns the crash path. Async-signal-safe.
void crash_record_forget_notes(struct crash_record *record);

/// Stores and seals the notes so far. By the thread that owns the crash path. Async-signal-safe.
void crash_record_commit_notes(struct crash_record *record);

/// Adds a note; drops it where there is no room. By any thread. Async-signal-safe.
void crash_record_note(struct crash_record *record, uint32_t kind, uint32_t stage, uint64_t value, uint64_t address);

#endif
