/// From a basket to a paid order: each step waits for the next.
struct Checkout {
  var baskets: Baskets

  func run(order: Int) async -> Int {
    let total = await baskets.total(ofOrder: order)
    let reserved = await reserve(total: total)
    return total + reserved
  }

  @inline(never)
  private func reserve(total: Int) async -> Int {
    await Task.yield()
    let slot = await pickSlot(total: total)
    return slot + 1
  }

  @inline(never)
  private func pickSlot(total: Int) async -> Int {
    await Task.yield()
    return slotNumber(total: total, slots: [])
  }

  // Bug: no slots on holidays.
  @inline(never)
  private func slotNumber(total: Int, slots: [Int]) -> Int {
    slots[total % slots.count]
  }
}
