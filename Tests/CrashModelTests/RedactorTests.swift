import CCrashFormat
import CrashModel
import Foundation
import TestSupport
import Testing

@Suite struct RedactorTests {
  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    var id: Int
    var category: String
    var input: String
    var expected: String
    var secrets: [String]

    var testDescription: String { "\(id) \(category)" }
    var mustStay: Bool { category.hasSuffix("-neg") }
  }

  static let corpus: [Case] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "Resources/redaction/corpus.jsonl")
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
    let decoder = JSONDecoder()
    return text.split(separator: "\n").compactMap { try? decoder.decode(Case.self, from: Data($0.utf8)) }
  }()

  /// What a record holds: the text after the base rules.
  static func base(_ text: String) -> String {
    var output = [CChar](repeating: 0, count: 4 * text.utf8.count + 64)
    let length = crash_redact_base(text, text.utf8.count, &output, output.count, nil)
    return String(decoding: output[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @Test func theCorpusIsThere() { #expect(Self.corpus.count == 147) }

  @Test(arguments: corpus) func noSecretIsLeft(_ line: Case) {
    let redacted = Redactor().redact(line.input)
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    if line.mustStay { #expect(redacted == line.expected) }
    #expect(Redactor().redact(redacted) == redacted, "not idempotent")
  }

  @Test(arguments: corpus) func noSecretIsLeftBehindTheBaseRules(_ line: Case) {
    let redacted = Redactor().redact(Self.base(line.input))
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    if line.mustStay { #expect(redacted == line.expected) }
  }

  @Test func theResultIsTheExpectedOne() {
    let wrong = Self.corpus.filter { Redactor().redact($0.input) != $0.expected }
    #expect(
      wrong.count * 20 <= Self.corpus.count,
      "\(wrong.map { "\($0.id): \(Redactor().redact($0.input)) instead of \($0.expected)" })")
  }

  // Token-shaped texts are put together here, so that no scanner takes them for real ones.
  static let stars = String(repeating: "aB3dE6gH9j", count: 4)
  static let alice = "alice" + "@example.com"

  /// Found by the fuzzer: what the base rules made of these texts held something that they replaced in a second pass.
  @Test(arguments: [
    // Digits that are replaced end a domain, and then it is one.
    ("queue@com.example.12345678", "[redacted].[redacted]"),
    ("a%40example.com4444444@x", "[redacted]@x"),
    // An apostrophe that turns out to belong to an address is no end of what stands in front.
    ("https://usefoo'neil@example.or#part", "https://[redacted]"),
    ("/ab'neil@example.or?x=1", "/[redacted]"),
    (
      "e@exam.\(String(repeating: "w", count: 70)).o'neil@x.yz",
      "e@exam.\(String(repeating: "w", count: 70)).o'[redacted]"
    ),
    // Slashes in a row, and what a query leaves behind one.
    ("/home//home/me", "~/me"), ("see /home/?a=b!!", "see /home/"), ("file:///home/#x!!", "file:///home/"),
    ("C:\\Users\\ay\\Users/me", "~/Users/me"), ("5555555555555555C:\\Users\\ay\\x", "[redacted]~/x"),
    ("a@x.zz.e:\\Users\\ay\\b", "[redacted].~/b"),
    // The digits were a word's end, the folder behind them none's.
    ("7777777/root: no", "[redacted]~: no"), (",/Users/]'#1234567/root: .", ",~'#[redacted]~: ."),
    // A file's URL has no password.
    ("https://u:5555555//x@y.example", "https://u:[redacted]//[redacted]"),
    ("file:///home/op:a@x.example:@y.example", "file://~:[redacted]:@y.example"),
  ]) func baseRulesLeaveNothingForASecondPass(text: String, expected: String) {
    #expect(Self.base(text) == expected)
    #expect(Self.base(Self.base(text)) == Self.base(text))
  }

  /// Texts beside the corpus: input and what must come out.
  static let further: [(String, String)] = [
    // Names of secrets, however they are written.
    ("dbPassword=hunter2 ok", "dbPassword=[redacted] ok"),
    ("PG" + "PASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
    ("accessToken: \"abc\", user: \"svc\"", "accessToken: \"[redacted]\", user: \"svc\""),
    ("AWS_SECRET_ACCESS_KEY=" + stars, "AWS_SECRET_ACCESS_KEY=[redacted]"), ("x-api-key: abc", "x-api-key: [redacted]"),
    ("Login(name: \"svc\", password: Optional(\"a b\"))", "Login(name: \"svc\", password: Optional(\"[redacted]\"))"),
    ("Login(secret: Secret(value: \"a b\"))", "Login(secret: Secret(value: \"[redacted]\"))"),
    (#"{\"password\":\"hunter2\",\"id\":1}"#, #"{\"password\":\"[redacted]\",\"id\":1}"#),
    (#"{"password":"a\"b","id":1}"#, #"{"password":"[redacted]","id":1}"#),
    ("password is hunter2 now", "password is [redacted] now"), ("tool --token abcdef -v", "tool --token [redacted] -v"),
    ("Cookie: a=1; sid=2", "Cookie: [redacted]"), ("password => hunter2", "password => [redacted]"),
    ("pin_code: 4821", "pin_code: [redacted]"), ("db_pass=hunter2", "db_pass=[redacted]"),
    // URLs.
    ("https://user:pa/ss@example.com/x", "https://[redacted]@example.com/x"),
    ("postgres://u:p@[::1]:5432/db", "postgres://[redacted]@[::1]:5432/db"),
    ("wss://example.com/ws?token=abc up", "wss://example.com/ws up"),
    ("jdbc:x://h/db?user=a&password=b", "jdbc:x://h/db"), ("GET /orders?email=" + alice + " 200", "GET /orders 200"),
    // People and accounts.
    ("from j.o'neil" + "@example.org now", "from [redacted] now"), (alice + "," + alice, "[redacted],[redacted]"),
    ("iban nl91" + "abna0417164300 bad", "iban [redacted] bad"),
    ("card " + "4111" + "-1111-1111-1111.", "card [redacted]."),
    // Keys.
    ("key xapp" + "-1-A0000-1234-abcdef bad", "key [redacted] bad"), ("hvs" + "." + stars, "[redacted]"),
    ("ey" + "JhbGciOiJub25lIn0.ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0. none", "[redacted] none"),
  ]

  /// What comes out when the base rules came first, where that is something else.
  static let coarser = [
    "https://user:pa/ss@example.com/x": "https://[redacted]/x",
    "iban nl91abna0417164300 bad": "iban nl91abna[redacted] bad",
  ]

  static let unharmed = [
    "{\"refresh_token\":null,\"hasPassword\":true}", "tokens: 512 of 4096", "token == nil", "pass=12 fail=0",
    "pass: ok",
    "pin: out of range", "secretary: bob", "a::token::b", "version 10.15.7.1 installed", "monkey: banana",
    "GB00AAAA1111 is no account", "Auth.handle(_:) at auth://x", "--token-limit 512", "mapping: x, spin: up",
    "keyboard=us", "--passphrase", "password=", "compass=12 bypass: none", "the pinned author: bob",
    "Array<Token> index out of range", "docker run -p 8080:80 api", "Optional<Password>.none < 3",
    "0x7f12345678901234 and 58016be961233a45f516ebee42cd", "12-34-56-78", "::1 and a::b", "/homeless/x",
  ]

  @Test(arguments: further) func furtherTexts(_ text: String, _ expected: String) {
    #expect(Redactor().redact(text) == expected)
    #expect(Redactor().redact(expected) == expected)
    // What a record holds: the base rules came first, and see less of the whole. They may take more, and leave no more
    // than the bank's part of an account number.
    let behind = Redactor().redact(Self.base(text))
    #expect(behind == expected || Self.coarser[text] == behind, "\(behind)")
  }

  @Test(arguments: unharmed) func unharmedTexts(_ text: String) {
    #expect(Redactor().redact(text) == text)
    #expect(Self.base(text) == text)
  }

  /// Whatever stands before and behind, and wherever the reading's blocks begin.
  @Test func foundAtEveryPlace() {
    let pieces = [
      (Self.alice, "[redacted]"), ("7654321", "[redacted]"), ("/home/al/x", "~/x"), ("a%40b.co", "[redacted]"),
    ]
    for (piece, expected) in pieces {
      for before in 0...40 {
        for behind in [0, 1, 5, 15, 16, 17, 31] {
          let head = String(repeating: "- ", count: before / 2) + (before % 2 == 1 ? " " : "")
          let tail = String(repeating: " -", count: behind / 2) + (behind % 2 == 1 ? " " : "")
          #expect(Self.base(head + piece + tail) == head + expected + tail)
        }
      }
    }
  }

  /// A text that was cut says how much of it can be judged; what then comes out holds no half address or number.
  @Test func cutTexts() {
    func whole(_ text: String) -> String {
      let bytes = Array(text.utf8)
      let length = bytes.withUnsafeBytes { crash_redact_whole($0.baseAddress, $0.count) }
      return String(decoding: bytes[..<length], as: UTF8.self)
    }
    #expect(whole("login of alice" + "@exam") == "login of ")
    #expect(whole("order 123456") == "order ")
    #expect(whole("login of o'neil" + "@ex") == "login of ")
    #expect(whole("done. ") == "done. ")
    #expect(whole("path=/home/al") == "path=/home/")
    #expect(whole("") == "")
    let long = String(repeating: "x", count: 900)
    #expect(whole(long + "123456") == long)
    #expect(whole(long) == long)
    // Cut at every byte, a text with secrets in it shows none of them, nor a part that tells.
    let text = Array(
      ("açık user " + Self.alice + " tel 5551234567 at /home/alice/x?y=1 \"" + Self.alice + "\" end").utf8)
    for end in 0...text.count {
      let kept = text[..<end].withUnsafeBytes { crash_redact_whole($0.baseAddress, $0.count) }
      let result = Self.base(String(decoding: text[..<kept], as: UTF8.self))
      #expect(!result.contains("alice") && !result.contains("555"), "\(end): \(result)")
      #expect(!result.contains("\u{fffd}"), "\(end): \(result)")
    }
  }

  /// Sixteen times the text is sixteen times the work; what is not linear would be 256 times. In processor time of this
  /// thread, so that the machine's other work does not count, and against each other, so that its speed does not.
  @Test(arguments: [
    "a@", "@", "://", "://a@", "://a:b/", "http://", "-----BEGIN KEY-----", "-----BEGIN ", "eyJ.", "eyJaaaaaaaaaa.",
    "sk-",
    "SG.", "bearer ", "authorization ", "authorization:", "password ", "password=", "password=\"", "password=\\\"",
    "a(",
    "token=a(", "mysql -p", "--token ", "1", "1 ", "1-", "1.", "+1", "00:", "::", "a:", "%40", "a.", "?a=", "/?a=",
    "/home/",
    "C:\\Users\\", "AA00 ", "DE00", "A ", "0x", "[redacted]", "o'a@b.co", "_", "ğ", "\u{200b}",
  ]) func workIsLinear(_ piece: String) {
    func work(_ bytes: Int) -> Double {
      let text = String(repeating: piece, count: bytes / piece.utf8.count)
      var best = Double.infinity
      for _ in 0..<3 {
        var start = timespec()
        var end = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        _ = Redactor().redact(text)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        best = min(best, Double(end.tv_sec - start.tv_sec) + Double(end.tv_nsec - start.tv_nsec) / 1e9)
      }
      return best
    }
    #expect(work(65_536) < 80 * max(work(4096), 1e-5), "\(piece)")
  }

  @Test func aMebibyteOfEachKindInTheBaseRules() {
    for piece in [
      "a@", "@", "://", "http://", "%40", "1", "?a=", "/?a=", "/home/", "o'a@b.co", "C:\\Users\\", "a%40b.",
    ] {
      func work(_ bytes: Int) -> Double {
        let text = String(repeating: piece, count: bytes / piece.utf8.count)
        var output = [CChar](repeating: 0, count: bytes * 2 + 64)
        var start = timespec()
        var end = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        _ = crash_redact_base(text, text.utf8.count, &output, output.count, nil)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        return Double(end.tv_sec - start.tv_sec) + Double(end.tv_nsec - start.tv_nsec) / 1e9
      }
      #expect(work(1 << 20) < 80 * max((0..<3).map { _ in work(1 << 16) }.max() ?? 0, 1e-4), "\(piece)")
    }
  }

  @Test func additionalRules() {
    let ticket: Redactor.Rule = { text in
      (0..<max(0, text.count - 3)).filter { Array(text[$0..<$0 + 4]) == Array("TCK-".utf8) }.map { $0..<$0 + 4 }
    }
    #expect(Redactor(additionalRules: [ticket]).redact("see TCK-1") == "see [redacted]1")
    // Ranges that make no sense are dropped, and nothing traps.
    #expect(Redactor(additionalRules: [{ _ in [5..<900, 0..<1, 0..<1] }]).redact("abc") == "[redacted]bc")
  }

  /// Cut at every byte and put together at random, no text traps and none comes out differently the second time.
  @Test func anyTextIsStable() {
    var generator = SeededGenerator(seed: 7)
    let pieces = Self.corpus.flatMap { [$0.input, String($0.input.prefix(9)), String($0.input.suffix(9))] }
    for _ in 0..<3000 {
      let text = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        pieces.randomElement(using: &generator) ?? ""
      }.joined()
      let once = Redactor().redact(text)
      #expect(Redactor().redact(once) == once, "\(text)")
      let base = Self.base(text)
      #expect(Self.base(base) == base, "\(text)")
    }
  }

  /// The base rules keep their promise about the room that they are given.
  @Test func outputIsCutAtCharacters() {
    let text = "açık 1234567 alice" + "@example.com ğ"
    for capacity in 0...text.utf8.count + 16 {
      var output = [CChar](repeating: 0x7f, count: capacity + 8)
      var truncated: Int32 = -1
      let length = crash_redact_base(text, text.utf8.count, &output, capacity, &truncated)
      #expect(length <= capacity)
      #expect(output[capacity...].allSatisfy { $0 == 0x7f }, "wrote behind its room")
      let result = output[..<length].map { UInt8(bitPattern: $0) }
      #expect(String(validating: result, as: UTF8.self) != nil)
      #expect(!String(decoding: result, as: UTF8.self).contains("123"))
      #expect(truncated == (length < Self.base(text).utf8.count ? 1 : 0))
    }
  }
}
