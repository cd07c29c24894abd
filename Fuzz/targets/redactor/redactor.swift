// The full redaction on any bytes. Applied to its own output it changes nothing, with either sort of marks; it leaves nothing
// that the base rules in C would take; a rule that was not asked would have found nothing; and text that goes through it line
// by line keeps its lines.

private let uniform = Redactor()
private let kinds = Redactor(marks: .kinds)
/// A rule of the caller's that finds nothing keeps every text from the short way.
private let thorough = Redactor(additionalRules: [{ _ in [] }])

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  let traits = TextTraits(text.span)
  for rule in BuiltInRule.specific + BuiltInRule.numbers {
    let found = rule.find(in: text.span)
    var end = 0
    for range in found {
      precondition(range.lowerBound >= end && range.upperBound <= text.count, "ranges of \(rule) out of order")
      end = range.upperBound
    }
    precondition(traits.suspect(rule) || found.isEmpty, "\(rule) was not asked and finds \(found)")
  }
  for redactor in [uniform, kinds] {
    let once = redactor.redacted(text.span) ?? text
    precondition(
      redactor.redacted(once.span) == nil, "its own output changes: \(String(decoding: once, as: UTF8.self))")
  }
  let result = uniform.redacted(text.span) ?? text
  precondition(result == thorough.redacted(text.span) ?? text, "the short way gives another result")
  precondition(uniform.base(result) == result, "the base rules find something in the result")

  var lines = LineRedactor(uniform)
  var output = 0
  for line in text.split(separator: 10, omittingEmptySubsequences: false).dropLast() {
    let line = Array(line) + [10]
    output += (lines.redact(line.span) ?? line).count { $0 == 10 }
  }
  precondition(output == text.count { $0 == 10 }, "lines are lost or made")
  return 0
}
