import Testing

@testable import Symbolication

@Suite struct NameTests {
  @Test(
    arguments: [
      ("/a/b.c", "/a/b.c"), ("/a//b.c", "/a/b.c"), ("/a/./b.c", "/a/b.c"), ("/a/../b.c", "/b.c"), ("/../b.c", "/b.c"),
      ("a/../../b.c", "../b.c"), ("./b.c", "b.c"), ("../b.c", "../b.c"), ("/a/.hidden/..b/c..", "/a/.hidden/..b/c.."),
      ("/a/b/", "/a/b"), ("", ""), ("/", "/"), ("/ä/./ö.c", "/ä/ö.c"),
    ])
  func normalizedPaths(path: String, expected: String) {
    #expect(SourcePath.normalized(path) == expected)
  }

  @Test func joinedPaths() {
    func join(_ compilation: String?, _ directory: String?, _ name: String) -> String {
      SourcePath.join(compilationDirectory: compilation, directory: directory, name: name)
    }
    #expect(join("/srv", "src", "a.c") == "/srv/src/a.c")
    #expect(join("/work", "/usr/include", "a.h") == "/usr/include/a.h")
    #expect(join("/work", nil, "../a.c") == "/a.c")
    #expect(join("/work", "src", "/tmp/a.c") == "/tmp/a.c")
    #expect(join(nil, "src", "a.c") == "src/a.c")
    #expect(join("/work", "/", "<compiler-generated>") == "<compiler-generated>")
    #expect(join("/work", nil, "<stdin>") == "<stdin>")
  }

  @Test(
    arguments: [
      ("$s6orderd5StoreC4load2idS2i_tF", "Store.load(id:)"), ("_ZN4shop4sellEi", "shop::sell(int)"), ("main", "main"),
      // Not C++'s `int` and `float`.
      ("i", "i"), ("f", "f"), ("", ""),
      ("_ZN4core3ptr4read17h0123456789abcdefE", "core::ptr::read"),
    ])
  func displayedNames(raw: String, expected: String) {
    #expect(FunctionName.display(raw) == expected)
  }

  @Test func cloneSuffixes() {
    #expect(FunctionName.withoutCloneSuffix("_ZL3foov.cold") == "_ZL3foov")
    #expect(FunctionName.withoutCloneSuffix("_ZL3foov.part.0.cold") == "_ZL3foov")
    #expect(FunctionName.withoutCloneSuffix("_ZL3foov") == "_ZL3foov")
    #expect(FunctionName.withoutCloneSuffix(".hidden") == ".hidden")
  }

  @Test func linkChecksum() {
    var checksum = Checksum()
    // The check value of CRC-32 for these digits.
    Array("1234".utf8).withUnsafeBytes { checksum.update($0) }
    Array("56789".utf8).withUnsafeBytes { checksum.update($0) }
    #expect(checksum.value == 0xcbf4_3926)
  }
}
