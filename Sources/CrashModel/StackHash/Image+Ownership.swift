extension Image {
  static let systemFolders = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"]
  static let systemNames = [
    "libc.", "libc-", "libm.", "libm-", "libpthread", "libdl.", "libdl-", "libstdc++", "libgcc_s", "ld-linux", "ld-",
    "linux-vdso", "libswift", "lib_", "libdispatch", "libBlocksRuntime", "libFoundation", "libc++", "libjemalloc",
    "libtcmalloc", "libasan", "libtsan",
  ]

  /// The file came with the system or with the Swift runtime, by its path or its name.
  public var isSystem: Bool {
    if Self.systemFolders.contains(where: { path.hasPrefix($0) }) || path.utf8Contains("/usr/lib/swift/") {
      return true
    }
    let name = name
    return Self.systemNames.contains { name.hasPrefix($0) }
  }
}

extension Image {
  /// It is not the system's, and a file: without one there is nobody who could have brought it (the vdso, code made at run
  /// time).
  fileprivate var isApplication: Bool { path.hasPrefix("/") && !isSystem }
}

extension CrashReport {
  /// Index in `images` of the executable; the first image where none is known to be it, nil where there are none.
  public var executableImageIndex: Int? {
    if let executable = process?.executable {
      if let index = images.firstIndex(where: { $0.path == executable }) { return index }
      // Redaction shortens the one path and leaves the other: `~/bin/orderd` is `/home/ay/bin/orderd`.
      let name = Image.name(ofPath: executable)
      // The suffix first, as it makes no String of each image's name.
      if !name.isEmpty, let index = images.firstIndex(where: { $0.path.hasSuffix(name) && $0.name == name }) {
        return index
      }
    }
    return images.isEmpty ? nil : 0
  }

  /// File name of the executable; nil where nothing is known of it.
  var executableName: String? {
    // `orderd-20261130` has a long number in it. The image's path is not redacted, so that the name goes on to be known.
    if let path = process?.executable, !path.utf8Contains(Redactor.token) { return Image.name(ofPath: path) }
    return executableImageIndex.map { images[$0].name }
  }

  /// Whether the application brought this image along: the executable, wherever it lies, and what is not the system's.
  public func isApplicationImage(_ index: Int) -> Bool { isApplicationImage(index, executable: executableImageIndex) }

  /// The same for whoever asks of many images, and looks for the executable's once.
  package func isApplicationImage(_ index: Int, executable: Int?) -> Bool {
    guard images.indices.contains(index) else { return false }
    return index == executable || images[index].isApplication
  }

  /// The Swift runtime lies in the executable, so that an image does not tell the two apart.
  var hasStaticRuntime: Bool {
    !images.contains { $0.path.utf8Contains("libswiftCore") && $0.name.hasPrefix("libswiftCore") }
  }
}
