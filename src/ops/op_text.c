/* Text: see op_text.h. */
#include "ops/op_text.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/exact/om_cast.h"
#include "ops/om_rule.h"

om_status om_text_set(
    om_ctx *ctx, const om_op_call *call, uint32_t rank, const int64_t *dims, size_t text_bytes) {
  om_tensor *out = om_rule_output(call, 0);
  size_t bytes = 0;
  OM_TRY(om_rule_set(ctx, call, 0, OM_DTYPE_STRING, rank, dims));
  if (!om_shape_bytes(OM_DTYPE_STRING, rank, dims, &bytes) ||
      !om_size_add(bytes, text_bytes, &bytes) || bytes > OM_RULE_MAX_BYTES) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu bytes of text are too many.", text_bytes);
  }
  if (out) out->data_bytes = bytes;
  return OM_OK;
}

/* ---- Case ---- */

typedef struct letters { /* a row of letters; the lower ones lie `distance` behind the upper ones */
  uint16_t first, last;  /* of the upper ones */
  uint16_t distance;     /* 1: upper and lower ones alternate, the first is an upper one */
} letters;

static const letters rows[] = {
    {0x0041, 0x005a, 32},                      /* Latin */
    {0x00c0, 0x00d6, 32},                      /* with accents; not the sign of multiplication */
    {0x00d8, 0x00de, 32}, {0x0100, 0x012e, 1}, /* extended: pairs; not the dotless i, nor what
                                                  follows an apostrophe */
    {0x0132, 0x0136, 1},  {0x0139, 0x0147, 1},  {0x014a, 0x0176, 1},
    {0x0178, 0x0178, 0},                        /* y with two dots, whose lower one is U+00FF */
    {0x0179, 0x017d, 1},  {0x0386, 0x0386, 38}, /* Greek */
    {0x0388, 0x038a, 37}, {0x038c, 0x038c, 64}, {0x038e, 0x038f, 63},
    {0x0391, 0x03a1, 32}, {0x03a3, 0x03ab, 32}, {0x0400, 0x040f, 80}, /* Cyrillic */
    {0x0410, 0x042f, 32}, {0x0460, 0x0480, 1},  {0x048a, 0x04be, 1},
};

static uint16_t lower_of(uint16_t letter) {
  if (letter == 0x0178) return 0x00ff;
  for (size_t i = 0; i < OM_COUNT_OF(rows); ++i) {
    const letters *row = &rows[i];
    if (letter < row->first || letter > row->last) continue;
    if (row->distance == 1 && (letter - row->first) % 2 != 0) return letter;
    return (uint16_t)(letter + row->distance);
  }
  return letter;
}

static uint16_t upper_of(uint16_t letter) {
  if (letter == 0x00ff) return 0x0178;
  for (size_t i = 0; i < OM_COUNT_OF(rows); ++i) {
    const letters *row = &rows[i];
    if (letter < row->first + row->distance || letter > row->last + row->distance) continue;
    if (row->distance == 1 && (letter - row->first) % 2 == 0) continue;
    return (uint16_t)(letter - row->distance);
  }
  return letter;
}

/* The letter at a place, if it is one of one or two bytes; returns its bytes, or 0. */
static size_t letter_at(om_string text, size_t at, uint16_t *out_letter) {
  unsigned char a = (unsigned char)text.data[at];
  *out_letter = a;
  if (a < 0x80) return 1;
  if (a < 0xc2 || a > 0xdf || at + 1 >= text.bytes) return 0;
  unsigned char b = (unsigned char)text.data[at + 1];
  if ((b & 0xc0) != 0x80) return 0;
  *out_letter = (uint16_t)((a & 0x1f) << 6 | (b & 0x3f));
  return 2;
}

static void change_case(om_string from, char *to, uint16_t (*change)(uint16_t)) {
  for (size_t at = 0; at < from.bytes;) {
    uint16_t letter = 0;
    size_t bytes = letter_at(from, at, &letter);
    uint16_t changed = change(letter);
    if (bytes == 1) {
      to[at] = (char)changed;
    } else if (bytes == 2) {
      to[at] = (char)(0xc0 | changed >> 6);
      to[at + 1] = (char)(0x80 | (changed & 0x3f));
    } else {
      to[at] = from.data[at];
      bytes = 1;
    }
    at += bytes;
  }
}

void om_text_upper(om_string from, char *to) {
  change_case(from, to, upper_of);
}

void om_text_lower(om_string from, char *to) {
  change_case(from, to, lower_of);
}

bool om_text_same_lower(om_string a, om_string b) {
  if (a.bytes != b.bytes) return false;
  for (size_t at = 0; at < a.bytes;) {
    uint16_t x = 0, y = 0;
    size_t bytes = letter_at(a, at, &x);
    if (letter_at(b, at, &y) != bytes) return false;
    if (lower_of(x) != lower_of(y)) return false;
    at += bytes > 0 ? bytes : 1;
  }
  return true;
}

/* ---- Numbers ---- */

/* In a locale of its own: the program's may write numbers with a comma. */
static double read_double(const char *text, om_dtype dtype, char **out_end) {
  double value = 0.0;
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *out_end = (char *)(uintptr_t)text;
  if (plain == (locale_t)0) return value;
  if (dtype == OM_DTYPE_F32) {
    value = (double)strtof_l(text, out_end, plain); /* rounded once */
  } else {
    value = strtod_l(text, out_end, plain);
  }
  freelocale(plain);
  return value;
}

static bool is_float(om_dtype dtype) {
  return (OM_DT_FLOAT & OM_DT(dtype)) != 0;
}

/* True if the text is read as the very element. */
static bool is_read_as(const om_tensor *tensor, size_t index, const char *text) {
  unsigned char bytes[8] = {0};
  char *end = NULL;
  double value = read_double(text, tensor->dtype, &end);
  om_cast_elems(OM_DTYPE_F64, &value, tensor->dtype, bytes, 1, false);
  const void *place = om_cast_place(tensor->dtype, tensor->data, index);
  return memcmp(bytes, place, om_dtype_bits(tensor->dtype) / 8) == 0;
}

/* "-1.25e-05" as digits, sign and exponent: *out_digits gets "125", the result is the exponent. */
static int split_number(const char *text, char *digits) {
  size_t count = 0;
  for (; *text && *text != 'e'; ++text) {
    if (*text >= '0' && *text <= '9') digits[count++] = *text;
  }
  while (count > 1 && digits[count - 1] == '0') --count;
  digits[count] = '\0';
  return *text == 'e' ? atoi(text + 1) : 0;
}

/* As numpy writes them: plain from 1e-4 to below 1e16, with a point always. */
static size_t lay_out(bool is_negative, const char *digits, int exponent, char *text) {
  const char *sign = is_negative ? "-" : "";
  int count = (int)strlen(digits), written;
  if (exponent < -4 || exponent >= 16) {
    written = snprintf(text,
                       OM_NUMBER_TEXT,
                       "%s%c%s%s%s%s%02d",
                       sign,
                       digits[0],
                       count > 1 ? "." : "",
                       digits + 1,
                       "e",
                       exponent < 0 ? "-" : "+",
                       abs(exponent));
  } else if (exponent < 0) {
    written = snprintf(text, OM_NUMBER_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
  } else if (count <= exponent + 1) {
    written = snprintf(
        text, OM_NUMBER_TEXT, "%s%s%.*s.0", sign, digits, exponent + 1 - count, "0000000000000000");
  } else {
    written = snprintf(
        text, OM_NUMBER_TEXT, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
  }
  return written > 0 ? (size_t)written : 0;
}

static size_t text_of_float(const om_tensor *tensor, size_t index, char text[OM_NUMBER_TEXT]) {
  double value = 0.0;
  char digits[OM_NUMBER_TEXT];
  const void *place = om_cast_place(tensor->dtype, tensor->data, index);
  om_cast_elems(tensor->dtype, place, OM_DTYPE_F64, &value, 1, false);
  if (isnan(value)) return (size_t)snprintf(text, OM_NUMBER_TEXT, "NaN");
  if (isinf(value)) return (size_t)snprintf(text, OM_NUMBER_TEXT, value < 0 ? "-INF" : "INF");
  for (int precision = 0; precision < 17; ++precision) {
    (void)snprintf(text, OM_NUMBER_TEXT, "%.*e", precision, value);
    for (char *c = text; *c; ++c) { /* whatever the locale's point is */
      if (!strchr("0123456789+-e", *c)) *c = '.';
    }
    if (is_read_as(tensor, index, text)) break;
  }
  int exponent = split_number(text, digits);
  return lay_out(signbit(value) != 0, digits, exponent, text);
}

size_t om_text_of_number(const om_tensor *tensor, size_t index, char text[OM_NUMBER_TEXT]) {
  int64_t value = 0;
  const void *place = om_cast_place(tensor->dtype, tensor->data, index);
  if (is_float(tensor->dtype)) return text_of_float(tensor, index, text);
  if (tensor->dtype == OM_DTYPE_BOOL) {
    return (size_t)snprintf(text, OM_NUMBER_TEXT, *(const uint8_t *)place ? "True" : "False");
  }
  if (tensor->dtype == OM_DTYPE_U64) {
    uint64_t wide = 0;
    memcpy(&wide, place, sizeof wide);
    return (size_t)snprintf(text, OM_NUMBER_TEXT, "%" PRIu64, wide);
  }
  om_cast_elems(tensor->dtype, place, OM_DTYPE_I64, &value, 1, false);
  return (size_t)snprintf(text, OM_NUMBER_TEXT, "%" PRId64, value);
}

/* An integer of any type; false where it is none, or does not fit. */
static bool read_integer(const char *text, om_dtype dtype, void *place) {
  char *end = NULL;
  int64_t value = 0, back = 0;
  if (dtype == OM_DTYPE_U64) {
    if (text[0] == '-') return false;
    uint64_t wide = strtoull(text, &end, 10);
    memcpy(place, &wide, sizeof wide);
    return end != text && *end == '\0' && wide != UINT64_MAX;
  }
  value = strtoll(text, &end, 10);
  om_cast_elems(OM_DTYPE_I64, &value, dtype, place, 1, false);
  om_cast_elems(dtype, place, OM_DTYPE_I64, &back, 1, false);
  return end != text && *end == '\0' && back == value;
}

om_status om_number_of_text(om_ctx *ctx, om_string text, om_tensor *out, size_t index) {
  char copy[64], *end = copy;
  void *place = (char *)out->data + index * om_dtype_bits(out->dtype) / 8;
  bool is_number = text.bytes > 0 && text.bytes < sizeof copy;
  if (is_number) {
    memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    if (memchr(copy, '\0', text.bytes) || strpbrk(copy, "xX \t\n")) is_number = false;
  }
  if (is_number && is_float(out->dtype)) {
    double value = read_double(copy, out->dtype, &end);
    is_number = end != copy && *end == '\0';
    om_cast_elems(OM_DTYPE_F64, &value, out->dtype, place, 1, false);
  } else if (is_number) {
    is_number = read_integer(copy, out->dtype, place);
  }
  if (is_number) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Element %zu, \"%.*s\", is not a number of type %s.",
                 index,
                 (int)(text.bytes < 40 ? text.bytes : 40),
                 text.data,
                 om_dtype_name(out->dtype));
}
