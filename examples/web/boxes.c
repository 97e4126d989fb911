/* The boxes of the text recognition example (examples/ocr), for the page: what JavaScript calls. */
#include <emscripten.h>
#include <stdlib.h>

#include "ocr/boxes.h"

/* Nine floats for each box: x and y of its corners, clockwise from the upper left of the text, and
 * its score. The caller frees them. NULL: no memory. */
EMSCRIPTEN_KEEPALIVE text_box *boxes_of(
    const float *map, int width, int height, float scale_x, float scale_y, size_t *out_count) {
  text_box *boxes = NULL;
  *out_count = 0;
  if (!boxes_find(map, width, height, scale_x, scale_y, &boxes, out_count)) return NULL;
  return boxes ? boxes : malloc(1);
}
