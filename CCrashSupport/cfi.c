#include "cfi.h"

#include <string.h>

#include "CCrashFormat_uninstrumented.h"

CRASH_UNINSTRUMENTED_BEGIN

// ---- Reading ----------------------------------------------------------------------------------------------------

// A window over memory that may not be there. Records of `.eh_frame` are short, so that most need one refill.
struct reader {
  uint64_t next;   ///< address of the first byte behind the window
  uint64_t end;    ///< nothing is read at or behind it
  uint8_t position, length;
  uint8_t failed;  ///< sticky: once set, every read gives 0
  uint8_t window[64];
};

static void reader_start(struct reader *r, uint64_t address, uint64_t end) {
  r->next = address;
  r->end = end;
  r->position = r->length = r->failed = 0;
}

static uint64_t reader_address(const struct reader *r) { return r->next - (uint64_t)(r->length - r->position); }

static int reader_at_end(const struct reader *r) { return r->failed || reader_address(r) >= r->end; }

static uint8_t read_u8(struct reader *r) {
  if (r->position == r->length) {
    uint64_t left = r->next < r->end ? r->end - r->next : 0;
    size_t wanted = left < sizeof r->window ? (size_t)left : sizeof r->window;
    r->length = r->failed ? 0 : (uint8_t)crash_safe_copy(r->window, r->next, wanted);
    r->position = 0;
    r->next += r->length;
    if (r->length == 0) {
      r->failed = 1;
      return 0;
    }
  }
  return r->window[r->position++];
}

static uint64_t read_fixed(struct reader *r, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)read_u8(r) << (8 * i);
  return value;
}

static int64_t sign_extend(uint64_t value, unsigned bytes) {
  unsigned shift = 64 - 8 * bytes;
  return (int64_t)(value << shift) >> shift;
}

static uint64_t read_uleb(struct reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = read_u8(r);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80) || r->failed) return value;
  }
}

static int64_t read_sleb(struct reader *r) {
  uint64_t value = 0;
  unsigned shift = 0;
  for (;;) {
    uint8_t byte = read_u8(r);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    shift += 7;
    if (byte & 0x80 && !r->failed) continue;
    if (shift < 64 && byte & 0x40) value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
  }
}

static void reader_skip(struct reader *r, uint64_t bytes) {
  uint64_t address = reader_address(r);
  if (bytes > r->end - address) {
    r->failed = 1;
    return;
  }
  reader_start(r, address + bytes, r->end);
}

enum {
  PE_ABSPTR = 0x00,
  PE_ULEB128 = 0x01,
  PE_UDATA2 = 0x02,
  PE_UDATA4 = 0x03,
  PE_UDATA8 = 0x04,
  PE_SLEB128 = 0x09,
  PE_SDATA2 = 0x0a,
  PE_SDATA4 = 0x0b,
  PE_SDATA8 = 0x0c,
  PE_PCREL = 0x10,
  PE_DATAREL = 0x30,
  PE_INDIRECT = 0x80,
  PE_OMIT = 0xff,
};

// A pointer in one of the encodings of the LSB. `data_base` serves DATAREL. Indirect ones (personality routines) are
// skipped over, not followed: nothing here needs their value.
static uint64_t read_encoded(struct reader *r, uint8_t encoding, uint64_t data_base) {
  if (encoding == PE_OMIT) return 0;
  uint64_t at = reader_address(r), value;
  switch (encoding & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8: value = read_fixed(r, 8); break;
    case PE_ULEB128: value = read_uleb(r); break;
    case PE_SLEB128: value = (uint64_t)read_sleb(r); break;
    case PE_UDATA2: value = read_fixed(r, 2); break;
    case PE_UDATA4: value = read_fixed(r, 4); break;
    case PE_SDATA2: value = (uint64_t)sign_extend(read_fixed(r, 2), 2); break;
    case PE_SDATA4: value = (uint64_t)sign_extend(read_fixed(r, 4), 4); break;
    default: r->failed = 1; return 0;
  }
  switch (encoding & 0x70) {
    case 0: return value;
    case PE_PCREL: return at + value;
    case PE_DATAREL: return data_base + value;
    default: r->failed = 1; return 0;
  }
}

// ---- Finding the entry ------------------------------------------------------------------------------------------

// The part of a CIE and FDE that unwinding needs.
struct entry {
  uint64_t start, length;  // of the function
  uint64_t code_alignment;
  int64_t data_alignment;
  uint64_t return_column;
  uint64_t initial, initial_end;            // the CIE's instructions
  uint64_t instructions, instructions_end;  // the FDE's
  uint8_t pointer_encoding;
  uint8_t signal_frame;
};

static int parse_cie(uint64_t cie, struct entry *entry, int *has_augmentation_data) {
  struct reader r;
  reader_start(&r, cie, cie + 16);
  uint64_t length = read_fixed(&r, 4);
  if (length == 0xffffffff) length = read_fixed(&r, 8);
  uint64_t body = reader_address(&r);
  if (r.failed || length < 8 || length > 1u << 20) return 0;
  reader_start(&r, body, body + length);
  entry->initial_end = body + length;
  if (read_fixed(&r, 4) != 0) return 0;  // a CIE's id is 0 in .eh_frame
  uint8_t version = read_u8(&r);
  if (version != 1 && version != 3) return 0;
  char augmentation[8];
  unsigned count = 0;
  for (;;) {
    uint8_t character = read_u8(&r);
    if (r.failed || count == sizeof augmentation) return 0;
    augmentation[count] = (char)character;
    if (!character) break;
    count++;
  }
  entry->code_alignment = read_uleb(&r);
  entry->data_alignment = read_sleb(&r);
  entry->return_column = version == 1 ? read_u8(&r) : read_uleb(&r);
  entry->pointer_encoding = PE_ABSPTR;
  entry->signal_frame = 0;
  *has_augmentation_data = augmentation[0] == 'z';
  if (augmentation[0] == 'z') {
    uint64_t data_length = read_uleb(&r), data = reader_address(&r);
    for (unsigned i = 1; i < count; i++) {
      switch (augmentation[i]) {
        case 'R': entry->pointer_encoding = read_u8(&r); break;
        case 'P': {
          uint8_t encoding = read_u8(&r);
          read_encoded(&r, encoding & (uint8_t)~PE_INDIRECT, 0);
          break;
        }
        case 'L': read_u8(&r); break;
        case 'S': entry->signal_frame = 1; break;
        case 'B': break;  // aarch64: return addresses signed with key B
        default: i = count; break;  // unknown: its data is skipped by the length
      }
    }
    if (r.failed || data_length > entry->initial_end - data) return 0;
    entry->initial = data + data_length;
  } else if (count == 0) {
    entry->initial = reader_address(&r);
  } else {
    return 0;
  }
  return !r.failed && entry->return_column < CRASH_ARCH_COLUMNS;
}

static int parse_fde(uint64_t fde, uint64_t pc, struct entry *entry) {
  struct reader r;
  reader_start(&r, fde, fde + 16);
  uint64_t length = read_fixed(&r, 4);
  if (length == 0xffffffff) length = read_fixed(&r, 8);
  uint64_t body = reader_address(&r);
  if (r.failed || length < 8 || length > 1u << 24) return 0;
  reader_start(&r, body, body + length);
  uint64_t cie_distance = read_fixed(&r, 4);
  if (r.failed || cie_distance == 0) return 0;
  int has_augmentation_data;
  if (!parse_cie(body - cie_distance, entry, &has_augmentation_data)) return 0;
  entry->instructions_end = body + length;
  entry->start = read_encoded(&r, entry->pointer_encoding, 0);
  entry->length = read_encoded(&r, entry->pointer_encoding & 0x0f, 0);
  if (has_augmentation_data) {
    uint64_t data_length = read_uleb(&r);
    reader_skip(&r, data_length);
  }
  entry->instructions = reader_address(&r);
  return !r.failed && pc - entry->start < entry->length;
}

// The header's table: pairs of (function start, FDE), both 32-bit offsets from the header, sorted by start.
static enum crash_cfi_result find_entry(const struct crash_record *record, uint64_t pc, struct entry *entry) {
  struct crash_unwind_table table;
  if (!crash_images_find_table(record, pc, &table)) return CRASH_CFI_MISSING;
  struct reader r;
  reader_start(&r, table.eh_frame_hdr, table.eh_frame_hdr_end);
  uint8_t version = read_u8(&r), frame_encoding = read_u8(&r), count_encoding = read_u8(&r),
          table_encoding = read_u8(&r);
  if (version != 1 || table_encoding != (PE_DATAREL | PE_SDATA4)) return CRASH_CFI_UNREADABLE;
  read_encoded(&r, frame_encoding, table.eh_frame_hdr);
  uint64_t count = read_encoded(&r, count_encoding, table.eh_frame_hdr);
  uint64_t rows = reader_address(&r);
  if (r.failed || rows > table.eh_frame_hdr_end || count > (table.eh_frame_hdr_end - rows) / 8)
    return CRASH_CFI_UNREADABLE;

  uint64_t low = 0, high = count;  // the last row whose start is at or below pc is in low - 1
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, pair;
    if (!crash_safe_load(rows + 8 * middle, &pair)) return CRASH_CFI_UNREADABLE;
    if (table.eh_frame_hdr + (uint64_t)sign_extend(pair & 0xffffffff, 4) <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  uint64_t pair;
  if (low == 0) return CRASH_CFI_MISSING;
  if (!crash_safe_load(rows + 8 * (low - 1), &pair)) return CRASH_CFI_UNREADABLE;
  uint64_t fde = table.eh_frame_hdr + (uint64_t)sign_extend(pair >> 32, 4);
  return parse_fde(fde, pc, entry) ? CRASH_CFI_STEPPED : CRASH_CFI_MISSING;
}

int crash_cfi_function(const struct crash_record *record, uint64_t pc, uint64_t *start, uint64_t *size) {
  struct entry entry = {0};
  if (find_entry(record, pc, &entry) != CRASH_CFI_STEPPED) return 0;
  *start = entry.start;
  *size = entry.length;
  return 1;
}

// ---- Rows -------------------------------------------------------------------------------------------------------

enum rule_kind {
  RULE_UNSPECIFIED = 0,  // same value for callee-saved registers, and harmless for the others
  RULE_UNDEFINED,
  RULE_SAME,
  RULE_OFFSET,      // saved at CFA + value
  RULE_VALUE,       // is CFA + value
  RULE_REGISTER,    // is in register `value`
  RULE_EXPRESSION,  // saved at the address that the expression computes
  RULE_VALUE_EXPRESSION,
};

enum {
  CFA_ADVANCE_LOC = 0x40,
  CFA_OFFSET = 0x80,
  CFA_RESTORE = 0xc0,
  CFA_NOP = 0x00,
  CFA_SET_LOC = 0x01,
  CFA_ADVANCE_LOC1 = 0x02,
  CFA_ADVANCE_LOC2 = 0x03,
  CFA_ADVANCE_LOC4 = 0x04,
  CFA_OFFSET_EXTENDED = 0x05,
  CFA_RESTORE_EXTENDED = 0x06,
  CFA_UNDEFINED = 0x07,
  CFA_SAME_VALUE = 0x08,
  CFA_REGISTER = 0x09,
  CFA_REMEMBER_STATE = 0x0a,
  CFA_RESTORE_STATE = 0x0b,
  CFA_DEF_CFA = 0x0c,
  CFA_DEF_CFA_REGISTER = 0x0d,
  CFA_DEF_CFA_OFFSET = 0x0e,
  CFA_DEF_CFA_EXPRESSION = 0x0f,
  CFA_EXPRESSION = 0x10,
  CFA_OFFSET_EXTENDED_SF = 0x11,
  CFA_DEF_CFA_SF = 0x12,
  CFA_DEF_CFA_OFFSET_SF = 0x13,
  CFA_VAL_OFFSET = 0x14,
  CFA_VAL_OFFSET_SF = 0x15,
  CFA_VAL_EXPRESSION = 0x16,
  CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
  CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
  CFA_GNU_ARGS_SIZE = 0x2e,
  CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

#define REMEMBERED_ROWS 8

// Rules of columns that are not tracked (vector registers) are read and dropped.
static void set_rule(struct crash_cfi_row *row, uint64_t column, enum rule_kind kind, int64_t value) {
  if (column >= CRASH_ARCH_COLUMNS) return;
  row->kinds[column] = (uint8_t)kind;
  row->values[column] = value;
}

static void restore_rule(struct crash_cfi_row *row, const struct crash_cfi_row *initial, uint64_t column) {
  if (column >= CRASH_ARCH_COLUMNS) return;
  row->kinds[column] = initial->kinds[column];
  row->values[column] = initial->values[column];
}

static void expression_rule(struct reader *r, struct crash_cfi_row *row, enum rule_kind kind) {
  uint64_t column = read_uleb(r);
  uint64_t at = reader_address(r);
  uint64_t length = read_uleb(r);
  reader_skip(r, length);
  set_rule(row, column, kind, (int64_t)at);
}

// Executes instructions up to the row that covers `pc`. Returns 0 for an instruction that it does not know.
static int run_instructions(const struct entry *entry, uint64_t start, uint64_t end, uint64_t pc, struct crash_cfi_row *row,
                            const struct crash_cfi_row *initial) {
  struct crash_cfi_row remembered[REMEMBERED_ROWS];
  unsigned depth = 0;
  uint64_t location = entry->start;
  struct reader r;
  reader_start(&r, start, end);
  while (!reader_at_end(&r)) {
    uint8_t op = read_u8(&r);
    uint64_t operand = op & 0x3f, column;
    switch (op & 0xc0) {
      case CFA_ADVANCE_LOC:
        location += operand * entry->code_alignment;
        if (location > pc) return 1;
        continue;
      case CFA_OFFSET:
        set_rule(row, operand, RULE_OFFSET, (int64_t)(read_uleb(&r) * (uint64_t)entry->data_alignment));
        continue;
      case CFA_RESTORE: restore_rule(row, initial, operand); continue;
      default: break;
    }
    switch (op) {
      case CFA_NOP: break;
      case CFA_SET_LOC:
        location = read_encoded(&r, entry->pointer_encoding, 0);
        if (location > pc) return !r.failed;
        break;
      case CFA_ADVANCE_LOC1:
      case CFA_ADVANCE_LOC2:
      case CFA_ADVANCE_LOC4:
        location += read_fixed(&r, 1u << (op - CFA_ADVANCE_LOC1)) * entry->code_alignment;
        if (location > pc) return !r.failed;
        break;
      case CFA_OFFSET_EXTENDED:
        column = read_uleb(&r);
        set_rule(row, column, RULE_OFFSET, (int64_t)(read_uleb(&r) * (uint64_t)entry->data_alignment));
        break;
      case CFA_OFFSET_EXTENDED_SF:
        column = read_uleb(&r);
        set_rule(row, column, RULE_OFFSET, (int64_t)((uint64_t)read_sleb(&r) * (uint64_t)entry->data_alignment));
        break;
      case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        column = read_uleb(&r);
        set_rule(row, column, RULE_OFFSET, -(int64_t)(read_uleb(&r) * (uint64_t)entry->data_alignment));
        break;
      case CFA_VAL_OFFSET:
        column = read_uleb(&r);
        set_rule(row, column, RULE_VALUE, (int64_t)(read_uleb(&r) * (uint64_t)entry->data_alignment));
        break;
      case CFA_VAL_OFFSET_SF:
        column = read_uleb(&r);
        set_rule(row, column, RULE_VALUE, (int64_t)((uint64_t)read_sleb(&r) * (uint64_t)entry->data_alignment));
        break;
      case CFA_RESTORE_EXTENDED: restore_rule(row, initial, read_uleb(&r)); break;
      case CFA_UNDEFINED: set_rule(row, read_uleb(&r), RULE_UNDEFINED, 0); break;
      case CFA_SAME_VALUE: set_rule(row, read_uleb(&r), RULE_SAME, 0); break;
      case CFA_REGISTER:
        column = read_uleb(&r);
        set_rule(row, column, RULE_REGISTER, (int64_t)read_uleb(&r));
        break;
      case CFA_REMEMBER_STATE:
        if (depth == REMEMBERED_ROWS) return 0;
        remembered[depth++] = *row;
        break;
      case CFA_RESTORE_STATE:
        if (depth == 0) return 0;
        *row = remembered[--depth];
        break;
      case CFA_DEF_CFA:
        row->cfa_register = (uint8_t)read_uleb(&r);
        row->cfa_offset = (int64_t)read_uleb(&r);
        row->cfa_is_expression = 0;
        break;
      case CFA_DEF_CFA_SF:
        row->cfa_register = (uint8_t)read_uleb(&r);
        row->cfa_offset = (int64_t)((uint64_t)read_sleb(&r) * (uint64_t)entry->data_alignment);
        row->cfa_is_expression = 0;
        break;
      case CFA_DEF_CFA_REGISTER:
        row->cfa_register = (uint8_t)read_uleb(&r);
        row->cfa_is_expression = 0;
        break;
      case CFA_DEF_CFA_OFFSET: row->cfa_offset = (int64_t)read_uleb(&r); break;
      case CFA_DEF_CFA_OFFSET_SF:
        row->cfa_offset = (int64_t)((uint64_t)read_sleb(&r) * (uint64_t)entry->data_alignment);
        break;
      case CFA_DEF_CFA_EXPRESSION: {
        uint64_t length = read_uleb(&r);
        row->cfa_is_expression = 1;
        row->cfa_offset = (int64_t)reader_address(&r);
        row->cfa_length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
        reader_skip(&r, length);
        break;
      }
      case CFA_EXPRESSION: expression_rule(&r, row, RULE_EXPRESSION); break;
      case CFA_VAL_EXPRESSION: expression_rule(&r, row, RULE_VALUE_EXPRESSION); break;
      case CFA_GNU_ARGS_SIZE: read_uleb(&r); break;
#if defined(__aarch64__)  // elsewhere these numbers are other architectures'
      // With the pc as a second modifier or without it: taking the code out of the address is the same.
      case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
      case CFA_AARCH64_NEGATE_RA_STATE: row->signs_return_address ^= 1; break;
#endif
      default: return 0;
    }
  }
  return !r.failed;
}

// ---- Expressions ------------------------------------------------------------------------------------------------

enum {
  OP_ADDR = 0x03,
  OP_DEREF = 0x06,
  OP_CONST1U = 0x08,
  OP_CONST1S = 0x09,
  OP_CONST2U = 0x0a,
  OP_CONST2S = 0x0b,
  OP_CONST4U = 0x0c,
  OP_CONST4S = 0x0d,
  OP_CONST8U = 0x0e,
  OP_CONST8S = 0x0f,
  OP_CONSTU = 0x10,
  OP_CONSTS = 0x11,
  OP_DUP = 0x12,
  OP_DROP = 0x13,
  OP_OVER = 0x14,
  OP_PICK = 0x15,
  OP_SWAP = 0x16,
  OP_ROT = 0x17,
  OP_ABS = 0x19,
  OP_AND = 0x1a,
  OP_DIV = 0x1b,
  OP_MINUS = 0x1c,
  OP_MOD = 0x1d,
  OP_MUL = 0x1e,
  OP_NEG = 0x1f,
  OP_NOT = 0x20,
  OP_OR = 0x21,
  OP_PLUS = 0x22,
  OP_PLUS_UCONST = 0x23,
  OP_SHL = 0x24,
  OP_SHR = 0x25,
  OP_SHRA = 0x26,
  OP_XOR = 0x27,
  OP_BRA = 0x28,
  OP_EQ = 0x29,
  OP_GE = 0x2a,
  OP_GT = 0x2b,
  OP_LE = 0x2c,
  OP_LT = 0x2d,
  OP_NE = 0x2e,
  OP_SKIP = 0x2f,
  OP_LIT0 = 0x30,
  OP_BREG0 = 0x70,
  OP_BREGX = 0x92,
  OP_DEREF_SIZE = 0x94,
  OP_NOP = 0x96,
};

static int known(const struct crash_registers *registers, uint64_t column) {
  return column < CRASH_ARCH_COLUMNS && registers->known >> column & 1;
}

// Binary operations of section 2.5.1.4, on two's complement words. Returns 0 for a division by zero.
static int binary(uint8_t op, uint64_t left, uint64_t right, uint64_t *result) {
  int64_t signed_left = (int64_t)left, signed_right = (int64_t)right;
  switch (op) {
    case OP_AND: *result = left & right; return 1;
    case OP_OR: *result = left | right; return 1;
    case OP_XOR: *result = left ^ right; return 1;
    case OP_PLUS: *result = left + right; return 1;
    case OP_MINUS: *result = left - right; return 1;
    case OP_MUL: *result = left * right; return 1;
    case OP_DIV:
      if (right == 0) return 0;
      *result = right == UINT64_MAX ? 0 - left : (uint64_t)(signed_left / signed_right);
      return 1;
    case OP_MOD:
      if (right == 0) return 0;
      *result = left % right;
      return 1;
    case OP_SHL: *result = right < 64 ? left << right : 0; return 1;
    case OP_SHR: *result = right < 64 ? left >> right : 0; return 1;
    case OP_SHRA: *result = (uint64_t)(signed_left >> (right < 64 ? right : 63)); return 1;
    case OP_EQ: *result = left == right; return 1;
    case OP_NE: *result = left != right; return 1;
    case OP_GE: *result = signed_left >= signed_right; return 1;
    case OP_GT: *result = signed_left > signed_right; return 1;
    case OP_LE: *result = signed_left <= signed_right; return 1;
    case OP_LT: *result = signed_left < signed_right; return 1;
    default: return 0;
  }
}

#define EXPRESSION_STACK 32
// Loops are legal (DW_OP_bra backwards), so the number of steps is what ends a damaged expression.
#define EXPRESSION_STEPS 512

static int evaluate(uint64_t expression, uint64_t length, const struct crash_registers *registers, uint64_t first,
                    int has_first, uint64_t *result) {
  uint64_t stack[EXPRESSION_STACK];
  unsigned count = 0;
  if (has_first) stack[count++] = first;
  struct reader r;
  reader_start(&r, expression, expression + length);
  for (unsigned steps = 0; !reader_at_end(&r); steps++) {
    if (steps == EXPRESSION_STEPS) return 0;
    uint8_t op = read_u8(&r);
    uint64_t value;
    unsigned needed = 0;
    switch (op) {
      case OP_DUP: case OP_DROP: case OP_DEREF: case OP_DEREF_SIZE: case OP_ABS: case OP_NEG: case OP_NOT:
      case OP_PLUS_UCONST: case OP_BRA: needed = 1; break;
      case OP_OVER: case OP_SWAP: case OP_AND: case OP_DIV: case OP_MINUS: case OP_MOD: case OP_MUL: case OP_OR:
      case OP_PLUS: case OP_SHL: case OP_SHR: case OP_SHRA: case OP_XOR: case OP_EQ: case OP_GE: case OP_GT:
      case OP_LE: case OP_LT: case OP_NE: needed = 2; break;
      case OP_ROT: needed = 3; break;
      default: break;
    }
    if (count < needed) return 0;
    uint64_t *top = stack + count - 1;
    int push = 0;
    if (op >= OP_LIT0 && op < OP_LIT0 + 32) {
      value = op - OP_LIT0;
      push = 1;
    } else if ((op >= OP_BREG0 && op < OP_BREG0 + 32) || op == OP_BREGX) {
      uint64_t column = op == OP_BREGX ? read_uleb(&r) : (uint64_t)(op - OP_BREG0);
      int64_t offset = read_sleb(&r);
      if (!known(registers, column)) return 0;
      value = registers->values[column] + (uint64_t)offset;
      push = 1;
    } else {
      switch (op) {
        case OP_NOP: break;
        case OP_ADDR: case OP_CONST8U: case OP_CONST8S: value = read_fixed(&r, 8); push = 1; break;
        case OP_CONST1U: value = read_fixed(&r, 1); push = 1; break;
        case OP_CONST1S: value = (uint64_t)sign_extend(read_fixed(&r, 1), 1); push = 1; break;
        case OP_CONST2U: value = read_fixed(&r, 2); push = 1; break;
        case OP_CONST2S: value = (uint64_t)sign_extend(read_fixed(&r, 2), 2); push = 1; break;
        case OP_CONST4U: value = read_fixed(&r, 4); push = 1; break;
        case OP_CONST4S: value = (uint64_t)sign_extend(read_fixed(&r, 4), 4); push = 1; break;
        case OP_CONSTU: value = read_uleb(&r); push = 1; break;
        case OP_CONSTS: value = (uint64_t)read_sleb(&r); push = 1; break;
        case OP_DUP: value = *top; push = 1; break;
        case OP_DROP: count--; break;
        case OP_OVER: value = top[-1]; push = 1; break;
        case OP_PICK: {
          uint8_t index = read_u8(&r);
          if (index >= count) return 0;
          value = top[-(int)index];
          push = 1;
          break;
        }
        case OP_SWAP: value = *top; *top = top[-1]; top[-1] = value; break;
        case OP_ROT: value = *top; *top = top[-1]; top[-1] = top[-2]; top[-2] = value; break;
        case OP_DEREF:
          if (!crash_safe_load(*top, top)) return 0;
          break;
        case OP_DEREF_SIZE: {
          uint8_t size = read_u8(&r);
          uint64_t word = 0;
          if (size == 0 || size > 8 || crash_safe_copy(&word, *top, size) != size) return 0;
          *top = word;
          break;
        }
        case OP_ABS: if ((int64_t)*top < 0) *top = 0 - *top; break;
        case OP_NEG: *top = 0 - *top; break;
        case OP_NOT: *top = ~*top; break;
        case OP_PLUS_UCONST: *top += read_uleb(&r); break;
        case OP_SKIP:
        case OP_BRA: {
          int64_t distance = sign_extend(read_fixed(&r, 2), 2);
          uint64_t target = reader_address(&r) + (uint64_t)distance;
          if (op == OP_BRA && stack[--count] == 0) break;
          if (target < expression || target > expression + length) return 0;
          reader_start(&r, target, expression + length);
          break;
        }
        default:
          if (needed != 2) return 0;
          if (!binary(op, top[-1], *top, &top[-1])) return 0;
          count--;
          break;
      }
    }
    if (r.failed) return 0;
    if (push) {
      if (count == EXPRESSION_STACK) return 0;
      stack[count++] = value;
    }
  }
  if (r.failed || count == 0) return 0;
  *result = stack[count - 1];
  return 1;
}

static int evaluate_rule(int64_t at, const struct crash_registers *registers, uint64_t cfa, uint64_t *result) {
  struct reader r;
  reader_start(&r, (uint64_t)at, (uint64_t)at + 10);
  uint64_t length = read_uleb(&r);
  if (r.failed || length > 4096) return 0;
  // The CFA is pushed first (DWARF 5 section 6.4.2.3).
  return evaluate(reader_address(&r), length, registers, cfa, 1, result);
}

// ---- Stepping ---------------------------------------------------------------------------------------------------

static enum crash_cfi_result find_row(const struct crash_record *record, struct crash_cfi_cache *cache, uint64_t pc,
                                      struct crash_cfi_entry **found) {
  if (pc == 0) return CRASH_CFI_MISSING;  // a call through a null pointer; 0 also marks an empty slot
  struct crash_cfi_entry *slot =
      &cache->entries[(pc ^ pc >> 5 ^ pc >> 12) % (sizeof cache->entries / sizeof cache->entries[0])];
  *found = slot;
  if (slot->pc == pc) return CRASH_CFI_STEPPED;
  struct entry entry;
  enum crash_cfi_result result = find_entry(record, pc, &entry);
  if (result != CRASH_CFI_STEPPED) return result;
  slot->pc = 0;  // while the row is written it must not be found by a stage that goes on after a fault
  memset(&slot->row, 0, sizeof slot->row);
  struct crash_cfi_row initial;
  if (!run_instructions(&entry, entry.initial, entry.initial_end, UINT64_MAX, &slot->row, &slot->row))
    return CRASH_CFI_UNREADABLE;
  initial = slot->row;
  if (!run_instructions(&entry, entry.instructions, entry.instructions_end, pc, &slot->row, &initial))
    return CRASH_CFI_UNREADABLE;
  slot->return_column = (uint8_t)entry.return_column;
  slot->signal_frame = entry.signal_frame;
  slot->pc = pc;
  return CRASH_CFI_STEPPED;
}

enum crash_cfi_result crash_cfi_step(const struct crash_record *record, struct crash_cfi_cache *cache,
                                     uint64_t lookup_pc, struct crash_registers *registers, int *signal_frame) {
  if (crash_arch_leave_signal(registers->values)) {
    registers->known = CRASH_REGISTERS_ALL_KNOWN;
    *signal_frame = 1;
    return CRASH_CFI_STEPPED;
  }
  struct crash_cfi_entry *found;
  enum crash_cfi_result result = find_row(record, cache, lookup_pc, &found);
  if (result != CRASH_CFI_STEPPED) return result;
  const struct crash_cfi_row *row = &found->row;

  uint64_t cfa;
  if (row->cfa_is_expression) {
    if (!evaluate((uint64_t)row->cfa_offset, row->cfa_length, registers, 0, 0, &cfa)) return CRASH_CFI_UNREADABLE;
  } else {
    if (!known(registers, row->cfa_register)) return CRASH_CFI_NO_STACK;
    cfa = registers->values[row->cfa_register] + (uint64_t)row->cfa_offset;
  }
  if (row->kinds[found->return_column] == RULE_UNDEFINED) return CRASH_CFI_OUTERMOST;

  struct crash_registers caller;
  caller.known = 0;
  for (unsigned column = 0; column < CRASH_ARCH_COLUMNS; column++) {
    uint64_t value = 0, address;
    int is_known = 1;
    switch (row->kinds[column]) {
      case RULE_UNSPECIFIED:
        // The stack pointer of the caller is the CFA by definition of the ABI; other registers without a rule keep their
        // value, which is true for the callee-saved ones and does no harm for the rest.
        if (column == CRASH_ARCH_SP) {
          value = cfa;
          break;
        }
        is_known = known(registers, column);
        value = registers->values[column];
        break;
      case RULE_SAME:
        is_known = known(registers, column);
        value = registers->values[column];
        break;
      case RULE_UNDEFINED: is_known = 0; break;
      case RULE_OFFSET:
        is_known = crash_safe_load(cfa + (uint64_t)row->values[column], &value);
        if (!is_known && column == found->return_column) return CRASH_CFI_NO_STACK;
        break;
      case RULE_VALUE: value = cfa + (uint64_t)row->values[column]; break;
      case RULE_REGISTER:
        is_known = known(registers, (uint64_t)row->values[column]);
        value = is_known ? registers->values[row->values[column]] : 0;
        break;
      case RULE_EXPRESSION:
        is_known = evaluate_rule(row->values[column], registers, cfa, &address) && crash_safe_load(address, &value);
        break;
      case RULE_VALUE_EXPRESSION: is_known = evaluate_rule(row->values[column], registers, cfa, &value); break;
      default: is_known = 0; break;
    }
    caller.values[column] = value;
    caller.known |= (uint64_t)(is_known != 0) << column;
  }
  if (!known(&caller, found->return_column)) return CRASH_CFI_UNREADABLE;
  // Only where the information says so: from an address that was never signed, a smashed one for example, this would
  // take bits that tell what happened.
  if (row->signs_return_address)
    caller.values[found->return_column] = crash_arch_strip(caller.values[found->return_column]);
  // Where the return address has a column of its own (x86-64) this changes nothing; elsewhere it is the link register.
  caller.values[CRASH_ARCH_PC] = caller.values[found->return_column];
  caller.known |= (uint64_t)1 << CRASH_ARCH_PC;
  *signal_frame = found->signal_frame;
  *registers = caller;
  return CRASH_CFI_STEPPED;
}

CRASH_UNINSTRUMENTED_END
