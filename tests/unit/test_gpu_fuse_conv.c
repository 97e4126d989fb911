/* What follows a convolution is done in its last pass: activations, residuals of its shape or of
 * any of its axes (each channel, place, image ...), float32 and float16. A model with them has as
 * many dispatches as the convolution alone, and fused and apart give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_model_text.h"
#include "harness/om_test_case.h"
#include "harness/om_test_compare.h"
#include "onemodel/gpu.h"

enum { IMAGES = 2, CHANNELS = 8, HEIGHT = 6, WIDTH = 7, INPUTS = 4, GRAPH_BYTES = 1024 };

typedef struct fuse_case {
  const char *name;
  const char *tail;         /* from c, the convolution's result, to e; r is the residual */
  int64_t residual_dims[4]; /* of r */
  bool has_residual;
} fuse_case;

#define FULL    {IMAGES, CHANNELS, HEIGHT, WIDTH}
#define CHANNEL {1, CHANNELS, 1, 1}

static const fuse_case cases[] = {
    {"silu", "s = Sigmoid(c); e = Mul(c, s);", FULL, false},
    {"leaky_relu", "e = LeakyRelu(c) alpha=0.1;", FULL, false},
    {"tanh", "e = Tanh(c);", FULL, false},
    {"gelu", "e = Gelu(c);", FULL, false},
    {"gelu_tanh", "e = Gelu(c) approximate=\"tanh\";", FULL, false},
    {"mish", "s = Softplus(c); t = Tanh(s); e = Mul(c, t);", FULL, false},
    {"residual_relu", "a = Add(c, r); e = Relu(a);", FULL, true},
    {"silu_residual", "s = Sigmoid(c); m = Mul(s, c); e = Add(r, m);", FULL, true},
    {"broadcast_residual", "e = Add(r, c);", CHANNEL, true},
    {"broadcast_residual_silu", "a = Add(c, r); s = Sigmoid(a); e = Mul(a, s);", CHANNEL, true},
    {"residual_of_images", "a = Add(r, c); e = Relu(a);", {1, CHANNELS, HEIGHT, WIDTH}, true},
    {"residual_of_columns", "e = Sub(r, c);", {1, 1, 1, WIDTH}, true},
    {"residual_of_rows", "s = Sigmoid(c); m = Mul(s, c); e = Add(r, m);", {1, 1, HEIGHT, 1}, true},
    {"residual_of_planes", "a = Relu(c); e = Mul(a, r);", {1, 1, HEIGHT, WIDTH}, true},
    {"residual_of_images_planes", "a = Relu(c); e = Add(r, a);", {IMAGES, 1, HEIGHT, WIDTH}, true},
    {"residual_of_images_columns", "e = Sub(r, c);", {IMAGES, 1, 1, WIDTH}, true},
    {"residual_of_images_planes_silu",
     "a = Mul(c, r); s = Sigmoid(a); e = Mul(a, s);",
     {IMAGES, 1, HEIGHT, WIDTH},
     true},
    {"residual_of_channels_and_images", "e = Mul(r, c);", {IMAGES, CHANNELS, 1, 1}, true},
    {"residual_of_one_image", "e = Add(r, c);", {IMAGES, 1, 1, 1}, true},
    {"residual_of_images_rows", "e = Sub(r, c);", {IMAGES, 1, HEIGHT, 1}, true},
    {"residual_of_channels_columns", "a = Relu(c); e = Add(a, r);", {1, CHANNELS, 1, WIDTH}, true},
    {"residual_of_channels_rows", "e = Mul(c, r);", {1, CHANNELS, HEIGHT, 1}, true},
    {"residual_of_images_channels_columns", "e = Add(r, c);", {IMAGES, CHANNELS, 1, WIDTH}, true},
    {"residual_of_images_channels_rows", "e = Add(r, c);", {IMAGES, CHANNELS, HEIGHT, 1}, true},
    {"residual_twice", "a = Add(c, r); s = Relu(a); e = Mul(s, r);", {IMAGES, 1, HEIGHT, 1}, true},
};

/* The kinds of kernels: 3x3, 1x1, depthwise, and 7x7, whose sums are split. */
static const struct {
  int64_t extent, group;
} kernels[] = {{3, 1}, {1, 1}, {3, CHANNELS}, {7, 1}};

/* float16 is made of the inputs, and float32 of the result. */
static void write_graph(const fuse_case *c, size_t kernel, bool is_half, char out[GRAPH_BYTES]) {
  const int64_t *r = c->residual_dims;
  const long long extent = (long long)kernels[kernel].extent, pad = extent / 2;
  const long long group = (long long)kernels[kernel].group;
  const char *to = is_half ? "Cast" : "Identity", *type = is_half ? " to=10" : "";
  snprintf(out,
           GRAPH_BYTES,
           "(x0: f32[%d, %d, %d, %d], x1: f32[%d, %lld, %lld, %lld], x2: f32[%d], "
           "x3: f32[%lld, %lld, %lld, %lld]) -> y { x = %s(x0)%s; w = %s(x1)%s; b = %s(x2)%s; "
           "r = %s(x3)%s; c = Conv(x, w, b) pads=[%lld, %lld, %lld, %lld] group=%lld; %s "
           "y = %s(e)%s; }",
           IMAGES,
           CHANNELS,
           HEIGHT,
           WIDTH,
           CHANNELS,
           CHANNELS / group,
           extent,
           extent,
           CHANNELS,
           (long long)r[0],
           (long long)r[1],
           (long long)r[2],
           (long long)r[3],
           to,
           type,
           to,
           type,
           to,
           type,
           to,
           type,
           pad,
           pad,
           pad,
           pad,
           group,
           c->tail,
           to,
           is_half ? " to=1" : "");
}

static void make_inputs(const fuse_case *c, size_t kernel, om_named_tensor inputs[INPUTS]) {
  static const char *const names[INPUTS] = {"x0", "x1", "x2", "x3"};
  const int64_t extent = kernels[kernel].extent, group = kernels[kernel].group;
  const int64_t x[] = {IMAGES, CHANNELS, HEIGHT, WIDTH}, b[] = {CHANNELS};
  const int64_t w[] = {CHANNELS, CHANNELS / group, extent, extent};
  const int64_t *const dims[INPUTS] = {x, w, b, c->residual_dims};
  const uint32_t ranks[INPUTS] = {4, 4, 1, 4};
  uint32_t seed = 3;
  for (size_t i = 0; i < INPUTS; ++i) {
    inputs[i] = (om_named_tensor){names[i], om_tensor_of(OM_DTYPE_F32, ranks[i], dims[i], NULL)};
    float *data = inputs[i].tensor.data = malloc(inputs[i].tensor.data_bytes);
    assert_non_null(data);
    for (size_t k = 0; k < om_tensor_elems(&inputs[i].tensor); ++k) {
      seed = seed * 1664525u + 1013904223u;
      data[k] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
  }
}

/* Returns the dispatches. The result's data is the caller's, if asked for. */
static uint64_t run(const char *graph,
                    const char *backend,
                    om_mode mode,
                    bool no_fusion,
                    const om_named_tensor inputs[INPUTS],
                    om_tensor *out_result) {
  om_text_rig rig;
  om_gpu_info info;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor y = {.name = "y"};
  gpu.backend = backend;
  gpu.device = getenv("OM_TEST_DEVICE");
  gpu.no_fusion = no_fusion;
  options.mode = mode;
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  options.require_gpu = true;
  om_text_rig_open(&rig, graph, 20, &options);
  if (om_text_rig_run(&rig, inputs, INPUTS, &y, 1) != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(om_gpu_get_info(rig.session, &info, &rig.error), OM_OK);
  if (out_result) {
    *out_result = y.tensor;
    out_result->data = malloc(y.tensor.data_bytes);
    assert_non_null(out_result->data);
    memcpy(out_result->data, y.tensor.data, y.tensor.data_bytes);
  }
  om_text_rig_close(&rig);
  return info.dispatches;
}

static void check_bits(const char *graph, const om_named_tensor inputs[INPUTS]) {
  om_tensor fused, apart;
  size_t elem = 0;
  run(graph, "vulkan", OM_MODE_EXACT, false, inputs, &fused);
  run(graph, "vulkan", OM_MODE_EXACT, true, inputs, &apart);
  if (!om_tensor_same(&fused, &apart, &elem)) fail_msg("the bits differ at %zu: %s", elem, graph);
  free(fused.data);
  free(apart.data);
}

static void fuses(void **state) {
  static const fuse_case alone = {.tail = "e = Identity(c);"};
  const fuse_case *c = *state;
  char graph[GRAPH_BYTES], without[GRAPH_BYTES];
  om_named_tensor inputs[INPUTS];
  for (size_t i = 0; i < 2 * OM_COUNT_OF(kernels); ++i) {
    fuse_case bare = alone;
    memcpy(bare.residual_dims, c->residual_dims, sizeof bare.residual_dims);
    write_graph(c, i / 2, i % 2 == 1, graph);
    write_graph(&bare, i / 2, i % 2 == 1, without);
    make_inputs(c, i / 2, inputs);
    const uint64_t count = run(graph, "null", OM_MODE_EXACT, false, inputs, NULL);
    assert_true(count < run(graph, "null", OM_MODE_EXACT, true, inputs, NULL));
    /* A residual of float16 is made by a dispatch, which the model without it lacks. */
    const bool makes_residual = i % 2 == 1 && c->has_residual;
    assert_true(count <= run(without, "null", OM_MODE_EXACT, false, inputs, NULL) + makes_residual);
    /* One kernel for each case, in turn. */
    const bool is_turn = i / 2 == (size_t)(c - cases) % OM_COUNT_OF(kernels);
    if (is_turn && om_test_backend_is_there("vulkan")) check_bits(graph, inputs);
    for (size_t k = 0; k < INPUTS; ++k) free(inputs[k].tensor.data);
  }
}

/* The means of a depthwise convolution's planes are made in its pass, in fast mode alone. */
static void means_join_the_pass(void **state) {
  static const fuse_case means = {.tail = "p = GlobalAveragePool(c); e = Mul(c, p);",
                                  .residual_dims = CHANNEL};
  enum { DEPTHWISE = 2 };
  char graph[GRAPH_BYTES];
  om_named_tensor inputs[INPUTS];
  (void)state;
  make_inputs(&means, DEPTHWISE, inputs);
  for (int is_half = 0; is_half < 2; ++is_half) {
    write_graph(&means, DEPTHWISE, is_half == 1, graph);
    const uint64_t exact = run(graph, "null", OM_MODE_EXACT, false, inputs, NULL);
    assert_int_equal(run(graph, "null", OM_MODE_FAST, false, inputs, NULL), exact - 1);
  }
  for (size_t k = 0; k < INPUTS; ++k) free(inputs[k].tensor.data);
}

/* Three axes, and every second one of the result's. */
static void volume_residual_joins_the_pass(void **state) {
#define VOLUME                                                                            \
  "(x0: f32[2, 3, 2, 3, 5], x1: f32[4, 3, 3, 3, 3], x2: f32[4], x3: f32[2, 1, 2, 1, 5]) " \
  "-> y { c = Conv(x0, x1, x2) pads=[1, 1, 1, 1, 1, 1]; "
  static const char graph[] = VOLUME "e = Sub(x3, c); y = Relu(e); }";
  static const char *const names[INPUTS] = {"x0", "x1", "x2", "x3"};
  static const int64_t dims[INPUTS][5] = {{2, 3, 2, 3, 5}, {4, 3, 3, 3, 3}, {4}, {2, 1, 2, 1, 5}};
  static float data[INPUTS][4 * 3 * 27];
  om_named_tensor inputs[INPUTS];
  (void)state;
  for (size_t i = 0; i < INPUTS; ++i) {
    for (size_t k = 0; k < OM_COUNT_OF(data[i]); ++k) data[i][k] = (float)((k * 7 + i) % 23) - 11;
    inputs[i] =
        (om_named_tensor){names[i], om_tensor_of(OM_DTYPE_F32, i == 2 ? 1 : 5, dims[i], data[i])};
  }
  const uint64_t alone = run(VOLUME "y = Relu(c); }", "null", OM_MODE_EXACT, false, inputs, NULL);
  assert_int_equal(run(graph, "null", OM_MODE_EXACT, false, inputs, NULL), alone);
  if (om_test_backend_is_there("vulkan")) check_bits(graph, inputs);
#undef VOLUME
}

int main(void) {
  struct CMUnitTest tests[OM_COUNT_OF(cases) + 2];
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    tests[i] =
        (struct CMUnitTest){cases[i].name, fuses, NULL, NULL, (fuse_case *)(uintptr_t)&cases[i]};
  }
  tests[OM_COUNT_OF(cases)] = (struct CMUnitTest)cmocka_unit_test(means_join_the_pass);
  tests[OM_COUNT_OF(cases) + 1] =
      (struct CMUnitTest)cmocka_unit_test(volume_residual_joins_the_pass);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
