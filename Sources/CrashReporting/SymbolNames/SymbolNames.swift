package import CrashModel

/// Names frames from the symbol tables of the binaries that crashed, where they are still there with the same build id.
///
/// Less than debug information gives (no inlined functions, no lines), and available in every deployment.
package enum SymbolNames {
  /// Turns captured frames into named ones. What went wrong with an image becomes a note.
  package static func resolve(_ report: inout CrashReport) {
    var wanted: [Int: Set<UInt64>] = [:]
    for frame in report.threads.lazy.flatMap(\.frames) {
      guard case .captured(let frame) = frame, let index = frame.imageIndex, report.images.indices.contains(index)
      else { continue }
      wanted[index, default: []].insert(lookup(frame, in: report.images[index]))
    }
    var answers: [Int: Answer] = [:]
    for (index, addresses) in wanted.sorted(by: { $0.key < $1.key }) {
      let image = report.images[index]
      answers[index] = look(up: addresses.sorted(), in: image)
      if case .otherBuild = answers[index] {
        report.notes.append(
          "\(image.path) is another build now than the one that crashed, so that its names were not used.")
      }
    }
    for thread in report.threads.indices {
      for frame in report.threads[thread].frames.indices {
        guard case .captured(let captured) = report.threads[thread].frames[frame] else { continue }
        report.threads[thread].frames[frame] = .symbolicated(named(captured, report.images, answers))
      }
    }
  }

  private enum Answer {
    case names([UInt64: String])
    case otherBuild
    case none
  }

  private static func lookup(_ frame: CapturedFrame, in image: Image) -> UInt64 {
    image.virtualAddress(of: image.offset(of: frame.lookupAddress))
  }

  private static func look(up addresses: [UInt64], in image: Image) -> Answer {
    // Without a build id nothing tells whether the file at the path is the one that crashed. The vdso has no file.
    guard let buildID = image.buildID, image.path.utf8.first == UInt8(ascii: "/") else { return .none }
    do throws(ElfFile.Failure) {
      let file = try ElfFile.open(image.path)
      guard try file.buildID() == buildID else { return .otherBuild }
      let names = try file.functions(at: addresses)
      return .names(
        Dictionary(
          uniqueKeysWithValues: zip(addresses, names).compactMap { address, name in name.map { (address, $0) } }))
    } catch { return .none }
  }

  private static func named(_ frame: CapturedFrame, _ images: [Image], _ answers: [Int: Answer]) -> SymbolicatedFrame {
    guard let index = frame.imageIndex, images.indices.contains(index) else {
      return SymbolicatedFrame(captured: frame, status: .noImage)
    }
    switch answers[index] {
    case .names(let names):
      guard let raw = names[lookup(frame, in: images[index])] else { break }
      return SymbolicatedFrame(
        captured: frame, status: .resolved, function: Demangler.simplified(raw) ?? raw, rawFunction: raw)
    case .otherBuild: return SymbolicatedFrame(captured: frame, status: .buildIDMismatch)
    case .some(.none), nil: break
    }
    return SymbolicatedFrame(captured: frame, status: .noSymbols)
  }
}

extension SymbolNames {
  /// The build id of a file; nil where it has none or is no ELF file of this kind.
  package static func buildID(ofFile path: String) throws -> BuildID? {
    try ElfFile.open(path).buildID()
  }
}
