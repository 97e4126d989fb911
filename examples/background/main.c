/* Removes the background of pictures with ISNet.
 *
 *     background --models FOLDER [options] PICTURE...
 *
 * Each picture is scaled to the square that the model takes; what it makes of it, how much each
 * pixel belongs to the foreground, becomes the transparency of a PNG file. Says where the operators
 * ran and how long everything took.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/image.h"
#include "common/stage.h"

enum { SIDE = 1024, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: background --models FOLDER [options] PICTURE...\n" RUNNER_USAGE
    "  --out FILE.png               the result (default: PICTURE.cutout.png, here)\n";

typedef struct arguments {
  const char *models, *out;
  runner_choice choice;
  char **pictures;
  int picture_count;
} arguments;

/* The map between the four values around a place of the picture, as a byte for each pixel. The
 * caller frees it. */
static uint8_t *scale_map(const float *map, const image *picture) {
  uint8_t *alpha = malloc((size_t)picture->width * (size_t)picture->height);
  if (!alpha) return NULL;
  for (int y = 0; y < picture->height; ++y) {
    float v = ((float)y + 0.5f) * (float)SIDE / (float)picture->height - 0.5f;
    v = fminf(fmaxf(v, 0.0f), (float)(SIDE - 1));
    int y0 = (int)v, y1 = y0 + 1 < SIDE ? y0 + 1 : y0;
    float fy = v - (float)y0;
    for (int x = 0; x < picture->width; ++x) {
      float u = ((float)x + 0.5f) * (float)SIDE / (float)picture->width - 0.5f;
      u = fminf(fmaxf(u, 0.0f), (float)(SIDE - 1));
      int x0 = (int)u, x1 = x0 + 1 < SIDE ? x0 + 1 : x0;
      float fx = u - (float)x0;
      float above = map[y0 * SIDE + x0] * (1 - fx) + map[y0 * SIDE + x1] * fx;
      float below = map[y1 * SIDE + x0] * (1 - fx) + map[y1 * SIDE + x1] * fx;
      float value = fminf(fmaxf(above * (1 - fy) + below * fy, 0.0f), 1.0f);
      alpha[(size_t)y * (size_t)picture->width + (size_t)x] = (uint8_t)lroundf(value * 255.0f);
    }
  }
  return alpha;
}

static bool find_foreground(runner *r, stage *s, const image *picture, uint8_t **out_alpha) {
  static const image_scaling scaling = {{128 / 255.0f, 128 / 255.0f, 128 / 255.0f},
                                        {256 / 255.0f, 256 / 255.0f, 256 / 255.0f},
                                        false};
  const size_t plane = (size_t)SIDE * SIDE;
  om_tensor map;
  float *planes = stage_planes(r, s, SIDE, SIDE);
  if (!planes) return false;
  image_to_planes(picture, SIDE, SIDE, &scaling, planes, plane, SIDE);
  if (!stage_run(r, s, SIDE, SIDE, planes, &map)) return false;
  if (map.dtype != OM_DTYPE_F32 || om_tensor_elems(&map) != plane) {
    return runner_fail(r, s->file, "The map is not as large as the input.");
  }
  *out_alpha = scale_map(map.data, picture);
  return *out_alpha || runner_fail(r, "memory", strerror(ENOMEM));
}

static bool save(
    runner *r, const char *path, const char *out, const image *picture, const uint8_t *alpha) {
  char name[4096];
  const char *problem = NULL;
  const size_t pixels = (size_t)picture->width * (size_t)picture->height;
  double sum = 0;
  if (!out) {
    const char *slash = strrchr(path, '/');
    int length = snprintf(name, sizeof name, "%s.cutout.png", slash ? slash + 1 : path);
    if (length < 0 || (size_t)length >= sizeof name) {
      return runner_fail(r, path, "The path is too long.");
    }
    out = name;
  }
  if (!image_save_cutout(out, picture, alpha, &problem)) return runner_fail(r, out, problem);
  for (size_t i = 0; i < pixels; ++i) sum += alpha[i];
  printf("%s: %d x %d, %.1f %% of it is foreground, kept in %s\n",
         path,
         picture->width,
         picture->height,
         sum / (2.55 * (double)pixels),
         out);
  return true;
}

static bool cut_out(runner *r, stage *s, const char *path, const char *out) {
  image picture;
  uint8_t *alpha = NULL;
  const char *problem = NULL;
  if (!image_load(path, &picture, &problem)) return runner_fail(r, path, problem);
  bool ok = find_foreground(r, s, &picture, &alpha) && save(r, path, out, &picture, alpha);
  free(alpha);
  image_free(&picture);
  return ok;
}

static bool parse_arguments(int argc, char **argv, arguments *a) {
  a->pictures = argv;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (argv[i][0] != '-') {
      a->pictures[a->picture_count++] = argv[i]; /* never behind what is read */
    } else if (strcmp(argv[i], "--models") == 0 && has_value) {
      a->models = argv[++i];
    } else if (strcmp(argv[i], "--out") == 0 && has_value) {
      a->out = argv[++i];
    } else if (!runner_parse(argc, argv, &i, &a->choice)) {
      return false;
    }
  }
  return a->models && a->picture_count > 0 && !(a->out && a->picture_count > 1);
}

int main(int argc, char **argv) {
  static runner r; /* large: it holds an error's text */
  arguments a = {.choice = {.mode = OM_MODE_FAST}};
  stage isnet = {0};
  if (!parse_arguments(argc, argv, &a)) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  runner_init(&r, "background", &a.choice);
  double start = now_ms();
  bool ok = stage_open(&r, &isnet, a.models, "medium.onnx");
  double loaded = now_ms();
  if (ok) {
    for (int i = 0; i < a.picture_count; ++i) {
      ok = cut_out(&r, &isnet, a.pictures[i], a.out) && ok;
    }
    ok = runner_report(&r, &isnet) && ok;
    printf("model loaded in %.0f ms, pictures cut out in %.0f ms\n",
           loaded - start,
           now_ms() - loaded);
    ok = stage_report(&r, &isnet) && ok;
  }
  stage_close(&isnet);
  return ok ? 0 : 1;
}
