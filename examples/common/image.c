#include "common/image.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> /* needs stdio.h before it */

/* A picture larger than this is refused: its header may lie. */
#define MAX_PIXELS (100u * 1000u * 1000u)

bool image_create(int width, int height, image *out) {
  memset(out, 0, sizeof *out);
  if (width <= 0 || height <= 0 || (uint64_t)width * (uint64_t)height > MAX_PIXELS) return false;
  out->rgb = calloc((size_t)width * (size_t)height, 3);
  if (!out->rgb) return false;
  out->width = width;
  out->height = height;
  return true;
}

void image_free(image *picture) {
  free(picture->rgb);
  memset(picture, 0, sizeof *picture);
}

static bool load_png(const char *path, image *out, const char **problem) {
  png_image png = {.version = PNG_IMAGE_VERSION};
  *problem = "The PNG file is damaged.";
  if (!png_image_begin_read_from_file(&png, path)) return false;
  bool has_alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  png.format = PNG_FORMAT_RGB;
  png_color white = {255, 255, 255};
  bool ok = png.width <= MAX_PIXELS && png.height <= MAX_PIXELS &&
            image_create((int)png.width, (int)png.height, out);
  if (!ok) *problem = "The picture is too large.";
  if (ok && !png_image_finish_read(&png, has_alpha ? &white : NULL, out->rgb, 0, NULL)) {
    image_free(out);
    ok = false;
  }
  png_image_free(&png);
  return ok;
}

typedef struct jpeg_guard {
  struct jpeg_error_mgr manager; /* first: libjpeg sees only this */
  jmp_buf escape;
} jpeg_guard;

static void jpeg_leave(j_common_ptr info) {
  longjmp(((jpeg_guard *)(void *)info->err)->escape, 1);
}

static void jpeg_quiet(j_common_ptr info) {
  (void)info;
}

static bool load_jpeg(FILE *file, image *out, const char **problem) {
  struct jpeg_decompress_struct jpeg;
  jpeg_guard guard;
  jpeg.err = jpeg_std_error(&guard.manager);
  guard.manager.error_exit = jpeg_leave;
  guard.manager.output_message = jpeg_quiet;
  *problem = "The JPEG file is damaged.";
  if (setjmp(guard.escape)) {
    jpeg_destroy_decompress(&jpeg);
    image_free(out);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_stdio_src(&jpeg, file);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  bool ok = image_create((int)jpeg.output_width, (int)jpeg.output_height, out);
  if (!ok) *problem = "The picture is too large.";
  while (ok && jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out->rgb + (size_t)jpeg.output_scanline * (size_t)out->width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  if (ok) jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return ok;
}

bool image_load(const char *path, image *out, const char **problem) {
  uint8_t head[8] = {0};
  bool ok = false;
  memset(out, 0, sizeof *out);
  FILE *file = fopen(path, "rb");
  *problem = "The file cannot be opened.";
  if (!file) return false;
  size_t head_bytes = fread(head, 1, sizeof head, file);
  *problem = "The file is neither PNG nor JPEG.";
  if (head_bytes == 8 && png_sig_cmp(head, 0, 8) == 0) {
    ok = load_png(path, out, problem);
  } else if (head_bytes == 8 && head[0] == 0xff && head[1] == 0xd8) {
    rewind(file);
    ok = load_jpeg(file, out, problem);
  }
  fclose(file);
  return ok;
}

bool image_save_png(const char *path, const image *picture, const char **problem) {
  png_image png = {.version = PNG_IMAGE_VERSION,
                   .width = (png_uint_32)picture->width,
                   .height = (png_uint_32)picture->height,
                   .format = PNG_FORMAT_RGB};
  *problem = "The file cannot be written.";
  return png_image_write_to_file(&png, path, 0, picture->rgb, 0, NULL) != 0;
}

bool image_save_cutout(const char *path,
                       const image *picture,
                       const uint8_t *alpha,
                       const char **problem) {
  size_t pixels = (size_t)picture->width * (size_t)picture->height;
  uint8_t *rgba = malloc(pixels * 4);
  png_image png = {.version = PNG_IMAGE_VERSION,
                   .width = (png_uint_32)picture->width,
                   .height = (png_uint_32)picture->height,
                   .format = PNG_FORMAT_RGBA};
  *problem = "There is no memory for it.";
  if (!rgba) return false;
  for (size_t i = 0; i < pixels; ++i) {
    memcpy(rgba + i * 4, picture->rgb + i * 3, 3);
    rgba[i * 4 + 3] = alpha[i];
  }
  *problem = "The file cannot be written.";
  bool ok = png_image_write_to_file(&png, path, 0, rgba, 0, NULL) != 0;
  free(rgba);
  return ok;
}

/* The colour at (x, y), between the four pixels around it; coordinates count from pixel centres
 * and are clamped to the picture. */
static void sample(const image *picture, float x, float y, float rgb[3]) {
  x = fminf(fmaxf(x, 0.0f), (float)(picture->width - 1));
  y = fminf(fmaxf(y, 0.0f), (float)(picture->height - 1));
  int x0 = (int)x, y0 = (int)y;
  int x1 = x0 + 1 < picture->width ? x0 + 1 : x0, y1 = y0 + 1 < picture->height ? y0 + 1 : y0;
  float fx = x - (float)x0, fy = y - (float)y0;
  for (int c = 0; c < 3; ++c) {
    const uint8_t *p = picture->rgb + c;
    size_t w = (size_t)picture->width;
    float a = p[((size_t)y0 * w + (size_t)x0) * 3], b = p[((size_t)y0 * w + (size_t)x1) * 3];
    float d = p[((size_t)y1 * w + (size_t)x0) * 3], e = p[((size_t)y1 * w + (size_t)x1) * 3];
    rgb[c] = (a * (1 - fx) + b * fx) * (1 - fy) + (d * (1 - fx) + e * fx) * fy;
  }
}

void image_to_planes(const image *picture,
                     int width,
                     int height,
                     const image_scaling *scaling,
                     float *out,
                     size_t plane_stride,
                     size_t row_stride) {
  float step_x = (float)picture->width / (float)width;
  float step_y = (float)picture->height / (float)height;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float rgb[3];
      sample(picture, ((float)x + 0.5f) * step_x - 0.5f, ((float)y + 0.5f) * step_y - 0.5f, rgb);
      for (size_t c = 0; c < 3; ++c) {
        float v = rgb[scaling->is_bgr ? 2 - c : c] / 255.0f;
        out[c * plane_stride + (size_t)y * row_stride + (size_t)x] =
            (v - scaling->mean[c]) / scaling->deviation[c];
      }
    }
  }
}

static float distance(point a, point b) {
  return hypotf(a.x - b.x, a.y - b.y);
}

bool image_cut(const image *picture, const quad *box, image *out) {
  const point *p = box->corner;
  int width = (int)lroundf(fmaxf(distance(p[0], p[1]), distance(p[3], p[2])));
  int height = (int)lroundf(fmaxf(distance(p[0], p[3]), distance(p[1], p[2])));
  if (width < 1) width = 1;
  if (height < 1) height = 1;
  /* Text of one column is read as a line: turned by a quarter to the left. */
  bool is_upright = (float)height >= 1.5f * (float)width;
  if (!image_create(is_upright ? height : width, is_upright ? width : height, out)) return false;
  for (int y = 0; y < out->height; ++y) {
    for (int x = 0; x < out->width; ++x) {
      float u = ((float)x + 0.5f) / (float)out->width, v = ((float)y + 0.5f) / (float)out->height;
      if (is_upright) {
        float keep = u;
        u = 1.0f - v;
        v = keep;
      }
      float sx = (p[0].x * (1 - u) + p[1].x * u) * (1 - v) + (p[3].x * (1 - u) + p[2].x * u) * v;
      float sy = (p[0].y * (1 - u) + p[1].y * u) * (1 - v) + (p[3].y * (1 - u) + p[2].y * u) * v;
      float rgb[3];
      sample(picture, sx - 0.5f, sy - 0.5f, rgb);
      uint8_t *to = out->rgb + ((size_t)y * (size_t)out->width + (size_t)x) * 3;
      for (int c = 0; c < 3; ++c) to[c] = (uint8_t)lroundf(rgb[c]);
    }
  }
  return true;
}

void image_turn_180(image *picture) {
  size_t pixels = (size_t)picture->width * (size_t)picture->height;
  for (size_t i = 0; i < pixels / 2; ++i) {
    uint8_t *a = picture->rgb + i * 3, *b = picture->rgb + (pixels - 1 - i) * 3;
    for (int c = 0; c < 3; ++c) {
      uint8_t keep = a[c];
      a[c] = b[c];
      b[c] = keep;
    }
  }
}

static void draw_dot(image *picture, int x, int y, const uint8_t rgb[3]) {
  if (x < 0 || y < 0 || x >= picture->width || y >= picture->height) return;
  memcpy(picture->rgb + ((size_t)y * (size_t)picture->width + (size_t)x) * 3, rgb, 3);
}

void image_draw_quad(image *picture, const quad *box, uint8_t red, uint8_t green, uint8_t blue) {
  const uint8_t rgb[3] = {red, green, blue};
  for (int i = 0; i < 4; ++i) {
    point a = box->corner[i], b = box->corner[(i + 1) % 4];
    int steps = (int)distance(a, b) + 1;
    for (int s = 0; s <= steps; ++s) {
      float t = (float)s / (float)steps;
      int x = (int)(a.x * (1 - t) + b.x * t), y = (int)(a.y * (1 - t) + b.y * t);
      for (int d = 0; d < 4; ++d) draw_dot(picture, x + (d & 1), y + (d >> 1), rgb);
    }
  }
}
