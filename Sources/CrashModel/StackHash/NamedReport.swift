/// A crash as its text tells it, before Strings are made of it: of a report whose frames all have their names, what says
/// which crash it was.
///
/// Its texts point into the parser's memory, and are gone with the document. `NamedStackAnalyzer` takes it.
package struct NamedReport {
  package struct Frame {
    package var function = UnsafeRawBufferPointer(start: nil, count: 0)
    /// nil for a frame without a linker name.
    package var rawFunction: UnsafeRawBufferPointer?
    package var file: UnsafeRawBufferPointer?
    package var line: Int32?
    package var declarationLine: Int32?
    package var imageIndex: Int32?
    package var inlined = false
    package var hasDebugInformation = false

    package init() {}
  }

  package var id = UnsafeRawBufferPointer(start: nil, count: 0)
  package var runID: UnsafeRawBufferPointer?
  package var timestamp: Timestamp?
  package var host: UnsafeRawBufferPointer?
  package var message: UnsafeRawBufferPointer?
  /// What it says itself went wrong.
  package var reason: UnsafeRawBufferPointer?
  package var suppressedCount: Int?
  package var stackHash: StackHash?
  package var previousStackHashes: [StackHash] = []
  package var signalAddress: Address?
  package var stackPointer: UInt64?
  package var depth: UInt64?
  package var frames: [Frame] = []
  /// All else that the analysis and the group take from a report: type, signal, executable, service, release, environment,
  /// images. Reports with the same bytes here have the same of each.
  package var context: [UInt8] = []

  package init() {}

  /// Keeps the memory for the next one.
  package mutating func removeAll() {
    var (frames, context) = (self.frames, self.context)
    self = NamedReport()
    frames.removeAll(keepingCapacity: true)
    context.removeAll(keepingCapacity: true)
    (self.frames, self.context) = (frames, context)
  }
}
