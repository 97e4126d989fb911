/* The two products of exact attention on Hopper: what attention_product.comp's compute, with the
 * same parameters, constants, bindings and bits, by sm90_exact.h. A turn is one of whole elements
 * of the batch; K lies by keys.
 */
//! kernel attention_sm90_scores_exact_96x96 bindings=r,r,w params=124 constants=6 threads=384 shared=149056 blocks=1 OM_EXACT=1 VALUES=0 TURNED=1 TEAMS=1 RUN=4 TILE_M=96 TILE_N=96 ROWS=6 COLS=6 WARP_COLS=4 STAGES=4
//! kernel attention_sm90_scores_exact_64x64 bindings=r,r,w params=124 constants=6 threads=384 shared=143408 blocks=1 OM_EXACT=1 VALUES=0 TURNED=1 TEAMS=2 RUN=1 TILE_M=64 TILE_N=64 ROWS=4 COLS=8 WARP_COLS=4 STAGES=3
//! kernel attention_sm90_values_exact_48x64 bindings=r,r,w params=124 constants=6 threads=384 shared=170016 blocks=1 OM_EXACT=1 VALUES=1 TURNED=0 TEAMS=4 RUN=4 TILE_M=48 TILE_N=64 ROWS=6 COLS=8 WARP_COLS=8 STAGES=2
//! kernel attention_sm90_values_exact_64x32 bindings=r,r,w params=124 constants=6 threads=384 shared=192560 blocks=1 OM_EXACT=1 VALUES=1 TURNED=0 TEAMS=4 RUN=1 TILE_M=64 TILE_N=32 ROWS=4 COLS=8 WARP_COLS=4 STAGES=3
#include "abi/attention_pass_params.h"
#include "gpu/sm90/sm90.h"

typedef struct exact_args {
  uint64_t left, right, result; /* Q, K and the scores; or these, V and Y */
  om_attention_pass_params p;
  uint32_t flags, a_offset, b_offset, a_depth_stride, b_col_stride, y_col_stride;
} exact_args;

#include "gpu/sm90/sm90_exact.h"

SM90_INLINE bool find_tile(const exact_args *args, uint32_t turn, exact_tile *t) {
  const om_attention_pass_params *p = &args->p;
  const uint32_t number = group_index() + turn * group_count();
  const uint32_t row_tiles = (p->rows + TILE_M - 1) / TILE_M;
  const uint32_t element = number / p->col_tiles / row_tiles; /* of the turn */
  const uint32_t index = p->first_block / p->row_blocks + element;
  const uint32_t index_0 = index / p->batch_1;
  const uint32_t index_1 = index % p->batch_1;
  const uint64_t scores = (uint64_t)element * p->row_blocks * OM_ATTENTION_BLOCK * p->pitch;
  if (number >= p->group_count) return false;
  t->row = number / p->col_tiles % row_tiles * TILE_M;
  t->col = number % p->col_tiles * TILE_N;
  t->rows = p->rows - t->row;
#if VALUES
  t->cols = p->width - t->col;
  t->a = (const float *)args->left + scores + (uint64_t)t->row * p->pitch;
  t->a_pitch = p->pitch;
  t->b = (const float *)args->right + args->b_offset + index_0 * p->v_stride_0 +
         index_1 * p->v_stride_1 + t->col;
  t->b_pitch = p->v_key_stride;
  t->b_terms = p->keys;
  t->depth = p->pitch; /* the scores' quads are whole */
  t->base = (uint64_t)index_0 * p->y_stride_0 + (uint64_t)index_1 * p->y_stride_1;
#else
  t->cols = p->keys - t->col;
  t->a = (const float *)args->left + args->a_offset + index_0 * p->q_stride_0 +
         index_1 * p->q_stride_1 + (uint64_t)t->row * p->q_row_stride;
  t->a_pitch = p->q_row_stride;
  t->b = (const float *)args->right + args->b_offset + index_0 * p->k_stride_0 +
         index_1 * p->k_stride_1 + (uint64_t)t->col * p->k_key_stride;
  t->b_pitch = p->k_key_stride;
  t->b_terms = t->depth = p->depth;
  t->base = scores;
#endif
  return true;
}

/* 16 bytes to memory. */
SM90_INLINE void store_quad(float *to, const float quad[4]) {
  word4 words;
  SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) words[i] = __builtin_bit_cast(uint32_t, quad[i]);
  *(word4 *)(void *)to = words;
}

SM90_INLINE void finish_tile(const exact_args *args, const exact_tile *t) {
  enum { QUADS_OF_ROW = TILE_N / 4, COUNT = TILE_M * QUADS_OF_ROW };
  const uint32_t pitch = VALUES ? args->p.y_row_stride : args->p.pitch;
  SM90_LOOP for (uint32_t i = thread_index(); i < COUNT; i += CONSUMERS) {
    const uint32_t row = i / QUADS_OF_ROW;
    const uint32_t col = i % QUADS_OF_ROW * 4;
    float *to = (float *)args->result + t->base + (uint64_t)(t->row + row) * pitch + t->col + col;
    float quad[4];
    if (row >= t->rows || col >= t->cols) continue;
    shared_load4(room_at((row * RESULT_PITCH + col) * 4), quad);
    store_quad(to, quad); /* past the keys the softmax puts what it wants */
  }
}

SM90_KERNEL void OM_KERNEL(exact_args args) {
  make_tiles(&args);
}
