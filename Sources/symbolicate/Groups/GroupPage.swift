internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// Groups as one HTML page that needs nothing else: no script, no picture, no font, no other file.
///
/// All text from outside is escaped, and a policy in the page forbids what would load or run, should that ever fail.
struct GroupPage {
  private let groups: [CrashGroup]
  private let limit: Int
  private let showsMembers: Bool
  private let story: GroupStory

  private static let (columnLimit, memberLimit) = (92, 200)
  private static let (columnWidth, chartHeight) = (3, 28)

  init(_ groups: [CrashGroup], limit: Int, showsMembers: Bool) {
    (self.groups, self.limit, self.showsMembers) = (groups, limit, showsMembers)
    story = GroupStory(groups)
  }

  func text() -> String {
    let shown = groups.prefix(limit)
    let hasStatus = groups.contains { $0.status != nil }
    var text = """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>Crashes by bug</title>
      <style>
      \(Self.style)
      </style>
      </head>
      <body>
      <header>
      <h1>Crashes by bug</h1>
      <p>\(escaped(story.headline))\(hasStatus ? ": " + GroupListing.statusLine(of: groups) : "")</p>
      </header>
      <main>

      """
    if !shown.isEmpty { text += table(of: shown, hasStatus: hasStatus) }
    if groups.count > shown.count {
      text += "<p>\(GroupStory.number(groups.count - shown.count)) more groups are not shown.</p>\n"
    }
    for (index, group) in shown.enumerated() { text += section(of: group, number: index + 1) }
    return text + "</main>\n</body>\n</html>\n"
  }

  private func table(of groups: ArraySlice<CrashGroup>, hasStatus: Bool) -> String {
    var text = "<div class=\"wide\">\n<table>\n<thead>\n<tr>"
    text += hasStatus ? "<th scope=\"col\">Status</th>" : ""
    text += "<th scope=\"col\" class=\"number\">Count</th><th scope=\"col\">Over time</th>"
    text += "<th scope=\"col\">Last seen</th><th scope=\"col\">Releases</th><th scope=\"col\">What</th></tr>\n"
    text += "</thead>\n<tbody>\n"
    for (index, group) in groups.enumerated() {
      text += "<tr>\(hasStatus ? "<td>\(badge(of: group))</td>" : "")"
      text += "<td class=\"number\">\(GroupStory.number(group.count))</td><td>\(chart(of: group))</td>"
      text += "<td class=\"time\">\(GroupListing.minute(group.lastSeen))</td>"
      text +=
        "<td class=\"releases\">\(escaped(MarkdownReportWriter.cut(GroupListing.releases(of: group), to: 80)))</td>"
      text += "<td><a href=\"#group-\(index + 1)\">\(escaped(group.title))</a></td></tr>\n"
    }
    return text + "</tbody>\n</table>\n</div>\n"
  }

  private func section(of group: CrashGroup, number: Int) -> String {
    var text = "<section id=\"group-\(number)\">\n<h2>\(badge(of: group)) \(escaped(group.title))</h2>\n"
    if let message = group.sample.message, !message.isEmpty {
      text += "<p class=\"message\">\(block(MarkdownReportWriter.cut(message, to: 2_000)))</p>\n"
    }
    var facts: [(String, String)] = [
      ("Crashes", GroupStory.number(group.count)),
      ("First seen", GroupListing.minute(group.firstSeen) + " UTC"),
      ("Last seen", GroupListing.minute(group.lastSeen) + " UTC"),
    ]
    if !group.scope.isEmpty { facts.append(("Service", group.scope)) }
    if let place = GroupListing.place(of: group) { facts.append(("Place", place)) }
    if let environment = group.sample.environment { facts.append(("Environment", environment)) }
    if !group.hosts.isEmpty {
      let names = group.hosts.prefix(8).joined(separator: ", ")
      facts.append(("Hosts", group.hosts.count > 8 || group.moreHosts ? names + " and others" : names))
    }
    facts.append(("Stack hash", "\(group.hash.digits) (\(group.hash.quality.rawValue))"))
    facts.append(("Newest report", group.sample.reportID))
    text += "<dl>\n" + facts.map { "<div><dt>\($0)</dt><dd>\(escaped($1))</dd></div>\n" }.joined() + "</dl>\n"
    let changes = story.changes(of: group)
    if !changes.isEmpty {
      text += "<h3>What changed</h3>\n<ul>\n" + changes.map { "<li>\(escaped($0))</li>\n" }.joined() + "</ul>\n"
    }
    if let stack = group.sample.stack {
      text += "<h3>Stack of the newest report</h3>\n<pre>\(block(stack))</pre>\n"
    }
    let releases = story.releases(of: group)
    if !releases.isEmpty {
      text += "<details>\n<summary>Releases (\(releases.count))</summary>\n<table>\n<thead>\n<tr>"
      text += "<th scope=\"col\">Release</th><th scope=\"col\" class=\"number\">Count</th>"
      text += "<th scope=\"col\">First seen</th><th scope=\"col\">Last seen</th></tr>\n</thead>\n<tbody>\n"
      for release in releases {
        text += "<tr><td>\(escaped(release.name))</td><td class=\"number\">\(GroupStory.number(release.count))</td>"
        text += "<td class=\"time\">\(GroupListing.minute(release.firstSeen))</td>"
        text += "<td class=\"time\">\(GroupListing.minute(release.lastSeen))</td></tr>\n"
      }
      if group.releases.otherCount > 0 {
        text += "<tr><td>older</td><td class=\"number\">\(GroupStory.number(group.releases.otherCount))</td>"
        text += "<td></td><td></td></tr>\n"
      }
      text += "</tbody>\n</table>\n</details>\n"
    }
    if showsMembers, !group.members.isEmpty {
      let members = group.members.entries.prefix(Self.memberLimit)
      text += "<details>\n<summary>Reports (\(GroupStory.number(group.reportCount)))</summary>\n<ul class=\"ids\">\n"
      text += members.map { "<li>\(escaped($0.id))</li>\n" }.joined()
      if group.reportCount > members.count {
        text += "<li>and \(GroupStory.number(group.reportCount - members.count)) more</li>\n"
      }
      text += "</ul>\n</details>\n"
    }
    return text + "</section>\n"
  }

  private func badge(of group: CrashGroup) -> String {
    group.status.map { "<span class=\"status \($0.rawValue)\">\($0.rawValue)</span>" } ?? ""
  }

  /// Bars over the days of all groups, each chart by its own largest number.
  private func chart(of group: CrashGroup) -> String {
    let counts = story.columns(of: group, atMost: Self.columnLimit)
    guard let days = story.days, let largest = counts.max(), largest > 0 else { return "" }
    let width = counts.count * Self.columnWidth
    var path = ""
    for (index, count) in counts.enumerated() where count > 0 {
      // A day with one crash is to be seen beside one with thousands.
      let height = max(2, Int((Double(count) / Double(largest) * Double(Self.chartHeight)).rounded()))
      path += "M\(index * Self.columnWidth) \(Self.chartHeight)v-\(height)h\(Self.columnWidth - 1)v\(height)z"
    }
    let from = DayCounts.Day(number: days.lowerBound, count: 0).text
    let to = DayCounts.Day(number: days.upperBound, count: 0).text
    let label = "crashes from \(from) to \(to), at most \(GroupStory.number(largest)) at a time"
    return "<svg role=\"img\" aria-label=\"\(label)\" width=\"\(width)\" height=\"\(Self.chartHeight)\" "
      + "viewBox=\"0 0 \(width) \(Self.chartHeight)\"><title>\(label)</title><path d=\"\(path)\"/></svg>"
  }

  private func block(_ text: String) -> String { escaped(lines: Printable.block(text, indentation: "")) }

  private func escaped(_ text: String) -> String { escaped(lines: Printable.line(text)) }

  private func escaped(lines text: String) -> String {
    var result = ""
    result.reserveCapacity(text.utf8.count + 16)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static let style = """
    :root { color-scheme: light dark; --text: #1b1f24; --dim: #57606a; --back: #ffffff; --soft: #f3f5f7;
      --line: #d0d7de; --link: #0550ae; --bar: #2f6fbb; --new: #9a4b00; --regressed: #b3202a; --gone: #57606a;
      --known: #57606a; }
    @media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9aa5b1; --back: #0f1318; --soft: #181d24;
      --line: #343c46; --link: #7ab7ff; --bar: #5b9be6; --new: #f0a35e; --regressed: #ff8088; --gone: #9aa5b1;
      --known: #9aa5b1; } }
    * { box-sizing: border-box; }
    body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--back); color: var(--text);
      font: 16px/1.5 system-ui, sans-serif; }
    h1 { margin: 0; font-size: 1.6rem; }
    h2 { margin: 0 0 .5rem; font-size: 1.15rem; overflow-wrap: anywhere; }
    h3 { margin: 1rem 0 .25rem; font-size: 1rem; }
    header p { margin: .25rem 0 1.5rem; color: var(--dim); }
    a { color: var(--link); overflow-wrap: anywhere; }
    .wide { overflow-x: auto; }
    table { border-collapse: collapse; width: 100%; }
    th, td { padding: .4rem .75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: middle; }
    th { color: var(--dim); font-weight: 600; font-size: .85rem; white-space: nowrap; }
    .number { text-align: right; font-variant-numeric: tabular-nums; }
    .time { white-space: nowrap; font-variant-numeric: tabular-nums; }
    svg { display: block; fill: var(--bar); border-bottom: 1px solid var(--line); }
    td a { display: inline-block; min-width: 16rem; }
    .releases { min-width: 7rem; }
    section { margin-top: 2rem; padding-top: 1.5rem; border-top: 2px solid var(--line); }
    dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .25rem 1.5rem; margin: 0; }
    dt { color: var(--dim); font-size: .85rem; }
    dd { margin: 0; overflow-wrap: anywhere; }
    pre, .message, .ids { padding: .75rem 1rem; overflow-x: auto; background: var(--soft); border-radius: .4rem;
      font: .85rem/1.5 ui-monospace, monospace; }
    .message { white-space: pre-wrap; overflow-wrap: anywhere; }
    .ids { list-style: none; }
    pre { margin: 0; }
    summary { margin-top: .75rem; cursor: pointer; color: var(--link); }
    .status { font-size: .8rem; font-weight: 600; border: 1px solid currentColor; border-radius: .3rem; padding: 0 .35rem; }
    .new { color: var(--new); }
    .known { color: var(--known); }
    .regressed { color: var(--regressed); }
    .gone { color: var(--gone); }
    """
}
