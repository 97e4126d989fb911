/* Matrix products by other kernels than matmul.comp, for the binders of products. */
#ifndef OM_GPU_MATMUL_H
#define OM_GPU_MATMUL_H

#include "abi/matmul_matrix_params.h"
#include "abi/matmul_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_matmul.h"

/* Products that matrix hardware can make: fast mode, a constant b of one matrix, more than 8 rows,
 * a's rows in units of 16 bytes. */
bool om_gpu_has_matrix_form(const om_gpu_binder *b, const om_matmul *m);

/* The estimated nanoseconds of such a product, by cooperative matrices and by Hopper's own
 * instructions; UINT64_MAX where it has another form or the device lacks them. */
uint64_t om_gpu_matrix_cost(const om_gpu_binder *b, const om_matmul *m);
uint64_t om_gpu_sm90_cost(const om_gpu_binder *b, const om_matmul *m);

/* Such a product, as its kernel takes it. */
typedef struct om_matrix_product {
  om_shader shader;
  om_matmul_matrix_params params;
  uint32_t constants[2]; /* the kernel's own; constant_count of them */
  uint32_t constant_count;
  om_gpu_operand b;     /* made ready for it */
  uint64_t chunk_count; /* above 1: of the depth; a second pass adds their results */
} om_matrix_product;

/* Appends its dispatch and, behind chunks, the pass that adds them. The one that makes the result,
 * with an empty chain; NULL on no memory. */
om_gpu_dispatch *om_gpu_add_matrix_product(om_gpu_binder *b, const om_matrix_product *product);

/* Binds it so; om_gpu_no_memory or NULL. is_turned: b is [cols, depth].
 * *out_dispatch is the one that makes the result, with an empty chain. */
const char *om_gpu_bind_matrix(om_gpu_binder *b,
                               const om_matmul *m,
                               bool is_turned,
                               om_gpu_dispatch **out_dispatch);
const char *om_gpu_bind_sm90(om_gpu_binder *b,
                             const om_matmul *m,
                             bool is_turned,
                             om_gpu_dispatch **out_dispatch);

/* Exact products on Hopper, whose operands lie in quads. */
enum { OM_SM90_CORES = 132 }; /* of an H200: a workgroup each, which takes tiles in turn */

/* True if one of their kernels is estimated to take less than other_ns; then *out_shader is it, and
 * the block's tiles and chunks are set. */
bool om_gpu_choose_exact_sm90(uint64_t batch,
                              uint64_t other_ns,
                              om_matmul_params *params,
                              om_shader *out_shader);

/* A product of few rows: input 0 [rows, depth], whose rows are dense, by b [depth, cols]. */
typedef struct om_few {
  size_t rows, depth, cols;
  size_t a_row_stride, b_pitch; /* elements from row to row */
  om_gpu_operand b;
} om_few;

/* Whether it has a kernel of its own: fast mode, at most 8 rows, rows of a and b in quads. */
bool om_gpu_takes_few(const om_gpu_binder *b, const om_few *f);

/* Appends the dispatch that makes output 0, with an empty chain. NULL on no memory. */
om_gpu_dispatch *om_gpu_add_few(om_gpu_binder *b, const om_few *f);

/* Appends the dispatch of fast mode that makes output 0, or sums in its place, with an empty chain,
 * for a device that works alone (om_gpu_works_alone). Sets the block's tiles; takes_quads: the
 * kernel reads rows of a and b in quads. NULL on no memory. */
om_gpu_dispatch *om_gpu_add_matmul_alone(om_gpu_binder *b,
                                         om_matmul_params *params,
                                         uint64_t batch,
                                         bool takes_quads,
                                         const om_gpu_operand operands[3]);

/* Appends the pass that adds the results of a product's chunks, which lie one behind the other in
 * float32; it has the product's chain. NULL on no memory. */
om_gpu_dispatch *om_gpu_add_chunk_sum(om_gpu_binder *b,
                                      om_gpu_operand chunks,
                                      uint64_t chunk_count);

#endif
