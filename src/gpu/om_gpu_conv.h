/* A convolution as its binders see it, and the binders of each kind of kernels. */
#ifndef OM_GPU_CONV_H
#define OM_GPU_CONV_H

#include "abi/conv_matrix_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_conv.h"

/* One application, in the terms of the kernels: axes 1 and 2 of the window, and 0 of a volume. */
typedef struct om_gpu_conv {
  om_conv_shape shape;
  const om_window *w;                 /* &shape.window */
  uint32_t in_channels, out_channels; /* of one group */
  uint32_t taps;
  uint32_t terms;  /* of a sum; of a ConvTranspose: the most of any phase */
  uint32_t phases; /* 1 for a Conv */
  uint32_t slices; /* images * groups */
  uint32_t pixels; /* results of a channel; of a ConvTranspose: of its largest phase */
  uint32_t kernel_step[OM_WINDOW_AXES];
  bool is_volume; /* axis 0 takes part */
  bool cuts_sums; /* matrix hardware does: om_gpu_conv_split */
  om_dtype dtype;
  size_t elem_bytes;
  uint32_t columns; /* vec4 columns of packed weights */
  uint64_t out_elems;
} om_gpu_conv;

enum {
  OM_CONV_FLAT_THREADS = 128
}; /* of a workgroup; as conv_sum.comp and conv_pack.comp have it */

/* True if the window takes the axis element by element. */
static inline bool om_gpu_conv_is_untouched(const om_window *w, int axis) {
  return w->kernel[axis] == 1 && w->stride[axis] == 1 && w->pad_begin[axis] == 0 &&
         w->in[axis] == w->out[axis];
}

/* Sets kernel and stride of axes 1 and 2 as the kernel's constants. */
static inline void om_gpu_set_conv_window(om_gpu_dispatch *d, const om_window *w) {
  d->constants[0] = (uint32_t)w->kernel[1];
  d->constants[1] = (uint32_t)w->kernel[2];
  d->constants[2] = (uint32_t)w->stride[1];
  d->constants[3] = (uint32_t)w->stride[2];
  d->constant_count = 4;
}

/* ---- om_gpu_conv_cost.c ---- */

/* What a kernel takes on a device of many cores. */
typedef struct om_gpu_conv_costs {
  uint32_t resident;                    /* workgroups that a core takes at a time */
  uint32_t launch_ns;                   /* of the dispatch */
  uint32_t once_ns, round_ns;           /* of a workgroup that waits for nobody, and its rounds */
  uint32_t busy_once_ns, busy_round_ns; /* for which they keep the core busy */
} om_gpu_conv_costs;

uint64_t om_gpu_conv_cut_cost(const om_gpu_conv_costs *costs,
                              uint64_t group_count,
                              uint64_t round_count);

/* Of the pass that adds the sums of so many splits; 0 where there is one. */
uint64_t om_gpu_conv_split_cost(const om_gpu_conv *c, uint64_t split_count);

enum { OM_CONV_GROUP_TERMS = 128 }; /* docs/exact.md: four blocks of 32 */

/* The tiles of conv_gemm.comp: channels by pixels. */
typedef enum om_gpu_conv_tile {
  OM_CONV_TILE_64X64,
  OM_CONV_TILE_32X64,
  OM_CONV_TILE_32X32,
  OM_CONV_TILE_16X64,
  OM_CONV_TILE_COUNT,
} om_gpu_conv_tile;

/* How the portable kernels of fast mode take it. */
typedef struct om_gpu_conv_plain {
  om_gpu_conv_tile tile;
  bool is_split; /* its sums, in groups of terms */
  uint64_t cost_ns;
} om_gpu_conv_plain;

om_gpu_conv_plain om_gpu_choose_conv_plain(const om_gpu_conv *c);

/* 1x1 over planes of whole quads, which are read as they lie. */
bool om_gpu_conv_is_pointwise(const om_gpu_conv *c);

/* ---- Weights of the portable kernels, and depthwise ones ---- */

/* The packed weights; a reason or NULL. */
const char *om_gpu_packed_conv(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand *out_weights);

/* Binds one of one input channel a group, at most two axes and no transpose; a reason or NULL. */
const char *om_gpu_bind_conv_depthwise(om_gpu_binder *b, const om_gpu_conv *c);

/* ---- Kernels for matrix hardware, and others ---- */

/* A float32 weight as two float16: the value rounded, and what that left off. An infinity or NaN is
 * a low one beside a high zero.
 *
 * Matrix hardware may cut off a sum, not round it, `cut_count` times from where it adds this
 * weight's term on. That loses half of the sum's last place each time, on average: 2^-23 / (4 ln 2)
 * of it, since significands are spread evenly by their logarithms. So the low one has as much more.
 * Where it is 0 it stays so: of weights of 11 bits sums may be exact, and then nothing is cut off.
 */
typedef struct om_gpu_conv_halves {
  uint16_t high, low;
} om_gpu_conv_halves;

om_gpu_conv_halves om_gpu_conv_split(float value, uint32_t cut_count);

/* The power of two by which a channel's weights are multiplied before they are split: the largest
 * gets the exponent 14. out_factor: 2^14 divided by it. */
float om_gpu_conv_weight_scale(const om_gpu_conv *c,
                               const char *source,
                               size_t channel,
                               float *out_factor);

/* Convolutions that matrix hardware can make: constant weights of one group, at most two axes, and
 * results whose bytes count in 32 bits. */
bool om_gpu_conv_has_matrix_form(const om_gpu_binder *b, const om_gpu_conv *c);

/* The block of such a kernel, but for what follows from the tile: group_count, tile_count,
 * channel_tiles, columns, and all from tap_pieces on. */
om_conv_matrix_params om_gpu_conv_matrix_params(const om_gpu_conv *c);

/* Whether it runs on Hopper's matrix hardware, in fast mode: the device has it, it can be made so,
 * and the estimate is the least. */
bool om_gpu_takes_conv_sm90(const om_gpu_binder *b, const om_gpu_conv *c);

/* Binds such a convolution; a reason or NULL. */
const char *om_gpu_bind_conv_sm90(om_gpu_binder *b, const om_gpu_conv *c);

/* Nanoseconds that it is estimated to take without those kernels. */
uint64_t om_gpu_conv_cost_elsewhere(const om_gpu_binder *b, const om_gpu_conv *c);

/* Whether it runs on cooperative matrices: fast mode, a device that has them, a convolution that
 * can be made so, and an estimate below the portable kernels'. */
bool om_gpu_takes_conv_matrix(const om_gpu_binder *b, const om_gpu_conv *c);

/* Binds such a convolution; a reason or NULL. */
const char *om_gpu_bind_conv_matrix(om_gpu_binder *b, const om_gpu_conv *c);

/* Bind a convolution of packed weights, and a ConvTranspose that is a shuffle, with kernels whose
 * invocations share nothing; a reason or NULL. */
const char *om_gpu_bind_conv_alone(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights);
const char *om_gpu_bind_shuffle_alone(om_gpu_binder *b, const om_gpu_conv *c);

/* Sets the chain of the dispatch that makes the result, with the bias as its first item. */
void om_gpu_start_conv_chain(om_gpu_binder *b, om_gpu_dispatch *d, const om_gpu_conv *c);

/* Starts the dispatch that writes the result, with the bias as the chain's first item. NULL on no
 * memory. */
om_gpu_dispatch *om_gpu_add_conv_result(om_gpu_binder *b,
                                        om_shader shader,
                                        const om_gpu_conv *c,
                                        const om_gpu_operand *operands,
                                        uint32_t operand_count);

/* Appends the pass that adds the sums of a convolution's splits, which lie one behind the other in
 * float32. A reason or NULL. */
const char *om_gpu_add_conv_sum(om_gpu_binder *b,
                                const om_gpu_conv *c,
                                om_gpu_operand sums,
                                uint32_t split_count);

#endif
