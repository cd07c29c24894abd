#include <stddef.h>
/// Starts the reporter with the record under $FX_DB.
void async_start(void);
int crash_support_register_task_local(const char *name, size_t length, const void *key);
