// Installs the reporter with the record under $FX_DB and crashes in the way that its argument names.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CCrashSupport.h"
#include "corners.h"
#include "damage.h"
#include "faults.h"
#include "hosts.h"
#include "lives.h"
#include "reporter.h"
#include "sandboxes.h"

int reporter_start(const char *folder) {
  struct crash_support_configuration configuration = {
      .size = sizeof configuration, .directory = folder, .service = "faults", .release = "1"};
  struct crash_support_error error;
  int result = crash_support_start(&configuration, &error);
  if (result == CRASH_SUPPORT_FAILED) fprintf(stderr, "start: %s: %s\n", error.what, strerror(error.number));
  if (result == CRASH_SUPPORT_STARTED) crash_support_describe_process();
  return result;
}

int main(int count, char **arguments) {
  if (count < 2) return 64;
  fault_stamp_open();
  paint_alternate_stack();
  const char *folder = getenv("FX_DB");
  if (life_exists(arguments[1])) exit(life_run(arguments[1], folder));
  const char *name = sandbox_fault(arguments[1]);
  int is_host = host_prepare(name), is_corner = corner_exists(name);
  if (is_corner) corner_prepare(name);
  if (!is_host && !is_corner) fault_pre(name);
  if (folder) {
    if (reporter_start(folder) != CRASH_SUPPORT_STARTED) return 90;
    crash_support_set_operation("fault", 5);
    crash_support_add_breadcrumb("fault", 5, arguments[1], strlen(arguments[1]));
  }
  sandbox_enter(arguments[1]);
  int result = is_corner ? corner_run(name) : is_host ? host_run(name) : damage_exists(name) ? damage_run(name) : fault_run(name);
  exit(result == 1000 ? 0 : result);
}
