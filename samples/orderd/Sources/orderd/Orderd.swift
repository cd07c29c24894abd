import CrashReporting
import Glibc

/// A small order service: requests come in one after another and are handled by actors, a settlement worker and two
/// inherited libraries. One request in the list below meets a bug, each another one.
///
///     orderd [--spool DIR] [--release R] [--no-crash-reports] [REQUEST…]
///
/// Without requests it starts, lets the reports of former runs be written, and ends.
@main
struct Orderd {
  static func main() async {
    let arguments = Arguments(CommandLine.arguments)
    var configuration = CrashReporter.Configuration(service: "orderd", directory: arguments.spool)
    configuration.release = arguments.release
    configuration.environment = "demo"
    do {
      if arguments.reportsCrashes { try CrashReporter.start(configuration) }
    } catch {
      // A service without crash reports still is a service.
      complain("orderd: no crash reports: \(error)")
    }
    CrashReporter.setTag("region", "eu-west")
    CrashReporter.setUser(id: "usr_7c1e")

    let service = OrderService()
    for request in ["GET /orders/1"] + arguments.requests {
      CrashReporter.setOperation(request)
      CrashReporter.addBreadcrumb("request \(request)", category: "http")
      switch request {
      // On the main thread, whose stack is the kernel's and not a thread library's.
      case "POST /tree": print(Categories.depth(of: Categories.makeCyclic()))
      case "WAIT":
        print("waiting \(getpid())")
        fflush(nil)
        waitForSignal()
      default: await service.handle(request)
      }
    }
    CrashReporter.flush(timeout: .seconds(10))
  }
}

struct Arguments {
  var spool = "crashes"
  var release: String?
  var reportsCrashes = true
  var requests: [String] = []

  init(_ arguments: [String]) {
    var rest = arguments.dropFirst()
    while let argument = rest.popFirst() {
      switch argument {
      case "--spool": spool = rest.popFirst() ?? spool
      case "--release": release = rest.popFirst()
      case "--no-crash-reports": reportsCrashes = false
      default: requests.append(argument)
      }
    }
  }
}

func complain(_ text: String) {
  let line = text + "\n"
  _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
}
