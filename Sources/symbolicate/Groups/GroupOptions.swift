internal import CrashGrouping
internal import CrashModel

/// What `group` and its subcommands have of their own.
struct GroupOptions {
  /// Reports before this are left out.
  var since: Timestamp?
  var baseline: FilePath?
  var failsOn: Set<GroupStatus> = []
  var showsMembers = false
  var order = GroupOrder.count
  /// The state comes out, and no groups.
  var writesState = false
  var jobs = 1
  /// Of `resolve`.
  var release: String?
  var reopens = false

  static let jobLimit = 256

  /// `7d`, `24h`, `90m`: so long before now; or a moment.
  static func moment(_ text: String) -> Timestamp? {
    if let moment = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: text + "T00:00:00Z") { return moment }
    let seconds: Int64
    switch text.last {
    case "s": seconds = 1
    case "m": seconds = 60
    case "h": seconds = 3_600
    case "d": seconds = 86_400
    case "w": seconds = 604_800
    default: return nil
    }
    guard text.utf8.dropLast().allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      let count = Int64(text.dropLast())
    else { return nil }
    let (length, overflow) = count.multipliedReportingOverflow(by: seconds)
    let (nanoseconds, tooLong) = length.multipliedReportingOverflow(by: 1_000_000_000)
    let (moment, tooEarly) = Timestamp.now.rawValue.subtractingReportingOverflow(nanoseconds)
    return overflow || tooLong || tooEarly ? nil : Timestamp(rawValue: moment)
  }
}

extension Options {
  /// What the command line of a `group` lacks, or has of which it makes no use.
  var groupProblem: String? {
    switch command {
    case .group:
      if !groups.failsOn.isEmpty, groups.baseline == nil {
        return "--fail-on needs an earlier state to compare with; name it with --baseline FILE"
      }
      if groups.baseline == FilePath("-"), operands.contains(FilePath("-")) {
        return "standard input cannot be both the reports and the baseline"
      }
      return nil
    case .groupMerge:
      return operands.isEmpty ? "no states; name files that 'group --partial' wrote, or - for standard input" : nil
    case .groupResolve:
      if groups.reopens == (groups.release != nil) {
        return "name the release that the bug was mended in with --in RELEASE, or take that back with --reopen"
      }
      if operands.first == FilePath("-") { return "'group resolve' changes a file, and cannot change standard input" }
      return operands.count < 2 ? "name a state and the stack hash of a group in it" : nil
    default: return nil
    }
  }
}

extension Command {
  var groupDiscussion: String {
    switch self {
    case .group:
      """
      Reads what 'symbolicate' reads, names the frames, and adds the reports up by stack hash: one row for each bug. A state
      that --partial wrote counts as the reports that it was made from. With --baseline each group has a status: new, known,
      regressed (mended in a release and seen in a newer one) or gone. A directory called 'merge' or 'resolve' is ./merge.
      """
    case .groupMerge:
      """
      Joins states that 'group --partial' wrote, in any order and any number of times, to what one run over all reports would
      have written. A report that is in two of them is counted twice, unless both were made with --members. If one of them
      cannot be read, nothing is written. -o may name one of them.
      """
    case .groupResolve:
      """
      Notes in STATE that the group of HASH (its first 6 digits do, if they are of one group only) was mended in RELEASE. From
      then on 'group --baseline STATE' calls it regressed where it is seen in a newer release: newer by version number, or, of
      other names, the one that was seen first later. STATE is replaced when all is written.
      """
    default: ""
    }
  }

  var groupExitStatusLines: [String] {
    switch self {
    case .groupMerge: ["0  all states were joined", "2  one could not be read, and nothing was written"]
    case .groupResolve: ["0  it was noted", "2  no such group, or the state could not be changed"]
    default:
      [
        "0  complete: every frame has its name, or can have none",
        "1  incomplete: missing symbols, or inputs that could not be read", "2  nothing was produced",
        "3  --fail-on: there are such groups",
      ]
    }
  }
}

extension Flag {
  static let ofGroups: [Flag] = [
    Flag(
      name: "format", short: "f", value: .choice(Options.Format.ofGroups.map(\.rawValue)),
      summary: "how groups are written (default: text)", commands: [.group],
      use: [.groups, .json, .ndjson, .markdown, .html]
    ) { options, value in
      guard let format = Options.Format.ofGroups.first(where: { $0.rawValue == value.text }) else { return false }
      options.format = format
      return true
    },
    Flag(
      name: "since", short: nil, value: .number("TIME", range: "a length of time (7d, 24h, 90m) or an RFC 3339 time"),
      summary: "leave out what happened before TIME: 7d, 24h, 90m ago, or a moment (2026-11-30, 2026-11-30T05:12:33Z)",
      commands: [.group]
    ) { options, value in
      options.groups.since = GroupOptions.moment(value.text)
      return options.groups.since != nil
    },
    Flag(
      name: "baseline", short: nil, value: .path("FILE"),
      summary: "say which groups are new beside FILE, a state or what --format json or ndjson wrote",
      commands: [.group],
      use: [.groups, .json, .ndjson, .markdown, .html]
    ) {
      $0.groups.baseline = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "fail-on", short: nil, value: .choice([GroupStatus.new.rawValue, GroupStatus.regressed.rawValue]),
      summary: "exit with 3 if there are such groups; may be repeated (with --baseline)", commands: [.group],
      use: [.groups, .json, .ndjson, .markdown, .html]
    ) { options, value in
      guard let status = GroupStatus(rawValue: value.text), status == .new || status == .regressed else { return false }
      options.groups.failsOn.insert(status)
      return true
    },
    Flag(
      name: "members", short: nil, value: .none,
      summary:
        "with the ids of each group's reports, of the latest \(GroupMembers.limit); a report that is there twice "
        + "counts once",
      commands: [.group]
    ) { options, _ in
      options.groups.showsMembers = true
      return true
    },
    Flag(
      name: "sort", short: nil, value: .choice(GroupOrder.allCases.map(\.rawValue)),
      summary: "which groups come first: the largest (default), the last seen, or those that appeared last",
      commands: [.group], use: [.groups, .json, .ndjson, .markdown, .html]
    ) { options, value in
      guard let order = GroupOrder(rawValue: value.text) else { return false }
      options.groups.order = order
      return true
    },
    Flag(
      name: "partial", short: nil, value: .none,
      summary: "write the state, to be joined with others by 'group merge' or to be a baseline", commands: [.group]
    ) { options, _ in
      options.groups.writesState = true
      return true
    },
    Flag(
      name: "jobs", short: "j", value: .number("N", range: "a number from 1 to \(GroupOptions.jobLimit)"),
      summary: "read with N processes (default: 1); the result is the same", commands: [.group]
    ) { options, value in
      guard let count = Int(value.text), 1...GroupOptions.jobLimit ~= count else { return false }
      options.groups.jobs = count
      return true
    },
    Flag(
      name: "in", short: nil, value: .path("RELEASE"), summary: "the release that the bug was mended in",
      commands: [.groupResolve]
    ) { options, value in
      guard let text = String(validating: value.bytes, as: UTF8.self), !text.isEmpty, text.utf8.count <= 200 else {
        return false
      }
      options.groups.release = text
      return true
    },
    Flag(
      name: "reopen", short: nil, value: .none, summary: "the bug was not mended after all", commands: [.groupResolve]
    ) { options, _ in
      options.groups.reopens = true
      return true
    },
  ]
}
