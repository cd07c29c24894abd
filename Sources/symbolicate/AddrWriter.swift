internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// One answer of `symbolicate addr` in one of its formats.
struct AddrWriter {
  private let options: AddrOptions
  private let format: Options.Format
  private var isFirst = true

  init(options: Options) {
    self.options = options.addr
    format = options.format
  }

  /// - Parameters:
  ///   - chain: not empty.
  ///   - image: index of the file in `images`, which are only asked where names are to be demangled.
  @inline(__always)
  func write(
    _ address: UInt64, _ chain: AddressChain, of images: AskedImages, _ image: Int32, to buffer: ByteBuffer
  ) {
    if format == .text {
      text(address, chain, of: images, image, to: buffer)
    } else {
      json(address, chain, of: images.all[Int(image)], input: nil, reason: nil, to: buffer)
    }
  }

  /// - Parameter image: nil where the line named none.
  func writeNothing(_ address: UInt64, of image: AskedImage?, input: String?, reason: String, to buffer: ByteBuffer) {
    if format == .text {
      textAddress(address, to: buffer)
      if options.functions { buffer.append(options.prettyPrint ? "?? " : "??\n") }
      buffer.append("??:0\n")
    } else {
      json(address, nil, of: image, input: input, reason: reason, to: buffer)
    }
  }

  /// What stands before each answer.
  @inline(__always)
  mutating func separate(_ buffer: ByteBuffer) {
    guard format == .json else { return }
    buffer.append(isFirst ? "[" : ",\n")
    isFirst = false
  }

  /// What stands behind the last answer.
  func end(_ buffer: ByteBuffer) {
    if format == .json { buffer.append(isFirst ? "[]\n" : "]\n") }
  }

  // MARK: Text

  @inline(__always)
  private func textAddress(_ address: UInt64, to buffer: ByteBuffer) {
    guard options.addresses else { return }
    buffer.append(hex: address, digits: 16)
    buffer.append(options.prettyPrint ? ": " : "\n")
  }

  /// What `addr2line` prints.
  @inline(__always)
  private func text(
    _ address: UInt64, _ chain: AddressChain, of images: AskedImages, _ image: Int32, to buffer: ByteBuffer
  ) {
    textAddress(address, to: buffer)
    for index in 0..<chain.functions.count {
      let function = chain.functions[index]
      if index > 0 {
        if !options.inlines { return }
        if options.prettyPrint { buffer.append(" (inlined by) ") }
      }
      if options.functions {
        if let name = function.name, !name.isEmpty {
          put(options.demangle ? images.displayName(of: name, in: image) : name, to: buffer)
        } else {
          buffer.append("??")
        }
        buffer.append(options.prettyPrint ? " at " : "\n")
      }
      if let file = function.file {
        put(options.basenames ? Self.basename(file) : file, to: buffer)
      } else {
        buffer.append("??")
      }
      buffer.append(UInt8(ascii: ":"))
      if let line = function.line, line > 0 {
        buffer.append(decimal: line)
        if function.approximate { buffer.append(" (nearest line)") }
      } else {
        buffer.append(UInt8(ascii: "?"))
      }
      buffer.append(UInt8(ascii: "\n"))
    }
  }

  @inline(__always)
  private func put(_ text: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    if !buffer.appendPlain(text) { Self.putPrintable(text, to: buffer) }
  }

  @inline(never)
  private static func putPrintable(_ text: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    buffer.append(Printable.line(String(decoding: text, as: UTF8.self)))
  }

  @inline(__always)
  private static func basename(_ path: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var start = path.count
    while start > 0, path[start &- 1] != UInt8(ascii: "/") { start &-= 1 }
    return UnsafeRawBufferPointer(rebasing: path[start...])
  }

  // MARK: JSON

  private func json(
    _ address: UInt64, _ chain: AddressChain?, of image: AskedImage?, input: String?, reason: String?,
    to buffer: ByteBuffer
  ) {
    if let input {
      buffer.append("{\"input\":")
      quote(input, to: buffer)
    } else {
      buffer.append("{\"address\":\"")
      buffer.append(hex: address)
      buffer.append(UInt8(ascii: "\""))
    }
    if let image {
      buffer.append(",\"image\":")
      buffer.append(image.jsonPath)
    }
    buffer.append(",\"frames\":[")
    if let chain, let lookup = image?.lookup {
      for (index, function) in chain.functions.enumerated() {
        buffer.append(index == 0 ? "{" : ",{")
        if let name = function.name {
          buffer.append("\"function\":")
          quote(lookup.displayName(of: name), to: buffer)
          buffer.append(",\"raw_function\":")
          quote(name, to: buffer)
          buffer.append(UInt8(ascii: ","))
        }
        if let file = function.file {
          buffer.append("\"file\":")
          quote(file, to: buffer)
          buffer.append(UInt8(ascii: ","))
        }
        if let line = function.line {
          buffer.append("\"line\":")
          buffer.append(decimal: line)
          buffer.append(UInt8(ascii: ","))
        }
        if let column = function.column {
          buffer.append("\"column\":")
          buffer.append(decimal: column)
          buffer.append(UInt8(ascii: ","))
        }
        if function.approximate { buffer.append("\"approximate\":true,") }
        buffer.append(function.inlined ? "\"inlined\":true}" : "\"inlined\":false}")
      }
    }
    buffer.append(UInt8(ascii: "]"))
    if let failure = chain?.runtimeFailure {
      buffer.append(",\"runtime_failure\":")
      quote(failure, to: buffer)
    }
    if let reason {
      buffer.append(",\"reason\":")
      quote(reason, to: buffer)
    }
    buffer.append(format == .json ? "}" : "}\n")
  }

  private func quote(_ text: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    let start = buffer.count
    buffer.append(UInt8(ascii: "\""))
    let isPlain = !text.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
    if isPlain, buffer.appendPlain(text) {
      buffer.append(UInt8(ascii: "\""))
    } else {
      buffer.removeAll(behind: start)
      quote(String(decoding: text, as: UTF8.self), to: buffer)
    }
  }

  private func quote(_ text: String, to buffer: ByteBuffer) {
    var writer = JSONWriter()
    writer.string(text)
    buffer.append(writer.bytes)
  }
}
