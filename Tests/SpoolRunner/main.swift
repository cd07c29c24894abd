import CrashReporting
import Glibc

// `SpoolRunner DIR [seconds since 1970]`: what the next start of a daemon does with earlier runs, without a daemon.
var clock = SpoolClock.now()
if CommandLine.arguments.count > 2, let wall = Int64(CommandLine.arguments[2]) { clock.wall = wall }
do {
  NextStart.run(spool: try Spool(path: CommandLine.arguments[1]), clock: clock) { print($0) }
} catch {
  print(error)
  exit(1)
}
