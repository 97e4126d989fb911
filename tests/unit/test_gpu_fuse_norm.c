/* Streams of residuals of float16: in fast mode what is added to again is float32.
 *
 * Their elements stand at 48, where a step of float16 is 1/32, and lie a few steps apart; what a
 * layer adds is less than half a step. Rounded to float16 behind each layer the stream would never
 * move, and a normalisation, which takes the 48 away, shows that. */
#include <math.h>
#include <stdlib.h>

#include "base/om_float16.h"
#include "unit/gpu_rig.h"

enum { ROWS = 3, COLS = 48, MOST_COLS = 776, LAYERS = 6, MOST_ELEMS = ROWS * MOST_COLS };

static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static uint16_t weights[MOST_COLS * MOST_COLS], scales[MOST_COLS], shifts[MOST_COLS];
static uint16_t input[MOST_ELEMS], result[MOST_ELEMS];
static double row[MOST_COLS], factor[MOST_COLS];
static int64_t cols;

typedef enum stream {
  NORM_FIRST, /* x + W norm(x) */
  NORM_LAST,  /* norm(x + W x) */
} stream;

static float pattern(size_t i) {
  return (float)(i * 7919 % 101) / 101.0f;
}

static void fill(stream kind) {
  const bool is_first = kind == NORM_FIRST;
  for (size_t i = 0; i < (size_t)(cols * cols); ++i) {
    const float spread = is_first ? (pattern(i) - 0.5f) * 0.005f : pattern(i) * 1e-3f / (float)cols;
    weights[i] = om_f16_from_f32(spread);
  }
  for (size_t i = 0; i < (size_t)cols; ++i) {
    scales[i] = om_f16_from_f32(is_first ? 1.0f : 0.0625f);
    shifts[i] = om_f16_from_f32(is_first ? 0.0f : 48.0f);
  }
  for (size_t i = 0; i < (size_t)(ROWS * cols); ++i) {
    input[i] = om_f16_from_f32(48.0f + (float)(i * 13 % 8) * 0.03125f);
  }
}

static uint32_t half_value(uint32_t rank, const int64_t *dims, uint16_t *data) {
  om_tensor tensor = om_tensor_of(OM_DTYPE_F16, rank, dims, data);
  const uint32_t value = rig_value(rig, &tensor);
  if (data) rig->values[value].is_weight = true;
  if (!data) rig->reads[rig->region.read_count++] = value;
  return value;
}

static uint32_t normalise(uint32_t x, bool is_plain) {
  const uint32_t operands[] = {x, half_value(1, &cols, scales), half_value(1, &cols, shifts)};
  return rig_step(rig, "LayerNormalization", operands, is_plain ? 2 : 3);
}

static uint32_t add_stream(stream kind, uint32_t x, uint32_t w) {
  if (kind == NORM_LAST) x = normalise(x, false);
  for (uint32_t i = 0; i < LAYERS; ++i) {
    const uint32_t from = kind == NORM_FIRST ? normalise(x, true) : x;
    x = rig_binary(rig, "Add", rig_binary(rig, "MatMul", from, w), x);
    if (kind == NORM_LAST && i + 1 < LAYERS) x = normalise(x, false);
  }
  return x;
}

/* The stream's last sum, before the normalisation that ends it. */
static uint32_t open_stream(const om_gpu_options *options, om_mode mode, stream kind) {
  const int64_t dims[] = {ROWS, cols}, square[] = {cols, cols};
  fill(kind);
  rig_open_with(rig, options, mode);
  const uint32_t x = half_value(2, dims, NULL);
  return add_stream(kind, x, half_value(2, square, weights));
}

/* ---- The same in double ---- */

static void normalise_row(double *values, bool is_plain) {
  double mean = 0.0, squares = 0.0;
  for (int64_t i = 0; i < cols; ++i) mean += values[i] / (double)cols;
  for (int64_t i = 0; i < cols; ++i)
    squares += (values[i] - mean) * (values[i] - mean) / (double)cols;
  for (int64_t i = 0; i < cols; ++i) {
    values[i] = (values[i] - mean) / sqrt(squares + 1e-5) * (double)om_f16_to_f32(scales[i]);
    if (!is_plain) values[i] += (double)om_f16_to_f32(shifts[i]);
  }
}

/* Fills `row`. */
static void expect_row(stream kind, const uint16_t *from) {
  for (int64_t i = 0; i < cols; ++i) row[i] = (double)om_f16_to_f32(from[i]);
  if (kind == NORM_LAST) normalise_row(row, false);
  for (uint32_t layer = 0; layer < LAYERS; ++layer) {
    memcpy(factor, row, sizeof factor);
    if (kind == NORM_FIRST) normalise_row(factor, true);
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t k = 0; k < cols; ++k) {
        row[c] += factor[k] * (double)om_f16_to_f32(weights[k * cols + c]);
      }
    }
    if (kind == NORM_LAST && layer + 1 < LAYERS) normalise_row(row, false);
  }
  normalise_row(row, true);
}

/* The largest difference, beside the largest value. */
static double run_stream(const om_gpu_options *options, stream kind) {
  double most = 0.0, largest = 0.0;
  const uint32_t out = normalise(open_stream(options, OM_MODE_FAST, kind), true);
  rig_compile(rig, &out, 1);
  rig_run(rig, (const void *const[]){input}, (void *const[]){result});
  for (size_t r = 0; r < ROWS; ++r) {
    expect_row(kind, input + r * (size_t)cols);
    for (size_t c = 0; c < (size_t)cols; ++c) {
      const double difference = row[c] - (double)om_f16_to_f32(result[r * (size_t)cols + c]);
      most = fmax(most, fabs(difference));
      largest = fmax(largest, fabs(row[c]));
    }
  }
  rig_close(rig);
  return most / largest;
}

/* ---- Tests ---- */

static void test_a_stream_is_not_rounded(void **state) {
  static const int64_t widths[] = {COLS, 15, 20, MOST_COLS};
  (void)state;
  for (size_t w = 0; w < OM_COUNT_OF(widths); ++w) {
    cols = widths[w];
    for (int form = 0; form < 3; ++form) {
      om_gpu_options options = OM_GPU_OPTIONS_INIT;
      options.no_sm90 = form == 1;
      setenv("ONEMODEL_GPU_IN_TURN", form == 2 ? "1" : "0", 1);
      for (int kind = NORM_FIRST; kind <= NORM_LAST; ++kind) {
        const double error = run_stream(&options, (stream)kind);
        print_message("%d columns, form %d, stream %d: %.1e\n", (int)cols, form, kind, error);
        assert_true(error < 4e-3);
      }
    }
  }
  unsetenv("ONEMODEL_GPU_IN_TURN");
}

static const om_gpu_dispatch *dispatch_of(size_t launch) {
  const om_gpu_region *region = &rig->plan->regions[0];
  assert_true(launch < region->launch_count);
  return region->launches[launch].dispatch;
}

static uint32_t residual_of(size_t launch) {
  const om_gpu_dispatch *d = dispatch_of(launch);
  return d->constants[d->constant_count - 1];
}

static om_gpu_options on_null(void) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  return options;
}

/* Products and normalisations take turns; the sums are the normalisations'. */
static void test_normalisations_keep_the_stream(void **state) {
  (void)state;
  const om_gpu_options options = on_null();
  cols = COLS;
  const uint32_t first = normalise(open_stream(&options, OM_MODE_FAST, NORM_FIRST), true);
  rig_compile(rig, &first, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, 2 * LAYERS + 1);
  assert_int_equal(residual_of(0), 0); /* the input is float16 */
  assert_int_equal(residual_of(2), OM_GPU_RESIDUAL_SAME | OM_GPU_RESIDUAL_STORES_SUM);
  assert_int_equal(residual_of(4), OM_GPU_RESIDUAL_FLOATS | OM_GPU_RESIDUAL_STORES_SUM);
  assert_int_equal(residual_of(2 * LAYERS), OM_GPU_RESIDUAL_FLOATS);
  rig_close(rig);
  const uint32_t last = normalise(open_stream(&options, OM_MODE_FAST, NORM_LAST), true);
  rig_compile(rig, &last, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, 2 * LAYERS + 1);
  assert_int_equal(residual_of(0), OM_GPU_RESIDUAL_STORES_RESULT);
  assert_int_equal(residual_of(2), OM_GPU_RESIDUAL_FLOATS | OM_GPU_RESIDUAL_STORES_RESULT);
  assert_int_equal(residual_of(2 * LAYERS), OM_GPU_RESIDUAL_FLOATS);
  rig_close(rig);
}

/* What is read back, or by anything else, is float16, and so is the sum before it in exact mode. */
static void test_who_else_reads_a_sum(void **state) {
  (void)state;
  const om_gpu_options options = on_null();
  cols = COLS;
  for (int is_exact = 0; is_exact < 2; ++is_exact) {
    uint32_t outs[2];
    outs[0] = open_stream(&options, is_exact ? OM_MODE_EXACT : OM_MODE_FAST, NORM_FIRST);
    outs[1] = normalise(outs[0], true);
    rig_compile(rig, outs, 2);
    const size_t end = 2 * LAYERS;
    assert_int_equal(residual_of(end), 0);
    assert_int_equal(dispatch_of(end - 1)->chain.item_count, 1);
    assert_int_equal(residual_of(end - 2), 0);
    rig_close(rig);
  }
}

static size_t count_wide(void) {
  size_t count = 0;
  for (size_t i = 0; i < rig->plan->regions[0].launch_count; ++i) {
    const om_gpu_dispatch *d = dispatch_of(i);
    for (uint32_t k = 0; k < d->operand_count; ++k) count += d->operands[k].kind == OM_GPU_WIDE;
  }
  return count;
}

/* A binding must hold the float32. The product by weights above that is made in parts. */
static void test_a_binding_holds_it(void **state) {
  (void)state;
  om_gpu_options options = on_null();
  cols = COLS;
  for (int fits = 0; fits < 2; ++fits) {
    options.max_binding_bytes = ROWS * COLS * sizeof(float) - (fits ? 0 : 4);
    const uint32_t out = normalise(open_stream(&options, OM_MODE_FAST, NORM_FIRST), true);
    rig_compile(rig, &out, 1);
    assert_int_equal(count_wide(), fits ? 2 * (LAYERS - 1) : 0);
    rig_close(rig);
  }
}

/* norm(W norm(x) * x + x): the second normalisation adds x, and the product's chain still reads it
 * as float16. */
static void test_a_chain_still_reads_it(void **state) {
  (void)state;
  const om_gpu_options options = on_null();
  const int64_t dims[] = {ROWS, COLS}, square[] = {COLS, COLS};
  cols = COLS;
  fill(NORM_FIRST);
  rig_open_with(rig, &options, OM_MODE_FAST);
  const uint32_t first = half_value(2, dims, NULL);
  const uint32_t x = rig_binary(rig, "Add", first, half_value(2, dims, NULL));
  const uint32_t w = half_value(2, square, weights);
  const uint32_t y = rig_binary(rig, "MatMul", normalise(x, true), w);
  const uint32_t sum = rig_binary(rig, "Add", rig_binary(rig, "Mul", y, x), x);
  const uint32_t out = normalise(sum, true);
  rig_compile(rig, &out, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, 4);
  assert_int_equal(dispatch_of(2)->chain.item_count, 1);
  assert_int_equal(residual_of(3), OM_GPU_RESIDUAL_SAME);
  assert_int_equal(count_wide(), 0);
  rig_close(rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_is_not_rounded),
      cmocka_unit_test(test_normalisations_keep_the_stream),
      cmocka_unit_test(test_who_else_reads_a_sum),
      cmocka_unit_test(test_a_binding_holds_it),
      cmocka_unit_test(test_a_chain_still_reads_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
