import Foundation
import TestSupport
import Testing

@testable import CrashModel

@Suite struct CanonicalNameTests {
  static let golden: [(raw: String, name: String)] = {
    guard let text = try? String(contentsOfFile: LabelledStacks.folder + "/golden-names.tsv", encoding: .utf8) else {
      return []
    }
    return text.split(separator: "\n").map { line in
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
      return (String(fields[0]), fields.count > 1 ? String(fields[1]) : "")
    }
  }()

  static func name(_ raw: String, function: String? = nil) -> String? {
    let captured = CapturedFrame(kind: .returnAddress, address: Address(rawValue: 0x1000), imageIndex: 0)
    let frame = SymbolicatedFrame(captured: captured, status: .resolved, function: function, rawFunction: raw)
    let classifier = FrameClassifier(
      applicationModules: [], report: CrashReport(id: "r"), frames: [.init(frame)], names: NameCache())
    return classifier.classify(frame).name
  }

  /// A key changes with these: whoever changes one has a new algorithm.
  @Test func goldenNames() {
    #expect(Self.golden.count >= 100)
    for (raw, expected) in Self.golden { #expect(Self.name(raw) ?? "-" == expected, "\(raw)") }
  }

  @Test(arguments: [
    // A type of the module, a nested and a private one.
    ("$s6orderd5StoreC4load2idS2i_tF", "orderd"),
    ("$s7ordersd6OrdersC6recalc33_D714BBED1BFFA08BD3BF74268C42A515LLySiAA5OrderVF", "ordersd"),
    ("$s7ordersd4pickyS2iF", "ordersd"),
    // Extensions: plain, constrained, of a type and of a protocol of the standard library.
    ("$sSa6orderdE4topsyyF", "orderd"), ("$sSa6orderdSiRszlE3sumSiyF", "orderd"),
    ("$s10Foundation4DataV6orderdE6headerSSyF", "orderd"),
    ("$sSlsE3mapySayqd__Gqd__7ElementQzqd_0_YKXEqd_0_YKs5ErrorRd_0_r0_lF", "Swift"),
    ("$sSl17_StringProcessing11SubSequenceQzRszrlE10trimPrefix5whileySb7ElementQzKXE_tKF", "_StringProcessing"),
    // Words taken from the identifier before, and the module by its substitution.
    ("$s8Dispatch0A5QueueC4sync7executeyyyXE_tF", "Dispatch"),
    ("$s20FoundationEssentials12DataProtocolPA2A15ContiguousBytesRzrlE04copyF0yyF", "FoundationEssentials"),
    // A specialisation whose argument is a closure of another module.
    (
      "$s3Kit7attemptyxSi_xSiKXEtKlFSi_Tg548$s7ordersd5WatchC6handleySiAA7RequestVKFS2iXEfU_7ordersd0D0CAD0H0VTf1nc_n",
      "Kit"
    ),
    // Labels and a parameter's constrained type are no extension.
    (
      "$ss15FlattenSequenceVsSlRzSl7ElementRpzrlE8distance4from2toSiABsSlRzSlADRQrlE5IndexVyx_G_AJtF", "Swift"
    ),
    ("$sScM14assumeIsolated_4file4linexxyKScMYcXE_s12StaticStringVSutKs8SendableRzlFZ", "Swift"),
    ("_$s6orderd5StoreC4load2idS2i_tF", "orderd"),
  ]) func module(_ raw: String, _ expected: String) {
    #expect(MangledModule.module(of: raw) == expected)
    #expect(SwiftName(rawFunction: raw).module == expected)
  }

  @Test(arguments: ["", "$s", "$sIegh_IeyBh_TR", "main", "_ZN3foo3barEv", "$s99999999999999999999a", "$s5ab"])
  func noModule(_ raw: String) {
    #expect(MangledModule.module(of: raw) == nil)
  }

  @Test(arguments: [
    ("closure #2 in closure #1 in Store.load(id:)", "closure in Store.load(id:)"),
    ("specialized partial apply for closure #1 in f(_:)", "closure in f(_:)"),
    ("static Money.+ infix(_:_:)", "Money.+ infix(_:_:)"), ("merged Box<A>.put(_:)", "Box.put(_:)"),
    ("Map<A, B>.get<C>(_:)", "Map.get(_:)"), ("@objc View.draw()", "View.draw()"),
    ("default argument 1 of Store.load(id:limit:)", "Store.load(id:limit:)"),
  ]) func swiftNames(_ function: String, _ expected: String) {
    #expect(CanonicalName.of(function: function, rawFunction: "$s1a") == expected)
  }

  @Test(arguments: [
    "thunk for @escaping () -> ()", "protocol witness for P.f() in conformance T", "outlined copy of T",
    "type metadata accessor for T",
  ]) func madeByTheCompiler(_ function: String) {
    #expect(CanonicalName.of(function: function, rawFunction: "$s1a") == nil)
  }

  @Test(arguments: [
    ("std::__1::vector<int>::at(unsigned long) const", "std::vector::at"),
    ("long ledgerd::Table::scale<long>(long, int)", "ledgerd::Table::scale"),
    ("(anonymous namespace)::run(int)", "(anonymous namespace)::run"),
    ("a::operator()(int)", "a::operator()"), ("a::operator==(a const&) const", "a::operator=="),
    ("parse.part.0.cold", "parse"), ("parse.llvm.123456", "parse"), ("memcpy@@GLIBC_2.14", "memcpy"),
    ("__memcpy_avx_unaligned_erms", "memcpy"),
    // glibc's own calls go to aliases that nobody can replace; which of the names a symbol table gives is chance.
    ("__GI_raise", "raise"), ("__GI___assert_fail", "__assert_fail"), ("__GI_abort.cold", "abort"),
    ("__GI___memcpy_avx_unaligned", "memcpy"), ("__GI_", "__GI_"), ("my__GI_raise", "my__GI_raise"),
    ("ledgerd::run()::$_0::operator()(int) const", "ledgerd::run::$_::operator()"),
  ]) func cNames(_ function: String, _ expected: String) {
    #expect(CanonicalName.of(function: function, rawFunction: "f") == expected)
  }

  /// Names come from files: whatever stands in them, nothing traps and nothing grows.
  /// Marks are bytes, names are in any script. The emoji is no letter: what follows is an operator, and no list of arguments.
  @Test(arguments: [
    ("Größe<Int>.maß<é>(in:)", "Größe.maß(in:)"), ("日本<A>.語(_:)", "日本.語(_:)"), ("🎉<A>.f()", "🎉<A>.f()"),
    ("closure #1 in closure #2 (a: <(B) -> C>) in Größe.f()", "closure in Größe.f()"), ("a -> b<c>", "a -> b"),
    ("e\u{301}<A>.f()", "e\u{301}.f()"), ("static specialized Ä.f() with unmangled suffix \".1\"", "Ä.f()"),
  ])
  func scripts(_ function: String, _ expected: String) {
    #expect(CanonicalName.of(function: function, rawFunction: "$s1a") == expected)
  }

  @Test func damagedNames() {
    var generator = SeededGenerator(seed: 11)
    let raws = Self.golden.map { Array($0.raw.utf8) }
    let alphabet = Array("$sSAaRQlEyFTWfv_0123456789XxLVCOP<>(), #\u{7f}".utf8) + [0, 0xff, 0xc3]
    for _ in 0..<20_000 {
      guard var bytes = raws.randomElement(using: &generator) else { continue }
      for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
        let position = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[position] = alphabet.randomElement(using: &generator) ?? 0
        case 1: bytes.remove(at: position)
        case 2: bytes.insert(alphabet.randomElement(using: &generator) ?? 0, at: position)
        default: bytes.removeSubrange(position...)
        }
      }
      let raw = String(decoding: bytes, as: UTF8.self)
      let first = MangledModule.module(of: raw)
      // A module's name is copied from the text; words may repeat in it.
      #expect((first?.utf8.count ?? 0) <= 27 * max(1, raw.utf8.count))
      #expect(Self.name(raw, function: raw) == Self.name(raw, function: raw))
    }
  }
}
