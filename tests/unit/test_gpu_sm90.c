/* Products by Hopper's own instructions: how a constant lies in blocks, which products are taken,
 * and runs on the null device that has them. What they compute is compared on such a card, by
 * tests/ops/test_matmul.c. */
#include <math.h>

#include "base/om_float16.h"
#include "gpu/om_gpu_split.h"
#include "unit/gpu_rig.h"

enum { MOST_ELEMS = 3072 * 3072 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float weights[MOST_ELEMS];
static uint16_t halves[64 * 1024];
static uint32_t packed[64 * 1024];

/* ---- Blocks ---- */

enum { DEPTH = 137, COLS = 19, STEPS = 3, OCTETS = 3 };

static float value_at(size_t term, size_t col) {
  return (float)((term * 131 + col * 37) % 1999) - 999.0f;
}

/* The float16 at place `at` of block number `number`, from `from` on. */
static float half_at(const void *from, size_t number, size_t at) {
  uint16_t half;
  memcpy(&half, (const char *)from + (number * OM_BLOCK_ELEMS + at) * sizeof half, sizeof half);
  return om_f16_to_f32(half);
}

/* What wgmma makes of a place in a block: column and piece by the swizzle, then the term. */
static size_t term_of(size_t at, bool is_half) {
  const size_t col = at / OM_BLOCK_TERMS;
  const size_t piece = at / 8 % 8 ^ col;
  const size_t k = piece % 2 * 8 + at % 8; /* of the 16 that an instruction takes */
  /* The thread with k / 2 % 4 holds k, k + 1, and with them k + 8, k + 9. */
  const size_t own = k / 2 % 4 * 4 + k % 2 + k / 8 * 2;
  return piece / 2 * 16 + (is_half ? k : own);
}

static void expect_blocks(bool is_turned, bool is_half) {
  const om_split_layout layout = {
      .depth = DEPTH, .cols = COLS, .is_turned = is_turned, .is_blocks = true};
  memset(packed, 0xff, sizeof packed);
  for (size_t i = 0; i < DEPTH * COLS; ++i) {
    weights[i] = is_turned ? value_at(i % DEPTH, i / DEPTH) : value_at(i / COLS, i % COLS);
    halves[i] = om_f16_from_f32(weights[i]);
  }
  const uint64_t bytes = om_blocks_bytes(DEPTH, COLS, is_half);
  const size_t factors = is_half ? 0 : OCTETS * OM_SPLIT_COLS;
  const size_t blocks = (size_t)STEPS * OCTETS * (is_half ? 1 : 2);
  assert_int_equal(bytes, factors * sizeof(float) + blocks * OM_BLOCK_ELEMS * sizeof(uint16_t));
  rig_init(rig);
  rig->ctx.thread_count = 3;
  if (is_half) {
    om_blocks_fill_half(&rig->ctx, &layout, halves, packed);
  } else {
    om_split_fill(&rig->ctx, &layout, weights, packed);
  }
  assert_int_equal(((const uint8_t *)packed)[bytes], 0xff);
  for (size_t block = 0; block < STEPS * OCTETS; ++block) {
    for (size_t at = 0; at < OM_BLOCK_ELEMS; ++at) {
      const size_t col = block % OCTETS * OM_SPLIT_COLS + at / OM_BLOCK_TERMS;
      const size_t term = block / OCTETS * OM_BLOCK_TERMS + term_of(at, is_half);
      const float expected = term < DEPTH && col < COLS ? value_at(term, col) : 0.0f;
      float value = half_at(packed, block, at);
      if (!is_half) {
        float factor;
        memcpy(&factor, &packed[col], sizeof factor);
        const float high = half_at(packed + factors, 2 * block, at);
        const float low = half_at(packed + factors, 2 * block + 1, at);
        value = (high + low / (float)OM_SPLIT_LOW_SCALE) * factor;
        value = ldexpf(value, -OM_SPLIT_EXPONENT);
      }
      assert_true(value == expected);
    }
  }
}

static void test_blocks(void **state) {
  (void)state;
  expect_blocks(false, false);
  expect_blocks(true, false);
  expect_blocks(false, true);
  expect_blocks(true, true);
}

/* ---- Choosing ---- */

static void open_hopper(om_mode mode, bool no_sm90) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  options.backend = "null";
  options.device = "Hopper";
  options.no_sm90 = no_sm90;
  rig_open_with(rig, &options, mode);
}

/* The kernels of a product by a constant, with a Relu behind it that joins the last. */
static void expect_kernels(const int64_t a[2], int64_t cols, size_t launches, const char *first) {
  const int64_t b[2] = {a[1], cols};
  assert_true(a[1] * cols <= MOST_ELEMS);
  const uint32_t x = rig_input(rig, 2, a);
  const uint32_t y = rig_binary(rig, "MatMul", x, rig_weight(rig, 2, b, weights));
  const uint32_t out = rig_unary(rig, "Relu", y);
  rig_compile(rig, &out, 1);
  const om_gpu_launch *l = rig->plan->regions[0].launches;
  assert_int_equal(rig->plan->regions[0].launch_count, launches);
  const char *name = om_shader_get(l[0].dispatch->shader)->name;
  if (strncmp(name, first, strlen(first)) != 0) fail_msg("%s instead of %s", name, first);
  assert_int_equal(l[launches - 1].dispatch->chain.item_count, 1);
  rig_close(rig);
}

static void test_products_by_size(void **state) {
  static const struct {
    int64_t a[2], cols;
    size_t launches;
    const char *first;
  } cases[] = {
      {{128, 768}, 768, 1, "matmul_sm90_64x32"},
      {{128, 768}, 3072, 1, "matmul_sm90_64x64"},
      {{128, 3072}, 768, 2, "matmul_sm90_64x64_chunks"},
      {{1024, 768}, 768, 1, "matmul_sm90_64x96"},
      {{1024, 768}, 2304, 1, "matmul_sm90_128x160"},
      {{1024, 768}, 3072, 1, "matmul_sm90_128x96"},
      {{1500, 768}, 2304, 1, "matmul_sm90_128x128"},
      {{99, 132}, 131, 1, "matmul_matrix_32x32"},
      {{4, 768}, 768, 1, "matmul_few_8"},
  };
  (void)state;
  memset(weights, 0, sizeof weights);
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    open_hopper(OM_MODE_FAST, false);
    expect_kernels(cases[i].a, cases[i].cols, cases[i].launches, cases[i].first);
  }
}

/* Exact kernels: the tile whose last turn leaves the fewest cores idle. */
static void test_exact_products_by_size(void **state) {
  static const struct {
    int64_t a[2], cols;
    size_t launches;
    const char *first;
  } cases[] = {
      {{1024, 384}, 384, 1, "matmul_sm90_exact_64x48"},
      {{1024, 1536}, 384, 1, "matmul_sm90_exact_64x48_deep"},
      {{1024, 384}, 1536, 1, "matmul_sm90_exact_128x96"},
      {{1024, 768}, 768, 1, "matmul_sm90_exact_64x96"},
      {{1500, 768}, 768, 1, "matmul_sm90_exact_96x96"},
      {{1500, 3072}, 768, 1, "matmul_sm90_exact_96x96"},
      {{1024, 769}, 384, 1, "matmul_tile"},
      {{4, 768}, 768, 1, "matmul_rows_exact"},
  };
  (void)state;
  memset(weights, 0, sizeof weights);
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    open_hopper(OM_MODE_EXACT, false);
    expect_kernels(cases[i].a, cases[i].cols, cases[i].launches, cases[i].first);
  }
}

static void test_switched_off(void **state) {
  (void)state;
  open_hopper(OM_MODE_FAST, true);
  expect_kernels((int64_t[]){128, 768}, 768, 1, "matmul_matrix_32x32");
  open_hopper(OM_MODE_EXACT, true);
  expect_kernels((int64_t[]){1024, 384}, 768, 1, "matmul_tile");
}

/* Runs, so that the recordings are checked too: of a whole product, and of one in chunks. */
static void test_runs(void **state) {
  static float x[128 * 3072], y[128 * 768];
  (void)state;
  for (int64_t depth = 768; depth <= 3072; depth *= 4) {
    open_hopper(OM_MODE_FAST, false);
    const uint32_t in = rig_input(rig, 2, (int64_t[]){128, depth});
    const uint32_t w = rig_weight(rig, 2, (int64_t[]){depth, 768}, weights);
    const uint32_t out = rig_binary(rig, "MatMul", in, w);
    rig_compile(rig, &out, 1);
    rig_run(rig, (const void *const[]){x}, (void *const[]){y});
    assert_int_equal(rig->session->info.dispatches, depth == 768 ? 1 : 2);
    rig_close(rig);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_products_by_size),
      cmocka_unit_test(test_exact_products_by_size),
      cmocka_unit_test(test_switched_off),
      cmocka_unit_test(test_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
