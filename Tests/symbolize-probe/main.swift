private import CrashModel
private import Glibc
private import Symbolication

// Reads virtual addresses from standard input, one a line in hex, and prints for each one JSON object with the functions
// at it, for Benchmarks/compare-with-llvm-symbolizer. Usage: symbolize-probe FILE [--nearest] [--keep-failures]

func quoted(_ text: String?) -> String {
  guard let text else { return "null" }
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    case _ where scalar.value < 0x20:
      let digits = String(scalar.value, radix: 16)
      result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}

func complain(_ text: String) { text.withCString { _ = write(STDERR_FILENO, $0, strlen($0)) } }

func number(_ value: Int?) -> String { value.map { "\($0)" } ?? "null" }

let arguments = CommandLine.arguments.dropFirst()
guard let path = arguments.first(where: { !$0.hasPrefix("--") }) else {
  complain("usage: symbolize-probe FILE [--nearest] < ADDRESSES\n")
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
  let symbolicator = Symbolicator(nearestLines: arguments.contains("--nearest"))
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
