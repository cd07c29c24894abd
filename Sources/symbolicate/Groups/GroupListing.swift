internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// Groups as a table.
enum GroupListing {
  /// - Parameter showsMembers: below the table, the ids of each group's reports.
  static func text(of groups: [CrashGroup], limit: Int?, width: Int?, showsMembers: Bool = false) -> String {
    let shown = groups.prefix(limit ?? groups.count)
    let hasStatus = groups.contains { $0.status != nil }
    var columns: [TextTable.Column] = [
      .init("COUNT", isRightAligned: true), .init("FIRST SEEN"), .init("LAST SEEN"), .init("RELEASES", minimumWidth: 8),
      .init("REASON"), .init("BLAMED FUNCTION", minimumWidth: 20), .init("PLACE", minimumWidth: 12),
      .init("STACK HASH"),
    ]
    if hasStatus { columns.insert(.init("STATUS"), at: 0) }
    var table = TextTable(columns: columns)
    for group in shown {
      let hash =
        group.hash.quality == .dwarf ? group.hash.digits : "\(group.hash.digits) (\(group.hash.quality.rawValue))"
      var cells = [
        String(group.count), minute(group.firstSeen), minute(group.lastSeen), releases(of: group),
        group.sample.reason?.rawValue ?? "-", group.sample.blame?.function ?? "-", place(of: group) ?? "-", hash,
      ]
      if hasStatus { cells.insert(group.status?.rawValue ?? "-", at: 0) }
      table.add(cells)
    }
    var text = table.text(width: width)
    let omitted = groups.count - shown.count
    if omitted > 0 { text += omitted == 1 ? "1 more group\n" : "\(omitted) more groups\n" }
    if hasStatus { text += "\n" + statusLine(of: groups) + "\n" }
    guard showsMembers else { return text }
    for group in shown {
      let members = group.members.entries
      text += "\n\(group.hash.digits)\n"
      for member in members { text += "  \(Printable.line(member.id))\n" }
      if members.isEmpty {
        text += "  no ids: the state that the group comes from was made without --members\n"
      } else if group.reportCount > members.count {
        text += "  \(group.reportCount - members.count) more\n"
      }
    }
    return text
  }

  /// `2 new, 1 regressed, 14 known, 0 gone`
  static func statusLine(of groups: [CrashGroup]) -> String {
    [GroupStatus.new, .regressed, .known, .gone]
      .map { status in "\(groups.count { $0.status == status }) \(status.rawValue)" }.joined(separator: ", ")
  }

  /// `Store.swift:12`
  static func place(of group: CrashGroup) -> String? {
    group.sample.blame.flatMap { blame in
      blame.file.map { file in
        let name = file.split(separator: "/").last.map(String.init) ?? file
        // Line 0 is what compilers give to code that stands nowhere.
        guard let line = blame.line, line > 0 else { return name }
        return "\(name):\(line)"
      }
    }
  }

  static func releases(of group: CrashGroup) -> String {
    let named = group.releases.byCount.map { "\($0.name) (\($0.count))" }
    let others = group.releases.otherCount
    return (others > 0 ? named + ["others (\(others))"] : named).joined(separator: ", ")
  }

  /// `2026-11-30 05:12`, UTC.
  static func minute(_ moment: Timestamp?) -> String {
    guard let moment else { return "-" }
    let text = moment.rfc3339
    return text.prefix(10) + " " + text.dropFirst(11).prefix(5)
  }
}
