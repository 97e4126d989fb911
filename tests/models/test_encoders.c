/* Small transformer encoders as exporters write them (write_encoders.py): in both modes all of a
 * model is one region on the device, exact mode has the CPU's bits, and every executor is within
 * 2e-6 of the same graph in float64. Batches of 1 and more, lengths that change from run to run,
 * masks that hide the ends. At last many threads, with sessions that do something else beside
 * them: the bits stay.
 *
 * Without python3-onnx the models cannot be written, and the cases are skipped.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "harness/om_test_case.h"
#include "harness/om_test_float64.h"
#include "harness/om_test_model.h"
#include "harness/om_test_skip.h"

enum { WORDS = 200, BANDS = 16, LAYERS = 2, WIDTH = 128, MAX_INPUTS = 3 };

/* The largest error of 25 runs on one lavapipe was 4e-7. */
#define LIMIT 2e-6

static const char folder[] = OM_BINARY_DIR "/encoders";

typedef struct encoder_model {
  const char *name;
  size_t attentions, products; /* of a layer: fused, and packed projections */
  size_t copies;               /* Gathers, Slices, Splits and Transposes in all */
} encoder_model;

static const encoder_model models[] = {
    {"bert_old", 1, 1, 2},
    {"bert_new", 1, 1, 3},
    {"bert_causal", 1, 1, 3},
    {"minilm", 1, 1, 2},
    {"speech", 1, 1, 1},
    {"distil", 1, 1, 2},
    {"relative", 1, 1, 2},
    {"keras", 1, 1, 2},
    {"gpt", 1, 0, 1}, /* packed by the model, as in the next ones */
    {"gpt_padded", 1, 0, 1},
    {"microsoft", 1, 0, 2},
    {"packed", 1, 0, 1},
    {"roberta", 1, 1, 2},
    {"decoder", 2, 2, 1},
    {"batched", 1, 1, 1},
};
static bool are_there;

static int prepare(void **state) {
  (void)state;
  const int code = system("python3 " OM_SOURCE_DIR "/tests/models/write_encoders.py " OM_BINARY_DIR
                          "/encoders >" OM_BINARY_DIR "/encoders.log 2>&1");
  are_there = code == 0;
  return code == 0 || (WIFEXITED(code) && WEXITSTATUS(code) == 77) ? 0 : 1;
}

static om_model *load(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
  return om_test_load_model(path);
}

/* ---- Inputs ---- */

typedef struct shape {
  int64_t batch, length;
} shape;

static const shape shapes[] = {{1, 13}, {8, 21}, {1, 40}, {2, 1}, {8, 13}};

typedef struct inputs {
  om_named_tensor items[MAX_INPUTS];
  size_t count;
} inputs;

static uint32_t next(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void add(inputs *in, const char *name, om_dtype dtype, uint32_t rank, const int64_t *dims) {
  om_named_tensor *item = &in->items[in->count++];
  *item = (om_named_tensor){name, om_tensor_of(dtype, rank, dims, NULL)};
  item->tensor.data = malloc(item->tensor.data_bytes);
  assert_non_null(item->tensor.data);
}

static void make_tokens(inputs *in, const shape *s, uint32_t *state) {
  const int64_t dims[] = {s->batch, s->length};
  add(in, "input_ids", OM_DTYPE_I64, 2, dims);
  add(in, "attention_mask", OM_DTYPE_I64, 2, dims);
  add(in, "token_type_ids", OM_DTYPE_I64, 2, dims);
  for (int64_t i = 0; i < s->batch * s->length; ++i) {
    const int64_t item = i / s->length, at = i % s->length;
    ((int64_t *)in->items[0].tensor.data)[i] = next(state) % WORDS;
    /* Each item of the batch is a little shorter; one token always stays. */
    ((int64_t *)in->items[1].tensor.data)[i] = at == 0 || at < s->length - 2 * item;
    ((int64_t *)in->items[2].tensor.data)[i] = at > s->length / 2;
  }
}

static void fill(om_tensor *tensor, uint32_t *state) {
  float *values = tensor->data;
  for (size_t i = 0; i < om_tensor_elems(tensor); ++i) {
    values[i] = (float)next(state) / 8388608.0f - 1.0f;
  }
}

static size_t token_inputs(const char *name) {
  static const char *const of_words[] = {"gpt", "packed", "decoder"};
  static const char *const of_masked_words[] = {"gpt_padded", "roberta", "batched"};
  for (size_t i = 0; i < OM_COUNT_OF(of_words); ++i) {
    if (strcmp(name, of_words[i]) == 0) return 1;
  }
  for (size_t i = 0; i < OM_COUNT_OF(of_masked_words); ++i) {
    if (strcmp(name, of_masked_words[i]) == 0) return 2;
  }
  return MAX_INPUTS;
}

static void make_inputs(const char *name, const shape *s, inputs *in) {
  uint32_t state = (uint32_t)(s->batch * 100 + s->length);
  in->count = 0;
  if (strcmp(name, "speech") == 0) {
    add(in, "mel", OM_DTYPE_F32, 3, (int64_t[]){s->batch, BANDS, s->length * 2 - 1});
    fill(&in->items[0].tensor, &state);
    return;
  }
  make_tokens(in, s, &state);
  while (in->count > token_inputs(name)) free(in->items[--in->count].tensor.data);
  if (strcmp(name, "decoder") == 0) {
    add(in, "states", OM_DTYPE_F32, 3, (int64_t[]){s->batch, s->length + 7, WIDTH});
    fill(&in->items[1].tensor, &state);
  }
}

static void free_inputs(inputs *in) {
  for (size_t i = 0; i < in->count; ++i) free(in->items[i].tensor.data);
}

/* ---- One after the other; *state is the model ---- */

static void check_error(const char *what,
                        const om_tensor *tensor,
                        const double *expected,
                        size_t count) {
  const double error = om_test_scaled_error(tensor, expected, count);
  print_message("# %s: %.2g from float64\n", what, error);
  if (!(error <= LIMIT)) fail_msg("the scaled error is %.3g", error);
}

/* Device memory is at most 1.1 times what has to be there at once. */
static void check_memory(om_session *session, const inputs *in) {
  om_error error = {0};
  om_gpu_info info;
  om_named_tensor y = {.name = "last_hidden_state"};
  const om_run_args args = {sizeof args, in->items, in->count, &y, 1, NULL};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  assert_int_equal(om_gpu_get_info(session, &info, &error), OM_OK);
  assert_true(info.live_bytes > 0);
  if ((double)info.arena_bytes > 1.1 * (double)info.live_bytes) {
    fail_msg("the arena has %llu bytes for %llu",
             (unsigned long long)info.arena_bytes,
             (unsigned long long)info.live_bytes);
  }
}

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Each layer's attention is found and becomes one step, and projections of the same tensor one
 * product; no device is needed to see that. */
static void check_fusion(const om_model *model, const encoder_model *of, const inputs *in) {
  static const char *const copying[] = {"Gather", "Slice", "Split", "Transpose"};
  for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
    om_error error = {0};
    const om_diagnostics *found = NULL;
    size_t attentions = 0, products = 0, copies = 0;
    om_session *session = om_test_open(model, &(om_test_executor){"null", (om_mode)mode, 1});
    if (om_session_diagnose(session, in->items, in->count, &found, &error) != OM_OK) {
      fail_msg("%s", error.message);
    }
    for (size_t i = 0; i < found->node_count; ++i) {
      if (found->nodes[i].place != OM_PLACE_DEVICE) continue;
      attentions += strcmp(found->nodes[i].op_type, "Attention") == 0;
      products += ends_with(found->nodes[i].name, ".projections");
      for (size_t k = 0; k < OM_COUNT_OF(copying); ++k) {
        copies += strcmp(found->nodes[i].op_type, copying[k]) == 0;
      }
    }
    assert_int_equal(attentions, LAYERS * of->attentions);
    assert_int_equal(products, LAYERS * of->products);
    assert_int_equal(copies, of->copies);
    assert_int_equal(found->region_count, 1);
    assert_int_equal(found->nodes_on_cpu, 0);
    check_memory(session, in);
    om_session_destroy(session);
  }
}

static void check_with(const om_model *model, const encoder_model *of, const shape *s) {
  inputs in;
  size_t count = 0;
  make_inputs(of->name, s, &in);
  if (om_test_backend_is_there("null")) check_fusion(model, of, &in);
  double *expected = om_test_run_float64(model, in.items, in.count, "last_hidden_state", &count);
  om_tensor one =
      om_test_run_model(model, &(om_test_executor){NULL, OM_MODE_EXACT, 1}, in.items, in.count);
  om_tensor many =
      om_test_run_model(model, &(om_test_executor){NULL, OM_MODE_EXACT, 8}, in.items, in.count);
  om_test_same_bits(&many, &one);
  check_error("CPU exact", &one, expected, count);
  om_tensor fast =
      om_test_run_model(model, &(om_test_executor){NULL, OM_MODE_FAST, 2}, in.items, in.count);
  check_error("CPU fast", &fast, expected, count);
  free(fast.data);
  if (om_test_backend_is_there("vulkan")) {
    om_tensor exact = om_test_run_model(
        model, &(om_test_executor){"vulkan", OM_MODE_EXACT, 0}, in.items, in.count);
    fast = om_test_run_model(
        model, &(om_test_executor){"vulkan", OM_MODE_FAST, 0}, in.items, in.count);
    om_test_same_bits(&exact, &one);
    check_error("device fast", &fast, expected, count);
    free(exact.data);
    free(fast.data);
  }
  free(one.data);
  free(many.data);
  free(expected);
  free_inputs(&in);
}

static void encoder(void **state) {
  const encoder_model *of = *state;
  if (!are_there) OM_TEST_SKIP("the models could not be made");
  om_model *model = load(of->name);
  for (size_t i = 0; i < OM_COUNT_OF(shapes); ++i) check_with(model, of, &shapes[i]);
  om_model_destroy(model);
}

/* ---- All at once ---- */

enum { THREADS = 8, RUNS = 100, WATCHED = OM_COUNT_OF(shapes) };

typedef struct worker {
  om_session *session;       /* shared with other workers, or its own */
  const inputs *in;          /* by shape */
  const om_tensor *expected; /* by shape; NULL: only keeps the machine busy */
  uint32_t number, runs;
  char problem[OM_MAX_MESSAGE + 32]; /* "": none; asserts belong to the main thread */
} worker;

static bool has_bits(const om_tensor *a, const om_tensor *b) {
  return a->data_bytes == b->data_bytes && memcmp(a->data, b->data, a->data_bytes) == 0;
}

static void *work(void *argument) {
  worker *w = argument;
  om_error error = {0};
  for (uint32_t i = 0; i < w->runs && !w->problem[0]; ++i) {
    const size_t which = (w->number + i) % WATCHED;
    const om_tensor *expected = w->expected ? &w->expected[which] : NULL;
    const size_t bytes = om_tensor_elems(&w->in[which].items[0].tensor) * 128 * sizeof(float);
    om_named_tensor y = {"last_hidden_state", {.data = malloc(bytes), .data_bytes = bytes}};
    const om_run_args args = {sizeof args, w->in[which].items, w->in[which].count, &y, 1, NULL};
    if (!y.tensor.data || om_session_run(w->session, &args, &error) != OM_OK) {
      snprintf(w->problem, sizeof w->problem, "run %u: %s", i, error.message);
    } else if (expected) {
      y.tensor.data_bytes = expected->data_bytes;
      if (!has_bits(&y.tensor, expected)) {
        snprintf(w->problem, sizeof w->problem, "run %u has other bits", i);
      }
    }
    free(y.tensor.data);
  }
  return NULL;
}

/* Half of the threads share one exact session on the device, or on the CPU where there is none;
 * two an exact one on the CPU; two are busy with a fast one. */
static void check_beside_others(om_session *(*open)(const om_model *, const om_test_executor *)) {
  inputs in[WATCHED];
  om_tensor expected[WATCHED];
  om_session *sessions[3];
  worker workers[THREADS] = {0};
  pthread_t threads[THREADS];
  if (!are_there) OM_TEST_SKIP("the models could not be made");
  const char *device = om_test_backend_is_there("vulkan") ? "vulkan" : NULL;
  om_model *model = load("bert_new");
  const om_test_executor executors[3] = {
      {device, OM_MODE_EXACT, 2}, {NULL, OM_MODE_EXACT, 8}, {device, OM_MODE_FAST, 2}};
  for (size_t i = 0; i < WATCHED; ++i) {
    make_inputs("bert_new", &shapes[i], &in[i]);
    expected[i] = om_test_run_model(
        model, &(om_test_executor){NULL, OM_MODE_EXACT, 1}, in[i].items, in[i].count);
  }
  for (size_t i = 0; i < 3; ++i) sessions[i] = open(model, &executors[i]);
  for (uint32_t i = 0; i < THREADS; ++i) {
    const uint32_t kind = i < 4 ? 0 : i < 6 ? 1 : 2;
    workers[i] = (worker){.session = sessions[kind],
                          .in = in,
                          .expected = kind < 2 ? expected : NULL,
                          .number = i,
                          .runs = kind == 0 ? RUNS / 4 : RUNS / 2};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < THREADS; ++i) assert_string_equal(workers[i].problem, "");
  for (size_t i = 0; i < 3; ++i) om_session_destroy(sessions[i]);
  om_test_no_complaints();
  for (size_t i = 0; i < WATCHED; ++i) {
    free_inputs(&in[i]);
    free(expected[i].data);
  }
  om_model_destroy(model);
}

static void bits_stay_beside_other_sessions(void **state) {
  (void)state;
  check_beside_others(om_test_open);
}

static void bits_stay_beside_other_devices(void **state) {
  (void)state;
  check_beside_others(om_test_open_alone);
}

int main(void) {
  struct CMUnitTest tests[OM_COUNT_OF(models) + 2];
  for (size_t i = 0; i < OM_COUNT_OF(models); ++i) {
    void *model = (void *)(uintptr_t)&models[i];
    tests[i] = (struct CMUnitTest){models[i].name, encoder, NULL, NULL, model};
  }
  tests[OM_COUNT_OF(models)] = (struct CMUnitTest)cmocka_unit_test(bits_stay_beside_other_sessions);
  tests[OM_COUNT_OF(models) + 1] =
      (struct CMUnitTest)cmocka_unit_test(bits_stay_beside_other_devices);
  return cmocka_run_group_tests(tests, prepare, NULL);
}
