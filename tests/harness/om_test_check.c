/* Results of a case: copies, bits against bits, and values against the reference. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "harness/om_test_case.h"

/* ---- Copies ---- */

om_status om_test_results_copy(om_ctx *ctx,
                               const om_tensor *tensor,
                               om_test_results *results,
                               uint32_t index) {
  om_tensor *copy = &results->outputs[index];
  size_t bytes = 0;
  *copy = *tensor;
  if (tensor->rank > OM_MAX_RANK ||
      !om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "y%u has an impossible shape.", index);
  }
  if (tensor->data_bytes < bytes || (bytes > 0 && !tensor->data)) {
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "y%u needs %zu bytes, but has %zu.", index, bytes, tensor->data_bytes);
  }
  copy->data_bytes = bytes;
  copy->data = om_pool_new_bytes(ctx, &results->pool, bytes + 1, 1);
  if (!copy->data) return OM_E_OUT_OF_MEMORY;
  if (bytes > 0) memcpy(copy->data, tensor->data, bytes);
  if (tensor->dtype != OM_DTYPE_STRING) return OM_OK;
  const size_t count = om_tensor_elems(tensor);
  om_string *strings = copy->data;
  for (size_t i = 0; i < count; ++i) {
    strings[i].data = om_pool_text(
        ctx, &results->pool, strings[i].bytes ? strings[i].data : "", strings[i].bytes);
    if (!strings[i].data) return OM_E_OUT_OF_MEMORY;
  }
  return OM_OK;
}

void om_test_results_deinit(om_ctx *ctx, om_test_results *results) {
  om_pool_deinit(ctx, &results->pool);
}

om_status om_test_check_same(om_ctx *ctx,
                             const om_test_results *a,
                             const om_test_results *b,
                             const char *what) {
  for (uint32_t i = 0; i < a->count; ++i) {
    const om_tensor *x = &a->outputs[i], *y = &b->outputs[i];
    size_t elem = 0;
    if (om_tensor_same(x, y, &elem)) continue;
    if (elem == SIZE_MAX)
      return OM_FAIL(ctx, OM_E_INTERNAL, "y%u: type or shape differ (%s).", i, what);
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "y%u: bits differ (%s) at element %zu: %.9g and %.9g.",
                   i,
                   what,
                   elem,
                   om_tensor_value(x, elem),
                   om_tensor_value(y, elem));
  }
  return OM_OK;
}

/* ---- Values ---- */

typedef struct value_check { /* one output */
  const om_op_case *test_case;
  om_mode mode;
  uint32_t index;
  const om_tensor *tensor;
  double *actual;
  double *expected;
  size_t count;
} value_check;

static double default_limit(om_dtype dtype) {
  switch (dtype) {
    case OM_DTYPE_F64:
      return 1e-12;
    case OM_DTYPE_F16:
      return 1e-3;
    case OM_DTYPE_BF16:
      return 8e-3;
    default:
      return 1e-6;
  }
}

static om_status fail_at(om_ctx *ctx, const value_check *check, size_t elem, const char *why) {
  char shape[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INTERNAL,
                 "y%u element %zu of %s is %.9g, should be %.9g (%s).",
                 check->index,
                 elem,
                 om_shape_text(shape, sizeof shape, check->tensor->rank, check->tensor->dims),
                 check->actual[elem],
                 check->expected[elem],
                 why);
}

static om_status check_equal(om_ctx *ctx, const value_check *check) {
  for (size_t i = 0; i < check->count; ++i) {
    const double want = om_dtype_round(check->tensor->dtype, check->expected[i]);
    const double is = check->actual[i];
    if (is == want || (isnan(is) && isnan(want))) continue;
    /* A subnormal result counts as zero. */
    if (check->tensor->dtype == OM_DTYPE_F32 && is == 0 && fabs(want) < FLT_MIN) continue;
    return fail_at(ctx, check, i, "must be equal");
  }
  return OM_OK;
}

static om_status check_close(om_ctx *ctx, const value_check *check) {
  const om_op_case *test_case = check->test_case;
  const bool by_elem = test_case->elem_error > 0;
  const double least = check->mode == OM_MODE_FAST ? 1e-5 : 0;
  double limit = by_elem ? test_case->elem_error : test_case->scaled_error;
  char why[96];
  if (limit == 0) limit = default_limit(check->tensor->dtype);
  limit = fmax(limit, least);
  for (size_t i = 0; i < check->count; ++i) {
    const double rounded = om_dtype_round(check->tensor->dtype, check->expected[i]);
    if (!isfinite(rounded)) check->expected[i] = rounded;
  }
  const om_test_comparison found = om_test_compare(check->actual, check->expected, check->count);
  if (!found.specials_match) return fail_at(ctx, check, found.special, "NaN and infinity");
  const double error = by_elem ? found.elem_error : found.scaled_error;
  if (test_case->drift > 0 && fabs(found.drift) > test_case->drift) {
    snprintf(why, sizeof why, "drift %.3g, limit %.3g", found.drift, test_case->drift);
    return fail_at(ctx, check, found.worst, why);
  }
  if (error <= limit) return OM_OK;
  snprintf(
      why, sizeof why, "%s error %.3g, limit %.3g", by_elem ? "relative" : "scaled", error, limit);
  return fail_at(ctx, check, by_elem ? found.elem_worst : found.worst, why);
}

static om_status check_output(om_ctx *ctx, const value_check *check) {
  const bool is_float = om_dtype_is_float(check->tensor->dtype);
  const bool is_exact = check->test_case->bit_exact && check->mode == OM_MODE_EXACT;
  return is_float && !is_exact ? check_close(ctx, check) : check_equal(ctx, check);
}

/* ---- The reference ---- */

static om_status ref_tensor(
    om_ctx *ctx, om_pool *pool, const om_tensor *tensor, bool is_input, om_ref_tensor *out) {
  *out = (om_ref_tensor){
      .dtype = tensor->dtype, .rank = tensor->rank, .elems = om_tensor_elems(tensor)};
  memcpy(out->dims, tensor->dims, sizeof out->dims);
  out->values = OM_POOL_NEW(ctx, pool, double, out->elems + 1);
  if (!out->values) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < out->elems; ++i)
    out->values[i] = is_input ? om_tensor_value(tensor, i) : NAN;
  return OM_OK;
}

static om_status call_reference(om_ctx *ctx,
                                om_pool *pool,
                                om_op_reference reference,
                                const om_test_model *model,
                                const om_test_results *results,
                                om_ref_tensor outputs[OM_CASE_OUTPUTS]) {
  om_ref_tensor inputs[OM_CASE_INPUTS] = {0};
  om_graph graph;
  for (uint32_t i = 0; i < model->input_count; ++i) {
    if (model->inputs[i].is_absent) continue;
    OM_TRY(ref_tensor(ctx, pool, &model->inputs[i].tensor, true, &inputs[i]));
  }
  for (uint32_t i = 0; i < results->count; ++i) {
    OM_TRY(ref_tensor(ctx, pool, &results->outputs[i], false, &outputs[i]));
  }
  const om_status st = om_test_model_graph(ctx, model, &graph);
  if (st == OM_OK) {
    reference(
        &graph.nodes[graph.node_count - 1], inputs, model->input_count, outputs, results->count);
  }
  om_graph_deinit(ctx, &graph);
  return st;
}

/* ---- Shapes and expected texts ---- */

static om_status check_shape(om_ctx *ctx,
                             const char *text,
                             const om_tensor *tensor,
                             uint32_t index) {
  om_tensor want = {0};
  char is_text[OM_SHAPE_TEXT], want_text[OM_SHAPE_TEXT];
  OM_TRY(om_test_shape_parse(ctx, text, &want));
  if (want.rank == tensor->rank &&
      memcmp(want.dims, tensor->dims, want.rank * sizeof want.dims[0]) == 0)
    return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INTERNAL,
                 "y%u has the shape %s, should be %s.",
                 index,
                 om_shape_text(is_text, sizeof is_text, tensor->rank, tensor->dims),
                 om_shape_text(want_text, sizeof want_text, want.rank, want.dims));
}

/* The expected text as a tensor of the result's type; integers and strings are compared here. */
static om_status expected_values(
    om_ctx *ctx, om_pool *pool, const char *text, const om_tensor *tensor, om_tensor *out) {
  *out = *tensor;
  out->data = om_pool_new_bytes(ctx, pool, tensor->data_bytes + 1, 1);
  if (!out->data) return OM_E_OUT_OF_MEMORY;
  return om_test_values_parse(ctx, pool, text, out);
}

static om_status check_expected(om_ctx *ctx, om_pool *pool, const char *text, value_check *check) {
  om_tensor want;
  size_t elem = 0;
  OM_TRY(expected_values(ctx, pool, text, check->tensor, &want));
  if (!om_dtype_is_float(want.dtype)) {
    if (om_tensor_same(check->tensor, &want, &elem)) return OM_OK;
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "y%u element %zu is %.17g, should be %.17g.",
                   check->index,
                   elem,
                   om_tensor_value(check->tensor, elem),
                   om_tensor_value(&want, elem));
  }
  for (size_t i = 0; i < check->count; ++i) check->expected[i] = om_tensor_value(&want, i);
  return check_output(ctx, check);
}

om_status om_test_check_values(om_ctx *ctx,
                               const om_op_suite *suite,
                               const om_op_case *test_case,
                               const om_test_model *model,
                               om_mode mode,
                               const om_test_results *results) {
  om_status st = OM_OK;
  om_pool pool = {0};
  om_ref_tensor outputs[OM_CASE_OUTPUTS] = {0};
  if (suite->reference)
    OM_GO(call_reference(ctx, &pool, suite->reference, model, results, outputs));
  for (uint32_t i = 0; i < results->count; ++i) {
    const om_tensor *tensor = &results->outputs[i];
    value_check check = {.test_case = test_case,
                         .mode = mode,
                         .index = i,
                         .tensor = tensor,
                         .count = om_tensor_elems(tensor)};
    if (test_case->shapes[i]) OM_GO(check_shape(ctx, test_case->shapes[i], tensor, i));
    if (!test_case->expected[i] && !suite->reference) continue;
    check.actual = OM_POOL_NEW(ctx, &pool, double, check.count + 1);
    check.expected = OM_POOL_NEW(ctx, &pool, double, check.count + 1);
    if (!check.actual || !check.expected) {
      st = OM_E_OUT_OF_MEMORY;
      goto done;
    }
    for (size_t e = 0; e < check.count; ++e) check.actual[e] = om_tensor_value(tensor, e);
    if (test_case->expected[i]) {
      OM_GO(check_expected(ctx, &pool, test_case->expected[i], &check));
    } else {
      memcpy(check.expected, outputs[i].values, check.count * sizeof *check.expected);
      OM_GO(check_output(ctx, &check));
    }
  }
done:
  om_pool_deinit(ctx, &pool);
  return st;
}
