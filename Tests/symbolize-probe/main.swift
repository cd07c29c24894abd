private import CrashModel
private import Glibc
private import Symbolication

// Reads virtual addresses from standard input, one a line in hex, and prints for each one JSON object with the functions
// at it, for Benchmarks/compare-with-llvm-symbolizer. Usage: symbolize-probe FILE [--nearest] [--cache=DIR]
// With --cache the answers come from a table, which is built where the directory has none.

func quoted(_ text: String?) -> String {
  guard let text else { return "null" }
  var bytes: [UInt8] = [UInt8(ascii: "\"")]
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
    case 0..<0x20: bytes += Array("\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8)
    default: bytes.append(byte)
    }
  }
  return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
}

func complain(_ text: String) { text.withCString { _ = write(STDERR_FILENO, $0, strlen($0)) } }

func number(_ value: Int?) -> String { value.map { "\($0)" } ?? "null" }

let arguments = CommandLine.arguments.dropFirst()
guard let path = arguments.first(where: { !$0.hasPrefix("--") }) else {
  complain("usage: symbolize-probe FILE [--nearest] [--cache=DIR] < ADDRESSES\n")
  exit(64)
}
var addresses: [UInt64] = []
while let line = readLine() {
  guard let address = Hex.value(line) else {
    complain("symbolize-probe: not a hexadecimal address: \(line)\n")
    exit(64)
  }
  addresses.append(address)
}
do {
  let cache = arguments.first { $0.hasPrefix("--cache=") }.map { AddressTableCache(directory: String($0.dropFirst(8))) }
  let symbolicator = Symbolicator(
    nearestLines: arguments.contains("--nearest"),
    tables: AddressTables(use: cache == nil ? .never : .always, cache: cache))
  for (address, resolved) in zip(addresses, try symbolicator.symbolize(file: path, addresses: addresses)) {
    let functions = resolved.functions.map { function in
      "{\"raw\":\(quoted(function.rawFunction)),\"name\":\(quoted(function.function)),\"file\":\(quoted(function.file)),"
        + "\"line\":\(number(function.line)),\"column\":\(number(function.column)),"
        + "\"declaration\":\(number(function.declarationLine)),\"approximate\":\(function.approximate),"
        + "\"inlined\":\(function.inlined),\"dwarf\":\(function.hasDebugInformation)}"
    }
    print(
      "{\"address\":\"\(Hex.prefixed(address))\",\"failure\":\(quoted(resolved.runtimeFailure)),"
        + "\"functions\":[\(functions.joined(separator: ","))]}")
  }
} catch {
  complain("symbolize-probe: \(error)\n")
  exit(1)
}
