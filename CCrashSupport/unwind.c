#include "unwind.h"

#include "CCrashFormat_uninstrumented.h"
#include "async.h"
#include "cfi.h"
#include "images.h"

CRASH_UNINSTRUMENTED_BEGIN

// How far above the stack pointer a return address is looked for when nothing else is left: 64 words hold the locals of
// most functions, and each further word makes a false find likelier.
#define SCAN_WORDS 64u

static void emit(struct crash_walk *walk, uint64_t address, enum crash_record_frame_kind kind,
                 enum crash_record_frame_trust trust) {
  struct crash_record_frame *frame;
  if (walk->top_count < walk->top_capacity) {
    frame = &walk->top[walk->top_count];
  } else {
    frame = &walk->ring[(walk->depth - walk->top_capacity) % walk->ring_capacity];
  }
  *frame = (struct crash_record_frame){
      .address = address, .kind = (uint8_t)kind, .trust = (uint8_t)trust, .image = CRASH_RECORD_NO_IMAGE};
  if (walk->top_count < walk->top_capacity) walk->top_count++;
  walk->depth++;
}

static int is_return_address(const struct crash_record *record, uint64_t address) {
  return crash_images_is_code(record, address) && crash_arch_follows_call(address);
}

// Where nothing is to be executed: outside of all code, or in a library that is not there any more.
static int is_bad_pc(const struct crash_record *record, uint64_t pc) {
  uint8_t byte;
  return !crash_images_is_code(record, pc) || crash_safe_copy(&byte, pc, 1) != 1;
}

// A call to an address where no code is (a null function pointer, a closed library) faults with the return address still
// where the call put it. libunwind 1.6.2 and frame pointers lose the caller here, libgcc crashes (libunwind #815).
static int step_bad_call(const struct crash_record *record, struct crash_registers *registers) {
  struct crash_registers caller = *registers;
  if (!crash_arch_undo_call(caller.values) || !is_return_address(record, caller.values[CRASH_ARCH_PC])) return 0;
  *registers = caller;
  return 1;
}

// The frame pointer's chain, for code without unwind information (JIT, hand-written assembly). The return address must
// look like one: in code that keeps no frame pointer the register holds anything.
static int step_frame_pointer(const struct crash_record *record, struct crash_registers *registers) {
  uint64_t fp = registers->values[CRASH_ARCH_FP], sp = registers->values[CRASH_ARCH_SP], saved, address;
  if (!(registers->known >> CRASH_ARCH_FP & 1) || fp % 8 != 0 || fp < sp) return 0;
  if (!crash_safe_load(fp, &saved) || !crash_safe_load(fp + 8, &address)) return 0;
  address = crash_arch_strip(address);
  if (!is_return_address(record, address)) return 0;
  registers->values[CRASH_ARCH_PC] = address;
  registers->values[CRASH_ARCH_SP] = fp + 16;
  registers->values[CRASH_ARCH_FP] = saved;
  return 1;
}

// The first word above the stack pointer that looks like a return address. A guess, and marked as one.
static int step_scan(const struct crash_record *record, struct crash_registers *registers) {
  uint64_t sp = registers->values[CRASH_ARCH_SP] & ~7ull;
  for (unsigned i = 0; i < SCAN_WORDS; i++) {
    uint64_t address;
    if (!crash_safe_load(sp + 8 * i, &address)) return 0;
    address = crash_arch_strip(address);
    if (!is_return_address(record, address)) continue;
    registers->values[CRASH_ARCH_PC] = address;
    registers->values[CRASH_ARCH_SP] = sp + 8 * i + 8;
    // The frame pointer is still the callee's or garbage; only a chain that leads further up is believed later.
    return 1;
  }
  return 0;
}

static uint64_t value_of(const struct crash_registers *registers, unsigned column) {
  return registers->known >> column & 1 ? registers->values[column] : 0;
}

void crash_unwind(const struct crash_record *record, struct crash_cfi_cache *cache,
                  const uint64_t columns[CRASH_ARCH_COLUMNS], struct crash_walk *walk) {
  crash_async_learn(record);
  struct crash_registers registers;
  for (unsigned i = 0; i < CRASH_ARCH_COLUMNS; i++) registers.values[i] = columns[i];
  registers.known = CRASH_REGISTERS_ALL_KNOWN;

  emit(walk, registers.values[CRASH_ARCH_PC], CRASH_FRAME_PROGRAM_COUNTER, CRASH_TRUST_CONTEXT);
  // The kind of the frame whose caller is looked for decides whether its pc is looked up as it is.
  enum crash_record_frame_kind kind = CRASH_FRAME_PROGRAM_COUNTER;
  struct crash_async_trail trail;
  trail.count = 0;
  while (walk->depth < CRASH_WALK_FRAME_LIMIT) {
    uint64_t sp = registers.values[CRASH_ARCH_SP], pc = registers.values[CRASH_ARCH_PC];
    uint64_t lookup = kind == CRASH_FRAME_RETURN_ADDRESS ? pc - 1 : pc;
    int signal_frame = 0;
    // The outermost one counts: what awaits inside of a job that is run by hand is on the stack itself.
    const struct crash_async_frame frame = {lookup, value_of(&registers, CRASH_ARCH_FP),
                                            value_of(&registers, CRASH_ARCH_ASYNC_CONTEXT), walk->depth};
    uint64_t async_position, context = crash_async_visit(record, &trail, &frame, &async_position);
    if (context) {
      walk->async_context = context;
      walk->async_position = async_position;
    }
    enum crash_record_frame_trust trust = CRASH_TRUST_CFI;
    enum crash_cfi_result result = crash_cfi_step(record, cache, lookup, &registers, &signal_frame);
    if (result == CRASH_CFI_OUTERMOST) {
      walk->end = CRASH_WALK_OUTERMOST;
      return;
    }
    if (result == CRASH_CFI_NO_STACK) {
      walk->end = CRASH_WALK_UNREADABLE;
      return;
    }
    // Information that leads to a caller outside of all code, or nowhere up the stack, was about another stack than this
    // one: a smashed frame. What can still be found by looking is found below, from the frame's own registers.
    int may_have_no_frame = !CRASH_ARCH_CALL_PUSHES && kind == CRASH_FRAME_PROGRAM_COUNTER;
    if (result == CRASH_CFI_STEPPED && !signal_frame &&
        (registers.values[CRASH_ARCH_SP] < sp || (registers.values[CRASH_ARCH_SP] == sp && !may_have_no_frame))) {
      walk->end = CRASH_WALK_NOT_ADVANCING;
      return;
    }
    if (result != CRASH_CFI_STEPPED) {
      if (walk->depth == 1 && is_bad_pc(record, pc) && step_bad_call(record, &registers)) {
        trust = CRASH_TRUST_SCAN;
      } else if (step_frame_pointer(record, &registers)) {
        trust = CRASH_TRUST_FRAME_POINTER;
      } else if (step_scan(record, &registers)) {
        trust = CRASH_TRUST_SCAN;
      } else {
        walk->end = CRASH_WALK_NO_CALLER;
        return;
      }
    }
    uint64_t caller = registers.values[CRASH_ARCH_PC];
    if (caller == 0) {
      // The outermost frames of libc say that they are that. A stack that was overwritten with zeros does not.
      walk->end = CRASH_WALK_NO_CALLER;
      return;
    }
    kind = signal_frame ? CRASH_FRAME_PROGRAM_COUNTER : CRASH_FRAME_RETURN_ADDRESS;
    // Above the interrupted code of a signal the stack may be another one (an alternate stack lies anywhere), so that
    // there the stack pointer need not grow; the frame limit ends a circle.
    if (!signal_frame && !crash_images_is_code(record, caller - 1) && trust == CRASH_TRUST_CFI) {
      struct crash_registers here = registers;
      // A caller outside of every image: code made at run time, or a smashed return address. Code made at run time has a
      // caller by frame pointer; otherwise the frame is not one.
      if (!step_frame_pointer(record, &here)) {
        if (step_scan(record, &registers)) {
          emit(walk, registers.values[CRASH_ARCH_PC], kind, CRASH_TRUST_SCAN);
          continue;
        }
        emit(walk, caller, kind, trust);
        walk->end = CRASH_WALK_NO_CALLER;
        return;
      }
    }
    emit(walk, caller, kind, trust);
  }
  walk->end = CRASH_WALK_LIMIT;
}

CRASH_UNINSTRUMENTED_END
