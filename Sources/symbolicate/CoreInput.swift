internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// Cores among the inputs: what is in one, only the files of its images tell.
struct CoreInput {
  private let symbolicator: Symbolicator

  init(_ symbolicator: Symbolicator) { self.symbolicator = symbolicator }

  enum Answer {
    case report(CrashReport)
    /// Not a core.
    case other
    case failure(InputError)
  }

  func report(of path: FilePath) -> Answer {
    let recognition = CoreFile.recognize(path)
    if case .other = recognition { return .other }
    do throws(DebugFileError) {
      let document = try symbolicator.report(ofCore: path)
      guard let report = try? ReportReader()?.report(from: document) else {
        return .failure(InputError(.damaged, "a core; what its reader says of it cannot be understood"))
      }
      return .report(report)
    } catch {
      let code: InputError.Code =
        switch error {
        case .cannotOpen: .unreadable
        case .notRegular: .notAFile
        case .empty: .empty
        // Much is compressed, and only decompressing tells what it is.
        case .notELF, .notCore: .unknownFormat
        case .unsupportedArchitecture, .damaged, .endedReader: .damaged
        }
      let isCore = if case .core = recognition { true } else { false }
      return .failure(InputError(code, (isCore ? "a core; it " : "compressed by zstd; ") + error.reason))
    }
  }
}
