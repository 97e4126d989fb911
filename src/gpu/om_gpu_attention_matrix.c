/* Which kernel on matrix hardware makes an attention: one of attention_matrix.comp, or on Hopper
 * one of sm90/attention_sm90.c, which is faster wherever both were measured.
 *
 * A kernel's time is estimated: workgroups run in waves, as many as the cores hold, and each takes
 * the time until its first step and that of its steps. Units are 10 ns on an NVIDIA H200
 * (2026-11-30) for Hopper's kernels; of the others only the proportions matter.
 */
#include "gpu/om_gpu_attention.h"

/* By heads, the smallest first. */
static const om_attention_matrix_kernel cooperative_kernels[] = {
    {OM_SHADER_ATTENTION_MATRIX_16X64_32, OM_DTYPE_F32, 32, 16, 64, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_16X64_32_HALF, OM_DTYPE_F16, 32, 16, 64, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_64X32_32, OM_DTYPE_F32, 32, 64, 32, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_64X32_32_HALF, OM_DTYPE_F16, 32, 64, 32, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_16X64_64, OM_DTYPE_F32, 64, 16, 64, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_16X64_64_HALF, OM_DTYPE_F16, 64, 16, 64, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_48X32_64, OM_DTYPE_F32, 64, 48, 32, true, 1, 0, 48},
    {OM_SHADER_ATTENTION_MATRIX_48X32_64_HALF, OM_DTYPE_F16, 64, 48, 32, true, 1, 0, 48},
    {OM_SHADER_ATTENTION_MATRIX_64X32_64, OM_DTYPE_F32, 64, 64, 32, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_64X32_64_HALF, OM_DTYPE_F16, 64, 64, 32, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_32X32_128, OM_DTYPE_F32, 128, 32, 32, true, 1, 0, 60},
    {OM_SHADER_ATTENTION_MATRIX_32X32_128_HALF, OM_DTYPE_F16, 128, 32, 32, true, 1, 0, 60},
};

static const om_attention_matrix_kernel sm90_kernels[] = {
    {OM_SHADER_ATTENTION_SM90_64X64_32, OM_DTYPE_F32, 32, 64, 64, true, 1, 320, 130},
    {OM_SHADER_ATTENTION_SM90_128X64_32, OM_DTYPE_F32, 32, 128, 64, true, 1, 420, 135},
    {OM_SHADER_ATTENTION_SM90_64X64_64, OM_DTYPE_F32, 64, 64, 64, true, 1, 320, 205},
    {OM_SHADER_ATTENTION_SM90_128X64_64, OM_DTYPE_F32, 64, 128, 64, true, 1, 430, 260},
    {OM_SHADER_ATTENTION_SM90_192X64_64, OM_DTYPE_F32, 64, 192, 64, false, 1, 500, 320},
    {OM_SHADER_ATTENTION_SM90_128X32_128, OM_DTYPE_F32, 128, 128, 32, true, 1, 500, 300},
    {OM_SHADER_ATTENTION_SM90_64X64_32_HALF, OM_DTYPE_F16, 32, 64, 64, true, 2, 290, 90},
    {OM_SHADER_ATTENTION_SM90_64X128_32_HALF, OM_DTYPE_F16, 32, 64, 128, true, 1, 300, 130},
    {OM_SHADER_ATTENTION_SM90_64X64_64_HALF, OM_DTYPE_F16, 64, 64, 64, true, 2, 290, 90},
    {OM_SHADER_ATTENTION_SM90_64X128_64_HALF, OM_DTYPE_F16, 64, 64, 128, true, 1, 310, 135},
    {OM_SHADER_ATTENTION_SM90_192X128_64_HALF, OM_DTYPE_F16, 64, 192, 128, false, 1, 400, 200},
    {OM_SHADER_ATTENTION_SM90_128X64_128_HALF, OM_DTYPE_F16, 128, 128, 64, true, 1, 400, 130},
};

/* Rows begin at multiples of `elems`, their columns side by side. */
static bool is_in_pieces(const om_attention_side *side, uint32_t batch_rank, uint32_t elems) {
  bool is = side->col_stride == 1 && side->row_stride % elems == 0 && side->offset % elems == 0;
  for (uint32_t i = 0; i < batch_rank; ++i) is = is && side->batch_strides[i] % elems == 0;
  return is;
}

/* K lies by keys: its columns. */
static om_attention_side turned(const om_attention_side *side) {
  om_attention_side result = *side;
  result.row_stride = side->col_stride;
  result.col_stride = side->row_stride;
  return result;
}

bool om_gpu_attention_lies_in_pieces(const om_attention *a, uint32_t elems) {
  const om_attention_side k = turned(&a->k);
  const om_attention_side *const sides[] = {&a->q, &k, &a->v};
  if (a->depth % elems != 0 || a->width % elems != 0) return false;
  for (size_t i = 0; i < OM_COUNT_OF(sides); ++i) {
    if (!is_in_pieces(sides[i], a->batch_rank, elems)) return false;
  }
  return true;
}

bool om_gpu_attention_y_lies_in_pieces(const om_attention *a, uint32_t elems) {
  return is_in_pieces(&a->y, a->batch_rank, elems);
}

/* 16 bytes at a time can be read and written. */
static bool suits_matrices(const om_gpu_binder *b, const om_attention *a) {
  enum { PIECE_BYTES = 16 };
  const om_dtype dtype = om_gpu_input(b, OM_ATTENTION_Q)->dtype;
  const uint32_t elems = (uint32_t)(PIECE_BYTES * 8 / om_dtype_bits(dtype));
  return om_gpu_attention_lies_in_pieces(a, elems) && om_gpu_attention_y_lies_in_pieces(a, elems);
}

static bool takes(const om_gpu_binder *b,
                  const om_attention *a,
                  const om_attention_matrix_kernel *kernel) {
  const om_hal_shader *shader = om_shader_get(kernel->shader);
  const om_hal_limits *limits = om_gpu_binder_limits(b);
  if (kernel->dtype != om_gpu_input(b, OM_ATTENTION_Q)->dtype) return false;
  if (a->depth > kernel->head || a->width > kernel->head) return false;
  if (a->has_mask && !kernel->takes_mask) return false;
  if (shader->code_kind == OM_HAL_PTX) return true; /* within a Hopper's limits */
  return shader->shared_bytes <= limits->max_shared_bytes &&
         shader->workgroup_size[0] <= limits->max_invocations;
}

static uint64_t cost_of(const om_attention *a, const om_attention_matrix_kernel *kernel) {
  enum { CORES = 132 };
  const uint64_t groups = om_attention_batch(a) * (om_gpu_pieces(a->rows, kernel->rows));
  const uint64_t at_once = (uint64_t)CORES * kernel->per_core;
  const uint64_t steps = om_gpu_pieces(a->keys, kernel->step);
  return om_gpu_pieces(groups, at_once) * (kernel->start_cost + steps * kernel->step_cost);
}

/* Of those for the smallest heads that do. */
static const om_attention_matrix_kernel *fastest(const om_gpu_binder *b,
                                                 const om_attention *a,
                                                 const om_attention_matrix_kernel *kernels,
                                                 size_t count) {
  const om_attention_matrix_kernel *best = NULL;
  for (size_t i = 0; i < count; ++i) {
    const om_attention_matrix_kernel *kernel = &kernels[i];
    if (!takes(b, a, kernel) || (best && kernel->head > best->head)) continue;
    if (!best || cost_of(a, kernel) < cost_of(a, best)) best = kernel;
  }
  return best;
}

const om_attention_matrix_kernel *om_gpu_attention_matrix(const om_gpu_binder *b,
                                                          const om_attention *a) {
  enum { SUBGROUP = 32, FEW_ROWS = 8 };
  const om_hal_features *features = om_gpu_binder_features(b);
  const bool has_subgroups =
      features->subgroups && om_gpu_binder_limits(b)->subgroup_size == SUBGROUP;
  if (a->rows < FEW_ROWS || !suits_matrices(b, a)) return NULL;
  if (om_gpu_takes_sm90(b, OM_MODE_FAST)) {
    return fastest(b, a, sm90_kernels, OM_COUNT_OF(sm90_kernels));
  }
  if (!features->cooperative_matrix || !has_subgroups) return NULL;
  return fastest(b, a, cooperative_kernels, OM_COUNT_OF(cooperative_kernels));
}
