internal import CrashModel

/// Different places within one function: two bugs, where both were seen in the same build.
///
/// Lines alone do not tell: they move with every edit. Within one build they do, so a function that crashed on one line in
/// each build is one bug, and only where some build has two lines is there something to part. Which line of one build is
/// which of another is found by laying the builds over each other, in the order of lines and with the least movement.
enum GroupSites {
  /// What a line costs that has no counterpart in the other builds: as much as one that moved so far.
  static let newPlaceCost = 25
  /// Laying builds over each other costs the product of their numbers of lines. A function with more lines that crash in
  /// one build is not parted: the reports are made up, or the line table is wrong.
  static let lineLimit = 64
  /// Of all builds together. A line that would make one more goes to the nearest place, of which there are enough.
  private static let placeLimit = 128
  /// Where a place was in other builds, enough to see how far it moved.
  private static let lineMemory = 16

  /// One group for each bug, or for each of its places.
  static func split(_ cells: [GroupCell: CrashGroup]) -> [CrashGroup] {
    var bugs: [GroupCell.Bug: [(cell: GroupCell, group: CrashGroup)]] = [:]
    bugs.reserveCapacity(cells.count)
    for (cell, group) in cells { bugs[cell.bug, default: []].append((cell, group)) }
    var groups: [CrashGroup] = []
    groups.reserveCapacity(bugs.count)
    for cells in bugs.values {
      if cells.count == 1 {
        groups.append(cells[0].group)
      } else if let places = places(of: cells) {
        groups += places
      } else if let group = union(cells.map(\.group)) {
        groups.append(group)
      }
    }
    return groups
  }

  private static func union(_ groups: [CrashGroup]) -> CrashGroup? {
    guard var whole = groups.first else { return nil }
    for group in groups.dropFirst() { whole.formUnion(group) }
    return whole
  }

  /// The groups of the lines of a build.
  private struct BuildLines {
    /// Nil for reports that do not say.
    var build: BuildKey?
    var lines: [Int: CrashGroup] = [:]
    var firstSeen: Timestamp?
  }

  // nil where there is nothing to part.
  private static func places(of cells: [(cell: GroupCell, group: CrashGroup)]) -> [CrashGroup]? {
    var builds: [BuildKey: BuildLines] = [:]
    var elsewhere: [CrashGroup] = []
    for (cell, group) in cells {
      guard let line = cell.siteLine, let build = cell.build else {
        elsewhere.append(group)
        continue
      }
      var entry = builds[build] ?? BuildLines(build: build)
      entry.lines[line] = group
      entry.firstSeen = [entry.firstSeen, group.firstSeen].compactMap { $0 }.min()
      builds[build] = entry
    }
    let most = builds.values.reduce(0) { max($0, $1.lines.count) }
    guard most > 1, most <= lineLimit else { return nil }

    // The builds with the most places first, as they say best how many there are; then as they were made.
    let order = builds.values.sorted { left, right in
      if left.lines.count != right.lines.count { return left.lines.count > right.lines.count }
      if left.firstSeen != right.firstSeen {
        return (left.firstSeen?.rawValue ?? .max) < (right.firstSeen?.rawValue ?? .max)
      }
      return (left.build?.rawValue ?? 0) < (right.build?.rawValue ?? 0)
    }
    var places: [Place] = []
    for build in order { lay(build.lines, over: &places) }

    var groups = places.compactMap { union($0.groups) }
    // Reports without a line tell nothing about the place, and go to where most are.
    if let most = groups.indices.max(by: { (groups[$0].count, $1) < (groups[$1].count, $0) }) {
      for group in elsewhere { groups[most].formUnion(group) }
    }
    guard groups.count > 1 else { return groups }
    for index in groups.indices { groups[index].site = index + 1 }
    return groups
  }

  private struct Place {
    var lines: [Int]
    var groups: [CrashGroup]

    /// How far the line moved since the build in which it stood nearest.
    func distance(to line: Int) -> Int {
      lines.reduce(Int.max) { min($0, Int(clamping: line.distance(from: $1))) }
    }
  }

  /// Which of the places each line of a build is: the cheapest way to keep both in order, with a new place for a line that
  /// is too far from all.
  private static func lay(_ lines: [Int: CrashGroup], over places: inout [Place]) {
    let sorted = lines.sorted { $0.key < $1.key }
    let (rows, columns) = (places.count + 1, sorted.count + 1)
    // Of the first places and the first lines: the cost, and the last step of the way to it.
    enum Step { case start, same, without, new }
    var costs = [Int](repeating: 0, count: rows * columns)
    var steps = [Step](repeating: .start, count: rows * columns)
    for row in 0..<rows {
      for column in 0..<columns where row + column > 0 {
        var best = (cost: Int.max, step: Step.start)
        if row > 0, column > 0 {
          let distance = places[row - 1].distance(to: sorted[column - 1].key)
          best = (costs[(row - 1) * columns + column - 1].addingClamped(distance), .same)
        }
        if row > 0, costs[(row - 1) * columns + column] < best.cost {
          best = (costs[(row - 1) * columns + column], .without)
        }
        if column > 0, places.count < placeLimit {
          let cost = costs[row * columns + column - 1].addingClamped(newPlaceCost)
          // Where it does not matter for the cost, the larger line comes last.
          let isBehind = row > 0 && best.step == .without && sorted[column - 1].key > places[row - 1].lines[0]
          if cost < best.cost || (cost == best.cost && isBehind) { best = (cost, .new) }
        }
        costs[row * columns + column] = best.cost
        steps[row * columns + column] = best.step
      }
    }
    var merged: [Place] = []
    var (row, column) = (places.count, sorted.count)
    way: while true {
      switch steps[row * columns + column] {
      case .start: break way
      case .same:
        row -= 1
        column -= 1
        var place = places[row]
        if place.lines.count < lineMemory, !place.lines.contains(sorted[column].key) {
          place.lines.append(sorted[column].key)
        }
        place.groups.append(sorted[column].value)
        merged.append(place)
      case .without:
        row -= 1
        merged.append(places[row])
      case .new:
        column -= 1
        merged.append(Place(lines: [sorted[column].key], groups: [sorted[column].value]))
      }
    }
    places = merged.reversed()
  }
}

extension Int {
  /// Both are lines of a file from outside, and so any numbers.
  fileprivate func distance(from other: Int) -> UInt {
    UInt(bitPattern: self > other ? self &- other : other &- self)
  }
}
