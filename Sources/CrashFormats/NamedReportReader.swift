package import CrashModel

/// Reads a `crash-report/1` into a `NamedReport`, where it is one that this suffices for.
///
/// Stricter than `ReportDecoder`, and never more lenient: what that one would refuse, note or change, and what a
/// `NamedReport` has no room for, is left to it.
package struct NamedReportReader {
  package private(set) var report = NamedReport()

  package init() {}

  /// The report has something that must be read in the usual way.
  private static let other = ReportError("")

  /// - Returns: whether `report` is it.
  package mutating func read(_ parsed: ParsedReport) -> Bool {
    let root = parsed.root
    report.removeAll()
    do throws(ReportError) {
      guard let thread = root.member("thread") else { return false }
      try read(root, thread: try thread.integer(0...Int(Int32.max)))
      return true
    } catch {
      return false
    }
  }

  private mutating func read(_ root: JSONValue, thread wanted: Int) throws(ReportError) {
    var named = report
    report = NamedReport()
    defer { report = named }
    var digits: UnsafeRawBufferPointer?
    var quality: UnsafeRawBufferPointer?
    var (hasID, hasThreads) = (false, false)
    try root.forEachMember { key, value throws(ReportError) in
      switch key.bytes.count {
      case 2 where "id" ~= key:
        named.id = try value.bytes()
        hasID = true
      case 4:
        if "type" ~= key {
          try Self.add(value.bytes(), "t", to: &named.context)
        } else if "kind" ~= key {
          guard "crash" ~= JSONKey(bytes: try value.bytes()) else { throw Self.other }
        } else if "tags" ~= key {
          try value.forEachMember { key, value throws(ReportError) in
            _ = try value.bytes()
            // It says itself which group it belongs to.
            if "fingerprint" ~= key { throw Self.other }
          }
        } else if "hang" ~= key {
          throw Self.other
        }
      case 5:
        if "fatal" ~= key { _ = try value.bool() }
        if "notes" ~= key { try value.forEachElement { element throws(ReportError) in _ = try element.bytes() } }
      case 6:
        if "reason" ~= key { named.reason = try value.bytes() }
        if "run_id" ~= key { named.runID = try value.bytes() }
        if "signal" ~= key { try Self.readSignal(value, &named) }
        if "thread" ~= key { _ = try value.integer(0...Int(Int32.max)) }
        if "ending" ~= key { throw Self.other }
        if "images" ~= key { try Self.readImages(value, &named) }
      case 7:
        if "message" ~= key { named.message = try value.bytes() }
        if "process" ~= key { try Self.readProcess(value, &named) }
        if "service" ~= key { try Self.add(value.bytes(), "s", to: &named.context) }
        if "release" ~= key { try Self.add(value.bytes(), "r", to: &named.context) }
        if "threads" ~= key {
          guard !hasThreads else { throw Self.other }
          hasThreads = true
          try Self.readThreads(value, wanted: wanted, &named)
        }
      case 9 where "timestamp" ~= key: named.timestamp = try Self.timestamp(value)
      case 10 where "stack_hash" ~= key: digits = try value.bytes()
      case 11 where "environment" ~= key: try Self.add(value.bytes(), "e", to: &named.context)
      case 16 where "suppressed_count" ~= key: named.suppressedCount = try value.integer(0...Int.max)
      case 18 where "stack_hash_quality" ~= key: quality = try value.bytes()
      case 21 where "previous_stack_hashes" ~= key:
        named.previousStackHashes = []
        try value.forEachElement { element throws(ReportError) in
          named.previousStackHashes.append(try Self.stackHash(element))
        }
      default: break
      }
    }
    guard hasID, hasThreads, !named.frames.isEmpty else { throw Self.other }
    if digits != nil || quality != nil { named.stackHash = try Self.stackHash(digits, quality) }
  }

  /// Each text with its name and its length, so that no two lists of texts have the same bytes.
  private static func add(_ text: UnsafeRawBufferPointer, _ name: Unicode.Scalar, to context: inout [UInt8]) {
    context.append(UInt8(truncatingIfNeeded: name.value))
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: text.count)) { context.append(contentsOf: $0) }
    context.append(contentsOf: text)
  }

  private static func timestamp(_ value: JSONValue) throws(ReportError) -> Timestamp {
    guard let moment = Timestamp(rfc3339: try value.bytes()) else { throw other }
    return moment
  }

  private static func stackHash(_ value: JSONValue) throws(ReportError) -> StackHash {
    var digits: UnsafeRawBufferPointer?
    var quality: UnsafeRawBufferPointer?
    try value.forEachMember { key, value throws(ReportError) in
      if "stack_hash" ~= key { digits = try value.bytes() }
      if "stack_hash_quality" ~= key { quality = try value.bytes() }
    }
    return try stackHash(digits, quality)
  }

  private static let qualities = Vocabulary(StackHash.Quality.self)

  private static func stackHash(_ digits: UnsafeRawBufferPointer?, _ quality: UnsafeRawBufferPointer?)
    throws(ReportError) -> StackHash
  {
    guard let digits, digits.count == 32, let quality, let known = qualities[quality],
      digits.allSatisfy({
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
      })
    else { throw other }
    return StackHash(digits: String(decoding: digits, as: UTF8.self), quality: known)
  }

  private static func readSignal(_ value: JSONValue, _ named: inout NamedReport) throws(ReportError) {
    var hasNumber = false
    named.signalAddress = nil
    try value.forEachMember { key, value throws(ReportError) in
      if "number" ~= key {
        let number: Int32 = try value.integer()
        withUnsafeBytes(of: number) { add($0, "n", to: &named.context) }
        hasNumber = true
      } else if "name" ~= key {
        try add(value.bytes(), "N", to: &named.context)
      } else if "code" ~= key {
        _ = try value.integer() as Int32
      } else if "code_name" ~= key {
        _ = try value.bytes()
      } else if "address" ~= key {
        named.signalAddress = Address(rawValue: try value.hex())
      } else if "sender_pid" ~= key {
        _ = try value.integer() as Int32
      } else if "sender_uid" ~= key {
        _ = try value.integer() as UInt32
      }
    }
    guard hasNumber else { throw other }
  }

  private static func readProcess(_ value: JSONValue, _ named: inout NamedReport) throws(ReportError) {
    named.host = nil
    try value.forEachMember { key, value throws(ReportError) in
      if "id" ~= key {
        _ = try value.integer() as Int32
      } else if "executable" ~= key {
        try add(value.bytes(), "x", to: &named.context)
      } else if "host" ~= key {
        named.host = try value.bytes()
      } else if "system" ~= key || "architecture" ~= key {
        _ = try value.bytes()
      } else if "start_time" ~= key {
        _ = try timestamp(value)
      }
    }
  }

  private static func readImages(_ value: JSONValue, _ named: inout NamedReport) throws(ReportError) {
    try value.forEachElement { image throws(ReportError) in
      named.context.append(UInt8(ascii: "i"))
      var hasAddress = false
      try image.forEachMember { key, value throws(ReportError) in
        if "path" ~= key {
          try add(value.bytes(), "p", to: &named.context)
        } else if "build_id" ~= key {
          try add(value.bytes(), "b", to: &named.context)
        } else if "address" ~= key {
          _ = try value.hex()
          hasAddress = true
        } else if "size" ~= key {
          _ = try value.integer() as UInt64
        } else if "first_virtual_address" ~= key {
          _ = try value.hex()
        } else if "unloaded" ~= key {
          _ = try value.bool()
        }
      }
      guard hasAddress else { throw other }
    }
  }

  private static func readThreads(_ value: JSONValue, wanted: Int, _ named: inout NamedReport) throws(ReportError) {
    var number = 0
    try value.forEachElement { thread throws(ReportError) in
      defer { number += 1 }
      guard number == wanted else { return }
      try thread.forEachMember { key, value throws(ReportError) in
        if "frames" ~= key {
          named.frames.removeAll(keepingCapacity: true)
          try value.forEachElement { frame throws(ReportError) in named.frames.append(try self.frame(frame)) }
        } else if "id" ~= key {
          _ = try value.integer() as UInt32
        } else if "name" ~= key {
          _ = try value.bytes()
        } else if "crashed" ~= key {
          _ = try value.bool()
        } else if "depth" ~= key {
          named.depth = try value.integer() as UInt64
        } else if "status" ~= key {
          _ = try value.bytes()
        } else if "staying_frames" ~= key {
          _ = try value.integer(0...Int(Int32.max))
        } else if "registers" ~= key {
          try value.forEachMember { name, value throws(ReportError) in
            // The first one, as it is the first that is asked for.
            if "rsp" ~= name || "sp" ~= name {
              let pointer = try value.hex()
              if named.stackPointer == nil { named.stackPointer = pointer }
            }
          }
        }
      }
    }
  }

  private static func frame(_ value: JSONValue) throws(ReportError) -> NamedReport.Frame {
    let largest = Int(Int32.max)
    var frame = NamedReport.Frame()
    var (hasKind, hasFunction, isResolved) = (false, false, false)
    try value.forEachMember { key, value throws(ReportError) in
      switch key.bytes.count {
      case 4:
        if "line" ~= key { frame.line = Int32(truncatingIfNeeded: try value.integer(0...largest)) }
        if "file" ~= key { frame.file = try value.bytes() }
        if "kind" ~= key {
          guard !("omitted" ~= JSONKey(bytes: try value.bytes())) else { throw other }
          hasKind = true
        }
      case 5:
        if "trust" ~= key { _ = try value.bytes() }
        if "count" ~= key { throw other }
      case 6:
        if "status" ~= key { isResolved = "resolved" ~= JSONKey(bytes: try value.bytes()) }
        if "column" ~= key { _ = try value.integer(0...largest) }
        if "in_app" ~= key { _ = try value.bool() }
      case 7:
        if "inlined" ~= key { frame.inlined = try value.bool() }
        if "address" ~= key { _ = try value.hex() }
      case 8 where "function" ~= key:
        frame.function = try value.bytes()
        hasFunction = true
      case 11:
        if "image_index" ~= key { frame.imageIndex = Int32(truncatingIfNeeded: try value.integer(0...largest)) }
        if "approximate" ~= key { _ = try value.bool() }
      case 12:
        if "raw_function" ~= key { frame.rawFunction = try value.bytes() }
        if "image_offset" ~= key { _ = try value.hex() }
      case 16 where "declaration_line" ~= key:
        frame.declarationLine = Int32(truncatingIfNeeded: try value.integer(0...largest))
      case 17 where "debug_information" ~= key: frame.hasDebugInformation = try value.bool()
      default: break
      }
    }
    guard hasKind, hasFunction, isResolved else { throw other }
    return frame
  }
}
