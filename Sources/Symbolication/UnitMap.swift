internal import CLibdw
private import Glibc

/// Which compilation unit an address belongs to.
///
/// Made from the ranges that each unit states about itself, not from `.debug_aranges`: neither swiftc nor clang writes
/// that section, and libdw's own look-ups, which depend on it, find nothing in their files.
struct UnitMap {
  struct Unit {
    let handle: OpaquePointer
    let die: Dwarf_Die
    let version: Int
    /// The unit's functions stand in another file (`.dwo`); this one has only its addresses.
    let isSkeleton: Bool
  }

  /// From `start` up to the next segment's start, the address belongs to `unit`; -1 for none.
  private struct Segment {
    var start: UInt64
    var unit: Int32
  }

  let units: [Unit]
  private let segments: [Segment]

  init(_ dwarf: OpaquePointer, code: CodeRanges) {
    var units: [Unit] = []
    var ranges: [(range: AddressRange, unit: Int32)] = []
    var current: OpaquePointer?
    while true {
      var next: OpaquePointer?
      var version: Dwarf_Half = 0
      var type: UInt8 = 0
      var die = Dwarf_Die()
      // No sub-DIE is asked for. swiftc writes a unit for each clang module it imported, which looks like split DWARF whose
      // other half is a `.pcm` of the compiler's cache; libdw would open each of them, hundreds for one address.
      guard dwarf_get_units(dwarf, current, &next, &version, &type, &die, nil) == 0, let next else { break }
      current = next
      guard die.addr != nil, type != UInt8(DW_UT_type), type != UInt8(DW_UT_partial) else { continue }
      // Split or module, a skeleton without addresses of its own answers nothing. Asking it for its ranges would make libdw
      // look for the other file, so its attributes are looked at first.
      let isSkeleton = type == UInt8(DW_UT_skeleton)
      guard dwarf_hasattr(&die, UInt32(DW_AT_ranges)) != 0 || dwarf_hasattr(&die, UInt32(DW_AT_high_pc)) != 0 else {
        continue
      }
      let unit = Int32(clamping: units.count)
      let before = ranges.count
      DebugInformationEntry.forEachRange(of: &die) { range in
        if code.isLive(range) { ranges.append((range, unit)) }
      }
      if ranges.count > before {
        units.append(Unit(handle: next, die: die, version: Int(version), isSkeleton: isSkeleton))
      }
    }
    self.units = units
    segments = Self.segments(of: ranges)
  }

  /// Index in `units` of the unit that `address` belongs to.
  func unit(of address: UInt64) -> Int? {
    let index = segments.partitioningIndex { $0.start > address }
    guard index > 0 else { return nil }
    let unit = segments[index - 1].unit
    return unit >= 0 ? Int(unit) : nil
  }

  /// Cuts overlapping ranges into segments that each have one owner: the first unit of the file that claims the address.
  ///
  /// Units overlap where a linker kept one copy of an inline function and let the debug information of each copy point to
  /// it. One sweep with a heap of the open ranges: n log n, also for a file made to overlap everywhere.
  private static func segments(of ranges: [(range: AddressRange, unit: Int32)]) -> [Segment] {
    let sorted = ranges.sorted { ($0.range.low, $0.unit) < ($1.range.low, $1.unit) }
    var open = MinimumHeap()
    var result: [Segment] = []
    func emit(_ start: UInt64, _ unit: Int32) {
      if let last = result.last {
        if last.unit == unit { return }
        if last.start == start {
          result[result.count - 1].unit = unit
          return
        }
      }
      result.append(Segment(start: start, unit: unit))
    }
    var index = 0
    while index < sorted.count || !open.isEmpty {
      // Where the owner's range ends before the next one begins, the next open one takes over, or nobody.
      while let owner = open.first, index == sorted.count || owner.end <= sorted[index].range.low {
        var end = owner.end
        while let other = open.first, other.end <= end {
          end = max(end, other.end)
          open.removeFirst()
        }
        emit(owner.end, open.first?.unit ?? -1)
      }
      guard index < sorted.count else { continue }
      let start = sorted[index].range.low
      while index < sorted.count, sorted[index].range.low == start {
        open.insert(.init(unit: sorted[index].unit, end: sorted[index].range.high))
        index += 1
      }
      while let owner = open.first, owner.end <= start { open.removeFirst() }
      if let owner = open.first { emit(start, owner.unit) }
    }
    return result
  }
}

/// A binary heap of open ranges, the lowest unit first.
private struct MinimumHeap {
  struct Entry {
    var unit: Int32
    var end: UInt64
  }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var first: Entry? { entries.first }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0, entries[child].unit < entries[(child - 1) / 2].unit {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeFirst() {
    guard let last = entries.popLast(), !entries.isEmpty else { return }
    entries[0] = last
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].unit < entries[smallest].unit { smallest = child }
      if smallest == parent { return }
      entries.swapAt(parent, smallest)
      parent = smallest
    }
  }
}
