import CrashReporting
import Glibc

/// A small order service: requests come in one after another and are handled by actors, a settlement worker and two
/// inherited libraries. Each request but one meets a bug, each another one: `orderd --help` lists them.
@main
struct Orderd {
  static func main() async {
    guard let arguments = parse(CommandLine.arguments.dropFirst()) else { return }
    var configuration = CrashReporter.Configuration(service: "orderd", directory: arguments.spool)
    configuration.release = arguments.release
    configuration.environment = "demo"
    configuration.snapshotsOnQuit = true
    do {
      if arguments.reportsCrashes { try CrashReporter.start(configuration) }
      CrashReporter.watchCooperativePool(
        interval: .milliseconds(arguments.hangLimit / 5), limit: .milliseconds(arguments.hangLimit))
    } catch {
      // A service without crash reports still is a service.
      complain("orderd: no crash reports: \(error)")
    }
    CrashReporter.setTag("region", "eu-west")
    CrashReporter.setUser(id: "usr_7c1e")
    // Which of the requests in flight it was: every one sets it for its own task and the tasks that this one makes.
    CrashReporter.includeTaskLocal("request_id", RequestContext.$id)

    let service = OrderService(hangLimit: arguments.hangLimit)
    for (number, request) in ([.order] + arguments.requests).enumerated() {
      CrashReporter.setOperation(request.rawValue)
      CrashReporter.addBreadcrumb("request \(request.rawValue)", category: "http")
      switch request {
      // On the main thread, whose stack is the kernel's and not a thread library's.
      case .tree: print(Categories.depth(of: Categories.makeCyclic()))
      case .wait:
        print("waiting \(getpid())")
        fflush(nil)
        waitForSignal()
      default: await RequestContext.$id.withValue("req-\(number)") { await service.handle(request) }
      }
    }
    CrashReporter.flush(timeout: .seconds(10))
    if arguments.listens { listen(service) }
  }

  private static func listen(_ service: OrderService) -> Never {
    do throws(Server.Failure) {
      let server = try Server(service)
      server.start(threads: 8)
      print("listening \(server.port) \(getpid())")
      fflush(nil)
      waitForSignal()
    } catch {
      complain("orderd: \(error.text)")
      exit(EX_OSERR)
    }
  }

  /// - Returns: nil where help was asked for and given. Ends the process where the command line cannot be used.
  private static func parse(_ arguments: some Sequence<String>) -> Arguments? {
    do throws(Arguments.Mistake) {
      guard let arguments = try Arguments(arguments) else {
        print(Arguments.usage, terminator: "")
        return nil
      }
      return arguments
    } catch {
      complain("orderd: \(error.text)\ntry 'orderd --help'")
      exit(EX_USAGE)
    }
  }
}

func complain(_ text: String) {
  let line = text + "\n"
  _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
}
