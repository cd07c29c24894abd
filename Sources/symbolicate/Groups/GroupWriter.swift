internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// Writes groups in the format that the command line asks for.
struct GroupWriter {
  let options: Options
  let output: Output
  let diagnostics: Diagnostics

  /// Pages are for people, who look at no more; `--limit` has its own say.
  private static let pageLimit = 500

  func write(_ groups: [CrashGroup], _ totals: Totals) throws(Output.Failure) {
    var groups = groups
    if !options.groups.showsMembers { for index in groups.indices { groups[index].forgetMembers() } }
    let shown = groups.prefix(options.limit ?? groups.count)
    switch options.format {
    case .json:
      var array = JSONArray(isAlwaysArray: true, pretty: options.pretty)
      for group in shown { try array.add(Self.json(group, pretty: options.pretty), to: output) }
      try array.end(output)
    case .ndjson:
      for group in shown { try output.write(Self.json(group, pretty: false) + [UInt8(ascii: "\n")]) }
      try output.write(StreamLines.summary(totals, groups: groups))
    case .markdown:
      let limit = options.limit ?? Self.pageLimit
      try output.write(GroupMarkdown(groups, limit: limit, showsMembers: options.groups.showsMembers).text())
    case .html:
      let limit = options.limit ?? Self.pageLimit
      try output.write(GroupPage(groups, limit: limit, showsMembers: options.groups.showsMembers).text())
    default:
      if totals.reports > 0 || !groups.isEmpty {
        try output.write(
          GroupListing.text(
            of: groups, limit: options.limit, width: output.width, showsMembers: options.groups.showsMembers))
      } else if totals.errors == 0 {
        try output.write("No crashes.\n")
      }
    }
  }

  private static func json(_ group: CrashGroup, pretty: Bool) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    group.write(to: &writer)
    return writer.bytes
  }
}
