// What the program says about itself while it runs: user, operation, tags, breadcrumbs.
//
// Written straight into the record, so that nothing has to be gathered at the crash, and so that it survives SIGKILL.

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "CCrashSupport.h"
#include "capture.h"
#include "handlers.h"

// Before the start, and in a forked child that has not started, texts go here. Zero pages until they are used.
static struct crash_record_scope early_scope;
static struct crash_record_breadcrumbs early_breadcrumbs;
// Whether anything is in them. Looking through them would touch ten pages.
static uint32_t early_used;

static struct crash_record_scope *attached_scope;
static struct crash_record_breadcrumbs *attached_breadcrumbs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct crash_record_scope *current_scope(void) {
  struct crash_record_scope *scope = __atomic_load_n(&attached_scope, __ATOMIC_ACQUIRE);
  if (scope && crash_capture_is_owner()) return scope;
  __atomic_store_n(&early_used, 1, __ATOMIC_RELAXED);
  return &early_scope;
}

// Readers of a dead process's record take a slot whose sequence is odd as torn. The fences keep the compiler and the
// processor from moving the text's stores across those of the sequence. Async-signal-safe.
static void begin_write(uint32_t *sequence) {
  __atomic_store_n(sequence, *sequence + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_write(uint32_t *sequence) { __atomic_store_n(sequence, *sequence + 1, __ATOMIC_RELEASE); }

// The number of bytes, at most `capacity`, that hold whole UTF-8 characters. Async-signal-safe.
static size_t whole_characters(const char *text, size_t length, size_t capacity) {
  if (length <= capacity) return length;
  size_t end = capacity;
  while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
  return end;
}

struct slot {
  uint32_t *sequence;
  uint16_t *length;
  char *bytes;
  size_t capacity;
};
#define SLOT(text) ((struct slot){&(text).sequence, &(text).length, (text).bytes, sizeof(text).bytes})

static void set_text(struct slot slot, const char *text, size_t length, int redact) {
  begin_write(slot.sequence);
  if (!text) {
    *slot.length = 0;
  } else if (redact) {
    *slot.length = (uint16_t)crash_redact_base(text, length, slot.bytes, slot.capacity, NULL);
  } else {
    size_t end = whole_characters(text, length, slot.capacity);
    memcpy(slot.bytes, text, end);
    *slot.length = (uint16_t)end;
  }
  end_write(slot.sequence);
}

void crash_scope_set_identity(struct crash_record *record, const char *service, const char *release,
                              const char *environment) {
  set_text(SLOT(record->scope->service), service, service ? strlen(service) : 0, 0);
  set_text(SLOT(record->scope->release), release, release ? strlen(release) : 0, 0);
  set_text(SLOT(record->scope->environment), environment, environment ? strlen(environment) : 0, 0);
}

int crash_support_set_user(const char *id, size_t length) {
  crash_handlers_notice_recovery();
  char redacted[sizeof current_scope()->user.bytes];
  if (id) {
    // An id is kept as it is or not at all: half of one identifies nobody, or somebody else.
    if (length > sizeof redacted) return -1;
    int truncated = 0;
    size_t kept = crash_redact_base(id, length, redacted, sizeof redacted, &truncated);
    if (truncated || kept != length || memcmp(redacted, id, length) != 0) return -1;
  }
  pthread_mutex_lock(&lock);
  set_text(SLOT(current_scope()->user), id, length, 0);
  pthread_mutex_unlock(&lock);
  return 0;
}

void crash_support_set_operation(const char *operation, size_t length) {
  crash_handlers_notice_recovery();
  pthread_mutex_lock(&lock);
  set_text(SLOT(current_scope()->operation), operation, length, 1);
  pthread_mutex_unlock(&lock);
}

int crash_support_set_tag(const char *key, size_t key_length, const char *value, size_t value_length) {
  crash_handlers_notice_recovery();
  if (!key || key_length == 0 || key_length > sizeof early_scope.tags[0].key) return -1;
  char redacted[sizeof early_scope.tags[0].key];
  size_t stored = crash_redact_base(key, key_length, redacted, sizeof redacted, NULL);
  if (stored == 0) return -1;
  int result = value ? -1 : 0;  // no room, unless a slot is found; removing what is not there is no failure
  pthread_mutex_lock(&lock);
  struct crash_record_tag *tags = current_scope()->tags, *free_slot = NULL, *slot = NULL;
  for (unsigned i = 0; i < CRASH_RECORD_TAG_COUNT && !slot; i++) {
    if (tags[i].key_length == 0) {
      if (!free_slot) free_slot = &tags[i];
    } else if (tags[i].key_length == stored && memcmp(tags[i].key, redacted, stored) == 0) {
      slot = &tags[i];
    }
  }
  if (!slot && value) slot = free_slot;
  if (slot) {
    begin_write(&slot->sequence);
    if (value) {
      memcpy(slot->key, redacted, stored);
      slot->key_length = (uint16_t)stored;
      slot->value_length = (uint16_t)crash_redact_base(value, value_length, slot->value, sizeof slot->value, NULL);
    } else {
      slot->key_length = 0;
    }
    end_write(&slot->sequence);
    result = 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void crash_support_add_breadcrumb(const char *category, size_t category_length, const char *message,
                                  size_t message_length) {
  crash_handlers_notice_recovery();
  struct crash_record_breadcrumbs *ring = __atomic_load_n(&attached_breadcrumbs, __ATOMIC_ACQUIRE);
  if (!ring || !crash_capture_is_owner()) {
    __atomic_store_n(&early_used, 1, __ATOMIC_RELAXED);
    ring = &early_breadcrumbs;
  }
  // No lock: the counter hands out slots. Two writers meet in one slot only when 128 breadcrumbs were added while one of
  // them was between its two stores, and then the sequence betrays it.
  uint64_t number = __atomic_add_fetch(&ring->count, 1, __ATOMIC_RELAXED);
  struct crash_record_breadcrumb *slot = &ring->ring[(number - 1) % CRASH_RECORD_BREADCRUMB_COUNT];
  __atomic_store_n(&slot->sequence, 2 * number - 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  // The coarse clock is a load from the vdso's page: a few milliseconds of resolution, where the order is known anyway
  // from the number.
  struct timespec time = {0, 0};
  clock_gettime(CLOCK_REALTIME_COARSE, &time);
  slot->realtime_ns = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  slot->category_length =
      category ? (uint16_t)crash_redact_base(category, category_length, slot->category, sizeof slot->category, NULL) : 0;
  slot->message_length =
      message ? (uint16_t)crash_redact_base(message, message_length, slot->message, sizeof slot->message, NULL) : 0;
  __atomic_store_n(&slot->sequence, 2 * number, __ATOMIC_RELEASE);
}

// Only what was used: the rest is zero on both sides, 45 KiB of it, and each page that is touched for nothing is a fault.
static void copy_early(struct crash_record *record) {
  struct crash_record_scope *scope = record->scope;
  if (early_scope.user.sequence) scope->user = early_scope.user;
  if (early_scope.operation.sequence) scope->operation = early_scope.operation;
  for (unsigned i = 0; i < CRASH_RECORD_TAG_COUNT; i++)
    if (early_scope.tags[i].sequence) scope->tags[i] = early_scope.tags[i];
  // A breadcrumb that another thread is adding to the early ring at this moment may be missed; none is torn unseen.
  uint64_t count = __atomic_load_n(&early_breadcrumbs.count, __ATOMIC_ACQUIRE);
  if (count) record->breadcrumbs->count = count;
  for (uint64_t i = 0; i < count && i < CRASH_RECORD_BREADCRUMB_COUNT; i++)
    record->breadcrumbs->ring[i] = early_breadcrumbs.ring[i];
}

void crash_scope_attach(struct crash_record *record) {
  pthread_mutex_lock(&lock);
  // The identity was written to the record already; everything else comes from the time before the start.
  struct crash_record_scope *scope = record->scope;
  if (__atomic_load_n(&early_used, __ATOMIC_RELAXED)) copy_early(record);
  __atomic_store_n(&attached_scope, scope, __ATOMIC_RELEASE);
  __atomic_store_n(&attached_breadcrumbs, record->breadcrumbs, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
}

void crash_scope_detach(void) {
  pthread_mutex_lock(&lock);
  __atomic_store_n(&attached_scope, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&attached_breadcrumbs, NULL, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
}

void crash_scope_after_fork(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&lock, &fresh, sizeof lock);
  attached_scope = NULL;
  attached_breadcrumbs = NULL;
}
