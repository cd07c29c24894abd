// Installs the reporter with the record under $FX_DB and crashes in the way that its argument names.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CCrashSupport.h"
#include "faults.h"
#include "hosts.h"

int main(int count, char **arguments) {
  if (count < 2) return 64;
  fault_stamp_open();
  int is_host = host_prepare(arguments[1]);
  if (!is_host) fault_pre(arguments[1]);
  const char *folder = getenv("FX_DB");
  if (folder) {
    struct crash_support_configuration configuration = {
        .size = sizeof configuration, .directory = folder, .service = "faults", .release = "1"};
    struct crash_support_error error;
    if (crash_support_start(&configuration, &error) != CRASH_SUPPORT_STARTED) {
      fprintf(stderr, "start: %s: %s\n", error.what, strerror(error.number));
      return 90;
    }
    crash_support_set_operation("fault", 5);
    crash_support_add_breadcrumb("fault", 5, arguments[1], strlen(arguments[1]));
  }
  int result = is_host ? host_run(arguments[1]) : fault_run(arguments[1]);
  exit(result == 1000 ? 0 : result);
}
