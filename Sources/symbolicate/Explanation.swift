internal import CrashFormats
internal import CrashModel

/// How a stack hash came about, frame by frame.
enum Explanation {
  static func text(of analysis: StackAnalysis) -> String {
    var table = TextTable(columns: [.init(""), .init("CLASS"), .init("NAME"), .init("RULE")])
    for entry in analysis.frames {
      table.add([
        entry.isBlamed ? "->" : "", entry.frameClass.kind.rawValue,
        entry.frameClass.name ?? entry.frame.function ?? entry.frame.captured.address.description,
        entry.frameClass.rule,
      ])
    }
    let key = Printable.quoted(analysis.key)
    // What grouping asks for besides the hash.
    let place = analysis.siteLine.map { "Line \($0) behind the declaration of the blamed function.\n" } ?? ""
    let group = analysis.group.map { "The group was asked for: \(Printable.quoted($0)).\n" } ?? ""
    return "Stack hash \(analysis.hash.digits) (\(analysis.hash.quality.rawValue)) of \(key):\n\n"
      + table.text(width: nil) + "\n" + place + group
  }
}
