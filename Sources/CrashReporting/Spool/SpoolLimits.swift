/// How much the spool may hold. A crash loop reaches these limits and stays there.
public struct SpoolLimits: Hashable, Sendable {
  /// Reports of one stack hash within `window`; further crashes are counted. At least 1.
  public var reportsPerHash = 3
  /// In seconds. 24 hours.
  public var window: Int64 = 24 * 60 * 60
  /// Snapshots, of which the oldest goes when one more comes. At least 1.
  public var snapshots = 10
  /// Reports in all. At least 1.
  public var reports = 50
  /// Bytes of all reports together.
  public var bytes = 16 * 1024 * 1024
  /// In seconds. 30 days.
  public var age: Int64 = 30 * 24 * 60 * 60
  /// Bytes of one report; what is over it is trimmed, the report is kept.
  public var reportBytes = 256 * 1024
  /// Files in quarantine.
  public var quarantined = 10

  public init() {}
}
