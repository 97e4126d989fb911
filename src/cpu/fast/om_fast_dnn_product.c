/* Products by oneDNN. */
#include "cpu/fast/om_fast_dnn.h"

static void dense_strides(int rank, const int64_t *dims, int64_t *out_strides) {
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    out_strides[i] = stride;
    stride *= dims[i];
  }
}

static om_status describe(om_ctx *ctx,
                          const om_fast_product *p,
                          om_dnn_parts *parts,
                          dnnl_memory_desc_t *out_given) {
  const om_dnn_library *lib = parts->lib;
  const int rank = (int)p->rank;
  int64_t strides[OM_MAX_RANK];
  int64_t bias_dims[OM_MAX_RANK];
  OM_TRY(om_dnn_desc(ctx, lib, rank, p->a_dims, p->a_strides, &parts->x));
  OM_TRY(om_dnn_desc(ctx, lib, rank, p->b_dims, p->b_strides, out_given));
  OM_TRY(om_dnn_desc(ctx, lib, rank, p->b_dims, p->b.data ? NULL : p->b_strides, &parts->w));
  dense_strides(rank, p->y_dims, strides);
  OM_TRY(om_dnn_desc(ctx, lib, rank, p->y_dims, strides, &parts->y));
  if (p->epilogue.has_bias) {
    for (int i = 0; i < rank; ++i) bias_dims[i] = i + 1 < rank ? 1 : p->y_dims[i];
    dense_strides(rank, bias_dims, strides);
    OM_TRY(om_dnn_desc(ctx, lib, rank, bias_dims, strides, &parts->bias));
  }
  dense_strides(rank, p->epilogue.residual_dims, strides);
  return om_dnn_epilogue(ctx, &p->epilogue, rank, strides, parts);
}

om_status om_fast_product_create(om_ctx *ctx,
                                 om_fast *fast,
                                 const om_fast_product *product,
                                 om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  const om_dnn_library *lib = &fast->lib;
  om_dnn_parts parts = {.lib = lib};
  bool is_there = false;
  dnnl_memory_desc_t given = NULL;
  *out_kernel = NULL;
  OM_TRY(om_dnn_open(ctx, fast, &is_there));
  const int before = om_dnn_threads_begin(ctx, fast);
  if (!is_there) goto done;
  OM_GO(describe(ctx, product, &parts, &given));
  dnnl_status_t status = lib->matmul_primitive_desc_create(
      &parts.primitive, fast->engine, parts.x, parts.w, parts.bias, parts.y, parts.attr);
  if (status == dnnl_unimplemented) goto done; /* the exact kernel has no such limits */
  OM_GO(om_dnn_status(ctx, status, "a product"));
  OM_GO(om_dnn_kernel_create(ctx, fast, &parts, &product->b, given, out_kernel));
done:
  if (given) lib->memory_desc_destroy(given);
  om_dnn_parts_deinit(&parts);
  om_dnn_threads_end(fast, before);
  return st;
}
