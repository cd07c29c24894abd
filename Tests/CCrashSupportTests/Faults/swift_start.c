// Starts the reporter where the Swift fault program calls `fault_pre`, as the first thing in its `main`.
#include <stdlib.h>

#include "CCrashSupport.h"

void fault_pre_plain(const char *name);

void fault_pre(const char *name) {
  fault_pre_plain(name);
  const char *folder = getenv("FX_DB");
  if (!folder) return;
  struct crash_support_configuration configuration = {
      .size = sizeof configuration, .directory = folder, .service = "faults", .release = "1"};
  if (crash_support_start(&configuration, NULL) != CRASH_SUPPORT_STARTED) exit(90);
}
