/* TfIdfVectorizer: counts the n-grams of a list, weighted. The n-grams of the pool are found by a
 * hash table in the run's scratch. */
#include <inttypes.h>

#include "ops/om_rule.h"
#include "ops/op_text.h"

typedef enum weighting { WEIGHT_TF, WEIGHT_IDF, WEIGHT_TFIDF } weighting;

typedef struct om_tfidf_params {
  weighting mode;
  int64_t least, most, most_skip; /* lengths of n-grams; elements left out between theirs */
  const int64_t *starts;          /* ngram_counts: where in the pool those of 1, 2, ... begin */
  size_t start_count;
  const int64_t *indexes; /* by n-gram: its place in the result */
  size_t gram_count;
  const int64_t *integers; /* the pool: either of the two */
  const om_string *strings;
  size_t pool_count;
  const float *weights; /* by n-gram; NULL: 1 */
  int64_t width;        /* of the result */
} om_tfidf_params;

/* ---- Attributes ---- */

static om_status read_pool(om_ctx *ctx, const om_node *node, om_tfidf_params *p) {
  const om_attr *strings = om_node_attr(node, "pool_strings");
  if (!strings) return om_node_attr_ints(ctx, node, "pool_int64s", &p->integers, &p->pool_count);
  if (strings->kind != OM_ATTR_STRINGS) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Attribute 'pool_strings' is no list of strings.");
  }
  p->strings = strings->strings;
  p->pool_count = strings->count;
  return OM_OK;
}

/* Where the n-grams of a length end in the pool. */
static size_t end_of(const om_tfidf_params *p, int64_t length) {
  return (uint64_t)length < p->start_count ? (size_t)p->starts[length] : p->pool_count;
}

static om_status check_pool(om_ctx *ctx, om_tfidf_params *p) {
  size_t grams = 0;
  for (size_t i = 0; i < p->start_count; ++i) {
    int64_t begin = p->starts[i], end = (int64_t)end_of(p, (int64_t)i + 1);
    if (begin < 0 || end < begin || end > (int64_t)p->pool_count ||
        (end - begin) % ((int64_t)i + 1) != 0) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "ngram_counts says that n-grams of %zu lie from %" PRId64 " to %" PRId64
                     " in a pool of %zu.",
                     i + 1,
                     begin,
                     end,
                     p->pool_count);
    }
    grams += (size_t)(end - begin) / (i + 1);
  }
  if (p->start_count == 0 || p->starts[0] != 0 || grams != p->gram_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The pool has %zu n-grams, but ngram_indexes has %zu.",
                   grams,
                   p->gram_count);
  }
  for (size_t i = 0; i < p->gram_count; ++i) {
    if (p->indexes[i] < 0 || p->indexes[i] > INT32_MAX) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "ngram_indexes holds %" PRId64 ".", p->indexes[i]);
    }
    if (p->indexes[i] >= p->width) p->width = p->indexes[i] + 1;
  }
  return OM_OK;
}

static om_status read_mode(om_ctx *ctx, const om_node *node, om_tfidf_params *p) {
  om_string mode;
  OM_TRY(om_node_attr_text(ctx, node, "mode", "", &mode));
  if (om_string_is(mode, "IDF")) p->mode = WEIGHT_IDF;
  if (om_string_is(mode, "TFIDF")) p->mode = WEIGHT_TFIDF;
  if (p->mode != WEIGHT_TF || om_string_is(mode, "TF")) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute 'mode' must be TF, IDF or TFIDF.");
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_tfidf_params *p = params;
  const om_attr *weights = om_node_attr(node, "weights");
  OM_TRY(read_mode(ctx, node, p));
  OM_TRY(om_node_attr_int(ctx, node, "min_gram_length", 1, &p->least));
  OM_TRY(om_node_attr_int(ctx, node, "max_gram_length", 1, &p->most));
  OM_TRY(om_node_attr_int(ctx, node, "max_skip_count", 0, &p->most_skip));
  if (p->least < 1 || p->most < p->least || p->most_skip < 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "N-grams of %" PRId64 " to %" PRId64 " elements with %" PRId64
                   " left out cannot be.",
                   p->least,
                   p->most,
                   p->most_skip);
  }
  OM_TRY(om_node_attr_ints(ctx, node, "ngram_counts", &p->starts, &p->start_count));
  OM_TRY(om_node_attr_ints(ctx, node, "ngram_indexes", &p->indexes, &p->gram_count));
  OM_TRY(read_pool(ctx, node, p));
  OM_TRY(check_pool(ctx, p));
  if (!weights) return OM_OK;
  if (weights->kind != OM_ATTR_FLOATS || weights->count != p->gram_count) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "Attribute 'weights' must have %zu floats.", p->gram_count);
  }
  p->weights = weights->floats;
  return OM_OK;
}

/* ---- The table ---- */

typedef struct list { /* of integers or of strings */
  const om_tensor *input;
  const om_tfidf_params *pool; /* where input is NULL */
  size_t begin, step;
} list;

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u; /* FNV-1a's factor */
  }
  return hash;
}

static int64_t integer_at(const list *l, size_t index) {
  size_t at = l->begin + index * l->step;
  return l->input ? om_rule_int(l->input, at) : l->pool->integers[at];
}

static om_string string_at(const list *l, size_t index) {
  size_t at = l->begin + index * l->step;
  return l->input ? ((const om_string *)l->input->data)[at] : l->pool->strings[at];
}

static uint64_t hash_gram(const om_tfidf_params *p, const list *l, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u ^ length; /* FNV-1a's start */
  for (size_t i = 0; i < length; ++i) {
    if (p->strings) {
      om_string text = string_at(l, i);
      hash = hash_bytes(hash, text.data, text.bytes);
      hash = hash_bytes(hash, &text.bytes, sizeof text.bytes);
    } else {
      int64_t value = integer_at(l, i);
      hash = hash_bytes(hash, &value, sizeof value);
    }
  }
  return hash ^ hash >> 29;
}

static bool is_same(const om_tfidf_params *p, const list *a, const list *b, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    if (p->strings) {
      if (!om_string_same(string_at(a, i), string_at(b, i))) return false;
    } else if (integer_at(a, i) != integer_at(b, i)) {
      return false;
    }
  }
  return true;
}

typedef struct table_slot { /* a gram of the pool */
  uint32_t gram;            /* its number + 1; 0: free */
  uint32_t begin;           /* in the pool */
} table_slot;

static size_t slot_count(const om_tfidf_params *p) {
  size_t count = 16;
  while (count / 2 < p->gram_count) count *= 2;
  return count;
}

/* The slot of the gram, or the free one where it would be. Grams of other lengths hash apart, and
 * are told apart by where they lie. */
static table_slot *find_slot(const om_tfidf_params *p,
                             table_slot *slots,
                             const list *l,
                             size_t length) {
  size_t mask = slot_count(p) - 1;
  size_t low = (size_t)p->starts[length - 1], high = end_of(p, (int64_t)length);
  for (size_t at = hash_gram(p, l, length) & mask;; at = (at + 1) & mask) {
    table_slot *slot = &slots[at];
    list other = {.pool = p, .begin = slot->begin, .step = 1};
    if (slot->gram == 0) return slot;
    if (slot->begin < low || slot->begin >= high) continue;
    if (is_same(p, l, &other, length)) return slot;
  }
}

static void fill_table(const om_tfidf_params *p, table_slot *slots) {
  uint32_t gram = 0;
  memset(slots, 0, slot_count(p) * sizeof *slots);
  for (size_t length = 1; length <= p->start_count; ++length) {
    size_t end = end_of(p, (int64_t)length);
    for (size_t begin = (size_t)p->starts[length - 1]; begin < end; begin += length) {
      list l = {.pool = p, .begin = begin, .step = 1};
      table_slot *slot = find_slot(p, slots, &l, length);
      gram += 1;
      if (slot->gram == 0) *slot = (table_slot){.gram = gram, .begin = (uint32_t)begin};
    }
  }
}

/* ---- The operator ---- */

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tfidf_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  bool is_text = x->dtype == OM_DTYPE_STRING;
  if (x->rank < 1 || x->rank > 2) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Its input has rank %u, not 1 or 2.", x->rank);
  }
  if (is_text != (p->strings != NULL) && p->pool_count > 0) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "The pool does not fit an input of %s.", om_dtype_name(x->dtype));
  }
  int64_t dims[2] = {x->dims[0], p->width};
  if (x->rank == 1) return om_rule_set(ctx, call, 0, OM_DTYPE_F32, 1, &dims[1]);
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, 2, dims);
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_tfidf_params *p = call->params;
  return slot_count(p) * sizeof(table_slot);
}

static om_status count_row(om_ctx *ctx,
                           const om_op_call *call,
                           table_slot *slots,
                           size_t begin,
                           size_t width,
                           float *out) {
  const om_tfidf_params *p = call->params;
  for (int64_t length = p->least; length <= p->most; ++length) {
    if ((uint64_t)length > p->start_count || (uint64_t)length > width) break;
    int64_t most_skip = length == 1 ? 0 : p->most_skip;
    for (int64_t skip = 0; skip <= most_skip; ++skip) {
      size_t step = (size_t)skip + 1;
      if (step > width || (size_t)(length - 1) > (width - 1) / step) break;
      for (size_t at = 0; at + (size_t)(length - 1) * step < width; ++at) {
        list l = {.input = call->inputs[0], .begin = begin + at, .step = step};
        OM_TRY(om_check_turn(ctx, at));
        const table_slot *slot = find_slot(p, slots, &l, (size_t)length);
        if (slot->gram > 0) out[p->indexes[slot->gram - 1]] += 1.0f;
      }
    }
  }
  return OM_OK;
}

/* weights[i] belongs to the n-gram i, whose count is at indexes[i]. */
static void weigh_row(const om_tfidf_params *p, float *out) {
  for (size_t i = 0; i < p->gram_count && p->mode != WEIGHT_TF; ++i) {
    float *count = &out[p->indexes[i]];
    float weight = p->weights ? p->weights[i] : 1.0f;
    if (*count > 0.0f) *count = p->mode == WEIGHT_IDF ? weight : *count * weight;
  }
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tfidf_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t rows = x->rank == 2 ? (size_t)x->dims[0] : 1;
  const size_t width = (size_t)x->dims[x->rank - 1];
  float *out = call->outputs[0]->data;
  fill_table(p, call->scratch);
  memset(out, 0, om_tensor_elems(call->outputs[0]) * sizeof *out);
  for (size_t i = 0; i < rows; ++i) {
    OM_TRY(count_row(ctx, call, call->scratch, i * width, width, out + i * (size_t)p->width));
    weigh_row(p, out + i * (size_t)p->width);
  }
  return OM_OK;
}

const om_op om_ops_tfidf[] = {
    {.domain = "",
     .type = "TfIdfVectorizer",
     .first_opset = 9,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_STRING) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64),
     .params_bytes = sizeof(om_tfidf_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
