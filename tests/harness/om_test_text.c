/* The texts of a case: inputs, shapes, values and attributes. om_test.h describes the forms. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "harness/om_test_case.h"

static const struct {
  const char *word;
  om_dtype dtype;
} dtype_words[] = {
    {"f32", OM_DTYPE_F32},
    {"f64", OM_DTYPE_F64},
    {"f16", OM_DTYPE_F16},
    {"bf16", OM_DTYPE_BF16},
    {"i8", OM_DTYPE_I8},
    {"i16", OM_DTYPE_I16},
    {"i32", OM_DTYPE_I32},
    {"i64", OM_DTYPE_I64},
    {"u8", OM_DTYPE_U8},
    {"u16", OM_DTYPE_U16},
    {"u32", OM_DTYPE_U32},
    {"u64", OM_DTYPE_U64},
    {"b8", OM_DTYPE_BOOL},
    {"i4", OM_DTYPE_I4},
    {"u4", OM_DTYPE_U4},
    {"str", OM_DTYPE_STRING},
};

/* Values whose sums, products and quotients are not subnormal: a device may keep those. */
static const double float_edges[] = {
    0.0,         -0.0,  1.0,    -1.0,     0.5,       -0.5,   1.5,    -1.5,     2.5,
    -2.5,        3.0,   -3.0,   1e-12,    -1e-12,    1e-6,   0.1,    -0.1,     10.0,
    -10.0,       20.25, -20.25, 87.0,     -87.0,     1000.0, 65504., 16777217, 2147483648,
    -2147483648, 1e20,  -1e20,  INFINITY, -INFINITY, NAN,
};
static const double integer_edges[] = {0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, -1e30, 1e30};

/* ---- Scanning ---- */

static const char *skip_spaces(const char *text) {
  while (isspace((unsigned char)*text)) ++text;
  return text;
}

/* The next word, as a range; false at the end of the text. */
static bool next_word(const char **text, om_string *out_word) {
  const char *begin = skip_spaces(*text);
  const char *end = begin;
  while (*end != '\0' && !isspace((unsigned char)*end)) ++end;
  *text = end;
  *out_word = (om_string){begin, (size_t)(end - begin)};
  return end > begin;
}

static om_status parse_double(om_ctx *ctx, om_string word, double *out) {
  char *end = NULL;
  *out = strtod(word.data, &end);
  if (end != word.data + word.bytes) {
    return OM_FAIL(
        ctx, OM_E_INVALID_ARGUMENT, "'%.*s' is not a number.", (int)word.bytes, word.data);
  }
  return OM_OK;
}

/* ---- Shapes and values ---- */

om_status om_test_shape_parse(om_ctx *ctx, const char *text, om_tensor *out_tensor) {
  out_tensor->rank = 0;
  if (strcmp(text, "scalar") == 0) return OM_OK;
  const char *p = text;
  for (;;) {
    char *end = NULL;
    const long long extent = strtoll(p, &end, 10);
    if (end == p || extent < 0 || out_tensor->rank == OM_MAX_RANK ||
        (*end != 'x' && *end != '\0')) {
      return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' is not a shape.", text);
    }
    out_tensor->dims[out_tensor->rank++] = extent;
    if (*end == '\0') return OM_OK;
    p = end + 1;
  }
}

static om_status set_from_word(
    om_ctx *ctx, om_pool *pool, om_tensor *tensor, size_t index, om_string word) {
  if (tensor->dtype == OM_DTYPE_STRING) {
    const bool is_empty = om_string_is(word, "\"\"");
    om_string *elem = &((om_string *)tensor->data)[index];
    elem->data = om_pool_text(ctx, pool, word.data, is_empty ? 0 : word.bytes);
    elem->bytes = is_empty ? 0 : word.bytes;
    return elem->data ? OM_OK : OM_E_OUT_OF_MEMORY;
  }
  char *end = NULL;
  errno = 0;
  if (tensor->dtype == OM_DTYPE_I64) {
    const long long value = strtoll(word.data, &end, 10);
    if (errno == 0 && end == word.data + word.bytes) {
      ((int64_t *)tensor->data)[index] = value;
      return OM_OK;
    }
  } else if (tensor->dtype == OM_DTYPE_U64 && word.data[0] != '-') {
    const unsigned long long value = strtoull(word.data, &end, 10);
    if (errno == 0 && end == word.data + word.bytes) {
      ((uint64_t *)tensor->data)[index] = value;
      return OM_OK;
    }
  }
  double value = 0;
  OM_TRY(parse_double(ctx, word, &value));
  om_tensor_set_value(tensor, index, value);
  return OM_OK;
}

om_status om_test_values_parse(om_ctx *ctx, om_pool *pool, const char *text, om_tensor *tensor) {
  const size_t count = om_tensor_elems(tensor);
  const char *p = text;
  for (size_t i = 0; i < count; ++i) {
    om_string word;
    if (!next_word(&p, &word)) {
      p = text;
      if (i == 0 || !next_word(&p, &word)) {
        return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "No values for %zu elements.", count);
      }
    }
    OM_TRY(set_from_word(ctx, pool, tensor, i, word));
  }
  return OM_OK;
}

/* ---- Fillings ---- */

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void fill_random(om_tensor *tensor, double low, double high, uint64_t seed) {
  const size_t count = om_tensor_elems(tensor);
  uint64_t state = seed;
  for (size_t i = 0; i < count; ++i) {
    const double unit = (double)(next_random(&state) >> 11) * ldexp(1, -53);
    double value = low + unit * (high - low);
    if (!om_dtype_is_float(tensor->dtype)) value = floor(value);
    om_tensor_set_value(tensor, i, value);
  }
}

static void fill_edges(om_tensor *tensor, uint64_t seed) {
  const bool is_float = om_dtype_is_float(tensor->dtype);
  const double *edges = is_float ? float_edges : integer_edges;
  const size_t edge_count = is_float ? OM_COUNT_OF(float_edges) : OM_COUNT_OF(integer_edges);
  const size_t count = om_tensor_elems(tensor);
  /* Another start for each input, so that two inputs meet in all pairs. */
  size_t next = seed % edge_count;
  for (size_t i = 0; i < count; ++i) {
    om_tensor_set_value(tensor, i, edges[next % edge_count]);
    next += i % edge_count == edge_count - 1 && seed % 2 != 0 ? 2 : 1;
  }
}

static om_status fill_tensor(
    om_ctx *ctx, om_pool *pool, om_string how, const char *rest, uint64_t seed, om_tensor *tensor) {
  const bool is_unsigned = tensor->dtype == OM_DTYPE_U8 || tensor->dtype == OM_DTYPE_U16 ||
                           tensor->dtype == OM_DTYPE_U32 || tensor->dtype == OM_DTYPE_U64;
  if (om_string_is(how, "=")) return om_test_values_parse(ctx, pool, rest, tensor);
  if (tensor->dtype == OM_DTYPE_STRING) return om_test_values_parse(ctx, pool, "ab c def", tensor);
  if (how.bytes == 0) {
    if (om_dtype_is_float(tensor->dtype))
      fill_random(tensor, -2, 2, seed);
    else if (tensor->dtype == OM_DTYPE_BOOL)
      fill_random(tensor, 0, 2, seed);
    else
      fill_random(tensor, is_unsigned ? 0 : -8, 8, seed);
    return OM_OK;
  }
  if (om_string_is(how, "range")) {
    om_string low_word, high_word;
    double low = 0, high = 0;
    if (!next_word(&rest, &low_word) || !next_word(&rest, &high_word)) {
      return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "A range needs two numbers.");
    }
    OM_TRY(parse_double(ctx, low_word, &low));
    OM_TRY(parse_double(ctx, high_word, &high));
    fill_random(tensor, low, high, seed);
    return OM_OK;
  }
  if (om_string_is(how, "edges")) {
    fill_edges(tensor, seed);
    return OM_OK;
  }
  if (om_string_is(how, "ramp")) {
    const size_t count = om_tensor_elems(tensor);
    for (size_t i = 0; i < count; ++i) om_tensor_set_value(tensor, i, (double)i);
    return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%.*s' is not a filling.", (int)how.bytes, how.data);
}

om_status om_test_input_parse(
    om_ctx *ctx, om_pool *pool, const char *text, uint64_t seed, om_test_input *out_input) {
  const char *rest = text;
  om_string type = {0}, shape = {0}, how = {0};
  om_tensor *tensor = &out_input->tensor;
  next_word(&rest, &type);
  if (om_string_is(type, "-")) {
    out_input->is_absent = true;
    return OM_OK;
  }
  for (size_t i = 0; i < OM_COUNT_OF(dtype_words); ++i) {
    if (om_string_is(type, dtype_words[i].word)) tensor->dtype = dtype_words[i].dtype;
  }
  if (tensor->dtype == OM_DTYPE_NONE || !next_word(&rest, &shape)) {
    return OM_FAIL(
        ctx, OM_E_INVALID_ARGUMENT, "'%s' does not begin with a type and a shape.", text);
  }
  const char *shape_text = om_pool_text(ctx, pool, shape.data, shape.bytes);
  if (!shape_text) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_test_shape_parse(ctx, shape_text, tensor));
  next_word(&rest, &how);
  if (om_string_is(how, "const")) {
    out_input->is_constant = true;
    next_word(&rest, &how);
  }
  const size_t count = om_tensor_elems(tensor);
  tensor->data_bytes = (count * om_dtype_bits(tensor->dtype) + 7) / 8;
  tensor->data = om_pool_new_bytes(ctx, pool, tensor->data_bytes + 16, 1);
  if (!tensor->data) return OM_E_OUT_OF_MEMORY;
  return fill_tensor(ctx, pool, how, rest, seed, tensor);
}

/* ---- Attributes ---- */

enum { MAX_LIST = 64 };

typedef struct attr_list { /* one attribute's values while they are read */
  double numbers[MAX_LIST];
  int64_t wholes[MAX_LIST]; /* the same, as integers: a double has 53 bits of them */
  om_string strings[MAX_LIST];
  size_t count;
  bool is_float, is_string, is_list;
} attr_list;

/* Reads one value at *text: a number or a quoted string. */
static om_status parse_value(om_ctx *ctx, om_pool *pool, const char **text, attr_list *list) {
  const char *p = *text;
  if (list->count == MAX_LIST) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The list is too long.");
  if (*p == '"') {
    const char *end = strchr(p + 1, '"');
    if (!end) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' has no closing quote.", p);
    const size_t bytes = (size_t)(end - p - 1);
    const char *copy = om_pool_text(ctx, pool, p + 1, bytes);
    if (!copy) return OM_E_OUT_OF_MEMORY;
    list->strings[list->count++] = (om_string){copy, bytes};
    list->is_string = true;
    *text = end + 1;
    return OM_OK;
  }
  char *end = NULL;
  const double number = strtod(p, &end);
  if (end == p) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' does not begin with a value.", p);
  for (const char *c = p; c < end; ++c) {
    if (strchr(".eEnN", *c)) list->is_float = true; /* also of inf and nan */
  }
  if (*end == 'f') {
    list->is_float = true;
    ++end;
  }
  errno = 0;
  list->wholes[list->count] = strtoll(p, NULL, 10);
  if (!list->is_float && errno == ERANGE) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' begins with too large a number.", p);
  }
  list->numbers[list->count++] = number;
  *text = end;
  return OM_OK;
}

static om_status parse_values(om_ctx *ctx, om_pool *pool, const char **text, attr_list *list) {
  const bool has_brackets = **text == '[';
  list->is_list = has_brackets;
  if (has_brackets) ++*text;
  while (**text != ']' || !has_brackets) {
    OM_TRY(parse_value(ctx, pool, text, list));
    if (**text != ',') break;
    list->is_list = true;
    ++*text;
  }
  if (has_brackets && *(*text)++ != ']') {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "A list has no closing bracket.");
  }
  return OM_OK;
}

static om_status finish_list(om_ctx *ctx, om_pool *pool, const attr_list *list, om_attr *attr) {
  attr->count = list->count;
  if (list->is_string) {
    om_string *strings = OM_POOL_NEW(ctx, pool, om_string, list->count);
    if (!strings) return OM_E_OUT_OF_MEMORY;
    memcpy(strings, list->strings, list->count * sizeof *strings);
    attr->kind = OM_ATTR_STRINGS;
    attr->strings = strings;
  } else if (list->is_float) {
    float *floats = OM_POOL_NEW(ctx, pool, float, list->count);
    if (!floats) return OM_E_OUT_OF_MEMORY;
    for (size_t i = 0; i < list->count; ++i) floats[i] = (float)list->numbers[i];
    attr->kind = OM_ATTR_FLOATS;
    attr->floats = floats;
  } else {
    int64_t *ints = OM_POOL_NEW(ctx, pool, int64_t, list->count);
    if (!ints) return OM_E_OUT_OF_MEMORY;
    for (size_t i = 0; i < list->count; ++i) ints[i] = list->wholes[i];
    attr->kind = OM_ATTR_INTS;
    attr->ints = ints;
  }
  return OM_OK;
}

static om_status parse_tensor(om_ctx *ctx, om_pool *pool, const char **text, om_attr *attr) {
  const char *end = strchr(*text, '}');
  if (!end) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "A tensor has no closing brace.");
  const char *inner = om_pool_text(ctx, pool, *text + 1, (size_t)(end - *text - 1));
  om_test_input *input = OM_POOL_NEW(ctx, pool, om_test_input, 1);
  if (!inner || !input) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_test_input_parse(ctx, pool, inner, 1, input));
  attr->kind = OM_ATTR_TENSOR;
  attr->tensor = &input->tensor;
  *text = end + 1;
  return OM_OK;
}

static om_status parse_attr(om_ctx *ctx, om_pool *pool, const char **text, om_attr *attr) {
  const char *equals = strchr(*text, '=');
  attr_list *list = OM_POOL_NEW(ctx, pool, attr_list, 1);
  if (!list) return OM_E_OUT_OF_MEMORY;
  if (!equals) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' has no '='.", *text);
  attr->name = om_pool_text(ctx, pool, *text, (size_t)(equals - *text));
  if (!attr->name) return OM_E_OUT_OF_MEMORY;
  *text = equals + 1;
  if (**text == '{') return parse_tensor(ctx, pool, text, attr);
  OM_TRY(parse_values(ctx, pool, text, list));
  if (list->is_list) return finish_list(ctx, pool, list, attr);
  attr->count = 1;
  if (list->is_string) {
    attr->kind = OM_ATTR_STRING;
    attr->s = list->strings[0];
  } else if (list->is_float) {
    attr->kind = OM_ATTR_FLOAT;
    attr->f = (float)list->numbers[0];
  } else {
    attr->kind = OM_ATTR_INT;
    attr->i = list->wholes[0];
  }
  return OM_OK;
}

om_status om_test_attrs_parse(om_ctx *ctx,
                              om_pool *pool,
                              const char *text,
                              om_attr attrs[OM_TEST_ATTRS],
                              uint32_t *out_count) {
  *out_count = 0;
  const char *p = skip_spaces(text ? text : "");
  while (*p != '\0') {
    if (*out_count == OM_TEST_ATTRS)
      return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "Too many attributes.");
    OM_TRY(parse_attr(ctx, pool, &p, &attrs[(*out_count)++]));
    if (*p != '\0' && !isspace((unsigned char)*p)) {
      return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "Unexpected '%s' in the attributes.", p);
    }
    p = skip_spaces(p);
  }
  return OM_OK;
}
