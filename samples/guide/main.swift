// A program that knows nothing of this package: it crashes under the Swift runtime's own backtracer, as the demo asks it to.

struct Order {
  var lines: [String]
}

@inline(never)
func line(of order: Order, at index: Int) -> String {
  order.lines[index]
}

@inline(never)
func quantity(in text: String) -> Int {
  Int(text)!
}

@inline(never)
func handle(_ request: String) -> String {
  switch request {
  case "quantity": "\(quantity(in: "many"))"
  default: line(of: Order(lines: ["apple", "pear"]), at: request.utf8.count)
  }
}

print(handle(CommandLine.arguments.dropFirst().joined()))
