/* MatMul and Gemm in fast mode. */
#include "ops/op_fast.h"
#include "ops/op_matmul.h"

/* Extents and strides of the batch's axes for one operand; 1 where it repeats. */
static void set_batch(const om_strided *batch,
                      const int64_t *from,
                      int64_t *out_dims,
                      int64_t *out_strides) {
  for (uint32_t i = 0; i < batch->rank; ++i) {
    const bool repeats = from[i] == 0;
    out_dims[i] = repeats ? 1 : batch->extents[i];
    out_strides[i] = repeats ? 1 : from[i];
  }
}

bool om_fast_product_of(const om_matmul *m, bool is_b_turned, om_fast_product *out) {
  om_strided batch = m->batch;
  if (batch.rank == 1 && batch.extents[0] == 1) batch.rank = 0;
  const uint32_t row = batch.rank, col = row + 1;
  if (batch.rank + 2 > OM_MAX_RANK) return false;
  *out = (om_fast_product){.rank = batch.rank + 2, .epilogue = {.scale = 1.0f}};
  set_batch(&batch, batch.source_strides, out->a_dims, out->a_strides);
  set_batch(&batch, batch.target_strides, out->b_dims, out->b_strides);
  for (uint32_t i = 0; i < batch.rank; ++i) out->y_dims[i] = batch.extents[i];
  out->a_dims[row] = (int64_t)m->rows;
  out->a_strides[row] = (int64_t)m->a_row_stride;
  out->a_dims[col] = (int64_t)m->depth;
  out->a_strides[col] = (int64_t)m->a_depth_stride;
  out->b_dims[row] = (int64_t)m->depth;
  out->b_strides[row] = is_b_turned ? 1 : (int64_t)m->cols;
  out->b_dims[col] = (int64_t)m->cols;
  out->b_strides[col] = is_b_turned ? (int64_t)m->depth : 1;
  out->y_dims[row] = (int64_t)m->rows;
  out->y_dims[col] = (int64_t)m->cols;
  return true;
}

static bool is_wanted(const om_op_call *call, const om_matmul *m) {
  return call->inputs[0]->dtype == OM_DTYPE_F32 && m->depth > 0 &&
         om_tensor_elems(call->outputs[0]) > 0;
}

om_status om_matmul_ready(om_ctx *ctx,
                          const om_op_call *call,
                          uint32_t kept_inputs,
                          om_fast *fast,
                          om_op_ready *out_ready) {
  om_status st = OM_OK;
  om_matmul m;
  om_fast_product *product = NULL; /* large for the stack */
  om_fast_kernel *kernel = NULL;
  OM_GO_NEW(product, 1);
  om_matmul_describe(call->inputs[0], call->inputs[1], &m);
  if (!is_wanted(call, &m) || !om_fast_product_of(&m, false, product)) goto done;
  product->b = om_fast_weights_of(call, 1, kept_inputs);
  OM_GO(om_fast_product_create(ctx, fast, product, &kernel));
  om_fast_make_ready(kernel, om_fast_run_call, product->b.data != NULL, out_ready);
done:
  om_delete(ctx, product);
  return st;
}

/* C of a Gemm is a bias for each column, or a residual. */
static void add_c(const om_tensor *c, int64_t product_cols, om_fast_epilogue *epilogue) {
  const int64_t rows = c->rank == 2 ? c->dims[0] : 1;
  const int64_t cols = c->rank > 0 ? c->dims[c->rank - 1] : 1;
  epilogue->has_bias = rows == 1 && cols == product_cols && epilogue->scale == 1.0f;
  epilogue->has_residual = !epilogue->has_bias;
  epilogue->residual_dims[0] = rows;
  epilogue->residual_dims[1] = cols;
}

static om_status run_residual(om_ctx *ctx, const om_op_call *call, void *state) {
  const om_fast_operands operands = {.x = call->inputs[0]->data,
                                     .w = call->inputs[1]->data,
                                     .residual = call->inputs[2]->data,
                                     .y = call->outputs[0]->data,
                                     .scratch = call->scratch};
  return om_fast_run(ctx, state, &operands);
}

om_status om_gemm_ready(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t kept_inputs,
                        om_fast *fast,
                        om_op_ready *out_ready) {
  om_status st = OM_OK;
  const om_gemm_params *p = call->params;
  const om_tensor *c = om_rule_input(call, 2);
  om_matmul m;
  om_fast_product *product = NULL; /* large for the stack */
  om_fast_kernel *kernel = NULL;
  OM_GO_NEW(product, 1);
  om_gemm_describe(p, call->inputs[0], call->inputs[1], &m);
  if (!is_wanted(call, &m) || (c && p->beta != 1.0f)) goto done;
  if (!om_fast_product_of(&m, p->is_b_transposed, product)) goto done;
  product->b = om_fast_weights_of(call, 1, kept_inputs);
  product->epilogue.scale = p->alpha;
  if (c) add_c(c, (int64_t)m.cols, &product->epilogue);
  OM_GO(om_fast_product_create(ctx, fast, product, &kernel));
  om_fast_make_ready(kernel,
                     product->epilogue.has_residual ? run_residual : om_fast_run_call,
                     product->b.data != NULL,
                     out_ready);
done:
  om_delete(ctx, product);
  return st;
}
