internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// Groups as Markdown (CommonMark, with the tables of GitHub) for an issue tracker or a summary of a build.
///
/// As in a report, text from outside stands in code only.
struct GroupMarkdown {
  private let groups: [CrashGroup]
  private let limit: Int
  private let showsMembers: Bool
  private let story: GroupStory

  private static let (stackLimit, memberLimit) = (4_000, 50)

  init(_ groups: [CrashGroup], limit: Int, showsMembers: Bool) {
    (self.groups, self.limit, self.showsMembers) = (groups, limit, showsMembers)
    story = GroupStory(groups)
  }

  func text() -> String {
    var text = "## Crashes by bug\n\n\(story.headline)"
    let hasStatus = groups.contains { $0.status != nil }
    if hasStatus { text += ": \(GroupListing.statusLine(of: groups))" }
    text += "\n\n"
    let shown = groups.prefix(limit)
    guard !shown.isEmpty else { return text }
    text += "|\(hasStatus ? " Status |" : "") Count | Last seen (UTC) | Releases | What | Stack hash |\n"
    text += "|\(hasStatus ? " --- |" : "") ---: | --- | --- | --- | --- |\n"
    for group in shown {
      let status = hasStatus ? " \(group.status?.rawValue ?? "") |" : ""
      text += "|\(status) \(group.count) | \(GroupListing.minute(group.lastSeen)) | "
      text += "\(cell(GroupListing.releases(of: group), to: 80)) | \(cell(group.title, to: 160)) | "
      text += "`\(group.hash.digits)` |\n"
    }
    if groups.count > shown.count { text += "\n\(groups.count - shown.count) more, not shown.\n" }
    for group in shown {
      let title = MarkdownReportWriter.code(MarkdownReportWriter.cut(group.title, to: 200))
      text += "\n### \(title)\n\n"
      for change in story.changes(of: group, name: { MarkdownReportWriter.code(MarkdownReportWriter.cut($0, to: 80)) })
      {
        text += "- \(change)\n"
      }
      if let message = group.sample.message, !message.isEmpty {
        text += "- \(MarkdownReportWriter.code(MarkdownReportWriter.cut(message, to: 500)))\n"
      }
      text += "\n"
      if let stack = group.sample.stack {
        let block = Printable.block(MarkdownReportWriter.cut(stack, to: Self.stackLimit), indentation: "")
        text += MarkdownReportWriter.fence(block)
      }
      guard showsMembers else { continue }
      let members = group.members.entries.prefix(Self.memberLimit)
      text += members.map { MarkdownReportWriter.code($0.id) }.joined(separator: ", ")
      text += group.reportCount > members.count ? " and \(group.reportCount - members.count) more\n" : "\n"
    }
    return text
  }

  /// A bar ends a cell even within code.
  private func cell(_ text: String, to count: Int) -> String {
    guard !text.isEmpty else { return "—" }
    let code = MarkdownReportWriter.code(MarkdownReportWriter.cut(text, to: count))
    return code.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
  }
}
