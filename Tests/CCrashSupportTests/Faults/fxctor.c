// Crashes while it is being loaded: the loader holds its lock, and the library is in no list that was made before.
static volatile int sink;
static volatile int *volatile nowhere;
static __attribute__((noinline, noclone)) void fxctor_leaf(void) { *nowhere = 1; sink++; }
static __attribute__((constructor)) void fxctor_start(void) { fxctor_leaf(); sink++; }
