/* The inputs of a run: from files, or random by a seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/om_float16.h"
#include "command.h"
#include "graph/om_value_copy.h"
#include "npy.h"
#include "onnx/om_nested_proto.h"

static const given *find_given(const given *list, size_t count, const char *name) {
  for (size_t i = 0; i < count; ++i) {
    if (strlen(name) == list[i].name_bytes && memcmp(name, list[i].name, list[i].name_bytes) == 0) {
      return &list[i];
    }
  }
  return NULL;
}

/* Every NAME given must be an input. */
static int check_names(const given *list, size_t count, const om_model_info *info) {
  for (size_t i = 0; i < count; ++i) {
    bool is_known = false;
    for (size_t k = 0; k < info->input_count; ++k) {
      is_known |= find_given(&list[i], 1, info->inputs[k].name) != NULL;
    }
    if (!is_known) {
      return report_problem(
          EXIT_USAGE, "The model has no input '%.*s'.", (int)list[i].name_bytes, list[i].name);
    }
  }
  return EXIT_DONE;
}

/* A TensorProto, or what `kind` is: strings and sequences are copied whole, in one block. */
static bool read_proto(const char *path, om_dtype kind, om_tensor *out, const char **problem) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_pool pool = {0};
  om_tensor_reading how = {.pool = &pool, .align_below_bytes = SIZE_MAX};
  om_tensor value = {0};
  void *bytes = NULL, *copy = NULL;
  size_t byte_count = 0, need = 0;
  if (!file_read(path, &bytes, &byte_count, problem)) return false;
  *problem = kind == OM_DTYPE_SEQUENCE   ? "This is not a SequenceProto."
             : kind == OM_DTYPE_OPTIONAL ? "This is not an OptionalProto."
                                         : "This is not a TensorProto.";
  om_string message = {bytes, byte_count};
  bool is_read = om_nested_proto_read(&ctx, &how, kind, message, &value) == OM_OK;
  if (is_read && om_value_bytes(&value, &need)) copy = malloc(need + 1);
  if (copy) om_value_copy(&value, copy, out);
  om_pool_deinit(&ctx, &pool);
  free(bytes);
  return copy != NULL;
}

static int read_input(const given *from, om_dtype kind, om_tensor *out) {
  const char *problem = NULL;
  void *bytes = NULL;
  size_t byte_count = 0;
  bool ok;
  if (has_suffix(from->value, ".npz")) {
    ok = npz_read(from->value, from->name, from->name_bytes, out, &problem);
  } else if (has_suffix(from->value, ".pb")) {
    ok = read_proto(from->value, kind, out, &problem);
  } else {
    ok = file_read(from->value, &bytes, &byte_count, &problem) &&
         npy_parse(bytes, byte_count, out, &problem);
    free(bytes);
  }
  return ok ? EXIT_DONE : report_problem(EXIT_FILE, "%s: %s", from->value, problem);
}

/* "1x3x48x320"; "" and "scalar" are a scalar. */
static bool parse_shape(const char *text, om_tensor *out) {
  out->rank = 0;
  if (strcmp(text, "scalar") == 0) return true;
  for (;;) {
    char *end = NULL;
    long long extent = strtoll(text, &end, 10);
    if (end == text || extent < 0 || out->rank == OM_MAX_RANK) return false;
    out->dims[out->rank++] = extent;
    if (!*end) return true;
    if (*end != 'x' && *end != ',') return false;
    text = end + 1;
  }
}

/* A generator of 64-bit numbers with a 64-bit state (a Weyl sequence, mixed). */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Floats lie evenly in [-1, 1); integers are 0 or 1, so that they are indices of most tables. */
static bool fill_random(om_tensor *t, uint64_t *state) {
  size_t elems = om_tensor_elems(t);
  for (size_t i = 0; i < elems; ++i) {
    uint64_t r = next_random(state);
    float f = (float)(r >> 40) * (2.0f / 16777216.0f) - 1.0f;
    uint8_t bit = (uint8_t)(r >> 63);
    switch (t->dtype) {
      case OM_DTYPE_F32:
        ((float *)t->data)[i] = f;
        break;
      case OM_DTYPE_F64:
        ((double *)t->data)[i] = (double)f;
        break;
      case OM_DTYPE_F16:
        ((uint16_t *)t->data)[i] = om_f16_from_f32(f);
        break;
      case OM_DTYPE_BF16:
        ((uint16_t *)t->data)[i] = om_bf16_from_f32(f);
        break;
      case OM_DTYPE_U8:
      case OM_DTYPE_I8:
      case OM_DTYPE_BOOL:
        ((uint8_t *)t->data)[i] = bit;
        break;
      case OM_DTYPE_U16:
      case OM_DTYPE_I16:
        ((uint16_t *)t->data)[i] = bit;
        break;
      case OM_DTYPE_U32:
      case OM_DTYPE_I32:
        ((uint32_t *)t->data)[i] = bit;
        break;
      case OM_DTYPE_U64:
      case OM_DTYPE_I64:
        ((uint64_t *)t->data)[i] = bit;
        break;
      default:
        return false;
    }
  }
  return true;
}

static int make_random(const options *o,
                       const om_value_info *value,
                       uint64_t *state,
                       om_tensor *out) {
  char words[512];
  const given *shape = find_given(o->shapes, o->shape_count, value->name);
  if (value->dtype == OM_DTYPE_MAP) {
    return report_problem(
        EXIT_UNSUPPORTED, "The input '%s' is a map, which no file holds.", value->name);
  }
  if (value->elem) {
    return report_problem(EXIT_USAGE,
                          "The input '%s' is %s %s: give it with --input %s=FILE.pb.",
                          value->name,
                          value->dtype == OM_DTYPE_OPTIONAL ? "an" : "a",
                          om_dtype_name(value->dtype),
                          value->name);
  }
  om_tensor t = {.dtype = value->dtype, .rank = value->rank};
  memcpy(t.dims, value->dims, sizeof t.dims);
  if (shape) {
    if (!parse_shape(shape->value, &t)) {
      return report_problem(EXIT_USAGE, "--shape %s: expects NAME=1x3x48x320.", shape->name);
    }
  } else {
    bool is_known = value->has_rank;
    if (is_known && t.rank > 0 && t.dims[0] < 0) t.dims[0] = 1; /* a batch of one */
    for (uint32_t i = 0; i < t.rank; ++i) is_known &= t.dims[i] >= 0;
    if (!is_known) {
      return report_problem(EXIT_USAGE,
                            "The input '%s' has the shape %s: give it with --shape %s=...",
                            value->name,
                            shape_words(words, sizeof words, value),
                            value->name);
    }
  }
  t = om_tensor_of(t.dtype, t.rank, t.dims, NULL);
  if (t.data_bytes == 0 && om_tensor_elems(&t) != 0) {
    return report_problem(EXIT_FAILED, "The input '%s' is too large.", value->name);
  }
  t.data = malloc(t.data_bytes + 1);
  if (!t.data)
    return report_problem(EXIT_FAILED, "There is no memory for the input '%s'.", value->name);
  *out = t;
  if (!fill_random(out, state)) {
    return report_problem(EXIT_UNSUPPORTED,
                          "The input '%s' of type %s cannot be filled at random.",
                          value->name,
                          om_dtype_name(value->dtype));
  }
  return EXIT_DONE;
}

int make_inputs(const options *o, const om_model_info *info, tensors *out) {
  uint64_t state = o->seed;
  int code = check_names(o->inputs, o->input_count, info);
  if (code == EXIT_DONE) code = check_names(o->shapes, o->shape_count, info);
  if (code != EXIT_DONE) return code;
  out->items = calloc(info->input_count + 1, sizeof *out->items);
  if (!out->items) return report_problem(EXIT_FAILED, "There is no memory for the inputs.");
  for (size_t i = 0; i < info->input_count && code == EXIT_DONE; ++i) {
    om_named_tensor *item = &out->items[out->count++];
    const given *from = find_given(o->inputs, o->input_count, info->inputs[i].name);
    item->name = info->inputs[i].name;
    code = from ? read_input(from, info->inputs[i].dtype, &item->tensor)
                : make_random(o, &info->inputs[i], &state, &item->tensor);
  }
  return code;
}

/* Every tensor at a multiple of 64 of one block. Lists and strings point to memory of their own and
 * stay where they are: then nothing is moved. */
int lend_inputs(om_session *session, tensors *t) {
  enum { ALIGNMENT = 64 };
  om_error error;
  size_t bytes = 0;
  void *block = NULL;
  for (size_t i = 0; i < t->count; ++i) {
    const om_tensor *tensor = &t->items[i].tensor;
    if (tensor->dtype == OM_DTYPE_STRING || om_dtype_bits(tensor->dtype) == 0 ||
        om_dtype_is_nested(tensor->dtype)) {
      return EXIT_DONE;
    }
    bytes += om_size_align(tensor->data_bytes, ALIGNMENT);
  }
  if (om_session_lend_memory(session, bytes, &block, &error) != OM_OK) return report_error(&error);
  char *at = block;
  for (size_t i = 0; i < t->count; ++i) {
    om_tensor *tensor = &t->items[i].tensor;
    if (tensor->data_bytes > 0) memcpy(at, tensor->data, tensor->data_bytes);
    free(tensor->data);
    tensor->data = at;
    at += om_size_align(tensor->data_bytes, ALIGNMENT);
  }
  t->is_lent = true;
  return EXIT_DONE;
}

void free_tensors(tensors *t) {
  for (size_t i = 0; i < t->count && !t->is_lent; ++i) free(t->items[i].tensor.data);
  free(t->items);
  *t = (tensors){0};
}
