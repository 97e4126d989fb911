/* Models of sound, unmodified, against ONNX Runtime: Silero VAD v5, v6 and legacy (an If in an If
 * in an If, an LSTM whose state goes from frame to frame) over a recording of speech, and the wake
 * words of openwakeword-js. In both modes on the CPU, within 1e-5 (scaled error) over all frames;
 * in exact mode the same bits on any number of threads. From the third frame on nothing is
 * allocated.
 *
 * scripts/models fetches the models, write_sound.py makes the expected results when the test
 * starts; without either the cases are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "harness/om_test_case.h"
#include "harness/om_test_model.h"
#include "harness/om_test_skip.h"

#define LIMIT 1e-5
enum { MOST_STATES = 2, MOST_STATE_ELEMS = 256 };

typedef struct sound_case {
  const char *name;
  bool is_voice;
  uint32_t state_count;
  const char *states[MOST_STATES],
      *results[MOST_STATES]; /* inputs, and outputs for the next frame */
  int64_t width;             /* of a state [2, 1, width] */
} sound_case;

static const sound_case cases[] = {
    {"silero_vad_v5", true, 1, {"state"}, {"stateN"}, 128},
    {"silero_vad_v6", true, 1, {"state"}, {"stateN"}, 128},
    {"silero_vad_legacy", true, 2, {"h", "c"}, {"hn", "cn"}, 64},
    {"hello_deepa", false, 0, {NULL}, {NULL}, 0},
    {"hello_deepa_old", false, 0, {NULL}, {NULL}, 0},
    {"namaste_deepa", false, 0, {NULL}, {NULL}, 0},
};

static char folders[2][1024]; /* of wake words, of voice */
static const char references[] = OM_BINARY_DIR "/sound-references";
static bool are_there;

static bool find_folder(const char *kind, char folder[1024]) {
  char command[1024];
  snprintf(command, sizeof command, OM_SOURCE_DIR "/scripts/models %s", kind);
  FILE *pipe = popen(command, "r");
  if (!pipe) return false;
  const bool has_line = fgets(folder, 1024, pipe) != NULL;
  folder[strcspn(folder, "\n")] = '\0';
  return pclose(pipe) == 0 && has_line;
}

static int prepare(void **state) {
  char command[4096];
  (void)state;
  if (!find_folder("wake", folders[0]) || !find_folder("voice", folders[1])) return 0;
  snprintf(command,
           sizeof command,
           "python3 " OM_SOURCE_DIR
           "/tests/models/write_sound.py '%s' '%s' '%s' "
           ">" OM_BINARY_DIR "/sound-references.log 2>&1", /* Debian's build is noisy there */
           folders[1],
           folders[0],
           references);
  const int code = system(command);
  are_there = code == 0;
  return code == 0 || (WIFEXITED(code) && WEXITSTATUS(code) == 77) ? 0 : 1;
}

/* Rank 2 at least: frames in front. The caller frees the data. */
static om_tensor read_frames(const char *name, const char *suffix) {
  char path[1200];
  int64_t head[1 + OM_MAX_RANK];
  snprintf(path, sizeof path, "%s/%s.%s", references, name, suffix);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(head, sizeof head[0], 1, file), 1);
  assert_in_range(head[0], 2, OM_MAX_RANK);
  assert_int_equal(fread(head + 1, sizeof head[0], (size_t)head[0], file), head[0]);
  om_tensor tensor = om_tensor_of(OM_DTYPE_F32, (uint32_t)head[0], head + 1, NULL);
  tensor.data = malloc(tensor.data_bytes);
  assert_non_null(tensor.data);
  assert_int_equal(fread(tensor.data, 1, tensor.data_bytes, file), tensor.data_bytes);
  fclose(file);
  return tensor;
}

/* A frame of its own: one in the batch. */
static om_tensor frame_of(const om_tensor *frames, int64_t index) {
  om_tensor frame = *frames;
  frame.dims[0] = 1;
  frame = om_tensor_of(frame.dtype, frame.rank, frame.dims, NULL);
  frame.data = (char *)frames->data + (size_t)index * frame.data_bytes;
  return frame;
}

typedef struct voice_run { /* what goes into a run, and comes out of it */
  float memory[MOST_STATES * MOST_STATE_ELEMS];
  int64_t rate;
  om_named_tensor inputs[2 + MOST_STATES], outputs[1 + MOST_STATES];
  size_t input_count, output_count;
} voice_run;

/* States begin with zeros. */
static void set_up(const sound_case *c, const om_model_info *info, voice_run *run) {
  const int64_t dims[3] = {2, 1, c->width};
  memset(run, 0, sizeof *run);
  run->rate = 16000;
  run->inputs[run->input_count++].name = info->inputs[0].name;
  run->outputs[run->output_count++].name = info->outputs[0].name;
  for (uint32_t i = 0; i < c->state_count; ++i) {
    float *state = run->memory + i * MOST_STATE_ELEMS;
    run->inputs[run->input_count++] =
        (om_named_tensor){c->states[i], om_tensor_of(OM_DTYPE_F32, 3, dims, state)};
    run->outputs[run->output_count++].name = c->results[i];
  }
  if (c->is_voice) {
    run->inputs[run->input_count++] =
        (om_named_tensor){"sr", om_tensor_of(OM_DTYPE_I64, 0, NULL, &run->rate)};
  }
}

/* One frame; the states' results become the next frame's states. */
static void run_frame(om_session *session, voice_run *run, om_tensor frame) {
  om_error error = {0};
  run->inputs[0].tensor = frame;
  for (size_t i = 0; i < run->output_count; ++i) run->outputs[i].tensor = (om_tensor){0};
  const om_run_args args = {
      sizeof args, run->inputs, run->input_count, run->outputs, run->output_count, NULL};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  for (size_t i = 1; i < run->output_count; ++i) {
    const om_tensor *result = &run->outputs[i].tensor;
    assert_int_equal(om_tensor_elems(result), om_tensor_elems(&run->inputs[i].tensor));
    memcpy(run->inputs[i].tensor.data, result->data, om_tensor_elems(result) * sizeof(float));
  }
}

/* All frames through one session; the results, as many as `expected` has elements. */
static float *run_frames(const sound_case *c,
                         const om_test_executor *executor,
                         const om_tensor *frames,
                         const om_tensor *expected) {
  static voice_run run;
  char path[1200];
  const size_t each = om_tensor_elems(expected) / (size_t)frames->dims[0];
  uint64_t allocations = 0;
  float *results = malloc(expected->data_bytes);
  assert_non_null(results);
  snprintf(path, sizeof path, "%s/%s.onnx", folders[c->is_voice], c->name);
  om_model *model = om_test_load_model(path);
  om_session *session = om_test_open(model, executor);
  set_up(c, om_model_get_info(model), &run);
  for (int64_t frame = 0; frame < frames->dims[0]; ++frame) {
    run_frame(session, &run, frame_of(frames, frame));
    assert_int_equal(om_tensor_elems(&run.outputs[0].tensor), each);
    memcpy(results + (size_t)frame * each, run.outputs[0].tensor.data, each * sizeof *results);
    if (frame == 1) allocations = om_session_get_statistics(session).host_allocations;
  }
  assert_int_equal(om_session_get_statistics(session).host_allocations, allocations);
  om_session_destroy(session);
  om_model_destroy(model);
  return results;
}

static void check(const sound_case *c, const float *results, const om_tensor *expected) {
  const size_t count = om_tensor_elems(expected);
  double *right = malloc(count * sizeof *right);
  assert_non_null(right);
  for (size_t i = 0; i < count; ++i) right[i] = (double)((const float *)expected->data)[i];
  om_tensor tensor = *expected;
  memcpy(&tensor.data, &results, sizeof results);
  const double error = om_test_scaled_error(&tensor, right, count);
  print_message(
      "# %s: %.2g from ONNX Runtime over %d frames\n", c->name, error, (int)expected->dims[0]);
  if (!(error <= LIMIT)) fail_msg("the scaled error is %.3g", error);
  free(right);
}

static void test_case(void **state) {
  const sound_case *c = *state;
  if (!are_there) OM_TEST_SKIP("the models could not be made");
  om_tensor frames = read_frames(c->name, "x"), expected = read_frames(c->name, "y");
  const om_test_executor executors[] = {
      {NULL, OM_MODE_EXACT, 1}, {NULL, OM_MODE_EXACT, 3}, {NULL, OM_MODE_FAST, 2}};
  float *results[3];
  for (size_t i = 0; i < 3; ++i) results[i] = run_frames(c, &executors[i], &frames, &expected);
  check(c, results[0], &expected);
  check(c, results[2], &expected);
  assert_memory_equal(results[0], results[1], expected.data_bytes);
  for (size_t i = 0; i < 3; ++i) free(results[i]);
  free(frames.data);
  free(expected.data);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[OM_COUNT_OF(cases)];
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    tests[i] =
        (struct CMUnitTest){cases[i].name, test_case, NULL, NULL, (void *)(uintptr_t)&cases[i]};
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, prepare, NULL);
}
