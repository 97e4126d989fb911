/* From the detector's map of text probability to boxes around lines of text. */
#ifndef OCR_BOXES_H
#define OCR_BOXES_H

#include "common/image.h"

typedef struct text_box {
  quad box;    /* in the picture's pixels */
  float score; /* mean probability inside */
} text_box;

/* Finds the boxes in a map of width x height probabilities; scale_x and scale_y lead from the
 * map to the picture. *out_boxes is the caller's to free, in reading order. False: no memory. */
bool boxes_find(const float *map,
                int width,
                int height,
                float scale_x,
                float scale_y,
                text_box **out_boxes,
                size_t *out_count);

#endif
