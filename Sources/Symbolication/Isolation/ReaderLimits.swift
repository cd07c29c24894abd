/// What reading one debug file may cost before it is given up.
///
/// Meant against files that were made to be read for ever, so that they are far above what honest ones take: building the
/// table of a program takes 0.1 s of processor time and twice its size in memory for each megabyte of debug information.
public struct ReaderLimits: Hashable, Sendable {
  /// Processor time for one file, in seconds, whatever its size. Processor time, so that a busy machine is no reason.
  public var processorSeconds: Int
  /// And so much for each megabyte of the file, in seconds.
  public var processorSecondsPerMegabyte: Double
  /// Memory for all files that are open, in bytes; what is only mapped does not count.
  public var memory: UInt64
  /// Without an answer and without using the processor for so long, the reader is taken for stuck. In seconds.
  public var silence: Int

  public init(
    processorSeconds: Int = 20, processorSecondsPerMegabyte: Double = 0.5, memory: UInt64 = 4 << 30, silence: Int = 60
  ) {
    self.processorSeconds = processorSeconds
    self.processorSecondsPerMegabyte = processorSecondsPerMegabyte
    self.memory = memory
    self.silence = silence
  }

  /// For a file of `size` bytes.
  func processorSeconds(forSize size: Int) -> Int {
    let more = Double(max(size, 0)) / 1_000_000 * max(processorSecondsPerMegabyte, 0)
    return max(processorSeconds, 1) + Int(min(more, 1_000_000))
  }
}
