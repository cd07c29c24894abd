// Mutations that know what a recipe is. A byte that is added or taken away by one that does not moves all lengths behind it,
// so that what was a thread is read as a step; and the fields that matter are whole words at multiples of their size.

import CrashModel

/// libFuzzer's own mutations.
@_silgen_name("LLVMFuzzerMutate")
private func mutate(_ data: UnsafeMutableRawPointer?, _ size: Int, _ maximum: Int) -> Int

@_cdecl("LLVMFuzzerCustomMutator")
public func mutateRecipe(_ data: UnsafeMutableRawPointer, _ size: Int, _ maximum: Int, _ seed: CUnsignedInt) -> Int {
  var random = Random(state: UInt64(seed))
  let input = UnsafeRawBufferPointer(start: data, count: size)
  guard size > Step.start, !CrashRecord.matches(prefix: input), random.below(8) != 0 else {
    return mutate(data, size, maximum)
  }
  var head = Array(input.prefix(Step.start))
  var steps = Step.all(in: input).map { DraftStep(kind: $0.kind, flags: $0.flags, bytes: Array($0.bytes)) }
  repeat {
    if steps.isEmpty { return mutate(data, size, maximum) }
    let index = random.below(steps.count)
    switch random.below(16) {
    case 0: head[random.below(head.count)] = UInt8(random.below(5))
    case 1: steps[index].flags ^= 1 << UInt8(random.below(6))
    case 2: steps[index].kind = UInt8(random.below(17))
    case 3: steps.remove(at: index)
    case 4: steps.append(steps[index])
    case 5: steps.swapAt(index, random.below(steps.count))
    case 6: steps.append(.damage(&random))
    case 7, 8, 9: steps[index].mutateFreely(room: maximum - size)
    default: steps[index].setField(&random)
    }
  } while random.below(4) == 0
  return write(head, steps, to: UnsafeMutableRawBufferPointer(start: data, count: maximum))
}

/// A step of one in place of the first of its kind in the other, or behind all others.
@_cdecl("LLVMFuzzerCustomCrossOver")
public func crossRecipes(
  _ first: UnsafeRawPointer, _ firstSize: Int, _ second: UnsafeRawPointer, _ secondSize: Int,
  _ output: UnsafeMutableRawPointer, _ maximum: Int, _ seed: CUnsignedInt
) -> Int {
  var random = Random(state: UInt64(seed))
  let input = UnsafeRawBufferPointer(start: first, count: firstSize)
  let other = UnsafeRawBufferPointer(start: second, count: secondSize)
  guard firstSize > Step.start, !CrashRecord.matches(prefix: input), !CrashRecord.matches(prefix: other)
  else { return 0 }
  let given = Step.all(in: other)
  guard !given.isEmpty else { return 0 }
  var steps = Step.all(in: input).map { DraftStep(kind: $0.kind, flags: $0.flags, bytes: Array($0.bytes)) }
  repeat {
    let step = given[random.below(given.count)]
    let draft = DraftStep(kind: step.kind, flags: step.flags, bytes: Array(step.bytes))
    if let index = steps.firstIndex(where: { $0.kind == step.kind }) {
      steps[index] = draft
    } else {
      steps.append(draft)
    }
  } while random.below(2) == 0
  return write(Array(input.prefix(Step.start)), steps, to: UnsafeMutableRawBufferPointer(start: output, count: maximum))
}

/// - Returns: the number of bytes written. A step for which there is no room is left out.
private func write(_ head: [UInt8], _ steps: [DraftStep], to output: UnsafeMutableRawBufferPointer) -> Int {
  var recipe = head
  for step in steps where recipe.count + Step.headSize + step.bytes.count <= output.count {
    recipe += [step.kind, step.flags, UInt8(truncatingIfNeeded: step.bytes.count), UInt8(step.bytes.count >> 8)]
    recipe += step.bytes
  }
  output.copyBytes(from: recipe.prefix(output.count))
  return min(recipe.count, output.count)
}

private struct DraftStep {
  var kind: UInt8
  var flags: UInt8
  var bytes: [UInt8]

  /// A step that damages the header, before or after it is sealed, or cuts the file.
  static func damage(_ random: inout Random) -> DraftStep {
    let kind = UInt8(240 + random.below(3))
    // The words of the header, then those of the table's first rows.
    let offset = 4 * random.below(kind == 242 ? 0x1_0000 : 200)
    let place = [UInt8(truncatingIfNeeded: offset), UInt8(truncatingIfNeeded: offset >> 8)]
    let value = random.value(of: 4)
    let rest =
      kind == 242 ? [UInt8(truncatingIfNeeded: offset >> 16)] : random.below(2) == 0 ? value : value + value
    return DraftStep(kind: kind, flags: 0, bytes: place + rest)
  }

  mutating func mutateFreely(room: Int) {
    let count = bytes.count
    let maximum = min(count + max(room, 0), 0xffff)
    guard maximum > 0 else { return }
    bytes += repeatElement(0, count: maximum - count)
    let size = bytes.withUnsafeMutableBytes { mutate($0.baseAddress, count, maximum) }
    bytes.removeLast(maximum - size)
  }

  /// A whole word becomes one of those at which a reader has to decide something, or one that is elsewhere in the step.
  mutating func setField(_ random: inout Random) {
    let width = 1 << random.below(4)
    guard bytes.count >= width else { return }
    let offset = random.below(bytes.count / width) * width
    let value: [UInt8]
    switch random.below(4) {
    case 0:
      let from = random.below(bytes.count / width) * width
      value = Array(bytes[from..<from + width])
    case 1:
      var word = bytes[offset..<offset + width].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      word &+= UInt64(bitPattern: Int64(random.below(9) - 4))
      value = (0..<width).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
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

  /// Around powers of two, around the record's own sizes and counts, or anything.
  mutating func value(of width: Int) -> [UInt8] {
    let word: UInt64
    switch below(4) {
    case 0: word = next()
    case 1: word = Self.limits[below(Self.limits.count)] &+ UInt64(below(3)) &- 1
    case 2: word = UInt64(below(20))
    default: word = (1 << UInt64(below(64))) &+ UInt64(below(3)) &- 1
    }
    return (0..<width).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
  }

  private static let limits: [UInt64] = [
    16, 24, 32, 34, 40, 50, 56, 60, 64, 72, 80, 96, 120, 128, 192, 256, 264, 280, 512, 640, 4080, 4096, 4352, 0xffff,
    0x7fff_ffff, 0xffff_ffff, 0x8000_0000_0000_0000,
  ]
}
