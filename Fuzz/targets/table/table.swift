// The reader of address tables on any bytes: a refusal with a reason, or answers, and none any more once one was found to
// be damaged. Never a trap, and no answer that changes.
//
// An input that begins with the magic is a file as it is. Every other one is a recipe (TableRecipe.swift): most files would
// end at the first checksum, which no mutation finds.

import CrashModel

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  if TableRecipe.isFile(input) {
    let key = input.dropFirst(AddressTableLayout.Header.key).prefix(32)
    check(Array(input), key: Array(key), addresses: [0, 1, 0x1000, 0x1139, .max])
    return 0
  }
  guard let recipe = TableRecipe(input) else { return -1 }
  check(recipe.file(), key: TableRecipe.key, addresses: recipe.addresses())
  return 0
}

private func check(_ file: [UInt8], key: [UInt8], addresses: [UInt64]) {
  let addresses = Set(addresses).sorted()
  // Both orders: which block is verified first decides what is still answered.
  for order in [addresses, addresses.reversed()] {
    guard let table = table(file, key: key) else { return }
    for address in order {
      for nearestLines in [true, false] {
        guard let functions = table.functions(at: address, nearestLines: nearestLines) else { continue }
        precondition(!functions.isEmpty && functions.last?.inlined == false, "a chain without an end")
        precondition(functions.count <= file.count / 24, "more functions than entries")
      }
    }
    guard table.problem == nil else {
      precondition(addresses.allSatisfy { table.functions(at: $0, nearestLines: true) == nil }, "it is still believed")
      continue
    }
    let first = addresses.map { table.functions(at: $0, nearestLines: false) }
    precondition(first == addresses.map { table.functions(at: $0, nearestLines: false) }, "another answer")
  }
  // As a report is answered, names made readable and failed checks taken out.
  guard let table = table(file, key: key) else { return }
  var names = DisplayNames()
  let resolved = ResolvedAddress.named(table.functions(at: addresses, nearestLines: true), names: &names)
  precondition(resolved.count == addresses.count, "not an answer for each address")
}

private func table(_ file: [UInt8], key: [UInt8]) -> AddressTable? {
  // Of its own size, so that a byte behind it is a finding.
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: file.count, alignment: 8)
  memory.copyBytes(from: file)
  do throws(AddressTable.Refusal) {
    return try AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
  } catch {
    precondition(!error.reason.isEmpty, "a refusal without a reason")
    return nil
  }
}
