internal import CrashModel
private import Glibc

/// The files that the operands stand for.
struct Inputs {
  struct File {
    /// nil for standard input.
    var path: FilePath?
    /// A directory led to it: nobody said that it is a crash.
    var isFound = false

    var name: String { path?.description ?? "standard input" }

    /// Its name says that it is a record: one that is damaged beyond recognition is a loss, and not another's file.
    var isNamedRecord: Bool { path?.hasSuffix(".crashrecord") ?? false }
    var isNamedJSON: Bool {
      path.map { $0.hasSuffix(".json") || $0.hasSuffix(".ndjson") || $0.hasSuffix(".jsonl") } ?? false
    }
  }

  private(set) var files: [File] = []
  /// An operand was a directory, so that one report each is not what was asked for.
  private(set) var hasDirectory = false
  private(set) var failures: [(path: FilePath, reason: String)] = []
  private(set) var skipped: [(path: FilePath, reason: String)] = []
  private var seen: Set<Identity> = []

  /// A file under two names is read once: crashes are counted.
  private struct Identity: Hashable {
    var device: UInt
    var inode: UInt

    init(_ status: stat) { (device, inode) = (UInt(status.st_dev), UInt(status.st_ino)) }
  }

  /// A file and what it is sorted by.
  private struct Candidate {
    var file: File
    /// In milliseconds since 1970. Standard input and what cannot be looked at have none and come last.
    var time = Int64.min

    init(_ file: File, _ status: stat? = nil) {
      self.file = file
      guard let status, let path = file.path else { return }
      time = Inputs.time(of: path.lastComponent) ?? Int64(clamping: status.st_mtim.tv_sec).multipliedClamping(by: 1_000)
    }
  }

  static func isDirectory(_ operand: FilePath) -> Bool {
    var status = stat()
    return operand != FilePath("-") && operand.withCString { stat($0, &status) } == 0
      && status.st_mode & S_IFMT == S_IFDIR
  }

  /// - Parameter output: where results go, nil for standard output. A directory that holds it does not stand for it: what
  ///   an earlier run wrote would be counted once more, and what this one writes would be read for ever.
  ///
  /// In the order of the command line; newest first, all operands together, where one of them is a directory: then the
  /// order was left to the tool.
  init(operands: [FilePath], output: FilePath?) {
    let outputIdentity = Self.identity(ofOutput: output)
    var candidates: [Candidate] = []
    var directories: [FilePath] = []
    for operand in operands {
      var status = stat()
      if operand == FilePath("-") {
        candidates.append(Candidate(File(path: nil)))
      } else if operand.withCString({ stat($0, &status) }) != 0 {
        // The attempt to read it will say why it cannot be.
        candidates.append(Candidate(File(path: operand)))
      } else if status.st_mode & S_IFMT == S_IFDIR {
        hasDirectory = true
        directories.append(operand)
      } else if output == nil, Identity(status) == outputIdentity {
        failures.append((operand, "is where standard output goes, and cannot be read at the same time"))
      } else if seen.insert(Identity(status)).inserted {
        candidates.append(Candidate(File(path: operand), status))
      }
    }
    // Behind all files that were named, so that one that lies in a directory too has the name that was given.
    var links: [FilePath] = []
    if let outputIdentity { seen.insert(outputIdentity) }
    for directory in directories { walk(directory, &candidates, &links) }
    for link in links { follow(link, &candidates) }
    if hasDirectory {
      candidates.sort { left, right in
        (left.time, left.file.path ?? FilePath("")) > (right.time, right.file.path ?? FilePath(""))
      }
    }
    files = candidates.map(\.file)
  }

  /// Of a regular file; nil for anything else, which nobody reads.
  private static func identity(ofOutput path: FilePath?) -> Identity? {
    var status = stat()
    let result = path.map { $0.withCString { stat($0, &status) } } ?? fstat(STDOUT_FILENO, &status)
    return result == 0 && status.st_mode & S_IFMT == S_IFREG ? Identity(status) : nil
  }

  mutating func removeFiles(where isUnwanted: (File) -> Bool) { files.removeAll(where: isUnwanted) }

  private mutating func walk(_ root: FilePath, _ candidates: inout [Candidate], _ links: inout [FilePath]) {
    var pending = [root]
    while let directory = pending.popLast() {
      let listing = DirectoryListing(of: directory)
      if let number = listing.failure {
        let advice = number == EACCES ? "; run symbolicate as its owner or as root" : ""
        failures.append((directory, "the directory cannot be read: \(errnoText(number))" + advice))
      }
      for name in listing.names {
        let path = directory.appending(name)
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else {
          let number = errno
          // A service that writes its reports meanwhile removes some, too.
          if number == ENOENT {
            skipped.append((path, "was removed meanwhile"))
          } else {
            failures.append((path, "cannot be looked at: \(errnoText(number))"))
          }
          continue
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR where name.elementsEqual("quarantine".utf8):
          skipped.append((path, "holds what could not be read before; name it to read it"))
        case S_IFDIR: pending.append(path)
        case S_IFREG: add(path, status, &candidates)
        case S_IFLNK: links.append(path)
        default: skipped.append((path, "no regular file"))
        }
      }
    }
  }

  /// Links to files are read, those to directories are not entered, so that there are no circles.
  private mutating func follow(_ path: FilePath, _ candidates: inout [Candidate]) {
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0 else {
      skipped.append((path, "a link that leads to no file: \(errnoText(errno))"))
      return
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: add(path, status, &candidates)
    case S_IFDIR: skipped.append((path, "a link to a directory; name it to read it"))
    default: skipped.append((path, "a link to no regular file"))
    }
  }

  private mutating func add(_ path: FilePath, _ status: stat, _ candidates: inout [Candidate]) {
    let name = path.lastComponent
    // What a start writes reports to before it gives them their names.
    guard name.first != UInt8(ascii: ".") || !path.hasSuffix(".tmp") else {
      skipped.append((path, "not yet completely written"))
      return
    }
    guard seen.insert(Identity(status)).inserted else { return }
    candidates.append(Candidate(File(path: path, isFound: true), status))
  }

  /// The milliseconds since 1970 that a UUIDv7 begins with: they outlive a copy of the file, its own time does not.
  private static func time(of name: ArraySlice<UInt8>) -> Int64? {
    let stem = Array(name.prefix { $0 != UInt8(ascii: ".") })
    guard stem.count == 36, stem[14] == UInt8(ascii: "7"), stem[8] == UInt8(ascii: "-"), stem[13] == UInt8(ascii: "-")
    else { return nil }
    return Int64(String(decoding: stem[0..<8] + stem[9..<13], as: UTF8.self), radix: 16)
  }
}

extension Int64 {
  fileprivate func multipliedClamping(by factor: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    return overflow ? (self < 0 ? .min : .max) : product
  }
}
