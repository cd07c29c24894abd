#include "swift_async.h"

#include <stdlib.h>

#include "CCrashSupport.h"

void async_start(void) {
  const char *folder = getenv("FX_DB");
  if (!folder) return;
  struct crash_support_configuration configuration = {
      .size = sizeof configuration, .directory = folder, .service = "async", .release = "1"};
  if (crash_support_start(&configuration, NULL) != CRASH_SUPPORT_STARTED) exit(90);
}
