// The ELF files mapped in the process: recorded at start, completed at the crash.

#ifndef CCRASHSUPPORT_IMAGES_H
#define CCRASHSUPPORT_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

/// Forgets all images, for a new record. Not async-signal-safe.
void crash_images_reset(void);

/// How many images are loaded and how long their paths are together. Takes the loader's lock: not async-signal-safe.
void crash_images_measure(size_t *count, size_t *path_bytes);

/// Records every loaded image that is not in the record yet and commits the sections. Takes the loader's lock: not
/// async-signal-safe. Callers make sure that one thread at a time does it.
void crash_images_record(struct crash_record *record);

/// Whether the loader added images since the last `crash_images_record`. Takes the loader's lock: not async-signal-safe.
int crash_images_changed(void);

/// Another number whenever the loader has loaded or unloaded something. Takes the loader's lock: not async-signal-safe.
uint64_t crash_images_generation(void);

/// Records what was loaded since and marks what was unloaded, by the loader's own list, which is read without its lock and
/// with fault-safe loads.
/// Async-signal-safe.
void crash_images_complete(struct crash_record *record);

/// Records the image at an address where it is not recorded: of another namespace (`dlmopen`), or missing in a list that
/// was being changed. Async-signal-safe.
void crash_images_add_for(struct crash_record *record, uint64_t address);

/// Seals the sections IMAGES and PATHS. Async-signal-safe.
void crash_images_commit(struct crash_record *record);

/// Where the unwind table of the code at an address is.
struct crash_unwind_table {
  uint64_t eh_frame_hdr;
  uint64_t eh_frame_hdr_end;
  uint64_t image_start, image_end;
};

/// Finds the unwind table for a code address, among the recorded images and by asking glibc (`_dl_find_object`, which
/// takes no lock) whether they are still there. Returns 1, or 0 where the address is in no image with a table.
/// Async-signal-safe.
int crash_images_find_table(const struct crash_record *record, uint64_t pc, struct crash_unwind_table *table);

/// Whether an address lies in executable memory of an image. Async-signal-safe.
int crash_images_is_code(const struct crash_record *record, uint64_t address);

/// Index of the image that an address lies in, or CRASH_RECORD_NO_IMAGE. Async-signal-safe.
uint16_t crash_images_index(const struct crash_record *record, uint64_t address);

/// Whether the path of the image at an address ends in `name`. Async-signal-safe.
int crash_images_is_named(const struct crash_record *record, uint64_t address, const char *name);

#endif
