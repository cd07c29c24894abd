// What Sentry's SymCache does with the lines that `symbolicate addr` takes, through the C interface of the `symbolic` wheel
// from PyPI: its Python interface would be measured for Python.
//
//   symcache LIBRARY build FILE OUT                  makes the cache of FILE
//   symcache LIBRARY lookup IMAGE CACHE [...]        "IMAGE ADDRESS" lines in, functions, files and lines out
//
// The structures are the library's, version 13.
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
  char *data;
  size_t length;
  bool owned;
};
struct location {
  uint64_t symbol_address, instruction_address;
  uint32_t line;
  struct text language, symbol, full_path;
};
struct result {
  struct location *items;
  size_t count;
};
_Static_assert(sizeof(struct text) == 24 && sizeof(struct location) == 96 && sizeof(struct result) == 16, "the wheel's");

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (found) return found;
  fprintf(stderr, "symcache: the library has no %s\n", name);
  exit(1);
}

static void check(const void *pointer, const char *what) {
  if (pointer) return;
  fprintf(stderr, "symcache: %s\n", what);
  exit(1);
}

static int build(const char *file, const char *output) {
  void *(*archive_open)(const char *) = (void *(*)(const char *))symbol("symbolic_archive_open");
  void *(*get_object)(void *, size_t) = (void *(*)(void *, size_t))symbol("symbolic_archive_get_object");
  void *(*from_object)(void *) = (void *(*)(void *))symbol("symbolic_symcache_from_object");
  const uint8_t *(*get_bytes)(void *) = (const uint8_t *(*)(void *))symbol("symbolic_symcache_get_bytes");
  size_t (*get_size)(void *) = (size_t (*)(void *))symbol("symbolic_symcache_get_size");
  void *archive = archive_open(file);
  check(archive, "the file cannot be read");
  void *object = get_object(archive, 0);
  check(object, "the file holds no object");
  void *cache = from_object(object);
  check(cache, "no cache can be made");
  FILE *out = fopen(output, "wb");
  check(out, "the cache cannot be written");
  size_t size = get_size(cache);
  int written = fwrite(get_bytes(cache), 1, size, out) == size;
  return fclose(out) == 0 && written ? 0 : 1;
}

static int lookup(int count, char **pairs) {
  void *(*open_cache)(const char *) = (void *(*)(const char *))symbol("symbolic_symcache_open");
  struct result (*find)(void *, uint64_t) = (struct result(*)(void *, uint64_t))symbol("symbolic_symcache_lookup");
  void (*release)(struct result *) = (void (*)(struct result *))symbol("symbolic_lookup_result_free");
  void *caches[64] = {0};
  static char line[8192], buffer[1 << 16];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  while (fgets(line, sizeof line, stdin)) {
    char *space = strrchr(line, ' ');
    if (!space) continue;
    *space = 0;
    uint64_t address = strtoull(space + 1, NULL, 16);
    int image = 0;
    while (image < count && strcmp(pairs[2 * image], line) != 0) image++;
    if (image == count || image >= 64) continue;
    if (!caches[image]) caches[image] = open_cache(pairs[2 * image + 1]);
    check(caches[image], "a cache cannot be opened");
    struct result result = find(caches[image], address);
    if (result.count == 0) puts("??\n??:0");
    for (size_t i = 0; i < result.count; i++) {
      const struct location *found = &result.items[i];
      fwrite(found->symbol.data, 1, found->symbol.length, stdout);
      putchar('\n');
      fwrite(found->full_path.data, 1, found->full_path.length, stdout);
      printf(":%" PRIu32 "\n", found->line);
    }
    putchar('\n');
    release(&result);
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count < 5) return 2;
  library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "symcache: %s\n", dlerror());
    return 1;
  }
  ((void (*)(void))symbol("symbolic_init"))();
  if (strcmp(arguments[2], "build") == 0) return build(arguments[3], arguments[4]);
  return lookup((count - 3) / 2, arguments + 3);
}
