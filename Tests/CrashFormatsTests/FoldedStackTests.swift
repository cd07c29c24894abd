import CrashFormats
import CrashModel
import Testing

struct FoldedStackTests {
  @Test func equalStacksAddUp() {
    var stacks = FoldedStackWriter()
    var report = sampleReport()
    report.suppressedCount = nil
    for _ in 0..<3 { stacks.add(report) }
    report.suppressedCount = 4
    stacks.add(report)
    report.service = "mailer"
    stacks.add(report)
    let lines = stacks.text().split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("mailer;") && lines[0].hasSuffix(";middle(_:_:);inlinedLeaf(_:_:)_[i] 5"))
    #expect(lines[1].hasPrefix("orderd;") && lines[1].hasSuffix(" 8"))
    let isAdded = stacks.add(CrashReport(id: "x"))
    #expect(!isAdded)
  }

  @Test func namesCannotEndAFrameOrALine() {
    var report = sampleReport()
    report.service = "a;b\nc 7"
    var stacks = FoldedStackWriter()
    stacks.add(report)
    #expect(stacks.text().hasPrefix(#"a:b\nc 7;"#))
    #expect(stacks.text().split(separator: "\n").count == 1)
  }
}
