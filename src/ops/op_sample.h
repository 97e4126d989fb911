/* GridSample and RoiAlign: attributes, and what one application computes. */
#ifndef OP_SAMPLE_H
#define OP_SAMPLE_H

#include "cpu/exact/om_sample.h"
#include "graph/om_op.h"

typedef struct om_grid_sample_params {
  uint32_t mode;    /* OM_SAMPLE_LINEAR ...: om_exact_sample.h */
  uint32_t padding; /* OM_SAMPLE_ZEROS ... */
  bool is_aligned;
} om_grid_sample_params;

typedef struct om_roi_align_params {
  bool is_max;
  bool is_half_pixel;
  float scale;
  int64_t samples;
  int64_t out[2];
} om_roi_align_params;

/* For operands that the shape rule has accepted; for the CPU and devices alike. */
om_grid_sample om_grid_sample_fit(const om_grid_sample_params *params,
                                  const om_tensor *x,
                                  const om_tensor *grid);
om_roi_align om_roi_align_fit(const om_roi_align_params *params,
                              const om_tensor *x,
                              const om_tensor *rois);

#endif
