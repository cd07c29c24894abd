internal import CLibdw
package import CrashModel
private import Glibc

/// The core of a process: `core(5)`, as the kernel, `gcore` and systemd-coredump (`.zst`) write it.
package struct CoreFile {
  private let source: CoreSource
  private let location: FilePath
  private let machine: CoreMachine
  private let memory: CoreMemory
  private let notes: CoreNotes
  private let images: CoreImages
  private let executable: [AddressRange]

  /// - Throws: `DebugFileError` where it is no core of a 64-bit process of x86-64 or aarch64, or has no thread.
  init(path location: FilePath, watch: ReadingWatch?) throws(DebugFileError) {
    let path = location.description
    let source = try CoreSource(location, watch: watch)
    let handle = source.handle
    var header = GElf_Ehdr()
    guard gelf_getehdr(handle.elf, &header) != nil else {
      throw .damaged(path: path, detail: "its header cannot be read (\(ELFHandle.lastError()))")
    }
    guard header.e_type == UInt16(ET_CORE) else {
      throw .notCore(path: path, detail: "it is a program, a library or an object file")
    }
    guard let machine = CoreMachine(elfMachine: header.e_machine),
      withUnsafeBytes(of: header.e_ident, { $0[Int(EI_CLASS)] == ELFCLASS64 && $0[Int(EI_DATA)] == ELFDATA2LSB })
    else { throw .unsupportedArchitecture(path: path, detail: "machine \(header.e_machine)") }
    var size = 0
    guard let start = elf_rawfile(handle.elf, &size) else {
      throw .damaged(path: path, detail: "it cannot be mapped (\(ELFHandle.lastError()))")
    }
    let bytes = UnsafeRawBufferPointer(start: start, count: size)
    var count = 0
    guard elf_getphdrnum(handle.elf, &count) == 0 else {
      throw .damaged(path: path, detail: "its program headers lie outside of it; it was cut off")
    }
    var segments: [(address: UInt64, offset: UInt64, size: UInt64)] = []
    var executable: [AddressRange] = []
    var noteBytes: [UnsafeRawBufferPointer] = []
    for index in 0..<count {
      var segment = GElf_Phdr()
      guard gelf_getphdr(handle.elf, Int32(clamping: index), &segment) != nil else { break }
      if segment.p_type == PT_LOAD {
        segments.append((segment.p_vaddr, segment.p_offset, segment.p_filesz))
        let end = segment.p_vaddr.addingReportingOverflow(segment.p_memsz)
        if segment.p_flags & UInt32(PF_X) != 0, !end.overflow {
          executable.append(AddressRange(low: segment.p_vaddr, high: end.partialValue))
        }
      } else if segment.p_type == PT_NOTE {
        let offset = Int(clamping: segment.p_offset)
        guard offset < bytes.count else { continue }
        noteBytes.append(
          UnsafeRawBufferPointer(rebasing: bytes[offset...].prefix(Int(clamping: segment.p_filesz))))
      }
    }
    let memory = CoreMemory(file: bytes, segments: segments)
    let notes = CoreNotes(noteBytes, machine: machine)
    guard !notes.threads.isEmpty else {
      throw .damaged(path: path, detail: "it has no thread; it was cut off, or is no core of Linux")
    }
    self.source = source
    self.executable = executable
    self.location = location
    self.machine = machine
    self.memory = memory
    self.notes = notes
    images = CoreImages(notes, memory: memory, executableSegments: executable)
  }

  /// What the core says of the crash: all threads, without names of functions.
  ///
  /// - Parameter search: finds the files of the images, without which no stack can be walked far.
  func report(with search: DebugFileSearch) -> CrashReport {
    var report = CrashReport(id: id)
    let signal =
      notes.signal
      ?? notes.threads.first.flatMap { thread in
        thread.signal > 0 ? SignalInfo(number: thread.signal, name: SignalNames.name(thread.signal)) : nil
      }
    // A debugger makes cores of living processes, which have no signal.
    report.kind = signal == nil ? .snapshot : .crash
    report.fatal = signal != nil
    report.signal = signal
    report.type = signal?.name
    report.timestamp = source.modified
    report.images = images.images
    report.process = ProcessInfo(
      id: notes.processID, executable: images.executable ?? notes.command, architecture: machine.architecture)
    let name = report.process?.executable.map { FilePath($0).lastComponent } ?? []
    if !name.isEmpty { report.service = String(decoding: name, as: UTF8.self) }

    var files: [Image: DebugFile] = [:]
    var withoutFile: [String] = []
    for image in images.images {
      if let file = search.fileWithCode(for: image) {
        files[image] = file
      } else if image.path.hasPrefix("/") {
        withoutFile.append(image.name)
      }
    }
    source.willRead()
    addThreads(to: &report, files: files)
    report.message = CoreMessages.message(of: images, in: memory) { files[$0] }
    report.notes = notesOfReading(withoutFile: withoutFile)
    return report
  }

  private func addThreads(to report: inout CrashReport, files: [Image: DebugFile]) {
    let unwinder = CoreUnwinder(
      machine: machine, memory: memory, images: images, executable: executable
    ) { image in
      if let file = files[image] { return dup(file.handle.descriptor) }
      return image.path == "linux-vdso.so.1" ? Self.file(of: image, in: memory) : nil
    }
    let canWalk = unwinder?.attach(source.handle.elf) == true
    var cut: [UInt32] = []
    for (index, thread) in notes.threads.enumerated() {
      var info = ThreadInfo(id: thread.id, crashed: index == 0 && report.fatal, status: .captured)
      info.registers = machine.registers(thread.registers)
      if canWalk, let stack = unwinder?.stack(thread.registers) {
        info.frames = stack.frames
        info.depth = stack.depth
        if stack.isCut {
          info.status = .partial
          cut.append(thread.id)
        }
      } else {
        let pc = Address(rawValue: thread.registers[machine.programCounter])
        var frame = CapturedFrame(kind: .programCounter, trust: .context, address: pc)
        if let index = images.index(of: pc.rawValue) {
          frame.imageIndex = index
          frame.imageOffset = images.images[index].offset(of: pc)
        }
        info.frames = [.captured(frame)]
        info.status = .partial
      }
      report.threads.append(info)
    }
    report.crashedThreadIndex = report.fatal ? 0 : nil
    if !canWalk { report.notes.append("libdw cannot walk stacks of this machine: \(Self.lastUnwindError()).") }
    if !cut.isEmpty {
      report.notes.append("The stacks of threads \(cut.map(String.init).joined(separator: ", ")) lead in a circle.")
    }
  }

  private func notesOfReading(withoutFile: [String]) -> [String] {
    var result: [String] = []
    if memory.missing > 0 {
      result.append("The core was cut: \(memory.missing) bytes of memory are missing, so that stacks may end early.")
    }
    if notes.files.isEmpty { result.append("The core does not say which files were mapped (no NT_FILE note).") }
    if !withoutFile.isEmpty {
      result.append(
        "Without the files of these images (with the build id of the core) stacks are walked by frame pointers only: "
          + withoutFile.joined(separator: ", ") + ".")
    }
    result.append("The time is that of the core file.")
    return result
  }

  /// The kernel's own image is in memory only.
  private static func file(of image: Image, in memory: CoreMemory) -> CInt? {
    guard let bytes = memory.bytes(at: image.address.rawValue) else { return nil }
    let descriptor = UnnamedFile.make()
    guard descriptor >= 0 else { return nil }
    guard write(descriptor, bytes.baseAddress, bytes.count) == bytes.count else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private static func lastUnwindError() -> String { dwfl_errmsg(-1).map { String(cString: $0) } ?? "unknown error" }

  /// The same core has the same id, wherever it lies.
  private var id: String {
    var text: [UInt8] = []
    for thread in notes.threads {
      for value in [UInt64(thread.id)] + thread.registers { withUnsafeBytes(of: value.littleEndian) { text += $0 } }
    }
    for image in images.images { text += (image.buildID?.bytes ?? []) }
    let milliseconds = (source.modified?.rawValue ?? 0) / 1_000_000
    return UUIDText.string(
      UUIDText.version7(milliseconds: milliseconds, entropy: AddressTableIdentity.key(of: text)))
  }
}

extension CoreFile {
  /// What the first bytes of a file say.
  package enum Recognition: Sendable {
    case core
    /// Compressed by zstd: a core, where it comes from systemd-coredump; only decompressing it tells.
    case compressed
    case other
  }

  /// Looks at the first bytes of a regular file.
  package static func recognize(_ path: FilePath) -> Recognition {
    // O_NONBLOCK: a FIFO without a writer must not be waited for.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return .other }
    defer { close(descriptor) }
    var status = stat()
    var bytes = [UInt8](repeating: 0, count: 18)
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      pread(descriptor, &bytes, bytes.count, 0) == bytes.count
    else { return .other }
    if bytes.starts(with: CoreSource.compressedMagic) { return .compressed }
    return bytes.starts(with: [0x7f, 0x45, 0x4c, 0x46]) && bytes[16] == UInt8(ET_CORE) && bytes[17] == 0
      ? .core : .other
  }
}
