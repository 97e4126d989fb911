/* Pictures: 8-bit RGB, loaded from PNG or JPEG, resized, cut out along a rotated rectangle. */
#ifndef EXAMPLE_IMAGE_H
#define EXAMPLE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct image {
  int width, height; /* pixels */
  uint8_t *rgb;      /* owned; width * height * 3 bytes, rows from the top */
} image;

typedef struct point {
  float x, y; /* pixels; 0, 0 is the upper left corner of the upper left pixel */
} point;

typedef struct quad {
  point corner[4]; /* clockwise from the upper left of the text */
} quad;

/* Loads a PNG or JPEG file. On failure *problem is a sentence (static). */
bool image_load(const char *path, image *out, const char **problem);
bool image_save_png(const char *path, const image *picture, const char **problem);
/* With a transparency: alpha holds a byte for each pixel, 0 for nothing to see. */
bool image_save_cutout(const char *path,
                       const image *picture,
                       const uint8_t *alpha,
                       const char **problem);
bool image_create(int width, int height, image *out);
void image_free(image *picture);

typedef struct image_scaling { /* value = (v / 255 - mean[c]) / deviation[c] */
  float mean[3], deviation[3];
  bool is_bgr; /* planes are blue, green, red; else red, green, blue */
} image_scaling;

/* Writes `picture` resized to width x height (bilinear) into planes of floats: plane c is at
 * out + c * plane_stride, rows are row_stride apart. */
void image_to_planes(const image *picture,
                     int width,
                     int height,
                     const image_scaling *scaling,
                     float *out,
                     size_t plane_stride,
                     size_t row_stride);

/* The part of the picture inside the quad, straightened; turned upright where it is much higher
 * than wide. */
bool image_cut(const image *picture, const quad *box, image *out);
void image_turn_180(image *picture);
void image_draw_quad(image *picture, const quad *box, uint8_t red, uint8_t green, uint8_t blue);

#endif
