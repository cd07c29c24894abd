import CTelemetry
import Routing

/// What vehicles report.
final class Vehicles {
  enum Failure: Error {
    case offline
    case unknown(String)
  }

  private class Driver {
    var name: String
    init(name: String) { self.name = name }
  }

  private final class Trainee: Driver {
    unowned let teacher: Driver
    init(name: String, teacher: Driver) {
      self.teacher = teacher
      super.init(name: name)
    }
  }

  private var speeds = [30, 50, 80]

  // Bug 17: not every driver is in training.
  func teacher(_ name: String) -> String {
    let driver: Driver = name.isEmpty ? Trainee(name: "a", teacher: Driver(name: "b")) : Driver(name: name)
    return (driver as! Trainee).name
  }

  // Bug 18: an error that cannot happen.
  func position(_ vehicle: String) -> Int {
    try! locate(vehicle)
  }

  private func locate(_ vehicle: String) throws -> Int {
    guard vehicle.count < 3 else { throw Failure.unknown(vehicle) }
    return vehicle.count
  }

  // Bug 19: a range that ends before it begins.
  func window(_ first: Int, _ last: Int) -> Int {
    speeds[first..<last].reduce(0, +)
  }

  // Bug 21: a negative speed has no such form.
  func encoded(_ speed: Int) -> UInt8 {
    UInt8(speed - 100)
  }

  // Bug 22: keys that are there twice.
  func index(_ names: [String]) -> Int {
    Dictionary(uniqueKeysWithValues: names.map { ($0, $0.count) }).count
  }

  // Bug 23: the program's own decision to stop.
  func audit(_ balance: Int) -> Int {
    guard balance == 0 else { fatalError("books do not balance: \(balance)") }
    return balance
  }

  // Bug 24: a promise of its callers'.
  func brake(_ force: Int) -> Int {
    precondition(force > 0, "force \(force)")
    return force * 2
  }

  // Bug 25: the teacher has left.
  func lesson() -> String {
    var trainee: Trainee?
    do {
      let teacher = Driver(name: "t")
      trainee = Trainee(name: "x", teacher: teacher)
    }
    return trainee!.teacher.name
  }

  func checksum(_ count: Int) -> Int {
    Int(telemetry_checksum(nil, count))
  }

  func ratio(_ whole: Int) -> Int {
    Int(telemetry_ratio(100, Int32(whole)))
  }

  // Bug 13.
  func openDoor(_ code: Int) -> Int {
    telemetry_require(code == 42 ? 1 : 0)
    return code
  }

  // Bug 14.
  func unlockTrunk(_ code: Int) -> Int {
    let isValid = code % 2 == 1
    telemetry_require(isValid ? 1 : 0)
    return code + 1
  }

  // Bug 26: a Swift closure below a function of C.
  func callback(_ index: Int) -> Int {
    let box = Box(values: speeds, index: index)
    return Int(
      telemetry_run(
        { context in
          let box = Unmanaged<Box>.fromOpaque(context!).takeUnretainedValue()
          return Int32(box.values[box.index])
        }, Unmanaged.passUnretained(box).toOpaque()))
  }

  private final class Box {
    let values: [Int]
    let index: Int
    init(values: [Int], index: Int) {
      self.values = values
      self.index = index
    }
  }
}
