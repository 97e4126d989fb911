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
#include <time.h>

#include "boxes.h"
#include "image.h"
#include "onemodel/gpu.h"
#include "onemodel/onemodel.h"
#include "text.h"

enum { DETECT_SIDE = 960, LINE_HEIGHT = 48, LINE_WIDTH = 320, TURN_WIDTH = 192 };
enum { EXIT_USAGE = 2, MAX_TEXT = 4096 };

static const char usage[] =
    "usage: ocr --models FOLDER [options] PICTURE...\n"
    "  --device cpu|gpu|gpu:N|NAME  where to run (default: a GPU if there is one, else the CPU)\n"
    "  --mode fast|exact            (default: fast)\n"
    "  --threads N                  of the CPU (default: all cores)\n"
    "  --require-gpu                fail if an operator cannot run on the GPU\n"
    "  --word                       each picture is one line of text: no detector\n"
    "  --out FILE.png               picture with boxes (default: PICTURE.boxes.png, here)\n";

typedef struct arguments {
  const char *models, *device, *out;
  om_mode mode;
  uint32_t threads;
  bool require_gpu, is_word;
  char **pictures;
  int picture_count;
} arguments;

typedef struct stage { /* one of the three models */
  const char *file;
  om_model *model;
  om_session *session;
  const char *input, *output;
  int width, height; /* of the last run's input */
  double ms;         /* time in om_session_run */
  size_t runs;
} stage;

typedef struct reader {
  stage detect, turn, read;
  alphabet letters;
  om_gpu_options gpu;
  om_session_options options;
  om_error error;
} reader;

static double now_ms(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool fail(const char *what, const char *why) {
  fprintf(stderr, "ocr: %s: %s\n", what, why);
  return false;
}

static bool stage_open(reader *r, stage *s, const char *folder, const char *file) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", folder, file);
  if (length < 0 || (size_t)length >= sizeof path) return fail(folder, "The path is too long.");
  s->file = file;
  if (om_model_load_file(path, NULL, &s->model, &r->error) != OM_OK ||
      om_session_create(s->model, &r->options, &s->session, &r->error) != OM_OK) {
    return fail(file, r->error.message);
  }
  const om_model_info *info = om_model_get_info(s->model);
  if (info->input_count != 1 || info->output_count != 1) {
    return fail(file, "The model does not have one input and one output.");
  }
  s->input = info->inputs[0].name;
  s->output = info->outputs[0].name;
  return true;
}

/* Runs a stage on planes of floats; *out is lent until the stage's next run. */
static bool stage_run(reader *r, stage *s, int width, int height, float *planes, om_tensor *out) {
  const int64_t dims[4] = {1, 3, height, width};
  om_named_tensor input = {s->input, om_tensor_of(OM_DTYPE_F32, 4, dims, planes)};
  om_named_tensor output = {.name = s->output};
  om_run_args args = {sizeof args, &input, 1, &output, 1};
  double start = now_ms();
  om_status status = om_session_run(s->session, &args, &r->error);
  s->ms += now_ms() - start;
  s->runs += 1;
  s->width = width;
  s->height = height;
  if (status != OM_OK) return fail(s->file, r->error.message);
  *out = output.tensor;
  return true;
}

static void stage_close(stage *s) {
  om_session_destroy(s->session);
  om_model_destroy(s->model);
}

/* The session options that the arguments ask for. */
static bool choose_device(reader *r, const arguments *a) {
  const char *device = a->device;
  r->options = (om_session_options)OM_SESSION_OPTIONS_INIT;
  r->gpu = (om_gpu_options)OM_GPU_OPTIONS_INIT;
  r->options.mode = a->mode;
  r->options.thread_count = a->threads;
  r->options.require_gpu = a->require_gpu;
  if (!device) {
    size_t count = 0;
    om_status status = om_gpu_list(NULL, 0, &count, &r->error);
    if (status != OM_OK || count == 0) return true; /* the CPU */
  } else if (strcmp(device, "cpu") == 0) {
    return true;
  } else if (strncmp(device, "gpu:", 4) == 0) {
    r->gpu.device = device + 4;
  } else if (strcmp(device, "gpu") != 0) {
    r->gpu.device = device;
  }
  r->options.provider = om_gpu_provider();
  r->options.provider_options = &r->gpu;
  return true;
}

/* A straightened line of text as the classifier and the recogniser take it: LINE_HEIGHT high,
 * padded with zeros to `width`. The caller frees it. */
static float *line_planes(const image *line, int width) {
  static const float mean[3] = {0.5f, 0.5f, 0.5f}, deviation[3] = {0.5f, 0.5f, 0.5f};
  float *planes = calloc((size_t)width * LINE_HEIGHT * 3, sizeof *planes);
  if (!planes) return NULL;
  int inner = (int)ceilf((float)LINE_HEIGHT * (float)line->width / (float)line->height);
  if (inner > width) inner = width;
  image_to_planes(line,
                  inner,
                  LINE_HEIGHT,
                  mean,
                  deviation,
                  planes,
                  (size_t)width * LINE_HEIGHT,
                  (size_t)width);
  return planes;
}

/* Turns the line if the classifier is sure that it stands on its head. */
static bool set_upright(reader *r, image *line) {
  om_tensor out;
  float *planes = line_planes(line, TURN_WIDTH);
  if (!planes) return fail("memory", strerror(ENOMEM));
  bool ok = stage_run(r, &r->turn, TURN_WIDTH, LINE_HEIGHT, planes, &out);
  free(planes);
  if (!ok) return false;
  if (om_tensor_elems(&out) != 2) return fail(r->turn.file, "The result has not two values.");
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
  float *planes = line_planes(line, width);
  if (!planes) return fail("memory", strerror(ENOMEM));
  bool ok = stage_run(r, &r->read, width, LINE_HEIGHT, planes, &out);
  free(planes);
  if (!ok) return false;
  if (out.rank != 3 || (size_t)out.dims[2] != r->letters.key_count) {
    return fail(r->read.file, "The result does not fit the key file.");
  }
  *out_confidence = text_decode(&r->letters, out.data, (size_t)out.dims[1], text, MAX_TEXT);
  return true;
}

static int round_to_32(float side) {
  int rounded = (int)lroundf(side / 32.0f) * 32;
  return rounded < 32 ? 32 : rounded;
}

static bool find_boxes(reader *r, const image *picture, text_box **boxes, size_t *count) {
  static const float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};
  int longest = picture->width > picture->height ? picture->width : picture->height;
  float scale = longest > DETECT_SIDE ? (float)DETECT_SIDE / (float)longest : 1.0f;
  int width = round_to_32((float)picture->width * scale);
  int height = round_to_32((float)picture->height * scale);
  size_t plane = (size_t)width * (size_t)height;
  om_tensor out;
  float *planes = malloc(plane * 3 * sizeof *planes);
  if (!planes) return fail("memory", strerror(ENOMEM));
  image_to_planes(picture, width, height, mean, deviation, planes, plane, (size_t)width);
  bool ok = stage_run(r, &r->detect, width, height, planes, &out);
  free(planes);
  if (!ok) return false;
  if (om_tensor_elems(&out) != plane) {
    return fail(r->detect.file, "The map is not as large as the input.");
  }
  float scale_x = (float)picture->width / (float)width;
  float scale_y = (float)picture->height / (float)height;
  if (!boxes_find(out.data, width, height, scale_x, scale_y, boxes, count)) {
    return fail("memory", strerror(ENOMEM));
  }
  return true;
}

static bool save_boxes(const char *path, const char *out, image *picture, size_t count) {
  char name[4096];
  const char *problem = NULL;
  if (!out) {
    const char *slash = strrchr(path, '/');
    int length = snprintf(name, sizeof name, "%s.boxes.png", slash ? slash + 1 : path);
    if (length < 0 || (size_t)length >= sizeof name) return fail(path, "The path is too long.");
    out = name;
  }
  if (!image_save_png(out, picture, &problem)) return fail(out, problem);
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
  if (!image_load(path, &picture, &problem)) return fail(path, problem);
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
      fail("memory", strerror(ENOMEM));
      goto done;
    }
    if (!read_line(r, &line, text, &confidence)) goto done;
    printf("  %s  (%.1f %%)\n", text, 100.0 * (double)confidence);
    image_free(&line);
  }
  for (size_t i = 0; i < count; ++i) image_draw_quad(&picture, &boxes[i].box, 230, 30, 60);
  ok = save_boxes(path, a->out, &picture, count);
done:
  image_free(&line);
  free(boxes);
  image_free(&picture);
  return ok;
}

/* Where a stage's operators ran, for the shape of its last run. */
static bool report_stage(reader *r, const stage *s) {
  const int64_t dims[4] = {1, 3, s->height, s->width};
  om_named_tensor input = {s->input, om_tensor_of(OM_DTYPE_F32, 4, dims, NULL)};
  const om_diagnostics *where = NULL;
  if (s->runs == 0) return true;
  if (om_session_diagnose(s->session, &input, 1, &where, &r->error) != OM_OK) {
    return fail(s->file, r->error.message);
  }
  printf(
      "  %-36s %4zu operators on the device in %zu region%s, %zu on the CPU, %zu folded; "
      "%zu run%s, %.1f ms\n",
      s->file,
      where->nodes_on_device,
      where->region_count,
      where->region_count == 1 ? "" : "s",
      where->nodes_on_cpu,
      where->nodes_folded,
      s->runs,
      s->runs == 1 ? "" : "s",
      s->ms);
  return true;
}

static bool report(reader *r, double load_ms, double total_ms) {
  om_gpu_info info;
  if (!r->options.provider) {
    printf("ran on the CPU\n");
  } else if (om_gpu_get_info(r->read.session, &info, &r->error) == OM_OK) {
    printf("ran on %s (%s, %s)\n", info.device.name, info.device.kind, info.device.driver);
  } else {
    return fail("device", r->error.message);
  }
  printf("models loaded in %.0f ms, pictures read in %.0f ms\n", load_ms, total_ms);
  return report_stage(r, &r->detect) && report_stage(r, &r->turn) && report_stage(r, &r->read);
}

static bool parse_arguments(int argc, char **argv, arguments *a) {
  a->pictures = argv;
  for (int i = 1; i < argc; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--require-gpu") == 0) {
      a->require_gpu = true;
    } else if (strcmp(argv[i], "--word") == 0) {
      a->is_word = true;
    } else if (argv[i][0] != '-') {
      a->pictures[a->picture_count++] = argv[i]; /* never behind what is read */
    } else if (!value) {
      return false;
    } else if (strcmp(argv[i], "--models") == 0) {
      a->models = argv[++i];
    } else if (strcmp(argv[i], "--device") == 0) {
      a->device = argv[++i];
    } else if (strcmp(argv[i], "--out") == 0) {
      a->out = argv[++i];
    } else if (strcmp(argv[i], "--threads") == 0) {
      char *end = NULL;
      unsigned long threads = strtoul(argv[++i], &end, 10);
      if (*end || threads > 1024) return false;
      a->threads = (uint32_t)threads;
    } else if (strcmp(argv[i], "--mode") == 0) {
      ++i;
      if (strcmp(value, "fast") != 0 && strcmp(value, "exact") != 0) return false;
      a->mode = strcmp(value, "exact") == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
    } else {
      return false;
    }
  }
  return a->models && a->picture_count > 0 && !(a->out && a->picture_count > 1);
}

int main(int argc, char **argv) {
  static reader r; /* large: it holds an error's text */
  arguments a = {.mode = OM_MODE_FAST};
  char keys[4096];
  bool ok = false;
  if (!parse_arguments(argc, argv, &a)) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  double start = now_ms(), loaded;
  snprintf(keys, sizeof keys, "%s/ppocr_keys_v1.txt", a.models);
  if (!alphabet_load(keys, &r.letters)) {
    fail(keys, "The key file cannot be read.");
    goto done;
  }
  if (!choose_device(&r, &a) ||
      (!a.is_word && !stage_open(&r, &r.detect, a.models, "ch_PP-OCRv4_det_infer.onnx")) ||
      !stage_open(&r, &r.turn, a.models, "ch_ppocr_mobile_v2.0_cls_infer.onnx") ||
      !stage_open(&r, &r.read, a.models, "ch_PP-OCRv4_rec_infer.onnx")) {
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
