/* Reads the text in pictures with the PP-OCRv4 models: detector, angle classifier, recogniser.
 *
 *     ocr --models FOLDER [options] PICTURE...
 *
 * For each picture: the detector's map gives boxes, each box is cut out straight, turned by the
 * classifier where it stands on its head, and read. Prints a line of text a box, writes the
 * picture with its boxes, and says where the operators ran and how long everything took.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "common/image.h"
#include "common/stage.h"
#include "text.h"

enum { DETECT_SIDE = 960, LINE_HEIGHT = 48, LINE_WIDTH = 320, TURN_WIDTH = 192 };
enum { EXIT_USAGE = 2, MAX_TEXT = 4096 };

static const char usage[] =
    "usage: ocr --models FOLDER [options] PICTURE...\n" RUNNER_USAGE
    "  --word                       each picture is one line of text: no detector\n"
    "  --out FILE.png               picture with boxes (default: PICTURE.boxes.png, here)\n";

typedef struct arguments {
  const char *models, *out;
  runner_choice choice;
  bool is_word;
  char **pictures;
  int picture_count;
} arguments;

typedef struct reader {
  runner run;
  stage detect, turn, read;
  alphabet letters;
} reader;

/* A straightened line of text as the classifier and the recogniser take it: LINE_HEIGHT high,
 * padded with zeros to `width`. In the stage's memory. */
static float *line_planes(reader *r, stage *s, const image *line, int width) {
  static const image_scaling scaling = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, true};
  float *planes = stage_planes(&r->run, s, width, LINE_HEIGHT);
  if (!planes) return NULL;
  memset(planes, 0, (size_t)width * LINE_HEIGHT * 3 * sizeof *planes);
  int inner = (int)ceilf((float)LINE_HEIGHT * (float)line->width / (float)line->height);
  if (inner > width) inner = width;
  image_to_planes(
      line, inner, LINE_HEIGHT, &scaling, planes, (size_t)width * LINE_HEIGHT, (size_t)width);
  return planes;
}

/* Turns the line if the classifier is sure that it stands on its head. */
static bool set_upright(reader *r, image *line) {
  om_tensor out;
  float *planes = line_planes(r, &r->turn, line, TURN_WIDTH);
  if (!planes) return false;
  if (!stage_run(&r->run, &r->turn, TURN_WIDTH, LINE_HEIGHT, planes, &out)) return false;
  if (om_tensor_elems(&out) != 2)
    return runner_fail(&r->run, r->turn.file, "The result has not two values.");
  if (((const float *)out.data)[1] > 0.9f) image_turn_180(line);
  return true;
}

static bool read_line(reader *r, image *line, char *text, float *out_confidence) {
  om_tensor out;
  if (!set_upright(r, line)) return false;
  /* Widths in steps of 64, so that lines of like length share a plan. */
  int width = (int)ceilf((float)LINE_HEIGHT * (float)line->width / (float)line->height);
  width = width <= LINE_WIDTH ? LINE_WIDTH : (width + 63) / 64 * 64;
  if (width > 64 * LINE_HEIGHT) width = 64 * LINE_HEIGHT;
  float *planes = line_planes(r, &r->read, line, width);
  if (!planes) return false;
  if (!stage_run(&r->run, &r->read, width, LINE_HEIGHT, planes, &out)) return false;
  if (out.rank != 3 || (size_t)out.dims[2] != r->letters.key_count) {
    return runner_fail(&r->run, r->read.file, "The result does not fit the key file.");
  }
  *out_confidence = text_decode(&r->letters, out.data, (size_t)out.dims[1], text, MAX_TEXT);
  return true;
}

static int round_to_32(float side) {
  int rounded = (int)lroundf(side / 32.0f) * 32;
  return rounded < 32 ? 32 : rounded;
}

static bool find_boxes(reader *r, const image *picture, text_box **boxes, size_t *count) {
  static const image_scaling scaling = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}, true};
  int longest = picture->width > picture->height ? picture->width : picture->height;
  float scale = longest > DETECT_SIDE ? (float)DETECT_SIDE / (float)longest : 1.0f;
  int width = round_to_32((float)picture->width * scale);
  int height = round_to_32((float)picture->height * scale);
  size_t plane = (size_t)width * (size_t)height;
  om_tensor out;
  float *planes = stage_planes(&r->run, &r->detect, width, height);
  if (!planes) return false;
  image_to_planes(picture, width, height, &scaling, planes, plane, (size_t)width);
  if (!stage_run(&r->run, &r->detect, width, height, planes, &out)) return false;
  if (om_tensor_elems(&out) != plane) {
    return runner_fail(&r->run, r->detect.file, "The map is not as large as the input.");
  }
  float scale_x = (float)picture->width / (float)width;
  float scale_y = (float)picture->height / (float)height;
  if (!boxes_find(out.data, width, height, scale_x, scale_y, boxes, count)) {
    return runner_fail(&r->run, "memory", strerror(ENOMEM));
  }
  return true;
}

static bool save_boxes(
    const reader *r, const char *path, const char *out, const image *picture, size_t count) {
  char name[4096];
  const char *problem = NULL;
  if (!out) {
    const char *slash = strrchr(path, '/');
    int length = snprintf(name, sizeof name, "%s.boxes.png", slash ? slash + 1 : path);
    if (length < 0 || (size_t)length >= sizeof name)
      return runner_fail(&r->run, path, "The path is too long.");
    out = name;
  }
  if (!image_save_png(out, picture, &problem)) return runner_fail(&r->run, out, problem);
  printf("%zu box%s drawn in %s\n", count, count == 1 ? "" : "es", out);
  return true;
}

static bool read_picture(reader *r, const arguments *a, const char *path) {
  image picture, line = {0, 0, NULL};
  text_box *boxes = NULL;
  size_t count = 0;
  const char *problem = NULL;
  char text[MAX_TEXT];
  float confidence;
  bool ok = false;
  if (!image_load(path, &picture, &problem)) return runner_fail(&r->run, path, problem);
  const double start = now_ms();
  if (a->is_word) {
    if (!read_line(r, &picture, text, &confidence)) goto done;
    printf("%s: %s  (%.1f %%)\n", path, text, 100.0 * (double)confidence);
    ok = true;
    goto done;
  }
  if (!find_boxes(r, &picture, &boxes, &count)) goto done;
  printf("%s: %d x %d, %zu line%s\n",
         path,
         picture.width,
         picture.height,
         count,
         count == 1 ? "" : "s");
  for (size_t i = 0; i < count; ++i) {
    if (!image_cut(&picture, &boxes[i].box, &line)) {
      runner_fail(&r->run, "memory", strerror(ENOMEM));
      goto done;
    }
    if (!read_line(r, &line, text, &confidence)) goto done;
    printf("  %s  (%.1f %%)\n", text, 100.0 * (double)confidence);
    image_free(&line);
  }
  runner_time(&r->run, "picture", picture.width, picture.height, now_ms() - start);
  for (size_t i = 0; i < count; ++i) image_draw_quad(&picture, &boxes[i].box, 230, 30, 60);
  ok = save_boxes(r, path, a->out, &picture, count);
done:
  image_free(&line);
  free(boxes);
  image_free(&picture);
  return ok;
}

static bool report(reader *r, double load_ms, double total_ms) {
  if (!runner_report(&r->run, &r->read)) return false;
  printf("models loaded in %.0f ms, pictures read in %.0f ms\n", load_ms, total_ms);
  return stage_report(&r->run, &r->detect) && stage_report(&r->run, &r->turn) &&
         stage_report(&r->run, &r->read);
}

static bool parse_arguments(int argc, char **argv, arguments *a) {
  a->pictures = argv;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--word") == 0) {
      a->is_word = true;
    } else if (argv[i][0] != '-') {
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
  static reader r; /* large: it holds an error's text */
  arguments a = {.choice = {.mode = OM_MODE_FAST}};
  char keys[4096];
  bool ok = false;
  if (!parse_arguments(argc, argv, &a)) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  double start = now_ms(), loaded;
  runner_init(&r.run, "ocr", &a.choice);
  snprintf(keys, sizeof keys, "%s/ppocr_keys_v1.txt", a.models);
  if (!alphabet_load(keys, &r.letters)) {
    runner_fail(&r.run, keys, "The key file cannot be read.");
    goto done;
  }
  if ((!a.is_word && !stage_open(&r.run, &r.detect, a.models, "ch_PP-OCRv4_det_infer.onnx")) ||
      !stage_open(&r.run, &r.turn, a.models, "ch_ppocr_mobile_v2.0_cls_infer.onnx") ||
      !stage_open(&r.run, &r.read, a.models, "ch_PP-OCRv4_rec_infer.onnx")) {
    goto done;
  }
  loaded = now_ms();
  ok = true;
  for (int i = 0; i < a.picture_count; ++i) ok = read_picture(&r, &a, a.pictures[i]) && ok;
  ok = report(&r, loaded - start, now_ms() - loaded) && ok;
done:
  stage_close(&r.detect);
  stage_close(&r.turn);
  stage_close(&r.read);
  alphabet_free(&r.letters);
  return ok ? 0 : 1;
}
