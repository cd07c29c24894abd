#include "memory_groups.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A host with more mounts than this holds gets no memory evidence, and nothing else happens.
#define TEXT_MAX ((size_t)256 * 1024)

// Reads a file of /proc or a cgroup as text, which the caller frees. Returns NULL where it cannot be read.
static char *read_text(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  char *text = malloc(TEXT_MAX);
  size_t length = 0;
  ssize_t count = -1;
  while (text && length < TEXT_MAX - 1 && (count = read(file, text + length, TEXT_MAX - 1 - length)) > 0)
    length += (size_t)count;
  close(file);
  if (count < 0) {
    free(text);
    return NULL;
  }
  if (text) text[length] = 0;
  return text;
}

// The number behind a word at the start of a line. Returns 1, or 0 where the line is missing.
static int read_counter(const char *path, const char *word, uint64_t *value) {
  char *text = read_text(path);
  if (!text) return 0;
  size_t length = strlen(word);
  int found = 0;
  for (char *line = text; line && !found; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, word, length) != 0 || line[length] != ' ') continue;
    *value = strtoull(line + length + 1, NULL, 10);
    found = 1;
  }
  free(text);
  return found;
}

// Whether a word is in a list that is separated by commas.
static int lists(const char *list, size_t length, const char *word) {
  size_t size = strlen(word);
  for (const char *end = list + length; list < end;) {
    const char *comma = memchr(list, ',', (size_t)(end - list));
    size_t entry = comma ? (size_t)(comma - list) : (size_t)(end - list);
    if (entry == size && memcmp(list, word, size) == 0) return 1;
    list += entry + 1;
  }
  return 0;
}

// The process's group in the hierarchy that counts memory: version 1 where that has the controller, else version 2.
// Returns the version, or 0.
static uint32_t own_group(char *path, size_t size) {
  char *text = read_text("/proc/self/cgroup"), *rest = NULL;
  uint32_t version = 0;
  for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
    // `4:memory:/system.slice/orderd.service`, `0::/…` for version 2.
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    controllers++;
    int is_memory = lists(controllers, (size_t)(group - controllers), "memory");
    if (!is_memory && (version == 1 || group != controllers || strncmp(line, "0:", 2) != 0)) continue;
    if (strlen(group + 1) >= size) continue;
    memcpy(path, group + 1, strlen(group + 1) + 1);
    version = is_memory ? 1 : 2;
  }
  free(text);
  return version;
}

// Where the hierarchy is mounted, and which group is at its root there. Returns 1, or 0.
static int find_mount(uint32_t version, char *mount, char *root, size_t size) {
  char *text = read_text("/proc/self/mountinfo"), *rest = NULL;
  int found = 0;
  for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !found; line = strtok_r(NULL, "\n", &rest)) {
    char root_here[512], mount_here[512], type[32], options[1024];
    const char *behind = strstr(line, " - ");
    if (!behind || sscanf(line, "%*s %*s %*s %511s %511s", root_here, mount_here) != 2) continue;
    if (sscanf(behind + 3, "%31s %*s %1023s", type, options) != 2) continue;
    if (version == 2 ? strcmp(type, "cgroup2") != 0
                     : strcmp(type, "cgroup") != 0 || !lists(options, strlen(options), "memory"))
      continue;
    if (strlen(mount_here) >= size || strlen(root_here) >= size) continue;
    strcpy(mount, mount_here);
    strcpy(root, root_here);
    found = 1;
  }
  free(text);
  return found;
}

// Returns 1 where the folder is a group with a counter.
static int describe(struct crash_record_memory_group *group, const char *folder, uint32_t version) {
  char path[1200];
  struct stat status;
  uint64_t kills;
  size_t length = strlen(folder);
  if (length > sizeof group->path || stat(folder, &status) != 0) return 0;
  int written = snprintf(path, sizeof path, "%s/%s", folder, version == 2 ? "memory.events" : "memory.oom_control");
  if (written < 0 || (size_t)written >= sizeof path || !read_counter(path, "oom_kill", &kills)) return 0;
  memset(group, 0, sizeof *group);
  group->inode = status.st_ino;
  group->oom_kills = kills;
  group->version = version;
  group->path_length = (uint16_t)length;
  memcpy(group->path, folder, length);
  return 1;
}

void crash_memory_groups_record(struct crash_record *record) {
  char group[512], mount[512], root[512], folder[1200];
  struct crash_record_run *run = record->run;
  uint64_t kills = 0;
  if (read_counter("/proc/vmstat", "oom_kill", &kills)) run->machine_oom_kills = kills;
  uint32_t version = own_group(group, sizeof group), count = 0;
  if (version && find_mount(version, mount, root, sizeof mount)) {
    // In a container the hierarchy may be mounted from its own group on.
    size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *inside = strncmp(group, root, root_length) == 0 ? group + root_length : "";
    int length = snprintf(folder, sizeof folder, "%s%s", mount, strcmp(inside, "/") == 0 ? "" : inside);
    // The group itself goes with its service; those that contain it stay, and in version 2 they count for it.
    while (length > 0 && (size_t)length < sizeof folder && count < CRASH_RECORD_MEMORY_GROUP_COUNT) {
      count += (uint32_t)describe(&run->memory_groups[count], folder, version);
      char *last = strrchr(folder, '/');
      if (!last || (size_t)(last - folder) < strlen(mount)) break;
      *last = 0;
    }
  }
  run->memory_group_count = count;
  __atomic_store_n(&run->has_memory_groups, 1, __ATOMIC_RELEASE);
}
