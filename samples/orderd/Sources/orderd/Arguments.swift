import Glibc

/// The command line.
struct Arguments {
  /// Where the crash reports are kept; an absolute path.
  var spool: String
  var release: String?
  var reportsCrashes = true
  /// For how long no task may run until that is reported, in milliseconds.
  var hangLimit = 5_000
  /// Whether requests are taken from a socket, behind those of the command line.
  var listens = false
  var requests: [Request] = []

  /// Why the command line cannot be used.
  struct Mistake: Error {
    var text: String
  }

  static let usage = """
    Usage: orderd [--spool DIR] [--release R] [--no-crash-reports] [--listen] [REQUEST]...

    Handles the requests one after another. Without requests it lets the reports of earlier runs be written, and ends.

      --spool DIR         where crash reports are kept; default: "crashes" in the state directory that systemd gives
                          (STATE_DIRECTORY), else in the working directory
      --release R         version of the service
      --hang-limit MS     how long tasks may not run until that is reported as a hang; default: 5000
      --no-crash-reports  run without the crash reporter
      --listen            then take requests from a port of the loopback interface, which is printed: one in a
                          connection, as a line; ends by a signal
      -h, --help          show this

    Requests. All but the first and those that say so crash the service:

    """ + Request.allCases.map { "  \($0.rawValue.padded(to: 22))  \($0.summary)\n" }.joined()

  /// - Returns: nil where the command line asks for help.
  init?(_ arguments: some Sequence<String>) throws(Mistake) {
    var rest = Array(arguments)[...]
    var spool: String?
    func value(of option: String) throws(Mistake) -> String {
      guard let value = rest.popFirst() else { throw Mistake(text: "\(option) needs a value") }
      return value
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--spool": spool = try value(of: argument)
      case "--release": release = try value(of: argument)
      case "--hang-limit":
        let text = try value(of: argument)
        guard let milliseconds = Int(text), (50...600_000).contains(milliseconds) else {
          throw Mistake(text: "--hang-limit takes 50 to 600000, not \(text)")
        }
        hangLimit = milliseconds
      case "--no-crash-reports": reportsCrashes = false
      case "--listen": listens = true
      case "-h", "--help": return nil
      default:
        if argument.hasPrefix("-") { throw Mistake(text: "no such option: \(argument)") }
        guard let request = Request(rawValue: argument) else { throw Mistake(text: "no such request: \(argument)") }
        requests.append(request)
      }
    }
    self.spool = try Self.absolute(spool ?? Self.stateDirectory.map { $0 + "/crashes" } ?? "crashes")
  }

  /// systemd makes it and names it, with colons between several.
  private static var stateDirectory: String? {
    getenv("STATE_DIRECTORY").flatMap { String(cString: $0).split(separator: ":").first.map(String.init) }
  }

  /// The crash reporter takes absolute paths only: a daemon may change its working directory. At the start it is still
  /// the one that a relative path was meant for.
  private static func absolute(_ path: String) throws(Mistake) -> String {
    if path.hasPrefix("/") { return path }
    guard let current = getcwd(nil, 0) else {
      throw Mistake(text: "the working directory cannot be told; give an absolute path with --spool")
    }
    defer { free(current) }
    return String(cString: current) + "/" + path
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - utf8.count)) }
}
