/* What fast kernels are made of; for om_fast*.c alone.
 *
 * A pass is a sum of products over the taps of a window, for results that lie in a grid of three
 * axes: a Conv is one pass, a ConvTranspose one for each phase (cpu/exact/om_conv.h), a product one
 * whose window is a single element and whose grid is its rows.
 */
#ifndef OM_FAST_PASS_H
#define OM_FAST_PASS_H

#include "cpu/exact/om_strided.h"
#include "cpu/fast/om_tile.h"

enum {
  OM_FAST_BATCH_AXES = OM_MAX_RANK,
  OM_FAST_CHAIN = 256, /* terms of one sum: the error of a longer one grows with its length */
};

/* Where weights lie, and in which order a pass reads them. Compared as a whole: made of zeros. */
typedef struct om_fast_order {
  int64_t groups, cols, depth; /* columns and terms of a group */
  int64_t group_stride, col_stride, depth_stride;
  int64_t taps[OM_FAST_AXES], tap_strides[OM_FAST_AXES];
  int64_t first;       /* the first tap's */
  int64_t width;       /* columns of a panel; the last may be narrower */
  int64_t is_winograd; /* the 16 taps are sums of a window of 3x3 (om_fast_winograd.c) */
} om_fast_order;

typedef struct om_fast_pack { /* weights in a pass's order */
  struct om_fast_pack *next;
  const float *source; /* borrowed; only compared */
  om_fast_order order;
  float *data; /* owned */
} om_fast_pack;

typedef struct om_fast_block { /* om_fast_block_get */
  struct om_fast_block *next;
  const void *source; /* borrowed; only compared */
  om_fast_form form;
  uint8_t *data; /* owned */
} om_fast_block;

struct om_fast {
  om_fast_lender lender;
  om_fast_pack *packs;   /* owned: of weights that are kept */
  om_fast_block *blocks; /* owned */
};

typedef struct om_fast_pass {
  /* the grid of results */
  int64_t count[OM_FAST_AXES];
  int64_t y_first, y_strides[OM_FAST_AXES];
  int64_t residual_first, residual_strides[OM_FAST_AXES], residual_step;
  /* inputs: result j's place is j * in_step + in_first along each axis */
  int64_t in[OM_FAST_AXES], in_step[OM_FAST_AXES], in_first[OM_FAST_AXES];
  int64_t x_strides[OM_FAST_AXES];
  int64_t inside_begin[OM_FAST_AXES], inside_end[OM_FAST_AXES]; /* results whose taps are inside */
  bool is_all_inside;
  om_tile_tap *taps;       /* owned */
  size_t tap_count, depth; /* as tiles take them */
  /* the batch: elements and the operands' steps, slowest axis first */
  int64_t batch[OM_FAST_BATCH_AXES], x_steps[OM_FAST_BATCH_AXES], w_steps[OM_FAST_BATCH_AXES];
  int64_t y_steps[OM_FAST_BATCH_AXES], residual_steps[OM_FAST_BATCH_AXES];
  uint32_t batch_axes;
  om_fast_order order;
  const float *packed; /* NULL: those of a run, in scratch or where they lie */
} om_fast_pass;

typedef enum om_fast_source {                   /* of the weights of a run */
                              OM_FAST_PACKED,   /* ahead of it */
                              OM_FAST_TURNED,   /* into scratch, in each run */
                              OM_FAST_IN_PLACE, /* read where they lie, but for the last columns */
} om_fast_source;

typedef struct om_fast_winograd { /* how a convolution is cut into pieces, and their scratch */
  int64_t blocks[2];              /* of 2x2 results, along the axes */
  int64_t block_step, block_pieces;
  int64_t panel_step, panel_pieces;
  int64_t row_elems;                /* from a block's sums to the next one's */
  int64_t sum_elems, product_elems; /* from one of the 16 to the next */
  int64_t slots, slot_elems;        /* slots 0: the kernel is none of these */
} om_fast_winograd;

struct om_fast_kernel {
  om_fast_epilogue epilogue;
  const om_tile_set *set;
  bool needs_finish;  /* the epilogue is more than what tiles do: a bias, a residual, a cut */
  bool adds_residual; /* tiles do */
  bool is_clamped;    /* tiles cut results to low .. high, which finish does else */
  float low, high;
  bool is_apart;        /* each column has its own input: a depthwise convolution */
  om_fast_pass *passes; /* owned */
  size_t pass_count;
  om_fast_pack *own_packs; /* owned: of weights that are not kept */
  float *zeros;            /* owned: as many as a tile reads at once */
  om_fast_source weights;
  int64_t w_count; /* of a product: weights of a run, one after the other in scratch */
  int64_t w_at[OM_FAST_BATCH_AXES]; /* the batch's steps among them */
  /* Operands that lie otherwise than the passes read and write them, in scratch. */
  bool turns_x, turns_y;
  om_strided x_turn, y_turn;
  om_fast_winograd winograd;
  size_t x_bytes, y_bytes, w_bytes, slot_bytes, scratch_bytes; /* x, y, w, slots */
};

/* Elements of a group's packed weights, and of one of its terms in panel `panel`. */
size_t om_fast_group_elems(const om_fast_order *order);
int64_t om_fast_panel_width(const om_fast_order *order, int64_t panel);
int64_t om_fast_panel_count(const om_fast_order *order);

/* Brings the panels from `first_panel` on into `order`. `lender`: NULL, or hears of large parts. */
void om_fast_pack_run(om_ctx *ctx,
                      const om_fast_order *order,
                      const om_fast_lender *lender,
                      int64_t first_panel,
                      const float *source,
                      float *target);

/* Packs constant weights, or finds them packed. */
om_status om_fast_pack_get(om_ctx *ctx,
                           om_fast *fast,
                           const om_fast_weights *weights,
                           const om_fast_order *order,
                           om_fast_kernel *kernel,
                           const float **out_packed);

/* Where a run's weights lie: term i of column c at panel c / width + i * step + c % width. */
typedef struct om_fast_placed {
  const float *w;
  int64_t steps[OM_FAST_BATCH_AXES]; /* from element to element of the batch */
  int64_t group_step, panel_step, step;
  const float *last; /* the last panel, where it lies apart; NULL: behind the others */
  int64_t last_steps[OM_FAST_BATCH_AXES], last_step;
} om_fast_placed;

/* y = epilogue(sum + bias). */
void om_fast_pass_run(om_ctx *ctx,
                      const om_fast_kernel *kernel,
                      const om_fast_pass *pass,
                      const om_fast_placed *placed,
                      const om_fast_operands *operands);

/* Whether Winograd's form takes clearly fewer products. */
bool om_fast_winograd_suits(const om_fast_conv *conv);

/* Cuts the kernel's pass, which is complete, into pieces. */
void om_fast_winograd_cut(const om_ctx *ctx, om_fast_kernel *kernel);
void om_fast_winograd_run(om_ctx *ctx,
                          const om_fast_kernel *kernel,
                          const om_fast_operands *operands,
                          float *slots);

void om_fast_packs_delete(om_ctx *ctx, om_fast_pack *packs);

om_status om_fast_kernel_new(om_ctx *ctx,
                             const om_fast_epilogue *epilogue,
                             size_t pass_count,
                             om_fast_kernel **out_kernel);

/* Fills what follows from the passes. */
om_status om_fast_kernel_complete(om_ctx *ctx, om_fast_kernel *kernel);

#endif
