/// A table for a terminal: columns as wide as their widest cell, the last ones shortened where the line is too long.
public struct TextTable: Sendable {
  /// How a column is set.
  public struct Column: Sendable {
    public var title: String
    public var isRightAligned: Bool
    /// It may be shortened down to so many cells; nil for never.
    public var minimumWidth: Int?

    public init(_ title: String, isRightAligned: Bool = false, minimumWidth: Int? = nil) {
      self.title = title
      self.isRightAligned = isRightAligned
      self.minimumWidth = minimumWidth
    }
  }

  public var columns: [Column]
  /// Each with as many cells as there are columns.
  public private(set) var rows: [[String]] = []

  public init(columns: [Column]) { self.columns = columns }

  /// Adds a row; text from outside is made fit for a terminal.
  public mutating func add(_ cells: [String]) {
    rows.append(columns.indices.map { $0 < cells.count ? Printable.line(cells[$0]) : "" })
  }

  /// - Parameter width: cells of the terminal; nil where nothing limits the line.
  public func text(width: Int?) -> String {
    var widths = columns.indices.map { index in
      rows.reduce(Printable.width(of: columns[index].title)) { max($0, Printable.width(of: $1[index])) }
    }
    if let width {
      var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
      for index in columns.indices where excess > 0 {
        guard let minimum = columns[index].minimumWidth, widths[index] > minimum else { continue }
        let cut = min(excess, widths[index] - minimum)
        widths[index] -= cut
        excess -= cut
      }
    }
    var text = ""
    for row in [columns.map(\.title)] + rows {
      var line = ""
      for index in columns.indices {
        let cell = Printable.truncated(row[index], toWidth: widths[index])
        let space = String(repeating: " ", count: max(0, widths[index] - Printable.width(of: cell)))
        line += columns[index].isRightAligned ? space + cell : cell + space
        if index + 1 < columns.count { line += "  " }
      }
      while line.utf8.last == UInt8(ascii: " ") { line.removeLast() }
      text += line + "\n"
    }
    return text
  }
}
