/// Texts by numbers, each text once.
///
/// A month of crashes has the same few thousand names of functions, files and hosts in it, a million times over. A number
/// takes four bytes, and is compared in no time.
///
/// Two texts are the same where their bytes are. What a number stands for is compared byte by byte when it is looked up, so
/// that no accident of hashing mistakes one text for another.
package struct InternedStrings: Sendable {
  package typealias ID = UInt32

  private var texts: [String] = []
  private var hashes: [UInt64] = []
  /// Numbers of texts plus one, 0 where there is none; twice as many as texts at least.
  private var slots: [UInt32] = Array(repeating: 0, count: 1 << 10)
  private var vacant: [ID] = []
  private var count = 0
  private let leastRoom: Int
  private var roomLimit: Int
  /// Whoever chooses texts must not be able to choose what they collide with.
  private let hash = ByteHash()

  /// Changes when numbers lose their meaning.
  package private(set) var generation = 0

  /// - Parameter room: for so many texts there is no need to forget any.
  package init(room: Int = 1 << 18) { (leastRoom, roomLimit) = (room, room) }

  package subscript(id: ID) -> String { texts[Int(id)] }

  package mutating func intern(_ text: String) -> ID {
    var text = text
    let bytesHash = text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    if let known = text.withUTF8({ find(UnsafeRawBufferPointer($0), bytesHash) }) { return known }
    return insert(text, bytesHash)
  }

  /// - Parameter bytes: UTF-8.
  package mutating func intern(_ bytes: UnsafeRawBufferPointer) -> ID {
    let bytesHash = hash(bytes)
    return find(bytes, bytesHash) ?? insert(String(decoding: bytes, as: UTF8.self), bytesHash)
  }

  package func isEqual(_ id: ID, _ bytes: UnsafeRawBufferPointer) -> Bool {
    texts[Int(id)].utf8.withContiguousStorageIfAvailable { ByteHash.isEqual(UnsafeRawBufferPointer($0), bytes) }
      ?? texts[Int(id)].utf8.elementsEqual(bytes)
  }

  /// A total order: that of the texts, and, of two that Unicode calls the same, that of their bytes.
  package func isBefore(_ left: ID, _ right: ID) -> Bool {
    if left == right { return false }
    let (one, other) = (texts[Int(left)], texts[Int(right)])
    return one != other ? one < other : one.utf8.lexicographicallyPrecedes(other.utf8)
  }

  private func find(_ bytes: UnsafeRawBufferPointer, _ bytesHash: UInt64) -> ID? {
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: bytesHash) & mask
    while slots[slot] != 0 {
      let id = slots[slot] - 1
      if hashes[Int(id)] == bytesHash, isEqual(id, bytes) { return id }
      slot = (slot + 1) & mask
    }
    return nil
  }

  private mutating func insert(_ text: String, _ bytesHash: UInt64) -> ID {
    let id: ID
    if let free = vacant.popLast() {
      id = free
      texts[Int(id)] = text
      hashes[Int(id)] = bytesHash
    } else {
      id = ID(texts.count)
      texts.append(text)
      hashes.append(bytesHash)
    }
    count += 1
    if count * 2 > slots.count {
      var used = Set(vacant)
      used.remove(id)
      fill(slotCount: slots.count * 2, except: used)
    } else {
      place(id)
    }
    return id
  }

  private mutating func place(_ id: ID) {
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: hashes[Int(id)]) & mask
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = id + 1
  }

  private mutating func fill(slotCount: Int, except absent: Set<ID>) {
    slots = Array(repeating: 0, count: slotCount)
    for id in texts.indices where !absent.contains(ID(id)) { place(ID(id)) }
  }

  // MARK: Forgetting

  /// Many texts came since those were looked through that nobody needs any more.
  package var wantsSweep: Bool { count > roomLimit }

  /// Forgets all texts but those whose numbers are in use. These keep their numbers.
  package mutating func sweep(using used: [Bool]) {
    vacant = []
    count = 0
    for id in texts.indices {
      if id < used.count, used[id] {
        count += 1
      } else {
        texts[id] = ""
        vacant.append(ID(id))
      }
    }
    fill(slotCount: slots.count, except: Set(vacant))
    roomLimit = max(leastRoom, 2 * count)
    generation += 1
  }

  /// For `sweep`: one entry for each number, all false.
  package var noneUsed: [Bool] { Array(repeating: false, count: texts.count) }
}
