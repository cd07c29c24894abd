internal import CrashGrouping
internal import CrashModel

/// The flags that say which crashes are one bug.
extension Flag {
  static let ofGrouping: [Flag] = [
    Flag(
      name: "rules", short: nil, value: .path("FILE"),
      summary: "what the team knows about its own code: helpers, modules, crashes that belong together",
      commands: [.symbolicate, .group, .groupResolve]
    ) {
      $0.grouping.rulesFile = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "across-builds", short: nil, value: .none,
      summary: "where only symbol tables name functions, count the crashes of all builds together: coarser groups",
      commands: [.group]
    ) { options, _ in
      options.grouping.acrossBuilds = true
      return true
    },
    Flag(
      name: "diff", short: nil, value: .none,
      summary: "compare two reports instead: where their stack hashes part, frame by frame", commands: [.group],
      use: [.groups]
    ) { options, _ in
      options.grouping.isDiff = true
      return true
    },
  ]
}

/// What decides which crashes are one bug.
struct GroupingOptions {
  /// The team's own rules.
  var rulesFile: FilePath?
  var rules = GroupingRules()
  /// Hashes of names from symbol tables hold across builds.
  var acrossBuilds = false
  /// What hashes are made with.
  var settings: HashSettings { HashSettings(rules: rules, acrossBuilds: acrossBuilds) }
  /// Two reports are compared, and none counted.
  var isDiff = false
}
