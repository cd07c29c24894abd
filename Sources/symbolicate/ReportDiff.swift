internal import CrashFormats
internal import CrashModel

/// Where the stack hashes of two reports part, frame by frame.
struct ReportDiff {
  struct Side {
    /// Where the report was read.
    var place: String
    var report: CrashReport
    var analysis: StackAnalysis
  }

  var left: Side
  var right: Side

  func text(width: Int?) -> String {
    var text = ""
    for (letter, side) in [("A", left), ("B", right)] {
      let hash = side.analysis.hash
      text +=
        Printable.line(
          "\(letter)  \(hash.digits) (\(hash.quality.rawValue))  \(side.report.id)  \(side.place)") + "\n"
    }
    text += "\n" + findings.map { Printable.line($0) + "\n" }.joined() + "\n"
    var table = TextTable(columns: [
      .init(""), .init("A"), .init("CLASS"), .init("B"), .init("CLASS"), .init("NAME", minimumWidth: 20), .init("RULE"),
    ])
    for row in rows {
      let entry = row.left.map { left.analysis.frames[$0] } ?? row.right.map { right.analysis.frames[$0] }
      guard let entry else { continue }
      table.add([
        row.left == nil ? "+" : row.right == nil ? "-" : "", row.left.map { mark($0, of: left) } ?? "",
        row.left.map { left.analysis.frames[$0].frameClass.kind.rawValue } ?? "",
        row.right.map { mark($0, of: right) } ?? "",
        row.right.map { right.analysis.frames[$0].frameClass.kind.rawValue } ?? "", Self.name(of: entry),
        entry.frameClass.rule,
      ])
    }
    return text + table.text(width: width)
  }

  private func mark(_ index: Int, of side: Side) -> String {
    side.analysis.frames[index].isBlamed ? "\(index) <-" : String(index)
  }

  private static func name(of entry: StackAnalysis.ClassifiedFrame) -> String {
    entry.frameClass.name ?? entry.frame.function ?? place(of: entry.frame)
  }

  // By the offset, as the address is another one in each process.
  private static func place(of frame: SymbolicatedFrame) -> String {
    guard let image = frame.captured.imageIndex, let offset = frame.captured.imageOffset else {
      return frame.captured.address.description
    }
    return "image \(image) + \(Hex.prefixed(offset.rawValue))"
  }

  // MARK: Findings

  private var findings: [String] {
    let (one, two) = (left.analysis, right.analysis)
    if one.hash == two.hash {
      guard let first = one.siteLine, let second = two.siteLine, first != second else {
        return ["The same stack hash."]
      }
      return [
        "The same stack hash, at different lines of \(one.blame?.function ?? "the blamed function"): \(first) and "
          + "\(second) behind its declaration. Two groups if one build ever crashes at both."
      ]
    }
    var findings: [String] = []
    func part(_ what: String, _ first: String, _ second: String) {
      if first != second { findings.append("Different \(what): \(first) and \(second).") }
    }
    part("services", scope(of: left), scope(of: right))
    part("reasons", one.reason.rawValue, two.reason.rawValue)
    part("blamed functions", one.blame?.function ?? "nobody", two.blame?.function ?? "nobody")
    part("qualities of names", one.hash.quality.rawValue, two.hash.quality.rawValue)
    part("groups that were asked for", one.group ?? "none", two.group ?? "none")
    if findings.isEmpty || (one.hash.quality < .dwarf && one.hash.quality == two.hash.quality) {
      // What is left: the places, which hold for one build only.
      part("places", lastPart(of: one), lastPart(of: two))
    }
    return findings
  }

  private func scope(of side: Side) -> String { keyParts(of: side.analysis).dropFirst().first ?? "" }

  private func lastPart(of analysis: StackAnalysis) -> String { keyParts(of: analysis).last ?? "" }

  private func keyParts(of analysis: StackAnalysis) -> [String] {
    analysis.key.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
  }

  // MARK: Alignment

  /// Frames that both have beside each other, in the longest common subsequence; at most 320 frames a side are analysed.
  private var rows: [(left: Int?, right: Int?)] {
    let (one, two) = (left.analysis.frames.map(Self.identity), right.analysis.frames.map(Self.identity))
    var lengths = Array(repeating: Array(repeating: 0, count: two.count + 1), count: one.count + 1)
    for i in one.indices.reversed() {
      for j in two.indices.reversed() {
        lengths[i][j] =
          one[i] == two[j] ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1])
      }
    }
    var rows: [(left: Int?, right: Int?)] = []
    var (i, j) = (0, 0)
    while i < one.count || j < two.count {
      if i < one.count, j < two.count, one[i] == two[j] {
        rows.append((i, j))
        i += 1
        j += 1
      } else if j == two.count || (i < one.count && lengths[i + 1][j] >= lengths[i][j + 1]) {
        rows.append((i, nil))
        i += 1
      } else {
        rows.append((nil, j))
        j += 1
      }
    }
    return rows
  }

  private static func identity(_ entry: StackAnalysis.ClassifiedFrame) -> String { name(of: entry) }
}
