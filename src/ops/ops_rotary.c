/* RotaryEmbedding. */
#include "ops/op_rotary.h"

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_rotary_params *p = params;
  int64_t interleaved = 0;
  OM_TRY(om_node_attr_int(ctx, node, "num_heads", 0, &p->heads));
  OM_TRY(om_node_attr_int(ctx, node, "rotary_embedding_dim", 0, &p->size));
  OM_TRY(om_node_attr_int(ctx, node, "interleaved", 0, &interleaved));
  p->is_interleaved = interleaved != 0;
  if (p->heads >= 0 && p->size >= 0 && p->size % 2 == 0) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attributes 'num_heads' and 'rotary_embedding_dim' are %lld and %lld.",
                 (long long)p->heads,
                 (long long)p->size);
}

void om_rotary_describe(const om_rotary_params *params,
                        const om_tensor *x,
                        const om_tensor *cos,
                        om_rotary *out) {
  const bool is_flat = x->rank == 3;
  const int64_t half = cos->dims[cos->rank - 1];
  const int64_t heads = params->heads > 0 || half == 0 ? params->heads : x->dims[2] / (2 * half);
  *out = (om_rotary){.elems = om_tensor_elems(x),
                     .half = (size_t)half,
                     .length = (size_t)x->dims[is_flat ? 1 : 2],
                     .is_interleaved = params->is_interleaved};
  out->size = (size_t)(!is_flat ? x->dims[3] : heads > 0 ? x->dims[2] / heads : 0);
  out->row_elems = is_flat ? (size_t)x->dims[2] : out->size;
  out->batch_elems = om_rule_product(x->dims, 1, x->rank);
}

static om_status fail_shape(om_ctx *ctx, const char *what, const om_tensor *t) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "%s, %s of shape %s, does not fit.",
                 what,
                 om_dtype_name(t->dtype),
                 om_shape_text(text, sizeof text, t->rank, t->dims));
}

/* Rows for each position, or for each entry of the batch and row. */
static bool fits_table(const om_tensor *x,
                       const om_tensor *table,
                       const om_rotary *r,
                       bool has_positions) {
  if (table->dtype != x->dtype || (size_t)table->dims[table->rank - 1] != r->half) return false;
  if (has_positions) return table->rank == 2;
  return table->rank == 3 && table->dims[0] == x->dims[0] && (size_t)table->dims[1] == r->length;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_rotary_params *params = call->params;
  const om_tensor *x = call->inputs[OM_ROTARY_X];
  const om_tensor *cos = call->inputs[OM_ROTARY_COS];
  const om_tensor *sin = call->inputs[OM_ROTARY_SIN];
  const om_tensor *positions = om_rule_input(call, OM_ROTARY_POSITIONS);
  om_rotary r;
  if (x->rank != 3 && x->rank != 4) return fail_shape(ctx, "The input", x);
  if (cos->rank < 2) return fail_shape(ctx, "cos_cache", cos);
  if (sin->rank != cos->rank) return fail_shape(ctx, "sin_cache", sin);
  om_rotary_describe(params, x, cos, &r);
  const size_t turned = params->size > 0 ? (size_t)params->size : r.size;
  if (x->rank == 3 && params->heads > 0 && x->dims[2] % params->heads != 0) r.size = 0;
  if (r.size == 0 || turned > r.size || turned % 2 != 0) return fail_shape(ctx, "The input", x);
  r.half = turned / 2;
  if (!fits_table(x, cos, &r, positions)) return fail_shape(ctx, "cos_cache", cos);
  if (!fits_table(x, sin, &r, positions)) return fail_shape(ctx, "sin_cache", sin);
  if (positions && (positions->dtype != OM_DTYPE_I64 || positions->rank != 2 ||
                    positions->dims[0] != x->dims[0] || (size_t)positions->dims[1] != r.length)) {
    return fail_shape(ctx, "position_ids", positions);
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *cos = call->inputs[OM_ROTARY_COS];
  const om_tensor *positions = om_rule_input(call, OM_ROTARY_POSITIONS);
  const size_t count = positions ? om_tensor_elems(positions) : 0;
  size_t ignored = 0;
  om_rotary r;
  for (size_t i = 0; i < count; ++i) {
    OM_TRY(
        om_rule_index(ctx, "RotaryEmbedding", om_rule_int(positions, i), cos->dims[0], &ignored));
  }
  om_rotary_describe(call->params, call->inputs[OM_ROTARY_X], cos, &r);
  om_rotary_run(ctx,
                &r,
                call->inputs[OM_ROTARY_X],
                cos,
                call->inputs[OM_ROTARY_SIN],
                positions ? positions->data : NULL,
                call->outputs[0]);
  return OM_OK;
}

const om_op om_ops_rotary[] = {
    {.domain = "",
     .type = "RotaryEmbedding",
     .first_opset = 23,
     OM_RULE_COUNTS(3, 4, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_rotary_params),
     .resolve = resolve,
     .infer = infer,
     .run = run},
    {.type = NULL},
};
