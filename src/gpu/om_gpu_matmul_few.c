/* Products of up to 8 rows in fast mode (matmul_few.comp). */
#include "abi/matmul_few_params.h"
#include "gpu/om_gpu_matmul.h"

enum { FEW_ROWS = 8, COLS = 8 /* of one workgroup; as matmul_few.comp has it */ };

bool om_gpu_takes_few(const om_gpu_binder *b, const om_few *f) {
  return om_gpu_binder_mode(b) != OM_MODE_EXACT && f->rows <= FEW_ROWS &&
         f->depth * f->b_pitch <= INT32_MAX && f->b_pitch % 4 == 0 && f->depth % 4 == 0 &&
         f->a_row_stride % 4 == 0;
}

om_gpu_dispatch *om_gpu_add_few(om_gpu_binder *b, const om_few *f) {
  static const om_shader shaders[2][2] = {
      {OM_SHADER_MATMUL_FEW_1, OM_SHADER_MATMUL_FEW_8},
      {OM_SHADER_MATMUL_FEW_1_HALF, OM_SHADER_MATMUL_FEW_8_HALF},
  };
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const om_matmul_few_params params = {
      .group_count = (uint32_t)(om_gpu_pieces(f->cols, COLS)),
      .rows = (uint32_t)f->rows,
      .cols = (uint32_t)f->cols,
      .depth = (uint32_t)f->depth,
      .a_row_quads = (uint32_t)(f->a_row_stride / 4),
      .b_quads = (uint32_t)(f->b_pitch / 4),
  };
  const om_gpu_operand operands[3] = {om_gpu_read(b, 0), f->b, om_gpu_write(b, 0)};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shaders[is_half][f->rows > 1]);
  if (!d) return NULL;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = 3;
  om_gpu_spread_groups(b, params.group_count, d->groups);
  d->has_chain = true;
  d->chain_value = operands[2].index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * (uint64_t)f->rows * f->cols * f->depth;
  return d;
}
