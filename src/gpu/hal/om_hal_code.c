/* Unpacking kernels: a block is decompressed, by XZ Utils' liblzma, to the end of what is asked
 * for; then distances become ids again, or numbers of registers. The bytes are the build's own,
 * which unpacked them itself: nothing is distrusted here but memory.
 */
#include "gpu/hal/om_hal_code.h"

#include <lzma.h>

enum { HEADER_WORDS = 5, DICTIONARY_BYTES = 1 << 21 /* as pack_spirv.py has it */ };

/* ---- Blocks ---- */

struct om_hal_open_block {
  om_hal_open_block *next;
  const om_hal_block *block;
  uint8_t *bytes; /* owned; block->bytes of them, `ready` of which are there */
  size_t ready;
  lzma_allocator allocator;
  lzma_stream stream;
};

static void *take_memory(void *ctx, size_t count, size_t elem_bytes) {
  return om_new_bytes(ctx, count, elem_bytes);
}

static void give_memory(void *ctx, void *ptr) {
  om_delete(ctx, ptr);
}

static void close_block(om_ctx *ctx, om_hal_open_block *open) {
  if (!open) return;
  lzma_end(&open->stream);
  om_delete(ctx, open->bytes);
  om_delete(ctx, open);
}

static om_status open_block(om_ctx *ctx, const om_hal_block *block, om_hal_open_block **out_open) {
  om_status st = OM_OK;
  om_hal_open_block *open = NULL;
  *out_open = NULL;
  OM_GO_NEW(open, 1);
  *open = (om_hal_open_block){.block = block, .stream = LZMA_STREAM_INIT};
  open->allocator = (lzma_allocator){take_memory, give_memory, ctx};
  open->stream.allocator = &open->allocator;
  open->stream.next_in = block->packed;
  open->stream.avail_in = block->packed_bytes;
  OM_GO_NEW(open->bytes, block->bytes);
  /* No copy reaches further back than that, or than to the block's beginning. */
  lzma_options_lzma options = {.dict_size = DICTIONARY_BYTES};
  if (block->bytes < options.dict_size) options.dict_size = (uint32_t)block->bytes;
  if (options.dict_size < LZMA_DICT_SIZE_MIN) options.dict_size = LZMA_DICT_SIZE_MIN;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
  if (lzma_raw_decoder(&open->stream, filters) != LZMA_OK) {
    st = OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "There is no memory to unpack kernels.");
    goto done;
  }
  *out_open = open;
  open = NULL; /* the caller owns it now */
done:
  close_block(ctx, open);
  return st;
}

void om_hal_unpacker_deinit(om_ctx *ctx, om_hal_unpacker *unpacker) {
  while (unpacker->first) {
    om_hal_open_block *open = unpacker->first;
    unpacker->first = open->next;
    close_block(ctx, open);
  }
}

/* The shader's part of its block, as long as the unpacker is there. */
static om_status find_part(om_ctx *ctx,
                           om_hal_unpacker *unpacker,
                           const om_hal_shader *shader,
                           const uint8_t **out_part) {
  om_hal_open_block *open = unpacker->first;
  const size_t end = (size_t)shader->block_offset + shader->block_bytes;
  while (open && open->block != shader->block) open = open->next;
  if (!open) {
    OM_TRY(open_block(ctx, shader->block, &open));
    open->next = unpacker->first;
    unpacker->first = open;
  }
  if (open->ready < end) {
    open->stream.next_out = open->bytes + open->ready;
    open->stream.avail_out = end - open->ready;
    const lzma_ret result = lzma_code(&open->stream, LZMA_RUN);
    if ((result != LZMA_OK && result != LZMA_STREAM_END) || open->stream.avail_out > 0) {
      return OM_FAIL(
          ctx, OM_E_INTERNAL, "The code of kernel '%s' is not what the build made.", shader->name);
    }
    open->ready = end;
  }
  *out_part = open->bytes + shader->block_offset;
  return OM_OK;
}

/* ---- SPIR-V ---- */

typedef struct om_hal_form { /* which words of an instruction are distances */
  uint32_t result;           /* 0: it has none */
  uint32_t operands;         /* from here on; UINT32_MAX: none */
} om_hal_form;

static om_hal_form form_of(uint32_t opcode, uint32_t count) {
  const om_hal_form plain = {0, UINT32_MAX};
  const om_hal_form no_result = {0, 1};
  if (opcode >= 19 && opcode <= 39) opcode = 19; /* types */
  switch (opcode) {
    case 10: /* extensions, memory model, entry points, decorations */
    case 14:
    case 15:
    case 16:
    case 17:
    case 71:
    case 72:
      return plain;
    case 11: /* imports, types, labels */
    case 19:
    case 248:
      return count > 1 ? (om_hal_form){1, UINT32_MAX} : plain;
    case 56: /* ends, stores, barriers, branches, merges */
    case 62:
    case 63:
    case 64:
    case 224:
    case 225:
    case 228:
    case 246:
    case 247:
    case 249:
    case 250:
    case 251:
    case 252:
    case 253:
    case 254:
    case 255:
      return no_result;
    case 41: /* constants */
    case 42:
    case 43:
    case 44:
    case 48:
    case 49:
    case 50:
    case 51:
      return count > 2 ? (om_hal_form){2, UINT32_MAX} : plain;
    default:
      return count > 2 ? (om_hal_form){2, 3} : no_result;
  }
}

/* An operand with a lowest bit of 1 is no distance. */
static void restore_ids(uint32_t *words, size_t word_count) {
  uint32_t last = 0;
  for (size_t at = HEADER_WORDS; at < word_count;) {
    uint32_t *instruction = words + at;
    const uint32_t count = instruction[0] >> 16;
    const om_hal_form form = form_of(instruction[0] & 0xffff, count);
    if (form.result != 0) last = instruction[form.result] += last;
    for (uint32_t i = form.operands; i < count; ++i) {
      const uint32_t word = instruction[i];
      instruction[i] = (word & 1) != 0 ? word >> 1 : last - (uint32_t)((int32_t)word / 2);
    }
    at += count;
  }
}

om_status om_hal_code_unpack(om_ctx *ctx,
                             om_hal_unpacker *unpacker,
                             const om_hal_shader *shader,
                             uint32_t **out_words) {
  const uint8_t *part;
  const size_t count = shader->code_bytes / sizeof **out_words;
  *out_words = NULL;
  OM_TRY(find_part(ctx, unpacker, shader, &part));
  uint32_t *words = om_new_bytes(ctx, count, sizeof *words);
  if (!words) return OM_E_OUT_OF_MEMORY;
  memcpy(words, part, shader->code_bytes);
  restore_ids(words, count);
  *out_words = words;
  return OM_OK;
}

/* ---- PTX ---- */

enum { KINDS = 6 }; /* of registers whose numbers are distances */

/* Which kind the letters at `from` name, and how many they are; KINDS: none. */
static int kind_of(const char *from, const char *end, size_t *out_letters) {
  static const char *const kinds[KINDS] = {"r", "rd", "rs", "f", "fd", "p"};
  size_t letters = 0;
  while (from + letters < end && from[letters] >= 'a' && from[letters] <= 'z') ++letters;
  *out_letters = letters;
  const char *behind = from + letters;
  if (behind == end || (*behind != '-' && (*behind < '0' || *behind > '9'))) return KINDS;
  for (int kind = 0; kind < KINDS; ++kind) {
    if (strlen(kinds[kind]) == letters && memcmp(kinds[kind], from, letters) == 0) return kind;
  }
  return KINDS;
}

static int32_t take_number(const char **from, const char *end) {
  const bool is_negative = **from == '-';
  int32_t number = 0;
  if (is_negative) ++*from;
  while (*from < end && **from >= '0' && **from <= '9') number = number * 10 + (*(*from)++ - '0');
  return is_negative ? -number : number;
}

static char *put_number(char *to, int32_t number) {
  char digits[12];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

static void restore_registers(const char *from, const char *end, char *to) {
  int32_t last[KINDS] = {0}; /* number of the register that a line names first */
  bool is_first = true;
  while (from < end) {
    const char letter = *to++ = *from++;
    size_t letters;
    if (letter == '\n') is_first = true;
    if (letter != '%') continue;
    const int kind = kind_of(from, end, &letters);
    memcpy(to, from, letters);
    from += letters;
    to += letters;
    if (kind == KINDS) continue;
    const int32_t number = last[kind] + take_number(&from, end);
    if (is_first) last[kind] = number;
    is_first = false;
    to = put_number(to, number);
  }
  *to = '\0';
}

om_status om_hal_code_unpack_text(om_ctx *ctx,
                                  om_hal_unpacker *unpacker,
                                  const om_hal_shader *shader,
                                  char **out_text) {
  const uint8_t *part;
  *out_text = NULL;
  OM_TRY(find_part(ctx, unpacker, shader, &part));
  char *text = om_new_bytes(ctx, shader->code_bytes + 1, 1);
  if (!text) return OM_E_OUT_OF_MEMORY;
  restore_registers((const char *)part, (const char *)part + shader->block_bytes, text);
  *out_text = text;
  return OM_OK;
}
