internal import CrashModel
internal import Symbolication

/// What the command line gave to take names from, held against what the reports want: a wrong file is told, and not
/// passed over because another one was found.
struct GivenFiles {
  struct Problem {
    var path: String
    var message: String
  }

  /// Cannot be read, or has nothing to be known by.
  private(set) var unusable: [Problem]
  private var unmatched: [(path: String, buildID: BuildID)] = []
  private var hasReports = false
  /// The images of the reports, for the message: the first few.
  private var wanted: [(id: BuildID, name: String)] = []
  private(set) var wantedSequences: [Int] = []
  /// Of the report that is noted, among the parts that several processes have of one input.
  var sequence = 0
  private static let wantedLimit = 8

  /// None.
  init() { unusable = [] }

  init(_ symbolicator: Symbolicator) {
    unusable = (symbolicator.unreadableFiles + symbolicator.unreadableDirectories).map {
      Problem(path: $0.path, message: "\($0.reason); it is not used")
    }
    for (path, id) in symbolicator.givenFiles {
      if let id {
        unmatched.append((path, id))
      } else {
        unusable.append(
          Problem(path: path, message: "has no build id, so that nothing says which image it is; it is not used"))
      }
    }
  }

  mutating func note(_ report: CrashReport) {
    guard !unmatched.isEmpty else { return }
    hasReports = true
    for image in report.images {
      // An image without a build id is found by its name.
      unmatched.removeAll { given in
        image.buildID.map { $0 == given.buildID } ?? FilePath(given.path).lastComponent.elementsEqual(image.name.utf8)
      }
    }
    guard wanted.count < Self.wantedLimit else { return }
    var used: Set<Int> = []
    for frame in report.threads.lazy.flatMap(\.frames) {
      guard let captured = frame.captured else { continue }
      let index = captured.imageIndex ?? report.images.firstIndex { $0.contains(captured.lookupAddress) }
      if let index { used.insert(index) }
    }
    // Names are wanted for images with frames; a report without a stack has none of them.
    for index in report.images.indices where used.isEmpty || used.contains(index) {
      guard wanted.count < Self.wantedLimit else { return }
      guard let id = report.images[index].buildID, !wanted.contains(where: { $0.id == id }) else { continue }
      wanted.append((id, report.images[index].name))
      wantedSequences.append(sequence)
    }
  }

  /// What a worker found, for its parent.
  var findings: (hasReports: Bool, unmatched: [String], wanted: [(sequence: Int, id: BuildID, name: String)]) {
    (hasReports, unmatched.map(\.path), zip(wantedSequences, wanted).map { ($0, $1.id, $1.name) })
  }

  /// As if the reports of all workers had been noted here, in the order of the input.
  mutating func add(
    _ others: [(hasReports: Bool, unmatched: [String], wanted: [(sequence: Int, id: BuildID, name: String)])]
  ) {
    var all = zip(wantedSequences, wanted).map { (sequence: $0, id: $1.id, name: $1.name) }
    for other in others where other.hasReports {
      hasReports = true
      let left = Set(other.unmatched)
      unmatched.removeAll { !left.contains($0.path) }
      all += other.wanted
    }
    all.sort { $0.sequence < $1.sequence }
    wanted = []
    for entry in all where wanted.count < Self.wantedLimit && !wanted.contains(where: { $0.id == entry.id }) {
      wanted.append((entry.id, entry.name))
    }
  }

  /// Without any report nothing was wanted, and what is wrong is something else.
  var unwanted: [Problem] {
    guard hasReports else { return [] }
    let list = wanted.map { "\($0.id) (\($0.name))" }.joined(separator: ", ")
    let wish =
      list.isEmpty
      ? "no image of the reports has a build id"
      : "wanted: \(list)" + (wanted.count < Self.wantedLimit ? "" : ", and perhaps others")
    return unmatched.map {
      Problem(path: $0.path, message: "has build id \($0.buildID), which is that of no image; it is not used; \(wish)")
    }
  }
}

extension GivenFiles.Problem {
  /// On standard error, and in a stream of lines as one of them.
  func tell(_ diagnostics: Diagnostics, _ format: Options.Format, _ output: Output) throws(Output.Failure) {
    diagnostics.error(path, message)
    if format == .ndjson { try output.write(StreamLines.error(file: path, line: nil, message: message)) }
  }
}
