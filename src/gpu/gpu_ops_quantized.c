/* Products of 8-bit operands: MatMulInteger, ConvInteger and QLinear's of both, and Microsoft's
 * with a float result.
 *
 *     [DynamicQuantizeMatMul: the first operand's range, and its bytes]
 *     sums of int32 (integer_product.comp)  ->  times the scales (requantize.comp)
 *
 * The kernel's rows are a matrix product's first operand, or a convolution's weights. Fast mode has
 * the exact arithmetic, as in gpu_ops_quantize.c.
 */
#include "abi/integer_product_params.h"
#include "abi/requantize_params.h"
#include "gpu/om_gpu_copy.h"
#include "gpu/om_gpu_quantize.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_quantize.h"

enum {
  TILE = 64,            /* rows and columns of a workgroup, as integer_product.comp has it */
  REQUANTIZED = 1024,   /* elements of a workgroup of requantize.comp */
  MOST_EXTENT = 1 << 24 /* of a window's axes, with their pads: positions are int */
};

typedef struct om_gpu_side { /* what the kernels take as rows or columns */
  const om_tensor *matrix;
  om_dtype dtype;
  uint8_t zero_input, scale_input; /* OM_QUANTIZE_NONE: the operator has none */
  uint32_t count;                  /* rows or columns that have a zero point or scale each */
  om_gpu_operand elems, zero, scale;
} om_gpu_side;

typedef struct om_gpu_qproduct {
  const om_qproduct_roles *roles;
  om_gpu_side rows, columns;
  om_integer_product_params params;
  const om_window *window; /* NULL: matrices */
  uint32_t slices;
} om_gpu_qproduct;

static const om_tensor *input_of(const om_gpu_binder *b, uint8_t input) {
  return input == OM_QUANTIZE_NONE ? NULL : om_gpu_input(b, input);
}

static uint32_t count_of(const om_gpu_binder *b, uint8_t input) {
  const om_tensor *t = input_of(b, input);
  return t ? (uint32_t)om_tensor_elems(t) : 1;
}

/* One element, or one for each row or column: a list, or a tensor that is one. */
static const char *check_list(om_gpu_binder *b, uint8_t input, uint32_t count) {
  const om_tensor *t = input_of(b, input);
  if (!t || om_tensor_elems(t) == 1) return NULL;
  for (uint32_t d = 0; d + 2 < t->rank; ++d) {
    if (t->dims[d] != 1) return "its scales or zero points differ in the batch";
  }
  return om_tensor_elems(t) == count ? NULL : "its scales or zero points do not fit";
}

static const char *check_side(om_gpu_binder *b, const om_gpu_side *side) {
  const om_tensor *scale = input_of(b, side->scale_input);
  if ((OM_DT(side->dtype) & OM_DT_BYTE_INT) == 0) {
    return om_gpu_reason(b, "no kernel for an operand of %s", om_dtype_name(side->dtype));
  }
  if (scale && scale->dtype != OM_DTYPE_F32) {
    return om_gpu_reason(b, "no kernel for a scale of %s", om_dtype_name(scale->dtype));
  }
  const char *reason = check_list(b, side->zero_input, side->count);
  if (!reason) reason = check_list(b, side->scale_input, side->count);
  return reason ? reason : om_gpu_check_words(b, om_tensor_elems(side->matrix));
}

static om_gpu_operand read_if(om_gpu_binder *b, uint8_t input) {
  return input_of(b, input) ? om_gpu_read(b, input) : (om_gpu_operand){.kind = OM_GPU_NOTHING};
}

static uint32_t words_of(const om_gpu_side *side) {
  return (uint32_t)((om_tensor_elems(side->matrix) + 3) / 4);
}

static const char *set_tiles(om_gpu_binder *b, om_gpu_dispatch *d, const om_gpu_qproduct *q) {
  d->groups[0] = (uint32_t)om_gpu_pieces(q->params.columns, TILE);
  d->groups[1] = (uint32_t)om_gpu_pieces(q->params.rows, TILE);
  d->groups[2] = q->slices;
  for (int i = 0; i < 3; ++i) {
    if (d->groups[i] > om_gpu_binder_limits(b)->max_groups[i]) {
      return om_gpu_reason(
          b, "it needs %u workgroups in one dimension of the grid", (unsigned)d->groups[i]);
    }
  }
  return NULL;
}

static void set_window(om_gpu_dispatch *d, const om_window *w) {
  for (uint32_t i = 0; i < OM_WINDOW_AXES; ++i) {
    d->constants[2 + i] = w ? (uint32_t)w->kernel[i] : 1;
    d->constants[5 + i] = w ? (uint32_t)w->stride[i] : 1;
  }
  d->constant_count = 8;
}

static const char *add_sums(om_gpu_binder *b, om_gpu_qproduct *q, om_gpu_operand sums) {
  om_integer_product_params *p = &q->params;
  p->a_words = words_of(&q->rows);
  p->b_words = words_of(&q->columns);
  p->a_zeros = count_of(b, q->rows.zero_input);
  p->b_zeros = count_of(b, q->columns.zero_input);
  om_gpu_dispatch *d = om_gpu_add_dispatch(
      b, q->window ? OM_SHADER_INTEGER_PRODUCT_CONV : OM_SHADER_INTEGER_PRODUCT);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, p, sizeof *p);
  d->params_bytes = sizeof *p;
  d->constants[0] = q->rows.dtype == OM_DTYPE_I8 ? 128 : 0;
  d->constants[1] = q->columns.dtype == OM_DTYPE_I8 ? 128 : 0;
  set_window(d, q->window);
  const om_gpu_operand operands[] = {
      q->rows.elems, q->columns.elems, q->rows.zero, q->columns.zero, sums};
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = OM_COUNT_OF(operands);
  d->flops = 2 * (uint64_t)p->rows * p->columns * p->terms * q->slices;
  return set_tiles(b, d, q);
}

static const char *add_requantizing(om_gpu_binder *b,
                                    const om_gpu_qproduct *q,
                                    om_gpu_operand sums) {
  const om_tensor *y = om_gpu_output(b, 0);
  const bool has_bias = input_of(b, q->roles->bias) != NULL;
  const om_requantize_params block = {
      .elems = (uint32_t)om_tensor_elems(y),
      .columns = q->params.columns,
      .a_scales = count_of(b, q->rows.scale_input),
      .b_scales = count_of(b, q->columns.scale_input),
      .row_biases = q->window ? count_of(b, q->roles->bias) : 0,
      .column_biases = q->window ? 0 : count_of(b, q->roles->bias),
  };
  const om_gpu_operand operands[] = {sums,
                                     q->rows.scale,
                                     q->columns.scale,
                                     read_if(b, q->roles->bias),
                                     read_if(b, q->roles->y_scale),
                                     read_if(b, q->roles->y_zero),
                                     om_gpu_write(b, 0)};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_REQUANTIZE);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = (uint32_t)y->dtype;
  d->constants[1] = has_bias;
  d->constant_count = 2;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = OM_COUNT_OF(operands);
  d->flops = (uint64_t)block.elems * 8;
  om_gpu_spread_groups(b, om_gpu_pieces(block.elems, REQUANTIZED), d->groups);
  return NULL;
}

static const char *check_result(om_gpu_binder *b, const om_gpu_qproduct *q) {
  const om_dtype_set results = OM_DT_BYTE_INT | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_F32);
  const om_tensor *y = om_gpu_output(b, 0);
  const om_tensor *y_scale = input_of(b, q->roles->y_scale);
  const om_tensor *bias = input_of(b, q->roles->bias);
  if ((OM_DT(y->dtype) & results) == 0) {
    return om_gpu_reason(b, "no kernel for a result of %s", om_dtype_name(y->dtype));
  }
  if (y_scale && y_scale->dtype != OM_DTYPE_F32) {
    return om_gpu_reason(b, "no kernel for a scale of %s", om_dtype_name(y_scale->dtype));
  }
  if (bias && !q->window && (bias->rank > 1 || bias->dtype != OM_DTYPE_F32)) {
    return "its bias is no list of float32";
  }
  return om_gpu_check_words(b, om_tensor_elems(y));
}

/* The sides' bytes, zero points and scales: inputs, or what was made of a float32 operand. */
static const char *read_sides(om_gpu_binder *b, om_gpu_qproduct *q, bool quantizes) {
  const char *reason = NULL;
  q->rows.zero = read_if(b, q->rows.zero_input);
  q->rows.scale = read_if(b, q->rows.scale_input);
  q->columns.zero = read_if(b, q->columns.zero_input);
  q->columns.scale = read_if(b, q->columns.scale_input);
  if (q->window) {
    q->rows.elems = om_gpu_read(b, q->roles->b);
    q->columns.elems = om_gpu_read(b, 0);
    return NULL;
  }
  q->columns.elems = om_gpu_read(b, q->roles->b);
  if (!quantizes) {
    q->rows.elems = om_gpu_read(b, 0);
    return NULL;
  }
  q->rows.elems = om_gpu_scratch(b, (uint64_t)words_of(&q->rows) * 4);
  q->rows.scale = om_gpu_scratch(b, sizeof(float));
  q->rows.zero = om_gpu_scratch(b, sizeof(float));
  reason = om_gpu_bind_own_range(b, q->rows.elems, q->rows.scale, q->rows.zero);
  return reason;
}

static const char *bind_product(om_gpu_binder *b, om_gpu_qproduct *q, bool quantizes) {
  const om_tensor *y = om_gpu_output(b, 0);
  const char *reason = check_result(b, q);
  if (!reason) reason = check_side(b, &q->rows);
  if (!reason) reason = check_side(b, &q->columns);
  if (!reason) reason = read_sides(b, q, quantizes);
  if (reason) return reason;
  if (y->dtype == OM_DTYPE_I32) return add_sums(b, q, om_gpu_write(b, 0));
  const om_gpu_operand sums = om_gpu_scratch(b, om_tensor_elems(y) * sizeof(int32_t));
  reason = add_sums(b, q, sums);
  return reason ? reason : add_requantizing(b, q, sums);
}

/* ---- Matrices ---- */

/* Which matrix of an operand a slice of the batch reads: slice / divide % modulo. */
static void set_batch(const om_strided *batch,
                      const int64_t *strides,
                      uint32_t *divide,
                      uint32_t *modulo) {
  *divide = *modulo = 1;
  for (uint32_t i = 0; i < batch->rank; ++i) {
    if (strides[i] != 0) {
      *modulo *= (uint32_t)batch->extents[i];
    } else if (*modulo != 1) {
      *divide *= (uint32_t)batch->extents[i];
    }
  }
}

/* At most two runs of axes are left where the batch is walked. */
static const char *set_matrices(om_gpu_binder *b, om_gpu_qproduct *q) {
  om_matmul m;
  om_matmul_describe(q->rows.matrix, q->columns.matrix, &m);
  if (m.batch.rank > 2) return "its batch repeats in too many ways";
  if (m.rows > INT32_MAX || m.cols > INT32_MAX || m.depth > INT32_MAX) {
    return "it has more rows, columns or terms than the kernel counts";
  }
  (void)b;
  q->params = (om_integer_product_params){
      .rows = (uint32_t)m.rows, .columns = (uint32_t)m.cols, .terms = (uint32_t)m.depth};
  set_batch(&m.batch, m.batch.source_strides, &q->params.a_divide, &q->params.a_modulo);
  set_batch(&m.batch, m.batch.target_strides, &q->params.b_divide, &q->params.b_modulo);
  q->slices = (uint32_t)om_strided_elems(&m.batch);
  return NULL;
}

static const char *bind_matmul(om_gpu_binder *b) {
  const om_qmatmul_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0), *w = om_gpu_input(b, params->roles.b);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  om_gpu_qproduct q = {
      .roles = &params->roles,
      .rows = {.matrix = x,
               .dtype = params->quantizes_a ? OM_DTYPE_U8 : x->dtype,
               .zero_input = params->roles.a_zero,
               .scale_input = params->roles.a_scale,
               .count = x->rank < 2 ? 1 : (uint32_t)x->dims[x->rank - 2]},
      .columns = {.matrix = w,
                  .dtype = w->dtype,
                  .zero_input = params->roles.b_zero,
                  .scale_input = params->roles.b_scale,
                  .count = w->rank < 2 ? 1 : (uint32_t)w->dims[w->rank - 1]},
  };
  const char *reason = set_matrices(b, &q);
  return reason ? reason : bind_product(b, &q, params->quantizes_a);
}

/* ---- Convolutions ---- */

static bool fits_positions(const om_window *w) {
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    if (w->in[i] > MOST_EXTENT || w->pad_begin[i] > MOST_EXTENT || w->pad_end[i] > MOST_EXTENT)
      return false;
  }
  return true;
}

static const char *bind_conv(om_gpu_binder *b) {
  const om_qconv_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0), *weights = om_gpu_input(b, params->roles.b);
  om_conv_shape shape;
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (!om_conv_fit(&params->conv, x, weights, &shape)) return "its window does not fit";
  const om_window *w = &shape.window;
  if (!fits_positions(w)) return "an extent or pad is too large for the kernel";
  om_gpu_qproduct q = {
      .roles = &params->roles,
      .rows = {.matrix = weights,
               .dtype = weights->dtype,
               .zero_input = params->roles.b_zero,
               .scale_input = params->roles.b_scale,
               .count = (uint32_t)shape.out_channels},
      .columns = {.matrix = x,
                  .dtype = x->dtype,
                  .zero_input = params->roles.a_zero,
                  .scale_input = params->roles.a_scale,
                  .count = 1},
      .params = {.rows = (uint32_t)(shape.out_channels / shape.group),
                 .columns = (uint32_t)om_window_elems(w->out),
                 .terms = (uint32_t)((size_t)(shape.in_channels / shape.group) *
                                     om_window_elems(w->kernel)),
                 .a_divide = 1,
                 .a_modulo = (uint32_t)shape.group,
                 .b_divide = 1,
                 .b_modulo = UINT32_MAX,
                 .in_d = (uint32_t)w->in[0],
                 .in_h = (uint32_t)w->in[1],
                 .in_w = (uint32_t)w->in[2],
                 .out_h = (uint32_t)w->out[1],
                 .out_w = (uint32_t)w->out[2],
                 .dilation_d = (uint32_t)w->dilation[0],
                 .dilation_h = (uint32_t)w->dilation[1],
                 .dilation_w = (uint32_t)w->dilation[2],
                 .pad_d = (uint32_t)w->pad_begin[0],
                 .pad_h = (uint32_t)w->pad_begin[1],
                 .pad_w = (uint32_t)w->pad_begin[2]},
      .window = w,
      .slices = (uint32_t)(w->batch * shape.group),
  };
  return bind_product(b, &q, false);
}

#define OM_GPU_QUANTIZED_ENTRY(of, name, types, rests_on, function) \
  {.domain = of,                                                    \
   .type = name,                                                    \
   .dtypes = types,                                                 \
   .has_exact = true,                                               \
   .primitives = rests_on,                                          \
   .bind = function}

#define OM_ROUNDS (OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_ROUND)

const om_gpu_op om_gpu_ops_quantized[] = {
    OM_GPU_QUANTIZED_ENTRY("", "ConvInteger", OM_DT_BYTE_INT, 0, bind_conv),
    OM_GPU_QUANTIZED_ENTRY("", "MatMulInteger", OM_DT_BYTE_INT, 0, bind_matmul),
    OM_GPU_QUANTIZED_ENTRY("", "QLinearConv", OM_DT_BYTE_INT, OM_ROUNDS, bind_conv),
    OM_GPU_QUANTIZED_ENTRY("", "QLinearMatMul", OM_DT_BYTE_INT, OM_ROUNDS, bind_matmul),
    OM_GPU_QUANTIZED_ENTRY(
        "com.microsoft", "DynamicQuantizeMatMul", OM_DT(OM_DTYPE_F32), OM_ROUNDS, bind_matmul),
    OM_GPU_QUANTIZED_ENTRY("com.microsoft",
                           "MatMulIntegerToFloat",
                           OM_DT_BYTE_INT,
                           OM_PRIMITIVE_ARITHMETIC,
                           bind_matmul),
    {.type = NULL},
};
