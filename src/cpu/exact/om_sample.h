/* GridSample and RoiAlign on plain pointers of float32 and float64 (docs/exact.md, "Samples"). */
#ifndef OM_SAMPLE_H
#define OM_SAMPLE_H

#include "base/om_base.h"

enum { OM_SAMPLE_AXES = 3 };

typedef struct om_grid_sample {
  uint32_t mode;    /* OM_SAMPLE_LINEAR ...: om_exact_sample.h */
  uint32_t padding; /* OM_SAMPLE_ZEROS ... */
  bool is_aligned;
  uint32_t axis_count;        /* of the input: 1 to 3 */
  int64_t in[OM_SAMPLE_AXES]; /* extents; 1 in front where there are fewer axes */
  size_t batch, channels;
  size_t pixels; /* results of a plane */
} om_grid_sample;

/* y [batch, channels, pixels] from x [batch, channels, in] at grid [batch, pixels, axis_count],
 * whose coordinates are those of the last axis first. */
void om_grid_sample_run(
    om_ctx *ctx, const om_grid_sample *job, const float *x, const float *grid, float *y);
void om_grid_sample_run_f64(
    om_ctx *ctx, const om_grid_sample *job, const double *x, const double *grid, double *y);

typedef struct om_roi_align {
  bool is_max; /* else the mean */
  bool is_half_pixel;
  float scale;
  uint32_t samples; /* of a bin and axis; 0: by its size */
  uint32_t in[2];
  uint32_t out[2];
  size_t channels;
  size_t regions;
} om_roi_align;

/* y [regions, channels, out]; image[r] is the image of region r, rois [regions, 4] are x, y of the
 * begin and of the end. */
void om_roi_align_run(om_ctx *ctx,
                      const om_roi_align *job,
                      const float *x,
                      const float *rois,
                      const int64_t *images,
                      float *y);
void om_roi_align_run_f64(om_ctx *ctx,
                          const om_roi_align *job,
                          const double *x,
                          const double *rois,
                          const int64_t *images,
                          double *y);

#endif
