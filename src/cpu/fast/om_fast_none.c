/* A build without oneDNN makes no fast kernels. */
#include "cpu/fast/om_fast.h"

om_status om_fast_create(om_ctx *ctx, om_fast **out_fast) {
  (void)ctx;
  *out_fast = NULL;
  return OM_OK;
}

bool om_fast_is_there(om_ctx *ctx, om_fast *fast) {
  (void)ctx;
  (void)fast;
  return false;
}

void om_fast_destroy(om_ctx *ctx, om_fast *fast) {
  (void)ctx;
  (void)fast;
}

om_status om_fast_product_create(om_ctx *ctx,
                                 om_fast *fast,
                                 const om_fast_product *product,
                                 om_fast_kernel **out_kernel) {
  (void)ctx;
  (void)fast;
  (void)product;
  *out_kernel = NULL;
  return OM_OK;
}

om_status om_fast_conv_create(om_ctx *ctx,
                              om_fast *fast,
                              const om_fast_conv *conv,
                              om_fast_kernel **out_kernel) {
  (void)ctx;
  (void)fast;
  (void)conv;
  *out_kernel = NULL;
  return OM_OK;
}

void om_fast_kernel_destroy(om_ctx *ctx, om_fast_kernel *kernel) {
  (void)ctx;
  (void)kernel;
}

size_t om_fast_scratch_bytes(const om_fast_kernel *kernel) {
  (void)kernel;
  return 0;
}

om_status om_fast_run(om_ctx *ctx, om_fast_kernel *kernel, const om_fast_operands *operands) {
  (void)kernel;
  (void)operands;
  return OM_FAIL(ctx, OM_E_INTERNAL, "This build has no fast kernels.");
}
