#include "images.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "CCrashFormat_uninstrumented.h"
#include "arch.h"

CRASH_UNINSTRUMENTED_BEGIN

static size_t image_count;
static size_t path_length;
static size_t images_without_room;
static uint64_t recorded_loader_count;
// As the kernel maps and glibc compares: 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64.
static uint64_t page_size = 4096;

// Which recorded images the loader's list still has, at the crash.
#define STILL_THERE_MAX 4096u
static uint8_t still_there[STILL_THERE_MAX / 8];

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
  image->address = first & ~(page_size - 1);
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
static struct crash_record_image *find(const struct crash_record *record, uint64_t address) {
  for (size_t i = __atomic_load_n(&image_count, __ATOMIC_ACQUIRE); i-- > 0;) {
    struct crash_record_image *image = &record->images[i];
    if (address - image->address < image->size) return image;
  }
  return NULL;
}

// Whether two descriptions are of one loaded file. Where neither has a build id, place and size of everything in it have
// to do. Async-signal-safe.
static int is_same(const struct crash_record_image *a, const struct crash_record_image *b) {
  return a->address == b->address && a->size == b->size && a->bias == b->bias && a->text_address == b->text_address &&
         a->text_size == b->text_size && a->eh_frame_hdr == b->eh_frame_hdr &&
         a->eh_frame_hdr_size == b->eh_frame_hdr_size && a->build_id_length == b->build_id_length &&
         memcmp(a->build_id, b->build_id, a->build_id_length) == 0;
}

// The recorded image at an address, unless glibc knows of another one there by now: a library that was loaded where a
// recorded one was unloaded. Async-signal-safe.
static const struct crash_record_image *find_current(const struct crash_record *record, uint64_t address) {
  const struct crash_record_image *image = find(record, address);
  struct dl_find_object object;
  if (!image || !_dl_find_object || _dl_find_object((void *)(uintptr_t)address, &object) != 0) return image;
  int same = image->address == (uint64_t)(uintptr_t)object.dlfo_map_start &&
             (!image->eh_frame_hdr || image->eh_frame_hdr == (uint64_t)(uintptr_t)object.dlfo_eh_frame);
  return same ? image : NULL;
}

void crash_images_reset(void) {
  image_count = 0;
  path_length = 0;
  images_without_room = 0;
  recorded_loader_count = 0;
  page_size = (uint64_t)sysconf(_SC_PAGESIZE);
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
  struct crash_record_image *known = find(record, image.address);
  if (known && is_same(known, &image)) {
    known->flags &= (uint8_t)~CRASH_IMAGE_UNLOADED;
    return 0;
  }
  const char *path = info->dlpi_name ? info->dlpi_name : "";
  size_t length = strlen(path);
  if (length == 0 && image_count == 0) {
    path = record->process->executable;
    length = record->process->executable_length;
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

static int add_counts(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  *(uint64_t *)data = info->dlpi_adds + info->dlpi_subs;  // both only ever grow
  return 1;
}

uint64_t crash_images_generation(void) {
  uint64_t generation = 0;
  dl_iterate_phdr(add_counts, &generation);
  return generation;
}

// Describes the file that an entry of the loader's list stands for. Async-signal-safe.
static int describe_entry(struct crash_record_image *image, const struct link_map *map) {
  // The ELF header is at the start of the first mapping, which glibc tells; without it the load bias is right for every
  // library that starts at virtual address 0, which is all that linkers make today.
  uint64_t start = map->l_addr;
  struct dl_find_object object;
  if (_dl_find_object && _dl_find_object(map->l_ld, &object) == 0) start = (uint64_t)(uintptr_t)object.dlfo_map_start;
  ElfW(Ehdr) elf;
  if (crash_safe_copy(&elf, start, sizeof elf) != sizeof elf || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_phentsize != sizeof(ElfW(Phdr)))
    return 0;
  return describe(image, map->l_addr, start + elf.e_phoff, elf.e_phnum);
}

// Records the file of an entry where it is not recorded yet. Returns its image's index, or CRASH_RECORD_NO_IMAGE.
// Async-signal-safe.
static uint16_t add_entry(struct crash_record *record, const struct link_map *map) {
  struct crash_record_image image = {0};
  uint64_t dynamic = (uint64_t)(uintptr_t)map->l_ld;
  const struct crash_record_image *known = dynamic ? find(record, dynamic) : NULL;
  if (!dynamic || !describe_entry(&image, map)) return known ? (uint16_t)(known - record->images) : CRASH_RECORD_NO_IMAGE;
  if (known && is_same(known, &image)) return (uint16_t)(known - record->images);
  image.flags |= CRASH_IMAGE_ADDED_AT_CRASH;
  char path[512];
  size_t length = crash_safe_copy(path, (uint64_t)(uintptr_t)map->l_name, sizeof path);
  size_t before = image_count;
  append(record, &image, (uint64_t)(uintptr_t)path, strnlen(path, length));
  return image_count > before ? (uint16_t)before : CRASH_RECORD_NO_IMAGE;
}

void crash_images_complete(struct crash_record *record) {
  if (!&_r_debug) return;
  size_t recorded = image_count;
  memset(still_there, 0, sizeof still_there);
  uint64_t entry = (uint64_t)(uintptr_t)_r_debug.r_map;
  // A list that is being changed may be cut or, in the worst case, lead in a circle: the bound ends that.
  for (unsigned i = 0; entry && i < 4096; i++) {
    struct link_map map;
    if (crash_safe_copy(&map, entry, sizeof map) != sizeof map) return;
    entry = (uint64_t)(uintptr_t)map.l_next;
    uint16_t index = add_entry(record, &map);
    if (index < STILL_THERE_MAX) still_there[index / 8] |= (uint8_t)(1u << index % 8);
  }
  if (entry) return;
  // A crash in code that was unloaded is a bug of its own, which is why the image is kept, and marked. Only where glibc
  // agrees: libraries of another namespace (dlmopen) are not in this list.
  for (size_t i = 0; i < recorded && i < STILL_THERE_MAX; i++) {
    struct crash_record_image *image = &record->images[i];
    struct dl_find_object object;
    if (still_there[i / 8] >> i % 8 & 1) continue;
    uint64_t address = image->text_size ? image->text_address : image->address;
    if (_dl_find_object && _dl_find_object((void *)(uintptr_t)address, &object) == 0 &&
        image->address == (uint64_t)(uintptr_t)object.dlfo_map_start)
      continue;
    image->flags |= CRASH_IMAGE_UNLOADED;
  }
}

void crash_images_add_for(struct crash_record *record, uint64_t address) {
  struct dl_find_object object;
  if (find_current(record, address) || !_dl_find_object ||
      _dl_find_object((void *)(uintptr_t)address, &object) != 0)
    return;
  struct link_map map;
  if (crash_safe_copy(&map, (uint64_t)(uintptr_t)object.dlfo_link_map, sizeof map) == sizeof map)
    add_entry(record, &map);
}

void crash_images_commit(struct crash_record *record) {
  crash_record_commit(record, CRASH_SECTION_PATHS, path_length);
  crash_record_commit(record, CRASH_SECTION_IMAGES, image_count * sizeof(struct crash_record_image));
  // Before the crash it would be noted at every refresh, and again at the crash.
  if (images_without_room && record->header->crash_state != CRASH_STATE_NONE)
    crash_record_note(record, CRASH_NOTE_IMAGES_FULL, 0, images_without_room, 0);
}

int crash_images_find_table(const struct crash_record *record, uint64_t pc, struct crash_unwind_table *table) {
  const struct crash_record_image *image = find_current(record, pc);
  if (image) {
    if (!image->eh_frame_hdr) return 0;
    table->eh_frame_hdr = image->eh_frame_hdr;
    table->eh_frame_hdr_end = image->eh_frame_hdr + image->eh_frame_hdr_size;
    table->image_start = image->address;
    table->image_end = image->address + image->size;
    return 1;
  }
  struct dl_find_object object;
  if (!_dl_find_object || _dl_find_object((void *)(uintptr_t)pc, &object) != 0 || !object.dlfo_eh_frame) return 0;
  table->eh_frame_hdr = (uint64_t)(uintptr_t)object.dlfo_eh_frame;
  table->image_start = (uint64_t)(uintptr_t)object.dlfo_map_start;
  table->image_end = (uint64_t)(uintptr_t)object.dlfo_map_end;
  table->eh_frame_hdr_end = table->image_end;
  return 1;
}

int crash_images_is_code(const struct crash_record *record, uint64_t address) {
  const struct crash_record_image *image = find_current(record, address);
  if (image) return address - image->text_address < image->text_size;
  struct dl_find_object object;
  return _dl_find_object && _dl_find_object((void *)(uintptr_t)address, &object) == 0;
}

uint16_t crash_images_index(const struct crash_record *record, uint64_t address) {
  const struct crash_record_image *image = find_current(record, address);
  return image ? (uint16_t)(image - record->images) : CRASH_RECORD_NO_IMAGE;
}

int crash_images_is_named(const struct crash_record *record, uint64_t address, const char *name) {
  const struct crash_record_image *image = find_current(record, address);
  size_t length = strlen(name);
  return image && image->path_length >= length &&
         memcmp(record->paths + image->path_offset + image->path_length - length, name, length) == 0;
}

CRASH_UNINSTRUMENTED_END
