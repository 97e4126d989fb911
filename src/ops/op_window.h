/* Windows that slide over spatial axes: what convolutions and pools share.
 *
 * The attributes are read once into om_window_params; om_window_fit turns them and a tensor's
 * extents into an om_window. The shape rule, the CPU kernel and the device's binder all read that
 * struct, so there is one place that knows about padding, rounding up and automatic padding.
 *
 * An om_window always has three axes. A tensor with fewer has extents, kernels, strides and
 * dilations of 1 in front:
 *
 *     [N, C, W]        -> axes (1, 1, W)
 *     [N, C, H, W]     -> axes (1, H, W)
 *     [N, C, D, H, W]  -> axes (D, H, W)
 */
#ifndef OP_WINDOW_H
#define OP_WINDOW_H

#include "graph/om_op.h"

enum { OM_WINDOW_AXES = 3 };

typedef enum om_auto_pad {
  OM_PAD_EXPLICIT = 0, /* NOTSET: the attribute pads */
  OM_PAD_SAME_UPPER,   /* out = ceil(in / stride); an odd pad goes to the end */
  OM_PAD_SAME_LOWER,   /* the same; an odd pad goes to the beginning */
  OM_PAD_VALID,        /* no pads */
} om_auto_pad;

typedef struct om_window_params { /* in the order of the attributes, not aligned to the last axis */
  uint32_t axis_count;            /* that the attributes name; 0: none does */
  om_auto_pad auto_pad;
  bool has_kernel;
  bool rounds_up;                 /* ceil_mode */
  int64_t kernel[OM_WINDOW_AXES]; /* 1 where absent */
  int64_t stride[OM_WINDOW_AXES];
  int64_t dilation[OM_WINDOW_AXES];
  int64_t pad_begin[OM_WINDOW_AXES];
  int64_t pad_end[OM_WINDOW_AXES];
} om_window_params;

typedef struct om_window { /* extents in elements */
  int64_t batch;
  int64_t channels; /* of the input */
  int64_t in[OM_WINDOW_AXES];
  int64_t out[OM_WINDOW_AXES];
  int64_t kernel[OM_WINDOW_AXES];
  int64_t stride[OM_WINDOW_AXES];
  int64_t dilation[OM_WINDOW_AXES];
  int64_t pad_begin[OM_WINDOW_AXES];
  int64_t pad_end[OM_WINDOW_AXES];
  uint32_t bad_axis; /* after om_window_fit returned false: which does not fit */
} om_window;

/* Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. More than three axes are
 * OM_E_UNSUPPORTED; lists of different lengths and values out of range OM_E_INVALID_MODEL. */
om_status om_window_resolve(om_ctx *ctx, const om_node *node, om_window_params *out_params);

/* Reads one list of an integer per axis, each in least..INT32_MAX; *out_values keeps its defaults
 * where the attribute is absent. Sets or checks *axis_count. */
om_status om_window_list(om_ctx *ctx,
                         const om_node *node,
                         const char *name,
                         int64_t least,
                         uint32_t *axis_count,
                         int64_t out_values[OM_WINDOW_AXES],
                         bool *out_found);

/* Checks that x has one to three spatial axes, and as many as the attributes name. */
om_status om_window_check(om_ctx *ctx, const om_window_params *params, const om_tensor *x);

/* Lays the window over x, which has passed om_window_check. `kernel` has an extent for each
 * spatial axis. False: the window does not fit into axis bad_axis. */
bool om_window_fit(const om_window_params *params,
                   const om_tensor *x,
                   const int64_t *kernel,
                   om_window *out_window);

/* The window without its results: extents and attributes, aligned to the last axis. */
void om_window_align(const om_window_params *params,
                     const om_tensor *x,
                     const int64_t *kernel,
                     om_window *out_window);

/* The error for a window that does not fit. */
om_status om_window_fail(om_ctx *ctx, const om_window *window);

/* From the first to the last tap of the kernel, in elements. */
static inline int64_t om_window_reach(const om_window *window, uint32_t axis) {
  return (window->kernel[axis] - 1) * window->dilation[axis] + 1;
}

/* Product of the three extents. */
static inline size_t om_window_elems(const int64_t extents[OM_WINDOW_AXES]) {
  return (size_t)extents[0] * (size_t)extents[1] * (size_t)extents[2];
}

/* Sets y's shape to [batch, channels, the window's results], with x's rank and type. */
void om_window_shape(const om_window *window, int64_t channels, const om_tensor *x, om_tensor *y);

#endif
