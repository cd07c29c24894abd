/// Reads what the answers to many addresses will read, all of them step by step, before they are asked one by one.
///
/// An answer is a chain of some ten loads of which each needs the one before, spread over tables that together are larger
/// than any cache: most of its time goes into waiting for memory. The same step of many answers needs nothing of each
/// other, so the processor waits for all of them at once. What is read here is not believed and not kept; indices are
/// checked against their sections, that is all.
package final class ReadAhead {
  private struct Step {
    var reader: AddressTableReader
    var address: UInt64
    /// Of the bucket's ranges, later the entry; negative at the end of the chain.
    var low = -1
    var high = -1
    var name = -1

    var map: AddressTableReader.Map {
      @inline(__always) _read { yield reader.state.pointee.map }
    }
  }

  /// As many as a processor has loads under way, a few times over.
  package static let size = 64
  /// Chains that are longer wait for the rest.
  private static let maximumDepth = 12

  private var steps: [Step] = []
  /// Where what was read goes, so that the loads are not left out as useless.
  private var sum: UInt32 = 0

  package init() { steps.reserveCapacity(Self.size) }

  /// Adds an address that will be asked.
  package func add(_ address: UInt64, of reader: AddressTableReader) {
    steps.append(Step(reader: reader, address: address))
  }

  /// Reads for all that were added, and forgets them.
  package func run() {
    sum &+= steps.withUnsafeMutableBufferPointer { Self.run($0) }
    steps.removeAll(keepingCapacity: true)
  }

  private static func run(_ steps: UnsafeMutableBufferPointer<Step>) -> UInt32 {
    var sum: UInt32 = 0
    for index in steps.indices { findBucket(&steps[index]) }
    for index in steps.indices {
      sum &+= load(steps[index], steps[index].map.starts, 4, steps[index].low)
      sum &+= load(steps[index], steps[index].map.starts, 4, steps[index].high &- 1)
    }
    for index in steps.indices {
      findRange(&steps[index])
      sum &+= load(steps[index], steps[index].map.values, 4, steps[index].low)
    }
    for index in steps.indices {
      steps[index].low = follow(steps[index], steps[index].map.values, 4, steps[index].low)
      sum &+= load(steps[index], steps[index].map.entries, 24, steps[index].low)
    }
    for _ in 0..<maximumDepth {
      var isDone = true
      for index in steps.indices {
        let step = steps[index]
        steps[index].name = follow(step, step.map.entries, 24, step.low)
        sum &+= load(step, step.map.functions, 12, steps[index].name)
        sum &+= load(step, step.map.strings, 1, follow(step, step.map.entries, 24, step.low, 8))
        steps[index].low = follow(step, step.map.entries, 24, step.low, 4)
        if steps[index].low >= 0 { isDone = false }
      }
      for index in steps.indices {
        let step = steps[index]
        steps[index].name = follow(step, step.map.functions, 12, step.name)
        sum &+= load(step, step.map.strings, 1, steps[index].name)
        sum &+= load(step, step.map.entries, 24, step.low)
      }
      for index in steps.indices {
        let step = steps[index]
        let length = Int(load(step, step.map.strings, 1, step.name))
        for line in 1..<5 where line * 64 < length &+ 64 {
          sum &+= load(step, step.map.strings, 1, step.name &+ line * 64)
        }
      }
      if isDone { break }
    }
    return sum
  }

  @inline(__always)
  private static func findBucket(_ step: inout Step) {
    let map = step.reader.state.pointee.map
    guard step.address >= map.firstAddress, step.address &- map.firstAddress <= UInt64(UInt32.max) else { return }
    let bucket = Int(truncatingIfNeeded: (step.address &- map.firstAddress) >> map.bucketShift)
    let low = follow(step, map.buckets, 4, bucket)
    guard low >= 0 else { return }
    let next = follow(step, map.buckets, 4, bucket &+ 1)
    step.low = low
    step.high = min(map.starts.count / 4, next >= 0 ? next &+ 1 : low &+ 1)
  }

  @inline(__always)
  private static func findRange(_ step: inout Step) {
    let distance = UInt32(truncatingIfNeeded: step.address &- step.reader.state.pointee.map.firstAddress)
    var low = step.low
    guard low >= 0 else { return }
    var high = step.high
    while low < high {
      let middle = low &+ (high &- low) / 2
      if load(step, step.map.starts, 4, middle) > distance { high = middle } else { low = middle &+ 1 }
    }
    step.low = low &- 1
  }

  /// A number of an element; 0 where there is no such element.
  @inline(__always)
  private static func load(_ step: Step, _ section: Range<Int>, _ stride: Int, _ index: Int, _ offset: Int = 0)
    -> UInt32
  {
    let at = section.lowerBound &+ index &* stride
    guard index >= 0, at &+ max(stride, 4) <= section.upperBound else { return 0 }
    return UInt32(
      littleEndian: step.reader.state.pointee.bytes.loadUnaligned(fromByteOffset: at &+ offset, as: UInt32.self))
  }

  /// The same as an index of something else; -1 where there is none.
  @inline(__always)
  private static func follow(_ step: Step, _ section: Range<Int>, _ stride: Int, _ index: Int, _ offset: Int = 0)
    -> Int
  {
    let at = section.lowerBound &+ index &* stride
    guard index >= 0, at &+ max(stride, 4) <= section.upperBound else { return -1 }
    let value = UInt32(
      littleEndian: step.reader.state.pointee.bytes.loadUnaligned(fromByteOffset: at &+ offset, as: UInt32.self))
    return value == AddressTableLayout.none ? -1 : Int(value)
  }
}
