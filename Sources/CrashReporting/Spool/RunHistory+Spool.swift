internal import CrashModel
private import Glibc

extension RunHistory {
  /// Reads the file in a spool. Losing it loses numbers, never reports.
  init(in folder: borrowing Descriptor) throws(SystemError) {
    do throws(SystemError) {
      let file = try Descriptor.open(Self.fileName, in: folder, flags: O_RDONLY)
      guard try file.status().st_mode & S_IFMT == S_IFREG else {
        self.init()
        return
      }
      self.init(text: try file.read(count: Self.maximumBytes, at: 0))
    } catch {
      guard error.number == ENOENT || error.number == ELOOP else { throw error }
      self.init()
    }
  }

  /// The history of the spool at a path; an empty one where it cannot be read.
  init(inSpool path: String) {
    guard let root = try? SpoolRoot(path: path), let history = try? RunHistory(in: root.descriptor) else {
      self.init()
      return
    }
    self = history
  }
}
