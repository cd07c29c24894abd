#pragma once
#include <stddef.h>

/* What the vehicles send, in C. */
int telemetry_checksum(const unsigned char *bytes, long count);
int telemetry_ratio(int part, int whole);
void telemetry_require(int isValid);
void telemetry_free_twice(size_t size);
int telemetry_follow(int depth);
int telemetry_run(int (*callback)(void *), void *context);
