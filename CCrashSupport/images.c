#include "images.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"

static size_t image_count;
static size_t path_length;
static size_t images_without_room;
static uint64_t recorded_loader_count;

// glibc 2.35; weak, so that older ones only lose what it finds. Documented as async-signal-safe (manual, "Dynamic Linker
// Introspection"). libunwind #580 tells what happens without it: dl_iterate_phdr in the handler waits for a lock that
// another thread, stuck in its own iteration or in dlopen, never gives back.
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

// The loader's list, exported for debuggers. Absent from static executables, which load nothing later anyway.
extern struct r_debug _r_debug __attribute__((weak));

// All fields of an image that follow from its program headers. The headers are read with fault-safe loads, as the same
// code runs in the handler for libraries that may be going away. Async-signal-safe.
static int describe(struct crash_record_image *image, uint64_t bias, uint64_t headers, size_t count) {
  uint64_t first = UINT64_MAX, last = 0, text_first = UINT64_MAX, text_last = 0;
  for (size_t i = 0; i < count && i < 128; i++) {
    ElfW(Phdr) header;
    if (crash_safe_copy(&header, headers + i * sizeof header, sizeof header) != sizeof header) return 0;
    uint64_t start = bias + header.p_vaddr, end = start + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      if (start < first) first = start;
      if (end > last) last = end;
      if (header.p_flags & PF_X) {
        if (start < text_first) text_first = start;
        if (end > text_last) text_last = end;
      }
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      image->eh_frame_hdr = start;
      image->eh_frame_hdr_size = header.p_memsz > UINT32_MAX ? UINT32_MAX : (uint32_t)header.p_memsz;
    } else if (header.p_type == PT_NOTE && image->build_id_length == 0) {
      // Notes are a header, the name and the description, the latter two padded to four bytes.
      for (uint64_t at = start; at + sizeof(ElfW(Nhdr)) <= end;) {
        ElfW(Nhdr) note;
        char name[4];
        if (crash_safe_copy(&note, at, sizeof note) != sizeof note) break;
        uint64_t description = at + sizeof note + (((uint64_t)note.n_namesz + 3) & ~3ull);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            crash_safe_copy(name, at + sizeof note, 4) == 4 && memcmp(name, "GNU", 4) == 0) {
          size_t length = note.n_descsz < CRASH_RECORD_BUILD_ID_MAX ? note.n_descsz : CRASH_RECORD_BUILD_ID_MAX;
          if (crash_safe_copy(image->build_id, description, length) == length)
            image->build_id_length = (uint8_t)length;
          break;
        }
        at = description + (((uint64_t)note.n_descsz + 3) & ~3ull);
      }
    }
  }
  if (first == UINT64_MAX || last <= first) return 0;
  image->bias = bias;
  image->address = first & ~(uint64_t)4095;
  image->size = last - image->address;
  if (text_last > text_first) {
    image->text_address = text_first;
    image->text_size = text_last - text_first;
  }
  return 1;
}

// Appends an image. The path may be in memory that is going away; where it cannot be read the image stays without one.
// Async-signal-safe.
static void append(struct crash_record *record, struct crash_record_image *image, uint64_t path, size_t length) {
  if (image_count >= record->image_capacity || image_count >= CRASH_RECORD_NO_IMAGE) {
    images_without_room++;
    return;
  }
  if (length > UINT16_MAX) length = UINT16_MAX;
  if (length > record->path_capacity - path_length) length = record->path_capacity - path_length;
  length = crash_safe_copy(record->paths + path_length, path, length);
  image->path_offset = (uint32_t)path_length;
  image->path_length = (uint16_t)length;
  path_length += length;
  record->images[image_count] = *image;
  __atomic_store_n(&image_count, image_count + 1, __ATOMIC_RELEASE);
}

// Newest first, as a library may be loaded where an older one was. Async-signal-safe.
static const struct crash_record_image *find(const struct crash_record *record, uint64_t address) {
  for (size_t i = __atomic_load_n(&image_count, __ATOMIC_ACQUIRE); i-- > 0;) {
    const struct crash_record_image *image = &record->images[i];
    if (address - image->address < image->size) return image;
  }
  return NULL;
}

void crash_images_reset(void) {
  image_count = 0;
  path_length = 0;
  images_without_room = 0;
  recorded_loader_count = 0;
}

struct measure {
  size_t count, path_bytes;
};

static int measure_one(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct measure *measure = data;
  measure->count++;
  measure->path_bytes += info->dlpi_name ? strlen(info->dlpi_name) : 0;
  return 0;
}

void crash_images_measure(size_t *count, size_t *path_bytes) {
  struct measure measure = {0, PATH_MAX};  // the main executable's name is empty here and read from /proc
  dl_iterate_phdr(measure_one, &measure);
  *count = measure.count;
  *path_bytes = measure.path_bytes;
}

static int record_one(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct crash_record *record = data;
  struct crash_record_image image = {0};
  recorded_loader_count = info->dlpi_adds;
  if (!describe(&image, info->dlpi_addr, (uint64_t)(uintptr_t)info->dlpi_phdr, info->dlpi_phnum)) return 0;
  const struct crash_record_image *known = find(record, image.address);
  if (known && known->address == image.address && known->build_id_length == image.build_id_length &&
      memcmp(known->build_id, image.build_id, image.build_id_length) == 0)
    return 0;
  char executable[PATH_MAX];
  const char *path = info->dlpi_name ? info->dlpi_name : "";
  size_t length = strlen(path);
  if (length == 0 && image_count == 0) {
    ssize_t got = readlink("/proc/self/exe", executable, sizeof executable);
    if (got > 0) {
      path = executable;
      length = (size_t)got;
    }
    image.flags |= CRASH_IMAGE_MAIN_EXECUTABLE;
  } else if (strncmp(path, "linux-vdso", 10) == 0 || strncmp(path, "linux-gate", 10) == 0) {
    image.flags |= CRASH_IMAGE_VDSO;
  }
  append(record, &image, (uint64_t)(uintptr_t)path, length);
  return 0;
}

void crash_images_record(struct crash_record *record) {
  dl_iterate_phdr(record_one, record);
  crash_images_commit(record);
}

static int count_one(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  *(uint64_t *)data = info->dlpi_adds;
  return 1;  // the counter is the same in every entry
}

int crash_images_changed(void) {
  uint64_t count = 0;
  dl_iterate_phdr(count_one, &count);
  return count != recorded_loader_count;
}

void crash_images_complete(struct crash_record *record) {
  if (!&_r_debug) return;
  uint64_t entry = (uint64_t)(uintptr_t)_r_debug.r_map;
  // A list that is being changed may be cut or, in the worst case, lead in a circle: the bound ends that.
  for (unsigned i = 0; entry && i < 4096; i++) {
    struct link_map map;
    if (crash_safe_copy(&map, entry, sizeof map) != sizeof map) return;
    entry = (uint64_t)(uintptr_t)map.l_next;
    uint64_t dynamic = (uint64_t)(uintptr_t)map.l_ld;
    if (!dynamic || find(record, dynamic)) continue;

    // The ELF header is at the start of the first mapping, which glibc tells; without it the load bias is right for
    // every library that starts at virtual address 0, which is all that linkers make today.
    uint64_t start = map.l_addr;
    struct dl_find_object object;
    if (_dl_find_object && _dl_find_object(map.l_ld, &object) == 0) start = (uint64_t)(uintptr_t)object.dlfo_map_start;
    ElfW(Ehdr) elf;
    if (crash_safe_copy(&elf, start, sizeof elf) != sizeof elf || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_phentsize != sizeof(ElfW(Phdr)))
      continue;
    struct crash_record_image image = {0};
    if (!describe(&image, map.l_addr, start + elf.e_phoff, elf.e_phnum)) continue;
    image.flags |= CRASH_IMAGE_ADDED_AT_CRASH;
    char path[512];
    size_t length = crash_safe_copy(path, (uint64_t)(uintptr_t)map.l_name, sizeof path);
    append(record, &image, (uint64_t)(uintptr_t)path, strnlen(path, length));
  }
}

void crash_images_commit(struct crash_record *record) {
  crash_record_commit(record, CRASH_SECTION_PATHS, path_length);
  crash_record_commit(record, CRASH_SECTION_IMAGES, image_count * sizeof(struct crash_record_image));
  if (images_without_room) crash_record_note(record, CRASH_NOTE_IMAGES_FULL, 0, images_without_room, 0);
}

int crash_images_find_table(const struct crash_record *record, uint64_t pc, struct crash_unwind_table *table) {
  const struct crash_record_image *image = find(record, pc);
  if (image && image->eh_frame_hdr) {
    table->eh_frame_hdr = image->eh_frame_hdr;
    table->eh_frame_hdr_end = image->eh_frame_hdr + image->eh_frame_hdr_size;
    table->image_start = image->address;
    table->image_end = image->address + image->size;
    return 1;
  }
  struct dl_find_object object;
  if (!image && _dl_find_object && _dl_find_object((void *)(uintptr_t)pc, &object) == 0 && object.dlfo_eh_frame) {
    table->eh_frame_hdr = (uint64_t)(uintptr_t)object.dlfo_eh_frame;
    table->image_start = (uint64_t)(uintptr_t)object.dlfo_map_start;
    table->image_end = (uint64_t)(uintptr_t)object.dlfo_map_end;
    table->eh_frame_hdr_end = table->image_end;
    return 1;
  }
  return 0;
}

int crash_images_is_code(const struct crash_record *record, uint64_t address) {
  const struct crash_record_image *image = find(record, address);
  if (image) return address - image->text_address < image->text_size;
  struct dl_find_object object;
  return _dl_find_object && _dl_find_object((void *)(uintptr_t)address, &object) == 0;
}

uint16_t crash_images_index(const struct crash_record *record, uint64_t address) {
  const struct crash_record_image *image = find(record, address);
  return image ? (uint16_t)(image - record->images) : CRASH_RECORD_NO_IMAGE;
}
