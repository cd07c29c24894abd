#ifndef LIVES_H
#define LIVES_H
/// Programs that start, stop and fork as they like, and so start the reporter themselves: in `folder`, or not at all where
/// that is NULL.
int life_exists(const char *name);
int life_run(const char *name, const char *folder);
#endif
