import Testing

@testable import Symbolication

@Suite struct SymbolTableTests {
  /// Of a program with all its symbols and one that has only its dynamic ones: what is read for some addresses says of them
  /// what the whole table says.
  @Test(arguments: ["all", "dynamic"]) func someAddressesLikeAll(_ name: String) throws {
    let workshop = try Workshop()
    let functions = (0..<300).map { number in
      // Several names of one place, functions of the file alone, and labels without a size within and between.
      """
      \(number % 3 == 0 ? "static" : "") __attribute__((noinline, used)) int work\(number)(int x) {
        __asm__ volatile("inner\(number):" : "+r"(x)); return x * \(number) + 1; }
      \(number % 3 == 1 ? "int other\(number)(int) __attribute__((alias(\"work\(number)\")));" : "")
      __asm__(".text\\nbare\(number): nop; nop; nop; nop");
      """
    }
    try workshop.write("many.c", functions.joined(separator: "\n") + "\nint main(void) { return 0; }\n")
    try workshop.run("gcc", "-O1", "-rdynamic", "many.c", "-o", "all")
    try workshop.run("strip", "all", "-o", "dynamic")
    let file = try DebugFile(path: workshop.file(name))
    let all = SymbolTable(of: file)
    var state: UInt64 = 0x9e37_79b9_7f4a_7c15
    func random(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
    var named = 0
    for count in [1, 2, 7, 30, 256] {
      var addresses: Set<UInt64> = [0, .max]
      while addresses.count < count + 2 {
        let range = file.code.ranges[Int(random(UInt64(file.code.ranges.count)))]
        let address = range.low + random(range.high - range.low)
        addresses.insert(address)
        // Neighbours, so that there are few symbols or none between two of them.
        if random(2) == 0 { addresses.insert(address + random(64)) }
      }
      let sorted = addresses.sorted()
      let some = SymbolTable(of: file, around: sorted)
      for address in sorted {
        let expected = all.name(of: address)
        #expect(some.name(of: address) == expected, "\(address)")
        if expected != nil { named += 1 }
      }
    }
    #expect(named > 50)
  }
}
