import CrashReporting
import Dispatch
import Glibc

/// fleetd SPOOL RELEASE BUG WAY DRIVER: crashes with one of its bugs, whose number is a tag of the report.
@main
struct Fleetd {
  static let bugs = 1...31

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 6, let bug = Int(arguments[3]), let way = Int(arguments[4]), bugs ~= bug else {
      print("Usage: fleetd SPOOL RELEASE BUG WAY DRIVER")
      exit(64)
    }
    var configuration = CrashReporter.Configuration(service: "fleetd", directory: arguments[1])
    configuration.release = arguments[2]
    try CrashReporter.start(configuration)
    CrashReporter.setTag("bug", String(bug))
    let dispatcher = Dispatcher()
    switch arguments[5] {
    case "task":
      print(await Task { await dispatcher.handle(bug, way: way) }.value)
    case "queue" where bug < 29 || bug > 30:
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) { print(way == 0 ? dispatcher.direct(bug) : dispatcher.nightly(bug)) }
      await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
    default:
      print(await dispatcher.handle(bug, way: way))
    }
    // It did not crash: the script says so.
    exit(3)
  }
}
