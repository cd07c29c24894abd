#ifndef DAMAGE_H
#define DAMAGE_H
/// Crashes with a stack pointer, or in a place, where little works.
int damage_exists(const char *name);
int damage_run(const char *name);
#endif
