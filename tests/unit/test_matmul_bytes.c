/* Products of bytes whose b was brought into panels ahead: the same as those of b as it lies, and
 * as sums one by one. All signs, zero points, widths that fill no strip, depths beyond a panel,
 * more rows than a strip has, b turned; integers, floats, and floats with a bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/exact/om_matmul_bytes.h"
#include "cpu/fast/om_fast.h"
#include "harness/om_graph_builder.h"

enum { MOST_A = 200 * 100, MOST_B = 2100 * 70, MOST_Y = 200 * 70, MOST_COLS = 70 };

typedef struct product_case {
  size_t rows, depth, cols;
  bool is_b_turned, is_a_signed, is_b_signed, has_b_zeros, differs; /* the rows' zero points */
} product_case;

static uint8_t a[MOST_A], b[MOST_B];
static int32_t a_zeros[200], b_zeros[MOST_COLS];
static float factors[MOST_COLS], bias[MOST_COLS];

static void fill(const product_case *c) {
  uint32_t seed = 7;
  for (size_t i = 0; i < MOST_B; ++i) {
    seed = seed * 1664525u + 1013904223u;
    b[i] = (uint8_t)(seed >> 24);
    if (i < MOST_A) a[i] = (uint8_t)(seed >> 16);
  }
  for (size_t i = 0; i < OM_COUNT_OF(a_zeros); ++i) {
    a_zeros[i] = c->differs ? (int32_t)(i / 3 % 5) * 20 : 117;
  }
  for (size_t i = 0; i < MOST_COLS; ++i) {
    b_zeros[i] = c->has_b_zeros ? (int32_t)i : 0;
    factors[i] = 1e-4f * (float)(i + 1);
    bias[i] = (float)i - 20.0f;
  }
}

static uint32_t value_of(uint8_t byte, bool is_signed) {
  return is_signed && byte > 127 ? byte - 256u : byte;
}

static void sum_one_by_one(const product_case *c, uint32_t *y) {
  for (size_t i = 0; i < c->rows * c->cols; ++i) {
    const size_t row = i / c->cols, col = i % c->cols;
    y[i] = 0;
    for (size_t k = 0; k < c->depth; ++k) {
      const uint8_t w = c->is_b_turned ? b[col * c->depth + k] : b[k * c->cols + col];
      y[i] += (value_of(a[row * c->depth + k], c->is_a_signed) - (uint32_t)a_zeros[row]) *
              (value_of(w, c->is_b_signed) - (uint32_t)b_zeros[col]);
    }
  }
}

static void run(om_ctx *ctx, const om_matmul_bytes *p) {
  void *scratch =
      aligned_alloc(64, om_size_align(om_matmul_bytes_scratch(&p->m, p->m.rows) + 1, 64));
  assert_non_null(scratch);
  om_matmul_bytes_run(ctx, p, p->m.rows, scratch);
  free(scratch);
}

static void check(om_ctx *ctx, const product_case *c) {
  static uint32_t want[MOST_Y], y[MOST_Y];
  static float floats[MOST_Y];
  om_matmul_bytes p = {.m = {.rows = c->rows,
                             .depth = c->depth,
                             .cols = c->cols,
                             .a_row_stride = c->depth,
                             .a_depth_stride = 1,
                             .b_depth_stride = c->is_b_turned ? 1 : c->cols,
                             .b_col_stride = c->is_b_turned ? c->depth : 1},
                       .a = a,
                       .b = b,
                       .is_a_signed = c->is_a_signed,
                       .is_b_signed = c->is_b_signed,
                       .a_zeros = a_zeros,
                       .b_zeros = b_zeros,
                       .b_zero_count = c->cols,
                       .y = y};
  const size_t count = c->rows * c->cols;
  assert_true(c->rows * c->depth <= MOST_A && c->depth * c->cols <= MOST_B && count <= MOST_Y);
  fill(c);
  sum_one_by_one(c, want);
  uint8_t *panels = aligned_alloc(64, om_matmul_bytes_panels(&p.m));
  assert_non_null(panels);
  om_matmul_bytes_pack(ctx, &p, panels);
  for (int is_packed = 0; is_packed < 2; ++is_packed) {
    if (is_packed) p.panels = panels;
    if (is_packed) p.b = NULL; /* it is not read */
    p.y = y;
    memset(y, 0x5a, sizeof y);
    run(ctx, &p);
    assert_memory_equal(y, want, count * sizeof *y);
    p.y = NULL;
    p.floats = floats;
    p.factors = factors;
    for (int has_bias = 0; has_bias < 2; ++has_bias) {
      p.bias = has_bias ? bias : NULL;
      memset(floats, 0x5a, sizeof floats);
      run(ctx, &p);
      for (size_t i = 0; i < count; ++i) {
        float value = (float)(int32_t)want[i] * factors[i % c->cols];
        if (has_bias) value += bias[i % c->cols];
        if (floats[i] != value) fail_msg("%g is not %g", (double)floats[i], (double)value);
      }
    }
  }
  free(panels);
}

static void panels_change_nothing(void **state) {
  static const size_t sizes[][3] = {
      {1, 1, 1}, {5, 7, 33}, {8, 64, 64}, {131, 96, 70}, {200, 100, 31}, {6, 2050, 45}};
  om_error error;
  (void)state;
  om_error_clear(&error);
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  for (size_t i = 0; i < OM_COUNT_OF(sizes); ++i) {
    for (int kind = 0; kind < 32; ++kind) {
      check(&ctx,
            &(product_case){.rows = sizes[i][0],
                            .depth = sizes[i][1],
                            .cols = sizes[i][2],
                            .is_b_turned = kind & 1,
                            .is_a_signed = kind & 2,
                            .is_b_signed = kind & 4,
                            .has_b_zeros = kind & 8,
                            .differs = kind & 16});
    }
  }
}

static void products_that_pack(void **state) {
  om_matmul m = {.rows = 5, .depth = 8, .cols = 9, .b_depth_stride = 9, .b_col_stride = 1};
  (void)state;
  assert_true(om_matmul_bytes_packs(&m));
  m.batch = (om_strided){.rank = 1, .extents = {1}, .target_strides = {72}};
  assert_true(om_matmul_bytes_packs(&m));
  m.batch.extents[0] = 2; /* each has a b of its own */
  assert_false(om_matmul_bytes_packs(&m));
  m.batch.target_strides[0] = 0;
  assert_true(om_matmul_bytes_packs(&m));
  m.b_depth_stride = 1; /* turned: few rows read it as it lies */
  m.b_col_stride = 8;
  assert_true(om_matmul_bytes_packs(&m));
  m.rows = 1;
  assert_false(om_matmul_bytes_packs(&m));
}

/* Weights of other shapes and types at one place, as external data may have them. */
static void weights_share_their_place(void **state) {
  static const _Alignas(64) int8_t shared[64 * 32] = {1, -2, 3, 0, -5, [900] = 6, [2047] = -7};
  static const struct {
    om_dtype dtype;
    int64_t depth, cols;
  } kinds[] = {{OM_DTYPE_I8, 64, 32}, {OM_DTYPE_I8, 32, 64}, {OM_DTYPE_U8, 64, 32}};
  static const char *const names[] = {"first", "second", "third"};
  enum { ROWS = 9, COUNT = OM_COUNT_OF(kinds) };
  static uint8_t x[ROWS * 64];
  om_named_tensor inputs[COUNT], outputs[COUNT];
  om_graph_builder builder;
  om_session *session = NULL;
  om_error error;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  (void)state;
  for (size_t i = 0; i < sizeof x; ++i) x[i] = (uint8_t)(i * 37);
  om_build_begin(&builder, 17);
  for (size_t i = 0; i < COUNT; ++i) {
    const int64_t x_dims[] = {ROWS, kinds[i].depth}, w_dims[] = {kinds[i].depth, kinds[i].cols};
    om_value_id operands[] = {om_build_input(&builder, names[i], OM_DTYPE_U8, 2, x_dims, NULL),
                              om_build_constant(&builder, "", kinds[i].dtype, 2, w_dims, shared)};
    static const char *const results[] = {"y0", "y1", "y2"};
    om_build_output(&builder, om_build_node(&builder, "MatMulInteger", results[i], 2, operands));
    inputs[i] = (om_named_tensor){names[i], om_tensor_of(OM_DTYPE_U8, 2, x_dims, x)};
    outputs[i] = (om_named_tensor){results[i], {0}};
  }
  om_model *model = om_build_model(&builder);
  assert_int_equal(om_session_create(model, &options, &session, &error), OM_OK);
  om_run_args args = {sizeof args, inputs, COUNT, outputs, COUNT, NULL};
  assert_int_equal(om_session_run(session, &args, &error), OM_OK);
  for (size_t i = 0; i < COUNT; ++i) {
    const size_t depth = (size_t)kinds[i].depth, cols = (size_t)kinds[i].cols;
    const int32_t *y = outputs[i].tensor.data;
    for (size_t at = 0; at < ROWS * cols; ++at) {
      int32_t sum = 0;
      for (size_t k = 0; k < depth; ++k) {
        const int8_t w = shared[k * cols + at % cols];
        sum += x[at / cols * depth + k] * (kinds[i].dtype == OM_DTYPE_I8 ? w : (uint8_t)w);
      }
      if (y[at] != sum) fail_msg("%s: %d is not %d", outputs[i].name, y[at], sum);
    }
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

static void blocks_are_shared(void **state) {
  om_error error;
  om_fast *fast = NULL;
  uint8_t *first = NULL, *second = NULL;
  bool is_new = false;
  const om_fast_form form = {0, 8, 8};
  (void)state;
  om_error_clear(&error);
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  assert_int_equal(om_fast_create(&ctx, (om_fast_lender){0}, &fast), OM_OK);
  assert_int_equal(om_fast_block_get(&ctx, fast, a, form, 64, &is_new, &first), OM_OK);
  assert_true(is_new);
  for (int i = 0; i < 3; ++i) {
    const om_fast_form others[] = {{1, 8, 8}, {0, 4, 8}, {0, 8, 16}};
    assert_int_equal(om_fast_block_get(&ctx, fast, a, others[i], 64, &is_new, &second), OM_OK);
    assert_true(is_new && first != second);
  }
  assert_int_equal(om_fast_block_get(&ctx, fast, b, form, 64, &is_new, &second), OM_OK);
  assert_true(is_new && first != second);
  assert_int_equal(om_fast_block_get(&ctx, fast, a, form, 64, &is_new, &second), OM_OK);
  assert_true(!is_new && first == second);
  om_fast_destroy(&ctx, fast);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(panels_change_nothing),
      cmocka_unit_test(products_that_pack),
      cmocka_unit_test(weights_share_their_place),
      cmocka_unit_test(blocks_are_shared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
