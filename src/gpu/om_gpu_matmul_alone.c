/* Products in fast mode whose invocations share nothing (matmul_alone.comp). */
#include "gpu/om_gpu_matmul.h"

enum { GROUP = 32, COLS = 4 /* of one invocation; as matmul_alone.comp has it */ };

om_gpu_dispatch *om_gpu_add_matmul_alone(om_gpu_binder *b,
                                         om_matmul_params *params,
                                         uint64_t batch,
                                         bool takes_quads,
                                         const om_gpu_operand operands[3]) {
  static const om_shader shaders[2][2][3] = {
      /* by quads, type, and rows of an invocation: 1, 4, 8 */
      {{OM_SHADER_MATMUL_ALONE_1, OM_SHADER_MATMUL_ALONE_4, OM_SHADER_MATMUL_ALONE_8},
       {OM_SHADER_MATMUL_ALONE_1_HALF,
        OM_SHADER_MATMUL_ALONE_4_HALF,
        OM_SHADER_MATMUL_ALONE_8_HALF}},
      {{OM_SHADER_MATMUL_ALONE_VEC4_1,
        OM_SHADER_MATMUL_ALONE_VEC4_4,
        OM_SHADER_MATMUL_ALONE_VEC4_8},
       {OM_SHADER_MATMUL_ALONE_VEC4_1_HALF,
        OM_SHADER_MATMUL_ALONE_VEC4_4_HALF,
        OM_SHADER_MATMUL_ALONE_VEC4_8_HALF}},
  };
  static const uint32_t rows[] = {1, 4, 8};
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const size_t size = params->rows == 1 ? 0 : params->rows <= 4 ? 1 : 2;
  params->chunk_count = 1;
  params->chunk_depth = params->depth;
  params->row_tiles = (uint32_t)om_gpu_pieces(params->rows, rows[size]);
  params->col_tiles = (uint32_t)om_gpu_pieces(params->cols, COLS);
  params->group_count = (uint32_t)batch * params->row_tiles * params->col_tiles;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shaders[takes_quads][is_half][size]);
  if (!d) return NULL;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  memcpy(d->operands, operands, 3 * sizeof *operands);
  d->operand_count = 3;
  om_gpu_spread_groups(b, om_gpu_pieces(params->group_count, GROUP), d->groups);
  d->has_chain = true;
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * batch * params->rows * params->cols * params->depth;
  return d;
}
