/// Sets up the host of this name, before the reporter starts. Returns 0 where there is none.
int host_prepare(const char *name);
int host_run(const char *name);
