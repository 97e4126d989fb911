/* Resize and Upsample: attributes, extents, and the taps of each axis.
 *
 * An axis is resized by a table: for each result a few taps, each an input element and a weight.
 * The tables are made on the host, in float64, for the CPU and for devices alike, so no device
 * computes a coordinate.
 */
#ifndef OP_RESIZE_H
#define OP_RESIZE_H

#include "graph/om_op.h"

typedef enum om_resize_mode { OM_RESIZE_NEAREST, OM_RESIZE_LINEAR, OM_RESIZE_CUBIC } om_resize_mode;

typedef enum om_resize_coordinates {
  OM_RESIZE_HALF_PIXEL,
  OM_RESIZE_HALF_PIXEL_SYMMETRIC,
  OM_RESIZE_PYTORCH_HALF_PIXEL,
  OM_RESIZE_ALIGN_CORNERS,
  OM_RESIZE_ASYMMETRIC,
  OM_RESIZE_TF_HALF_PIXEL_FOR_NN,
  OM_RESIZE_TF_CROP_AND_RESIZE,
} om_resize_coordinates;

typedef enum om_resize_nearest {
  OM_RESIZE_ROUND_PREFER_FLOOR,
  OM_RESIZE_ROUND_PREFER_CEIL,
  OM_RESIZE_FLOOR,
  OM_RESIZE_CEIL,
} om_resize_nearest;

typedef enum om_resize_policy {
  OM_RESIZE_STRETCH,
  OM_RESIZE_NOT_LARGER,
  OM_RESIZE_NOT_SMALLER,
} om_resize_policy;

enum { OM_RESIZE_NO_INPUT = -1 };

typedef struct om_resize_params {
  om_resize_mode mode;
  om_resize_coordinates coordinates;
  om_resize_nearest nearest;
  om_resize_policy policy;
  float cubic_a;
  float extrapolation_value;
  bool excludes_outside;
  bool antialias;
  int8_t roi_input; /* which input, or OM_RESIZE_NO_INPUT */
  int8_t scales_input;
  int8_t sizes_input;
  uint32_t axis_count;       /* 0: all axes */
  int64_t axes[OM_MAX_RANK]; /* may be negative */
  uint32_t scale_count;      /* of the attribute scales of Upsample 7 */
  float scales[OM_MAX_RANK];
} om_resize_params;

typedef struct om_resize_axis {
  int64_t in;
  int64_t out;
  double up;   /* the scale is up / down: out and in of sizes, so that */
  double down; /* coordinates need one rounding; or the given scale and 1 */
  double roi_begin;
  double roi_end;
  uint32_t taps;    /* of each result; at least 1 */
  bool is_identity; /* results are the inputs */
} om_resize_axis;

typedef struct om_resize_shape {
  uint32_t rank;
  om_resize_axis axes[OM_MAX_RANK];
} om_resize_shape;

/* Reads the attributes of Resize (opset 10 on) and of Upsample (7 to 9). */
om_status om_resize_resolve(om_ctx *ctx, const om_node *node, void *out_params);

/* The operand in this place, or NULL where it is absent or has no elements. */
const om_tensor *om_resize_operand(const om_tensor *const *inputs, uint32_t count, int8_t index);

/* Extents and taps for operands whose data is there and has passed the shape rule. For the CPU
 * and devices alike. */
void om_resize_fit(const om_resize_params *params,
                   const om_tensor *const *inputs,
                   uint32_t input_count,
                   om_resize_shape *out_shape);

/* The axis a list's element `index` is for: params->axes, or the index itself. */
uint32_t om_resize_axis_of(const om_resize_params *params, uint32_t rank, uint32_t index);

/* The taps of result `o`: axis->taps elements (inside the input) and weights. False: the result
 * lies outside the region and is the extrapolation value. */
bool om_resize_taps(const om_resize_params *params,
                    const om_resize_axis *axis,
                    int64_t o,
                    int32_t *out_elems,
                    double *out_weights);

#endif
