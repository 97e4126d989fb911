/* Unpacking kernels: copies of words that stood before, then distances back to ids; a text is a
 * word for each letter, and has no ids. The bytes are the build's own, which unpacked them itself:
 * nothing is distrusted here.
 */
#include "gpu/hal/om_hal_code.h"

enum { HEADER_WORDS = 5 };

/* Words, or letters, of the code. */
static size_t count_of(const om_hal_shader *shader) {
  if (!shader) return 0;
  return shader->code_bytes / (shader->code_kind == OM_HAL_PTX ? 1 : sizeof(uint32_t));
}

static uint32_t take(const uint8_t **from) {
  uint32_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const uint8_t byte = *(*from)++;
    value |= (uint32_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

/* Words from `at` on, until the shader's are there; those before may be copied. */
static size_t expand(const om_hal_shader *shader, uint32_t *words, size_t at) {
  const uint8_t *from = shader->packed;
  const size_t end = at + count_of(shader);
  while (at < end) {
    for (uint32_t literals = take(&from); literals > 0; --literals) {
      const uint32_t value = take(&from);
      words[at++] = (value & 1) != 0 ? ~(value >> 1) : value >> 1;
    }
    const uint32_t length = take(&from);
    const uint32_t distance = length > 0 ? take(&from) : 0;
    for (uint32_t i = 0; i < length; ++i, ++at) words[at] = words[at - distance];
  }
  return at;
}

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

static void restore_ids(uint32_t *words, size_t word_count) {
  uint32_t last = 0;
  for (size_t at = HEADER_WORDS; at < word_count;) {
    uint32_t *instruction = words + at;
    const uint32_t count = instruction[0] >> 16;
    const om_hal_form form = form_of(instruction[0] & 0xffff, count);
    if (form.result != 0) last = instruction[form.result] += last;
    for (uint32_t i = form.operands; i < count; ++i) instruction[i] = last - instruction[i];
    at += count;
  }
}

/* The base, and then the code: what copies reach back to. *out_at is where the code begins. */
static om_status expand_all(om_ctx *ctx,
                            const om_hal_shader *shader,
                            uint32_t **out_window,
                            size_t *out_at) {
  om_status st = OM_OK;
  const size_t base_count = count_of(shader->base);
  *out_window = NULL;
  *out_at = base_count;
  OM_GO_NEW(*out_window, base_count + count_of(shader));
  if (shader->base) (void)expand(shader->base, *out_window, 0);
  (void)expand(shader, *out_window, base_count);
done:
  return st;
}

om_status om_hal_code_unpack(om_ctx *ctx, const om_hal_shader *shader, uint32_t **out_words) {
  om_status st = OM_OK;
  const size_t count = count_of(shader);
  uint32_t *window = NULL; /* scratch */
  uint32_t *words = NULL;
  size_t at = 0;
  *out_words = NULL;
  OM_GO(expand_all(ctx, shader, &window, &at));
  OM_GO_NEW(words, count);
  memcpy(words, window + at, count * sizeof *words);
  restore_ids(words, count);
  *out_words = words;
  words = NULL; /* the caller owns it now */
done:
  om_delete(ctx, words);
  om_delete(ctx, window);
  return st;
}

om_status om_hal_code_unpack_text(om_ctx *ctx, const om_hal_shader *shader, char **out_text) {
  om_status st = OM_OK;
  const size_t count = count_of(shader);
  uint32_t *window = NULL; /* scratch */
  char *text = NULL;
  size_t at = 0;
  *out_text = NULL;
  OM_GO(expand_all(ctx, shader, &window, &at));
  OM_GO_NEW(text, count + 1);
  for (size_t i = 0; i < count; ++i) text[i] = (char)window[at + i];
  text[count] = '\0';
  *out_text = text;
  text = NULL; /* the caller owns it now */
done:
  om_delete(ctx, text);
  om_delete(ctx, window);
  return st;
}
