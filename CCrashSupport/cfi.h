// Call frame information: from a register file in one function to the register file of its caller.
//
// An interpreter for the DWARF call frame instructions in `.eh_frame`, which compilers for both architectures emit for
// every function, frame pointer or not. Specification: DWARF 5 section 6.4; the LSB for the differences of `.eh_frame`
// (augmentations, pointer encodings, the sorted table in `.eh_frame_hdr`).

#ifndef CCRASHSUPPORT_CFI_H
#define CCRASHSUPPORT_CFI_H

#include <stdint.h>

#include "arch.h"
#include "images.h"

/// The registers of one function activation, by DWARF column.
struct crash_registers {
  uint64_t values[CRASH_ARCH_COLUMNS];
  uint64_t known;  ///< one bit for each column whose value is known
};
#define CRASH_REGISTERS_ALL_KNOWN (((uint64_t)1 << CRASH_ARCH_COLUMNS) - 1)

enum crash_cfi_result {
  CRASH_CFI_STEPPED = 0,
  CRASH_CFI_OUTERMOST = 1,   ///< the information says that there is no caller
  CRASH_CFI_MISSING = 2,     ///< no information for this address
  CRASH_CFI_UNREADABLE = 3,  ///< the information is damaged or uses what this interpreter does not know
  CRASH_CFI_NO_STACK = 4,    ///< the stack could not be read
};

/// Rules for one code address: how the caller's registers are found. Internal to cfi.c but for its size.
struct crash_cfi_row {
  uint8_t cfa_is_expression;
  uint8_t cfa_register;
  uint8_t signs_return_address;  ///< aarch64: RA_SIGN_STATE
  int64_t cfa_offset;   ///< or address of the expression
  uint32_t cfa_length;  ///< of the expression
  uint8_t kinds[CRASH_ARCH_COLUMNS];
  int64_t values[CRASH_ARCH_COLUMNS];  ///< offset, register, or address of the expression's length
};

/// Rows that were found, for the walk of one stack: a deep recursion asks for the same one again and again. Valid as long
/// as no code goes away, which is why none outlives its walk. Zero bytes are an empty one.
struct crash_cfi_cache {
  struct crash_cfi_entry {
    uint64_t pc;  ///< 0: empty
    struct crash_cfi_row row;
    uint8_t return_column, signal_frame;
  } entries[32];
};

/// Replaces `registers` by those of the caller.
///
/// `lookup_pc` selects the row: the pc itself in the innermost frame and behind a signal, one less for a return address.
/// `*signal_frame` becomes 1 when the function is a signal trampoline, whose caller is an interrupted instruction and not
/// a call. On any result but CRASH_CFI_STEPPED `registers` is unchanged. Async-signal-safe: reads memory with fault-safe
/// loads, and writes only its arguments.
enum crash_cfi_result crash_cfi_step(const struct crash_record *record, struct crash_cfi_cache *cache,
                                     uint64_t lookup_pc, struct crash_registers *registers, int *signal_frame);

/// Finds where the function at `pc` begins and how long it is. Returns 1, or 0 where no information covers it.
/// Async-signal-safe.
int crash_cfi_function(const struct crash_record *record, uint64_t pc, uint64_t *start, uint64_t *size);

#endif
