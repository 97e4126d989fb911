/* Weights above one buffer binding: products take them in runs of columns, with the bits of the
 * product in one piece. The limit is lowered, so that small weights show it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/om_float16.h"
#include "gpu_rig.h"

enum { MOST = 70 * 2100, FEW_ROWS = 8 };

typedef struct product {
  const char *name, *type;
  uint32_t rank; /* of a */
  int64_t a[3];
  uint32_t b_rank;
  int64_t b[3];
  uint32_t c_rank; /* 0: none */
  int64_t c[2];
  bool is_b_turned;
  float alpha, beta; /* 0: 1 */
  uint64_t limit;    /* bytes, of float32; half of them for float16 */
} product;

static const product products[] = {
    {"one_row", "MatMul", 2, {1, 40}, 2, {40, 203}, .limit = 8192},
    {"few_rows", "MatMul", 2, {5, 40}, 2, {40, 203}, .limit = 16384},
    {"rows", "MatMul", 2, {20, 60}, 2, {60, 90}, .limit = 8000},
    {"quads", "MatMul", 2, {24, 64}, 2, {64, 256}, .limit = 30000},
    {"chunks", "MatMul", 2, {12, 2100}, 2, {2100, 24}, .limit = 110000},
    {"batch_of_a", "MatMul", 3, {3, 4, 20}, 2, {20, 90}, .limit = 6000},
    {"batch_of_b", "MatMul", 3, {3, 9, 20}, 3, {3, 20, 90}, .limit = 16000},
    {"one_b", "MatMul", 3, {1, 9, 20}, 3, {3, 20, 90}, .limit = 16000},
    {"turned", "Gemm", 2, {9, 40}, 2, {101, 40}, .is_b_turned = true, .limit = 12000},
    {"vector", "Gemm", 2, {9, 40}, 2, {101, 40}, 1, {101}, true, 0, 0, .limit = 12000},
    {"scaled", "Gemm", 2, {9, 40}, 2, {40, 101}, 1, {101}, false, 0.3f, 0.7f, .limit = 12000},
    {"column", "Gemm", 2, {9, 40}, 2, {40, 101}, 2, {9, 1}, false, 0, 0, .limit = 12000},
    {"whole_c", "Gemm", 2, {9, 40}, 2, {40, 101}, 2, {9, 101}, false, 0, 2.0f, .limit = 12000},
};

static gpu_rig rigs[1], *rig = rigs;

static void fill(om_dtype dtype, size_t count, uint32_t seed, void *out) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    if (dtype == OM_DTYPE_F16) {
      ((uint16_t *)out)[i] = om_f16_from_f32(value);
    } else {
      ((float *)out)[i] = value;
    }
  }
}

static void open_rig(const char *backend, om_mode mode, uint64_t limit) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.no_matrix_hardware = true;
  options.max_binding_bytes = limit;
  rig_open_with(rig, &options, mode);
}

/* Runs the product, with a Relu behind it, and returns the number of launches. */
static uint32_t run(const product *p, om_dtype dtype, const void *const data[3], void *out) {
  const om_attr attrs[] = {
      {.name = "transB", .kind = OM_ATTR_INT, .count = 1, .i = p->is_b_turned},
      {.name = "alpha", .kind = OM_ATTR_FLOAT, .count = 1, .f = p->alpha != 0 ? p->alpha : 1},
      {.name = "beta", .kind = OM_ATTR_FLOAT, .count = 1, .f = p->beta != 0 ? p->beta : 1},
  };
  uint32_t inputs[3], count = 2;
  om_tensor a = om_tensor_of(dtype, p->rank, p->a, NULL);
  om_tensor b = om_tensor_of(dtype, p->b_rank, p->b, (void *)(uintptr_t)data[1]);
  inputs[0] = rig_value(rig, &a);
  rig->reads[rig->region.read_count++] = inputs[0];
  inputs[1] = rig_value(rig, &b);
  rig->values[inputs[1]].is_weight = true;
  if (p->c_rank > 0) {
    om_tensor c = om_tensor_of(dtype, p->c_rank, p->c, (void *)(uintptr_t)data[2]);
    inputs[count++] = rig_value(rig, &c);
  }
  rig->attrs = attrs;
  rig->attr_count = strcmp(p->type, "Gemm") == 0 ? 3 : 0;
  uint32_t y = rig_step(rig, p->type, inputs, count);
  rig->attr_count = 0;
  y = rig_unary(rig, "Relu", y);
  rig_compile(rig, &y, 1);
  rig_run(rig, &data[0], &out);
  return (uint32_t)rig->plan->regions[0].launch_count;
}

static float value_at(om_dtype dtype, const void *data, size_t index) {
  if (dtype == OM_DTYPE_F16) return om_f16_to_f32(((const uint16_t *)data)[index]);
  return ((const float *)data)[index];
}

static void check_close(const product *p, om_dtype dtype, const float *whole, const float *parts) {
  const float limit = dtype == OM_DTYPE_F16 ? 1e-2f : 1e-5f; /* results are below 32 */
  for (size_t i = 0; i < MOST; ++i) {
    const float difference = value_at(dtype, whole, i) - value_at(dtype, parts, i);
    if (!(difference <= limit && difference >= -limit)) fail_msg("%s is off", p->name);
  }
}

static void check_product(const product *p, om_mode mode, om_dtype dtype, uint64_t limit) {
  static float a[MOST], b[MOST], c[MOST], whole[MOST], parts[MOST];
  const void *const data[] = {a, b, c};
  fill(dtype, MOST, 1, a);
  fill(dtype, MOST, 2, b);
  fill(dtype, MOST, 3, c);
  memset(whole, 0, sizeof whole);
  memset(parts, 0, sizeof parts);
  open_rig(NULL, mode, 0);
  const uint32_t launches = run(p, dtype, data, whole);
  rig_close(rig);
  open_rig(NULL, mode, limit);
  assert_true(run(p, dtype, data, parts) >= launches + 3);
  rig_close(rig);
  /* Fast mode has a kernel for few rows in one piece, which adds in another order. */
  if (mode == OM_MODE_EXACT || p->a[p->rank - 2] > FEW_ROWS) {
    if (memcmp(whole, parts, sizeof whole) != 0) fail_msg("%s differs", p->name);
  } else {
    check_close(p, dtype, whole, parts);
  }
  open_rig("null", mode, limit);
  run(p, dtype, data, parts);
  rig_close(rig);
}

static void parts_have_the_bits_of_the_whole(void **state) {
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(products); ++i) {
    for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
      check_product(&products[i], (om_mode)mode, OM_DTYPE_F32, products[i].limit);
      check_product(&products[i], (om_mode)mode, OM_DTYPE_F16, products[i].limit / 2);
    }
  }
}

/* Where float16 is float32 on the device, each part rounds its results. */
static void parts_of_widened_halves(void **state) {
  (void)state;
  setenv("ONEMODEL_GPU_NO_16BIT_STORAGE", "1", 1);
  for (size_t i = 0; i < OM_COUNT_OF(products); i += 3) {
    check_product(&products[i], OM_MODE_EXACT, OM_DTYPE_F16, products[i].limit);
  }
  unsetenv("ONEMODEL_GPU_NO_16BIT_STORAGE");
}

static void four_columns_must_fit(void **state) {
  static float weights[40 * 8];
  const char *reason = NULL;
  (void)state;
  open_rig("null", OM_MODE_FAST, 600);
  uint32_t x = rig_input(rig, 2, (int64_t[]){1, 40});
  rig_binary(rig, "MatMul", x, rig_weight(rig, 2, (int64_t[]){40, 8}, weights));
  rig_check(rig, om_gpu_provider()->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  rig_check(rig, om_gpu_provider()->claim(&rig->ctx, rig->plan, 0, &reason));
  assert_non_null(reason);
  assert_non_null(strstr(reason, "above the device's binding limit of 600, and so are four"));
  rig_close(rig);
}

int main(void) {
  /* Kernels that share nothing are chosen for whole products alone, and add in an order of their
   * own. */
  setenv("ONEMODEL_GPU_IN_TURN", "0", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_have_the_bits_of_the_whole),
      cmocka_unit_test(parts_of_widened_halves),
      cmocka_unit_test(four_columns_must_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
