#include "CTelemetry.h"

#include <stdlib.h>

struct node {
  struct node *next;
  int value;
};

/* Bug 11: nobody looks whether there are bytes. */
int telemetry_checksum(const unsigned char *bytes, long count) {
  int sum = 0;
  for (long index = 0; index < count; index++) sum = sum * 31 + bytes[index];
  return sum;
}

/* Bug 12. */
int telemetry_ratio(int part, int whole) {
  volatile int divisor = whole;
  return part / divisor;
}

/* Its callers break a promise: bugs 13 and 14. */
void telemetry_require(int isValid) {
  if (!isValid) abort();
}

/* Bug 15: the frames that crash are the allocator's. */
void telemetry_free_twice(size_t size) {
  char *volatile block = malloc(size);
  free(block);
  free(block);
}

/* Bug 16: the end of the list is taken for a node. */
int telemetry_follow(int depth) {
  struct node last = {NULL, 1}, first = {&last, 2};
  struct node *volatile node = &first;
  while (depth-- > 0) node = node->next;
  return node->value;
}

int telemetry_run(int (*callback)(void *), void *context) { return callback(context) + 1; }
