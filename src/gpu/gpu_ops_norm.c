/* Normalisations: rows that stand one after the other. BatchNormalization is a chain:
 * times a factor a channel, plus a shift a channel, both made here from its constants; where those
 * are made at run time, or no float16 holds them, it has a kernel. */
#include "abi/batchnorm_params.h"
#include "abi/layernorm_params.h"
#include "base/om_thread.h"
#include "gpu/om_gpu_rows.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_elementwise.h"
#include "ops/op_norm.h"

static const char *check_dtype(om_gpu_binder *b, uint32_t input, om_dtype dtype) {
  const om_tensor *tensor = om_gpu_input(b, input);
  if (!tensor || tensor->dtype == dtype) return NULL;
  return om_gpu_reason(b, "its input %u is %s", input, om_dtype_name(tensor->dtype));
}

/* Rows that stand one after the other, with a scale and a bias that all have in common. */
static bool are_dense(const om_gpu_rows *rows, const om_norm_place *place) {
  const bool is_dense = rows->inner == 1 && rows->outer_stride == rows->row_elems;
  const bool is_plain =
      place->row_step == 0 && place->inner == 1 && place->period == rows->row_elems;
  return is_plain && (is_dense || rows->row_count <= 1);
}

enum { CORES = 132, MOST_ROWS = 16 * CORES }; /* of an H200, and of norm_sm90.c */

/* The kernel of sm90/norm_sm90.c for these rows, of octets; false: none is. Scale and bias are read
 * before other launches are done: they are constants. */
static bool find_sm90_kernel(const om_gpu_binder *b,
                             const om_gpu_rows *rows,
                             const om_norm_place *place,
                             om_shader *out_shader) {
  static const struct {
    uint32_t most_elems;
    om_shader shaders[2]; /* float32, float16 */
  } kernels[] = {
      {768, {OM_SHADER_NORM_SM90_768, OM_SHADER_NORM_SM90_768_HALF}},
      {2048, {OM_SHADER_NORM_SM90_2048, OM_SHADER_NORM_SM90_2048_HALF}},
  };
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  if (!om_gpu_takes_sm90(b, OM_MODE_FAST) || !are_dense(rows, place)) return false;
  if (rows->row_count > MOST_ROWS || rows->row_elems % 8 != 0) return false;
  if (!om_gpu_input(b, 1)->data) return false;
  if (om_gpu_input(b, 2) && !om_gpu_input(b, 2)->data) return false;
  for (size_t i = OM_COUNT_OF(kernels); i-- > 0;) {
    if (rows->row_elems > kernels[i].most_elems) return i + 1 < OM_COUNT_OF(kernels);
    *out_shader = kernels[i].shaders[is_half];
  }
  return true;
}

/* Workgroups of a warp for each row. One a core, each of as few rows as that leaves, but four:
 * fewer workgroups count faster. More of them where that many have too few warps. */
static void spread_sm90(const om_gpu_binder *b,
                        om_shader shader,
                        const om_gpu_rows *rows,
                        uint32_t groups[3]) {
  enum { FEW_ROWS = 4, WARP = 32 };
  const uint64_t least =
      om_gpu_pieces(rows->row_count, om_shader_get(shader)->workgroup_size[0] / WARP);
  const uint64_t most = om_gpu_pieces(rows->row_count, FEW_ROWS);
  const uint64_t spread = most < CORES ? most : CORES;
  om_gpu_spread_groups(b, spread > least ? spread : least, groups);
}

/* Rows in subgroups; else in workgroups of 256, whose lanes keep eight elements. Sets the constants
 * behind the first two. */
static om_shader choose_rows(const om_gpu_binder *b,
                             om_gpu_rows *rows,
                             const om_norm_place *place,
                             uint32_t constants[2],
                             uint32_t *out_count) {
  enum { MOST_KEPT = 8, GROUP = 64 };
  static const om_gpu_row_forms forms = OM_GPU_ROW_FORMS(LAYERNORM);
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  *out_count = 1;
  if (om_gpu_rows_are_alone(rows)) return om_gpu_rows_form(b, &forms, rows, dtype);
  if (are_dense(rows, place)) {
    constants[0] =
        om_gpu_row_quads(om_gpu_binder_features(b), om_gpu_binder_limits(b), rows->row_elems);
  }
  if (constants[0] == 0) {
    const uint32_t kept = (uint32_t)om_gpu_pieces(rows->row_elems, rows->lanes);
    constants[0] = kept < MOST_KEPT ? kept : MOST_KEPT;
    return om_gpu_rows_form(b, &forms, rows, dtype);
  }
  rows->lanes = om_gpu_binder_limits(b)->subgroup_size;
  rows->rows = GROUP / rows->lanes;
  constants[1] = rows->rows;
  *out_count = 2;
  return OM_GPU_KERNEL(b, LAYERNORM_SUBGROUP, dtype);
}

/* Rows of `row_elems` neighbours; inputs: data, scale, bias (may be absent). */
static const char *bind_rows(om_gpu_binder *b, const om_rows *rows, const om_norm_place *place) {
  const om_norm_params *params = om_gpu_binder_node(b)->params;
  bool has_bias = om_gpu_input(b, 2) != NULL;
  om_gpu_rows fields;
  const char *reason = om_gpu_rows_from(b, rows, &fields);
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  if (!reason) reason = check_dtype(b, 1, dtype);
  if (!reason) reason = check_dtype(b, 2, dtype);
  if (reason) return reason;

  uint32_t constants[2] = {0, 0};
  uint32_t constant_count = 0;
  om_shader shader = OM_SHADER_LAYERNORM;
  const bool is_sm90 = find_sm90_kernel(b, &fields, place, &shader);
  if (!is_sm90) shader = choose_rows(b, &fields, place, constants, &constant_count);
  om_gpu_operand from = om_gpu_read(b, 0);
  om_gpu_operand scale = om_gpu_read(b, 1);
  om_gpu_operand bias = {.kind = OM_GPU_NOTHING};
  if (has_bias) bias = om_gpu_read(b, 2);
  om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_operand wide = {.kind = OM_GPU_NOTHING};
  const bool takes_wide = dtype == OM_DTYPE_F16 && om_gpu_binder_mode(b) == OM_MODE_FAST;
  if (takes_wide) wide = om_gpu_scratch(b, 4 * sizeof(float)); /* what is written there is unused */
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  om_layernorm_kernel_params block = {.count = (float)rows->row_elems,
                                      .epsilon = params->epsilon,
                                      .place_row_period = (uint32_t)place->row_period,
                                      .place_row_step = (uint32_t)place->row_step,
                                      .place_inner = (uint32_t)place->inner,
                                      .place_period = (uint32_t)place->period};
  memcpy(&block, &fields, sizeof fields);
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = params->kind == OM_NORM_DEVIATION;
  d->constants[1] = has_bias;
  memcpy(&d->constants[2], constants, sizeof constants);
  d->constant_count = 3 + constant_count; /* the last: whether there is a residual */
  d->takes_residual = true;
  d->takes_wide = takes_wide;
  d->operands[0] = from;
  d->operands[1] = scale;
  d->operands[2] = bias;
  d->operands[3] = (om_gpu_operand){.kind = OM_GPU_NOTHING};
  d->operands[4] = to;
  d->operands[5] = wide;
  d->operand_count = takes_wide ? 6 : 5;
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  if (is_sm90) {
    spread_sm90(b, shader, &fields, d->groups);
  } else {
    om_gpu_rows_spread(b, &fields, d);
  }
  return NULL;
}

static const char *bind_last_axes(om_gpu_binder *b) {
  const om_norm_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *in = om_gpu_input(b, 0);
  om_norm_place place;
  om_rows rows;
  uint32_t axis = 0;
  b->status = om_rule_axis(b->ctx, params->axis, in->rank, &axis);
  if (b->status != OM_OK) return "its axis does not fit";
  if (om_gpu_output(b, 1) || om_gpu_output(b, 2)) return "its mean or deviation is read";
  if (!om_layer_norm_place(in, axis, om_gpu_input(b, 1), &place)) return "its scale does not fit";
  om_rows_init(&rows, in, ((1u << in->rank) - 1) & ~((1u << axis) - 1));
  return bind_rows(b, &rows, &place);
}

static const char *bind_channels(om_gpu_binder *b) {
  om_rows rows;
  om_norm_place place;
  om_channel_norm_rows(om_gpu_binder_node(b)->params, om_gpu_input(b, 0), &rows, &place);
  return bind_rows(b, &rows, &place);
}

/* ---- BatchNormalization ---- */

typedef struct om_batch_norm_fill {
  om_batch_norm_job job;
  bool wants_shift;
} om_batch_norm_fill;

static void fill_factors(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const om_batch_norm_fill *fill = arg;
  uint64_t state = om_flush_subnormals_begin();
  (void)source;
  for (size_t i = 0; i < fill->job.channels; ++i) {
    float factors[2] = {0.0f, 0.0f};
    om_batch_norm_factors(&fill->job, i, &factors[0], &factors[1]);
    ((float *)target)[i] = factors[fill->wants_shift ? 1 : 0];
  }
  om_flush_subnormals_end(state);
}

/* By the kernel that makes factor and shift from the statistics, whose type is the input's. */
static const char *bind_statistics(om_gpu_binder *b, const om_batchnorm_kernel_params *params) {
  enum { INPUTS = 5, GROUP_THREADS = 128 };
  om_gpu_operand operands[INPUTS + 1];
  for (uint32_t i = 1; i < INPUTS; ++i) {
    const char *reason = check_dtype(b, i, om_gpu_input(b, 0)->dtype);
    if (reason) return reason;
  }
  for (uint32_t i = 0; i < INPUTS; ++i) operands[i] = om_gpu_read(b, i);
  operands[INPUTS] = om_gpu_write(b, 0);
  om_gpu_dispatch *d =
      om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, BATCHNORM, om_gpu_input(b, 0)->dtype));
  if (!d) return om_gpu_no_memory;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = INPUTS + 1;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  d->has_chain = true;
  d->chain_value = operands[INPUTS].index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * (uint64_t)params->elems;
  om_gpu_spread_groups(b, om_gpu_pieces(params->elems, GROUP_THREADS), d->groups);
  return NULL;
}

static const char *bind_batch_norm(om_gpu_binder *b) {
  const om_batch_norm_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *in = om_gpu_input(b, 0);
  static const uint8_t items[] = {OM_ELEMENTWISE_Mul, OM_ELEMENTWISE_Add};
  om_batch_norm_fill fill = {.job = {.epsilon = params->epsilon,
                                     .scale = om_gpu_input(b, 1),
                                     .bias = om_gpu_input(b, 2),
                                     .mean = om_gpu_input(b, 3),
                                     .variance = om_gpu_input(b, 4),
                                     .channels = in->rank > 1 ? (size_t)in->dims[1] : 1}};
  size_t inner = in->rank > 2 ? om_rule_product(in->dims, 2, in->rank) : 1;
  uint64_t bytes = fill.job.channels * sizeof(float);
  if (params->is_training) return "training stays on the CPU";
  const om_batchnorm_kernel_params block = {.elems = (uint32_t)om_tensor_elems(in),
                                            .inner = (uint32_t)inner,
                                            .channels = (uint32_t)fill.job.channels,
                                            .epsilon = params->epsilon};
  for (uint32_t i = 1; i < 5; ++i) {
    if (!om_gpu_is_at_hand(b, i)) return bind_statistics(b, &block);
  }
  if (in->dtype == OM_DTYPE_F16) return bind_statistics(b, &block);
  om_gpu_operand factors[2];
  for (size_t i = 0; i < 2; ++i) {
    fill.wants_shift = i == 1;
    const char *recipe = i == 0 ? "batch norm scale" : "batch norm shift";
    factors[i] = om_gpu_made_constant(b, UINT32_MAX, recipe, bytes, fill_factors, &fill);
  }
  om_gpu_dispatch *d = om_gpu_add_elementwise(b, 0);
  if (!d) return om_gpu_no_memory;
  d->chain.inner = (uint32_t)inner;
  d->chain.channels = (uint32_t)fill.job.channels;
  for (size_t i = 0; i < 2; ++i) {
    om_chain_item item = {.op = items[i], .source = OM_CHAIN_VECTOR};
    if (!om_gpu_chain_add(&d->chain, item, &factors[i], NULL, 0)) return om_gpu_no_memory;
  }
  return NULL;
}

#define OM_GPU_NORM(name, bind_fn)                                                  \
  {.domain = "",                                                                    \
   .type = (name),                                                                  \
   .dtypes = OM_DT_REAL,                                                            \
   .has_exact = true,                                                               \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_SQRT, \
   .bind = bind_fn}

const om_gpu_op om_gpu_ops_norm[] = {
    OM_GPU_NORM("LayerNormalization", bind_last_axes),
    OM_GPU_NORM("RMSNormalization", bind_last_axes),
    OM_GPU_NORM("InstanceNormalization", bind_channels),
    OM_GPU_NORM("GroupNormalization", bind_channels),
    OM_GPU_NORM("BatchNormalization", bind_batch_norm),
    {.type = NULL},
};
