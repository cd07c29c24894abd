/// Whether there is a corner of this name.
int corner_exists(const char *name);
/// Before the reporter starts.
void corner_prepare(const char *name);
int corner_run(const char *name);
