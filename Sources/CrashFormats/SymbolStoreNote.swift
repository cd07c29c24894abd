public import CrashModel

/// What a symbol store knows of a build besides its files: `symbol-store-note/1`, a small JSON file beside them.
///
/// ```swift
/// var note = SymbolStoreNote(buildID: id, added: now)
/// note.add(name: "orderd", release: "1.4.0", at: now)
/// try note.json()
/// ```
public struct SymbolStoreNote: Hashable, Sendable {
  public static let schema = "symbol-store-note/1"
  /// Larger ones are damaged: the longest names and releases, with all of their characters escaped, take three quarters.
  public static let sizeLimit = 4 << 20
  /// The latest so many names and releases are kept.
  private static let listLimit = 1_000

  /// A release that the build is part of.
  public struct Release: Hashable, Sendable {
    public var name: String
    /// When the build was first added for it.
    public var added: Timestamp

    public init(name: String, added: Timestamp) {
      self.name = name
      self.added = added
    }
  }

  public var buildID: BuildID
  /// File names that it was added under, in the order of the first time; the debug file's without `.debug`.
  public var names: [String] = []
  /// When the first file of the build was added.
  public var added: Timestamp
  /// In the order of their times.
  public var releases: [Release] = []

  public init(buildID: BuildID, added: Timestamp) {
    self.buildID = buildID
    self.added = added
  }

  /// Notes one more time that the build was added.
  ///
  /// - Returns: whether that was news.
  @discardableResult
  public mutating func add(name: String, release: String?, at time: Timestamp) -> Bool {
    let before = self
    if !names.contains(name) { names = (names + [name]).suffix(Self.listLimit) }
    if let release, !releases.contains(where: { $0.name == release }) {
      releases = (releases + [Release(name: release, added: time)]).suffix(Self.listLimit)
    }
    return self != before
  }

  public func json() -> [UInt8] {
    var writer = JSONWriter(pretty: true)
    writer.beginObject()
    writer.member("schema", Self.schema)
    writer.member("build_id", buildID.description)
    writer.key("names")
    writer.beginArray()
    for name in names { writer.string(name) }
    writer.endArray()
    writer.member("added", added)
    writer.key("releases")
    writer.beginArray()
    for release in releases {
      writer.beginObject()
      writer.member("release", release.name)
      writer.member("added", release.added)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    writer.newline()
    return writer.bytes
  }

  /// - Throws: `ReportError` where the bytes are no such document.
  public init(json bytes: [UInt8]) throws(ReportError) {
    guard let parser = JSONParser() else { throw ReportError("no memory") }
    guard bytes.count <= Self.sizeLimit else { throw ReportError("larger than \(Self.sizeLimit) bytes") }
    let padded = bytes + [UInt8](repeating: 0, count: JSONParser.padding)
    // Not `withUnsafeBytes`: it does not hand on typed errors.
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: padded.count, alignment: 16)
    defer { memory.deallocate() }
    memory.copyBytes(from: padded)
    self = try parser.withDocument(UnsafeRawBufferPointer(memory), count: bytes.count) {
      root throws(ReportError) in try Self.decode(root)
    }
  }

  private static func decode(_ root: JSONValue) throws(ReportError) -> SymbolStoreNote {
    var schema: String?
    var buildID: BuildID?
    var added: Timestamp?
    var names: [String] = []
    var releases: [Release] = []
    try root.forEachMember { key, value throws(ReportError) in
      switch key {
      case "schema": schema = try value.string()
      case "build_id": buildID = BuildID(try value.string())
      case "added": added = try time(value)
      case "names": try value.forEachElement { element throws(ReportError) in names.append(try element.string()) }
      case "releases":
        try value.forEachElement { element throws(ReportError) in
          guard let name = try element.member("release")?.string(), let added = try element.member("added").map(time)
          else { throw ReportError("expected \"release\" and \"added\"") }
          releases.append(Release(name: name, added: added))
        }
      default: break
      }
    }
    guard schema == Self.schema else { throw ReportError("expected the schema \(Self.schema)") }
    guard let buildID else { throw ReportError("expected a build id", path: "build_id") }
    guard let added else { throw ReportError("expected a time", path: "added") }
    var note = SymbolStoreNote(buildID: buildID, added: added)
    note.names = names
    note.releases = releases
    return note
  }

  private static func time(_ value: JSONValue) throws(ReportError) -> Timestamp {
    guard let time = Timestamp(rfc3339: try value.string()) else { throw ReportError("expected a time of RFC 3339") }
    return time
  }
}
