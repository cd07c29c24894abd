internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// Which of the given files name the frames of a report.
struct ReportCoverage {
  enum Status: String {
    /// A file has the build id and names every function.
    case covered
    /// A file has the build id, and does not name every function.
    case insufficient
    /// The only file of that name is of another build.
    case otherBuild = "other_build"
    case missing
    /// The image has no build id, so that nothing tells which file is its own.
    case noBuildID = "no_build_id"
  }

  struct ImageCoverage {
    var path: String
    var buildID: BuildID?
    var frames: Int
    /// The application brought it along; its frames are what people look at.
    var isApplication: Bool
    var status: Status
    /// The file that fits.
    var file: String?
    /// Files of the same name and another build.
    var others: [(path: String, buildID: BuildID?)] = []
    /// What to do; nil where nothing is to be done.
    var remark: String?
  }

  let place: String
  let id: String
  /// Those with frames, the application's first.
  private(set) var images: [ImageCoverage]
  /// Frames that lie in no image, and that no file can name.
  private(set) var framesWithoutImage = 0

  init(_ report: CrashReport, place: String, files: CheckedFileSet) {
    self.place = place
    id = report.id
    var frames: [Int: Int] = [:]
    for thread in report.threads {
      for frame in thread.frames.compactMap(\.captured) {
        let index = frame.imageIndex ?? report.images.firstIndex { !$0.isUnloaded && $0.contains(frame.address) }
        if let index, report.images.indices.contains(index) {
          frames[index, default: 0] += 1
        } else {
          framesWithoutImage += 1
        }
      }
    }
    images = frames.keys.sorted().map { index in
      Self.coverage(
        of: report.images[index], frames: frames[index] ?? 0, isApplication: report.isApplicationImage(index), files)
    }
    images = images.filter(\.isApplication) + images.filter { !$0.isApplication }
  }

  /// Every image of the application with frames has its file.
  var isCovered: Bool { images.allSatisfy { !$0.isApplication || $0.status == .covered } }

  private static func coverage(
    of image: Image, frames: Int, isApplication: Bool, _ files: CheckedFileSet
  ) -> ImageCoverage {
    var coverage = ImageCoverage(
      path: image.path, buildID: image.buildID, frames: frames, isApplication: isApplication, status: .missing)
    let others = files.files.filter { $0.isNamed(like: image) && $0.contents.buildID != image.buildID }
    guard let id = image.buildID else {
      coverage.status = .noBuildID
      coverage.others = others.map { ($0.path.description, $0.contents.buildID) }
      coverage.remark =
        "the report has no build id of it, so that nothing proves which file is the right one; link with -Xlinker --build-id"
      return coverage
    }
    if let file = files[id] {
      coverage.file = file.path.description
      coverage.status = file.contents.names >= .functions ? .covered : .insufficient
      if coverage.status == .insufficient { coverage.remark = file.contents.remarks.joined(separator: "; ") }
    } else if !others.isEmpty {
      coverage.status = .otherBuild
      coverage.others = others.map { ($0.path.description, $0.contents.buildID) }
      coverage.remark = "give the file of the build that ran, with build id \(id)"
    } else {
      coverage.remark = "no given file has build id \(id)"
    }
    return coverage
  }

  // MARK: Output

  /// ```
  /// crash.json (0192a3b4-…): covered
  ///   covered      orderd          4f2a…  12 frames  .build/release/orderd
  ///   missing      libc.so.6       a6b0…  3 frames   of the system; no given file has build id a6b0…
  /// ```
  var text: String {
    let verdict = isCovered ? "covered" : "not covered"
    var text = Printable.line("\(place) (\(id)): \(verdict)") + "\n"
    var table = TextTable(columns: [
      .init("  STATUS"), .init("IMAGE"), .init("BUILD ID"), .init("FRAMES", isRightAligned: true),
      .init("FILE, OR WHAT TO DO"),
    ])
    for image in images {
      var note = [image.file, image.remark].compactMap { $0 }.joined(separator: ": ")
      if !image.others.isEmpty {
        let others = image.others.map { "\($0.path) has \($0.buildID.map { "build id \($0)" } ?? "no build id")" }
        note = others.joined(separator: ", ") + "; " + note
      }
      if !image.isApplication, image.status != .covered { note = "of the system: " + note }
      table.add([
        "  " + image.status.rawValue.replacing("_", with: " "), image.path.isEmpty ? "-" : image.path,
        image.buildID?.description ?? "none", String(image.frames), note,
      ])
    }
    if !images.isEmpty { text += table.text(width: nil) }
    if images.isEmpty, framesWithoutImage == 0 { text += "  it has no frames\n" }
    if framesWithoutImage > 0 {
      text +=
        "  \(framesWithoutImage) frame\(framesWithoutImage == 1 ? " lies" : "s lie") in no image; no file can name "
        + "\(framesWithoutImage == 1 ? "it" : "them")\n"
    }
    return text
  }

  func write(to writer: inout JSONWriter) {
    writer.member("report", place)
    writer.member("id", id)
    writer.member("covered", bool: isCovered)
    writer.key("images")
    writer.beginArray()
    for image in images {
      writer.beginObject()
      writer.member("path", image.path)
      writer.member("build_id", image.buildID?.description)
      writer.member("frames", image.frames)
      writer.member("in_app", bool: image.isApplication)
      writer.member("status", image.status.rawValue)
      writer.member("file", image.file)
      if !image.others.isEmpty {
        writer.key("other_builds")
        writer.beginArray()
        for other in image.others {
          writer.beginObject()
          writer.member("file", other.path)
          writer.member("build_id", other.buildID?.description)
          writer.endObject()
        }
        writer.endArray()
      }
      writer.member("remark", image.remark)
      writer.endObject()
    }
    writer.endArray()
    writer.member("frames_without_image", framesWithoutImage)
  }
}
