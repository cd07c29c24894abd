// Mutations that know what a recipe of a table is: fields are whole words, and those that are indices lead somewhere only if
// they are small. Mutations of bytes move everything behind them.

import CrashModel

/// libFuzzer's own mutations.
@_silgen_name("LLVMFuzzerMutate")
private func mutate(_ data: UnsafeMutableRawPointer?, _ size: Int, _ maximum: Int) -> Int

@_cdecl("LLVMFuzzerCustomMutator")
public func mutateTable(_ data: UnsafeMutableRawPointer, _ size: Int, _ maximum: Int, _ seed: CUnsignedInt) -> Int {
  var random = Random(state: UInt64(seed))
  let input = UnsafeRawBufferPointer(start: data, count: size)
  guard !TableRecipe.isFile(input), random.below(10) != 0, var recipe = TableRecipe(input), !recipe.steps.isEmpty else {
    return mutate(data, size, maximum)
  }
  repeat { recipe.mutateOnce(&random) } while random.below(3) == 0
  let bytes = recipe.bytes(limit: maximum)
  UnsafeMutableRawBufferPointer(start: data, count: maximum).copyBytes(from: bytes)
  return bytes.count
}

extension TableRecipe {
  fileprivate mutating func mutateOnce(_ random: inout Random) {
    guard !steps.isEmpty else { return }
    let index = random.below(steps.count)
    switch random.below(16) {
    // Most files stay whole: behind a wrong checksum nothing is read.
    case 0: head[0] = random.below(4) == 0 ? UInt8(1 << random.below(8)) : 0
    case 1: head[1] = UInt8(random.below(34))
    case 2: steps[index].added = random.below(3) == 0 ? UInt8(random.below(256)) : 0
    case 3: addAddress(&random)
    case 4: damageHeader(&random)
    case 5: if steps.count > 3 { steps.remove(at: index) }
    case 6, 7: steps[index].resize(&random)
    default: steps[index].setField(in: steps, &random)
    }
  }

  private mutating func addAddress(_ random: inout Random) {
    let address = random.value(of: 8)
    if let index = steps.firstIndex(where: { $0.kind == 7 }), steps[index].bytes.count < 128 {
      steps[index].bytes += address
    } else if !steps.contains(where: { $0.kind == 7 }) {
      steps.append(Step(kind: 7, added: 0, bytes: address))
    }
  }

  private mutating func damageHeader(_ random: inout Random) {
    steps.removeAll { $0.kind == 8 }
    let offset = 8 * random.below(AddressTableLayout.Header.checksum / 8)
    steps.append(Step(kind: 8, added: 0, bytes: [UInt8(offset), 0] + random.value(of: 8)))
  }
}

extension TableRecipe.Step {
  private var stride: Int { AddressTableLayout.Section(rawValue: Int(kind))?.stride ?? 8 }

  /// One element more or less.
  fileprivate mutating func resize(_ random: inout Random) {
    let count = bytes.count / stride
    let at = random.below(count + 1) * stride
    if random.below(2) == 0, count > 0, at < bytes.count {
      bytes.removeSubrange(at..<min(at + stride, bytes.count))
    } else if bytes.count < 0x1000 {
      let from = count > 0 ? random.below(count) * stride : 0
      let copy = count > 0 ? Array(bytes[from..<from + stride]) : [UInt8](repeating: 0, count: stride)
      bytes.insert(contentsOf: copy, at: at)
    }
  }

  /// A whole word becomes one of those at which the reader has to decide something.
  fileprivate mutating func setField(in steps: [TableRecipe.Step], _ random: inout Random) {
    // The strings' text may be anything, their lengths may not.
    let width = kind == AddressTableLayout.Section.strings.rawValue && random.below(2) == 0 ? 1 : kind >= 7 ? 8 : 4
    guard bytes.count >= width else { return }
    let offset = random.below(bytes.count / width) * width
    let value: [UInt8]
    switch random.below(6) {
    case 0:
      let from = random.below(bytes.count / width) * width
      value = Array(bytes[from..<from + width])
    case 1:
      let word = TableRecipe.word(bytes, offset, width: width) &+ UInt64(bitPattern: Int64(random.below(9) - 4))
      value = (0..<width).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
    case 2:
      // At, before and behind the end of a section.
      let other = steps[random.below(steps.count)]
      let count = UInt64(other.bytes.count / other.stride) &+ UInt64(random.below(3)) &- 1
      value = (0..<width).map { UInt8(truncatingIfNeeded: count >> UInt64(8 * $0)) }
    default: value = random.value(of: width)
    }
    bytes.replaceSubrange(offset..<offset + width, with: value)
  }
}

/// SplitMix64: what libFuzzer gives is one number.
private struct Random {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Small, around a power of two (none and the block's size are), or anything.
  mutating func value(of width: Int) -> [UInt8] {
    let word: UInt64
    switch below(4) {
    case 0: word = next()
    case 1, 2: word = UInt64(below(40))
    default: word = (1 << UInt64(below(64))) &+ UInt64(below(3)) &- 1
    }
    return (0..<width).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
  }
}
