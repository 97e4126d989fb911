/* NonMaxSuppression (docs/exact.md, "Samples"). How many boxes it chooses depends on the data, so
 * the shape rule chooses them once to count them. */
#include <inttypes.h>

#include "cpu/exact/om_nms.h"
#include "ops/om_rule.h"

enum { BOXES, SCORES, MOST, OVERLAP, LEAST, INPUTS };

typedef struct om_nms_params {
  bool is_by_center;
} om_nms_params;

static om_status resolve(om_ctx *ctx, const om_node *node, void *out_params) {
  om_nms_params *params = out_params;
  int64_t format = 0;
  OM_TRY(om_node_attr_int(ctx, node, "center_point_box", 0, &format));
  if (format != 0 && format != 1) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "center_point_box is %lld; it must be 0 or 1.", (long long)format);
  }
  params->is_by_center = format == 1;
  return OM_OK;
}

static om_status check_input(
    om_ctx *ctx, const om_op_call *call, uint32_t index, om_dtype dtype, bool is_number) {
  const om_tensor *x = om_rule_input(call, index);
  if (!x) return OM_OK;
  if (x->dtype == dtype && (is_number ? om_tensor_elems(x) == 1 : x->rank == 3)) return OM_OK;
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input %u is %s of shape %s, but it must be %s %s.",
                 index,
                 om_dtype_name(x->dtype),
                 om_shape_text(text, sizeof text, x->rank, x->dims),
                 is_number ? "one" : "three axes of",
                 om_dtype_name(dtype));
}

static om_status check_shapes(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *boxes = call->inputs[BOXES];
  const om_tensor *scores = call->inputs[SCORES];
  OM_TRY(check_input(ctx, call, BOXES, OM_DTYPE_F32, false));
  OM_TRY(check_input(ctx, call, SCORES, OM_DTYPE_F32, false));
  OM_TRY(check_input(ctx, call, MOST, OM_DTYPE_I64, true));
  OM_TRY(check_input(ctx, call, OVERLAP, OM_DTYPE_F32, true));
  OM_TRY(check_input(ctx, call, LEAST, OM_DTYPE_F32, true));
  if (boxes->dims[2] == 4 && boxes->dims[0] == scores->dims[0] &&
      boxes->dims[1] == scores->dims[2]) {
    return OM_OK;
  }
  char text[2][OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Boxes of shape %s do not go with scores of shape %s.",
                 om_shape_text(text[0], sizeof text[0], 3, boxes->dims),
                 om_shape_text(text[1], sizeof text[1], 3, scores->dims));
}

static float number_of(const om_op_call *call, uint32_t index) {
  const om_tensor *x = om_rule_input(call, index);
  float number = 0;
  if (x) memcpy(&number, x->data, sizeof number);
  return number;
}

static om_nms job_of(const om_op_call *call) {
  const om_nms_params *params = call->params;
  const om_tensor *scores = call->inputs[SCORES];
  const om_tensor *most = om_rule_input(call, MOST);
  const int64_t count = most ? om_rule_int(most, 0) : 0;
  return (om_nms){
      .images = (size_t)scores->dims[0],
      .classes = (size_t)scores->dims[1],
      .boxes = (size_t)scores->dims[2],
      .corners = call->inputs[BOXES]->data,
      .scores = scores->data,
      .is_by_center = params->is_by_center,
      .most = count > 0 ? (size_t)count : 0,
      .overlap = number_of(call, OVERLAP),
      .has_least = om_rule_input(call, LEAST) != NULL,
      .least = number_of(call, LEAST),
  };
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  om_status st = OM_OK;
  uint8_t *scratch = NULL;
  OM_TRY(check_shapes(ctx, call));
  for (uint32_t i = 0; i < INPUTS; ++i) {
    const om_tensor *x = om_rule_input(call, i);
    if (!x || om_rule_is_known(x)) continue;
    om_rule_set_unknown(call, 0, OM_DTYPE_I64);
    return OM_OK;
  }
  const om_nms job = job_of(call);
  if (!(job.overlap >= 0 && job.overlap <= 1)) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "The overlap %g does not lie in 0..1.", (double)job.overlap);
  }
  OM_GO_NEW(scratch, om_nms_scratch_bytes(job.boxes) + 1);
  const int64_t dims[2] = {(int64_t)om_nms_run(ctx, &job, scratch, NULL), 3};
  OM_GO(om_check_cancelled(ctx));
  st = om_rule_set(ctx, call, 0, OM_DTYPE_I64, 2, dims);
done:
  om_delete(ctx, scratch);
  return st;
}

static size_t scratch_bytes(const om_op_call *call) {
  return om_nms_scratch_bytes((size_t)call->inputs[SCORES]->dims[2]);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_nms job = job_of(call);
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  om_nms_run(ctx, &job, call->scratch, call->outputs[0]->data);
  return OM_OK;
}

const om_op om_ops_nms[] = {
    {.domain = "",
     .type = "NonMaxSuppression",
     .first_opset = 10,
     OM_RULE_COUNTS(2, INPUTS, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32),
     .float32_inputs = 1u << BOXES | 1u << SCORES | 1u << OVERLAP | 1u << LEAST,
     .params_bytes = sizeof(om_nms_params),
     .is_sized_by_data = true,
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
