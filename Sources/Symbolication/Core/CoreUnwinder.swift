internal import CLibdw
internal import CrashModel
private import Glibc

/// Walks the stacks in a core with libdw.
///
/// libdw takes the call frame information from the files of the images, as the core does not have it; memory and registers
/// come from the core. Where there is none for a frame, libdw follows the frame pointer.
final class CoreUnwinder {
  /// Physical frames of one thread, innermost first.
  struct Stack {
    var frames: [Frame] = []
    var depth: UInt64 = 0
    var isCut = false
  }

  /// The ends of a deep stack say what it is; what lies between them repeats itself.
  private static let topCount = 512
  private static let bottomCount = 128
  /// A stack of 8 MiB has half a million of the smallest frames; a damaged one goes in circles.
  private static let maximumDepth: UInt64 = 1 << 20

  private let machine: CoreMachine
  private let memory: CoreMemory
  private let images: CoreImages
  private let executable: [AddressRange]
  private let dwfl: OpaquePointer
  private let callbacks: UnsafeMutablePointer<Dwfl_Callbacks>
  private let threadCallbacks: UnsafeMutablePointer<Dwfl_Thread_Callbacks>
  /// What the next walk begins with: DWARF's registers, and the program counter.
  private let start: UnsafeMutablePointer<StartState>

  private struct StartState {
    var registers: UnsafeMutablePointer<UInt64>
    var count: UInt32
    var pc: UInt64
  }

  /// Where a walk's frames go.
  private final class Walk {
    var top: [CapturedFrame] = []
    var bottom: [CapturedFrame] = []
    var depth: UInt64 = 0
    var isCut = false
    var lastPlace: (pc: UInt64, stackPointer: UInt64)?
    /// The first frame is one that a call leads back to, whatever libdw takes it for.
    var beginsWithReturn = false
    var lastHadCFI = true
    let unwinder: CoreUnwinder

    init(_ unwinder: CoreUnwinder) { self.unwinder = unwinder }

    func add(_ frame: CapturedFrame) {
      depth += 1
      if top.count < CoreUnwinder.topCount {
        top.append(frame)
      } else {
        // A ring, put in order at the end.
        let place = Int((depth - 1 - UInt64(CoreUnwinder.topCount)) % UInt64(CoreUnwinder.bottomCount))
        if place < bottom.count { bottom[place] = frame } else { bottom.append(frame) }
      }
    }

    var stack: Stack {
      var stack = Stack(frames: top.map(Frame.captured), depth: depth, isCut: isCut)
      let kept = UInt64(top.count + bottom.count)
      if depth > kept { stack.frames.append(.omitted(count: depth - kept)) }
      let next = depth > kept ? Int((depth - UInt64(CoreUnwinder.topCount)) % UInt64(CoreUnwinder.bottomCount)) : 0
      stack.frames += (bottom[next...] + bottom[..<next]).map(Frame.captured)
      return stack
    }
  }

  /// - Parameters:
  ///   - executable: where code may be, in an image or not.
  ///   - file: the open file of an image, which has its code; nil where there is none. libdw closes it.
  /// - Returns: nil where libdw will not begin.
  init?(
    machine: CoreMachine, memory: CoreMemory, images: CoreImages, executable: [AddressRange], file: (Image) -> CInt?
  ) {
    self.executable = executable.sorted { $0.low < $1.low }
    self.machine = machine
    self.memory = memory
    self.images = images
    callbacks = .allocate(capacity: 1)
    callbacks.initialize(to: Dwfl_Callbacks())
    // Nothing is looked for by libdw itself: the files were found before, and the build ids agree.
    callbacks.pointee.find_elf = { _, _, _, _, _, _ in -1 }
    callbacks.pointee.find_debuginfo = { _, _, _, _, _, _, _, _ in -1 }
    callbacks.pointee.section_address = { _, _, _, _, _, _, _, _ in -1 }
    threadCallbacks = .allocate(capacity: 1)
    threadCallbacks.initialize(to: Dwfl_Thread_Callbacks())
    let count = machine.unwoundRegisters.count
    start = .allocate(capacity: 1)
    start.initialize(to: StartState(registers: .allocate(capacity: count), count: UInt32(count), pc: 0))
    start.pointee.registers.initialize(repeating: 0, count: count)
    guard let dwfl = dwfl_begin(callbacks) else {
      start.pointee.registers.deallocate()
      start.deallocate()
      callbacks.deallocate()
      threadCallbacks.deallocate()
      return nil
    }
    self.dwfl = dwfl
    dwfl_report_begin(dwfl)
    for image in images.images {
      let end = image.address.rawValue.addingReportingOverflow(image.size)
      guard !end.overflow else { continue }
      if let descriptor = file(image) {
        // The base is that of a file whose own addresses begin at 0.
        let base = image.address.rawValue &- image.firstVirtualAddress
        if dwfl_report_elf(dwfl, image.path, image.path, descriptor, base, true) != nil { continue }
        close(descriptor)
      }
      _ = dwfl_report_module(dwfl, image.path, image.address.rawValue, end.partialValue)
    }
    dwfl_report_end(dwfl, nil, nil)
  }

  deinit {
    dwfl_end(dwfl)
    start.pointee.registers.deallocate()
    start.deallocate()
    callbacks.deallocate()
    threadCallbacks.deallocate()
  }

  /// Tells libdw where registers and memory come from.
  ///
  /// - Parameter elf: of the core, for its machine.
  /// - Returns: false where libdw refuses.
  func attach(_ elf: OpaquePointer) -> Bool {
    // One thread, whose registers are set before each walk.
    threadCallbacks.pointee.next_thread = { _, context, thread in
      guard let thread, thread.pointee == nil, let context else { return 0 }
      thread.pointee = UnsafeMutableRawPointer(Unmanaged<CoreUnwinder>.fromOpaque(context).takeUnretainedValue().start)
      return 1
    }
    threadCallbacks.pointee.memory_read = { _, address, result, context in
      guard let context, let result,
        let word = Unmanaged<CoreUnwinder>.fromOpaque(context).takeUnretainedValue().memory.word(at: address)
      else { return false }
      result.pointee = word
      return true
    }
    threadCallbacks.pointee.set_initial_registers = { thread, state in
      guard let thread, let state = state?.assumingMemoryBound(to: StartState.self),
        dwfl_thread_state_registers(thread, 0, state.pointee.count, state.pointee.registers)
      else { return false }
      dwfl_thread_state_register_pc(thread, state.pointee.pc)
      return true
    }
    return dwfl_attach_state(dwfl, elf, 1, threadCallbacks, Unmanaged.passUnretained(self).toOpaque())
  }

  /// The stack of a thread with these registers, in the kernel's order.
  func stack(_ registers: [UInt64]) -> Stack {
    let walk = Walk(self)
    var registers = registers
    let pc = registers[machine.programCounter]
    if !isCode(pc), let caller = callerOfNothing(&registers) {
      // A call to where no code is: its frame has nothing to unwind by, but the call left its return address.
      walk.add(frame(pc, .programCounter, .context))
      walk.beginsWithReturn = true
      registers[machine.programCounter] = caller
    }
    start.pointee.pc = registers[machine.programCounter]
    for (number, index) in machine.unwoundRegisters.enumerated() { start.pointee.registers[number] = registers[index] }
    _ = dwfl_getthread_frames(
      dwfl, 1,
      { state, context in
        guard let state, let context else { return CInt(DWARF_CB_ABORT) }
        let walk = Unmanaged<Walk>.fromOpaque(context).takeUnretainedValue()
        return walk.unwinder.visit(state, walk)
      }, Unmanaged.passUnretained(walk).toOpaque())
    if walk.depth == 0 { walk.add(frame(pc, .programCounter, .context)) }
    return walk.stack
  }

  private func visit(_ state: OpaquePointer, _ walk: Walk) -> CInt {
    var pc: Dwarf_Addr = 0
    var isActivation = false
    guard dwfl_frame_pc(state, &pc, &isActivation) else { return CInt(DWARF_CB_ABORT) }
    // The outermost frame's return address, where it has one, is 0.
    if pc == 0, walk.depth > 0 { return CInt(DWARF_CB_ABORT) }
    // What a frame pointer that is none leads to.
    if walk.depth > 0, !walk.lastHadCFI, !walk.beginsWithReturn, !isExecutable(pc &- 1) {
      return CInt(DWARF_CB_ABORT)
    }
    // A frame that is its own caller would be that for ever; libdw does not look.
    var stackPointer: Dwarf_Word = 0
    if dwfl_frame_reg(state, machine.stackPointerNumber, &stackPointer) == 0 {
      let place = (pc, stackPointer)
      if let last = walk.lastPlace, last == place {
        walk.isCut = true
        return CInt(DWARF_CB_ABORT)
      }
      walk.lastPlace = place
    }
    let isFirst = walk.depth == 0
    let isReturn = !isActivation || walk.beginsWithReturn
    let trust: FrameTrust =
      isFirst ? .context : walk.beginsWithReturn ? .scan : walk.lastHadCFI ? .cfi : .framePointer
    walk.add(frame(pc, isReturn ? .returnAddress : .programCounter, trust))
    walk.beginsWithReturn = false
    walk.lastHadCFI = hasCFI(isReturn ? pc &- 1 : pc)
    if walk.depth >= Self.maximumDepth {
      walk.isCut = true
      return CInt(DWARF_CB_ABORT)
    }
    return CInt(DWARF_CB_OK)
  }

  private func frame(_ address: UInt64, _ kind: FrameKind, _ trust: FrameTrust) -> CapturedFrame {
    var frame = CapturedFrame(kind: kind, trust: trust, address: Address(rawValue: address))
    if let index = images.index(of: frame.lookupAddress.rawValue) {
      frame.imageIndex = index
      frame.imageOffset = images.images[index].offset(of: frame.address)
    }
    return frame
  }

  private func isExecutable(_ address: UInt64) -> Bool {
    let index = executable.partitioningIndex { $0.high > address }
    return index < executable.count && executable[index].low <= address
  }

  private func isCode(_ address: UInt64) -> Bool { images.index(of: address) != nil }

  /// Undoes a call: takes the return address from where it is.
  private func callerOfNothing(_ registers: inout [UInt64]) -> UInt64? {
    if let link = machine.linkRegister {
      let caller = registers[link]
      return isCode(caller &- 1) ? caller : nil
    }
    let stackPointer = registers[machine.stackPointer]
    guard let caller = memory.word(at: stackPointer), isCode(caller &- 1) else { return nil }
    registers[machine.stackPointer] = stackPointer &+ 8
    return caller
  }

  /// Known by address, as a deep recursion asks for few.
  private var knownCFI: [UInt64: Bool] = [:]

  private func hasCFI(_ address: UInt64) -> Bool {
    if let known = knownCFI[address] { return known }
    var result = false
    if let module = dwfl_addrmodule(dwfl, address) {
      var bias: Dwarf_Addr = 0
      if let cfi = dwfl_module_eh_cfi(module, &bias) {
        var frame: OpaquePointer?
        if dwarf_cfi_addrframe(cfi, address &- bias, &frame) == 0 {
          free(UnsafeMutableRawPointer(frame))
          result = true
        }
      }
    }
    if knownCFI.count >= 100_000 { knownCFI.removeAll(keepingCapacity: true) }
    knownCFI[address] = result
    return result
  }
}
