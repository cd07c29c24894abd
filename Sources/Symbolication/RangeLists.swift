internal import CLibdw
private import Glibc

/// What a unit's addresses and lists of ranges are read from.
struct RangeLists {
  var format: UnitFormat
  /// What offsets in a list are relative to.
  var baseAddress: UInt64 = 0
  var addresses = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Where the unit's part of `.debug_addr` begins.
  var addressBase = 0
  var ranges = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Where the unit's part of the section of lists begins.
  var rangesBase = 0

  /// More entries than any function has; a list that goes on is cut there.
  private static let maximumEntries = 1 << 16

  init(format: UnitFormat) { self.format = format }

  /// The address with this number in the unit's part of `.debug_addr`.
  @inline(__always)
  func address(at index: UInt64) -> UInt64? {
    guard index < UInt64(addresses.count) else { return nil }
    var cursor = ByteCursor(addresses, at: addressBase &+ Int(index) &* 8)
    let value = cursor.u64()
    return cursor.failed ? nil : value
  }

  /// Reads the list of a `DW_AT_ranges`.
  ///
  /// - Parameters:
  ///   - value: an offset in the section, or with `DW_FORM_rnglistx` a number in the unit's table of offsets.
  ///   - body: gets each range that is not empty.
  func forEachRange(_ value: UInt64, isIndex: Bool, _ body: (AddressRange) -> Void) {
    if format.version >= 5 {
      var offset = Int(clamping: value)
      if isIndex {
        guard value < UInt64(ranges.count) else { return }
        var table = ByteCursor(ranges, at: rangesBase &+ Int(value) &* format.offsetSize)
        offset = rangesBase &+ Int(clamping: table.sectionOffset(is64Bit: format.is64Bit))
        if table.failed { return }
      }
      readRangeList(at: offset, body)
    } else {
      readPairs(at: rangesBase.addingReportingOverflow(Int(clamping: value)).partialValue, body)
    }
  }

  /// `.debug_ranges` of DWARF 2 to 4: pairs of addresses up to a pair of zeros.
  private func readPairs(at offset: Int, _ body: (AddressRange) -> Void) {
    var cursor = ByteCursor(ranges, at: offset)
    var base = baseAddress
    for _ in 0..<Self.maximumEntries {
      let (low, high) = (cursor.u64(), cursor.u64())
      if cursor.failed || (low == 0 && high == 0) { return }
      if low == .max {
        base = high
      } else if low < high {
        body(AddressRange(low: base &+ low, high: base &+ high))
      }
    }
  }

  /// `.debug_rnglists` of DWARF 5.
  private func readRangeList(at offset: Int, _ body: (AddressRange) -> Void) {
    var cursor = ByteCursor(ranges, at: offset)
    var base = baseAddress
    for _ in 0..<Self.maximumEntries {
      let kind = Int(cursor.u8())
      if cursor.failed { return }
      let low: UInt64?
      let high: UInt64?
      switch kind {
      case DW_RLE_end_of_list: return
      case DW_RLE_base_addressx:
        guard let address = address(at: cursor.uleb()) else { return }
        base = address
        continue
      case DW_RLE_base_address:
        base = cursor.u64()
        continue
      case DW_RLE_startx_endx: (low, high) = (address(at: cursor.uleb()), address(at: cursor.uleb()))
      case DW_RLE_startx_length:
        low = address(at: cursor.uleb())
        let length = cursor.uleb()
        high = low.map { $0 &+ length }
      case DW_RLE_offset_pair: (low, high) = (base &+ cursor.uleb(), base &+ cursor.uleb())
      case DW_RLE_start_end: (low, high) = (cursor.u64(), cursor.u64())
      case DW_RLE_start_length:
        let start = cursor.u64()
        (low, high) = (start, start &+ cursor.uleb())
      default: return
      }
      if cursor.failed { return }
      // lld marks a dropped function's base with all ones; an offset from it would wrap around to a small address.
      if let low, let high, low < high, !(kind == DW_RLE_offset_pair && base == .max) {
        body(AddressRange(low: low, high: high))
      }
    }
  }
}
