/* What an attempt to break the library found; sanitizers see most of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/exact/om_norm.h"
#include "cpu/exact/om_softmax.h"
#include "cpu/exact/om_strided.h"
#include "onemodel/gpu.h"

typedef struct bytes {
  uint8_t data[16384];
  size_t count;
} bytes;

static void put(bytes *b, const void *data, size_t count) {
  assert_true(b->count + count <= sizeof b->data);
  if (count) memcpy(b->data + b->count, data, count);
  b->count += count;
}

static void put_varint(bytes *b, uint64_t n) {
  for (; n > 127; n >>= 7) put(b, &(uint8_t){(uint8_t)(n | 128)}, 1);
  put(b, &(uint8_t){(uint8_t)n}, 1);
}

static void put_int(bytes *b, uint32_t field, uint64_t value) {
  put_varint(b, (uint64_t)field << 3);
  put_varint(b, value);
}

static void put_part(bytes *b, uint32_t field, const void *data, size_t count) {
  put_varint(b, (uint64_t)field << 3 | 2);
  put_varint(b, count);
  put(b, data, count);
}

static void put_text(bytes *b, uint32_t field, const char *text) {
  put_part(b, field, text, strlen(text));
}

enum { CHANNELS = 33 };

static bytes node, tensor, value, type, shape, dim, graph, model;

static void put_value(const char *name, uint32_t field) {
  value.count = type.count = shape.count = 0;
  for (int i = 0; i < 4; ++i) {
    dim.count = 0;
    put_int(&dim, 1, i == 1 ? CHANNELS : 1);
    put_part(&shape, 1, dim.data, dim.count);
  }
  dim.count = 0;
  put_int(&dim, 1, OM_DTYPE_F32);
  put_part(&dim, 2, shape.data, shape.count);
  put_part(&type, 1, dim.data, dim.count);
  put_text(&value, 1, name);
  put_part(&value, 2, type.data, type.count);
  put_part(&graph, field, value.data, value.count);
}

/* y = Conv(x, w), with w moved by `shift` bytes. */
static void make_model(size_t shift) {
  static float weights[CHANNELS * CHANNELS]; /* above the 4 KiB that the loader copies */
  node.count = tensor.count = graph.count = model.count = 0;
  put_text(&node, 1, "x");
  put_text(&node, 1, "w");
  put_text(&node, 2, "y");
  put_text(&node, 4, "Conv");
  for (int i = 0; i < 4; ++i) put_int(&tensor, 1, i < 2 ? CHANNELS : 1);
  put_int(&tensor, 2, OM_DTYPE_F32);
  put_text(&tensor, 8, "w");
  put_part(&tensor, 9, weights, sizeof weights);
  put_part(&graph, 1, node.data, node.count);
  put_part(&graph, 2, "name", shift);
  put_part(&graph, 5, tensor.data, tensor.count);
  put_value("x", 11);
  put_value("y", 12);
  put_int(&model, 1, 8);
  put_part(&model, 7, graph.data, graph.count);
  put_part(&model, 8, "\x10\x11", 2); /* opset 17 */
}

/* Weights that stay in the file were read as floats, wherever they lie. */
static void test_unaligned_weights_are_packed(void **state) {
  (void)state;
  for (size_t shift = 0; shift < 4; ++shift) {
    const om_gpu_options gpu = {.struct_bytes = sizeof gpu, .backend = "null"};
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    om_model *loaded = NULL;
    om_session *session = NULL;
    om_error error = {0};
    make_model(shift);
    om_status st = om_model_load_memory(model.data, model.count, NULL, &loaded, &error);
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
    if (st == OM_OK) st = om_session_create(loaded, &options, &session, &error);
    if (st == OM_OK) st = om_session_prepare(session, NULL, 0, &error);
    if (st != OM_OK) print_message("%s\n", error.message);
    assert_int_equal(st, OM_OK);
    om_session_destroy(session);
    om_model_destroy(loaded);
  }
}

/* The product of an empty shape's other extents overflowed. */
static void test_strides_of_an_empty_shape(void **state) {
  (void)state;
  const int64_t dims[] = {INT64_C(1) << 40, INT64_C(1) << 40, 0, INT64_C(1) << 62, 4};
  int64_t strides[5];
  om_dense_strides(5, dims, strides);
  for (int i = 0; i < 5; ++i) assert_int_equal(strides[i], 1);
}

/* A kernel walked through rows of which none has an element. */
static void test_rows_of_no_elements_take_no_time(void **state) {
  (void)state;
  const om_tensor x = {.dtype = OM_DTYPE_F32, .rank = 2, .dims = {INT64_C(1) << 60, 0}};
  const om_norm_job job = {.kind = OM_NORM_L2};
  om_ctx ctx = {0};
  om_rows rows;
  om_rows_init(&rows, &x, 2);
  om_norm_run(&ctx, &rows, &job);
  om_softmax_run(&ctx, &rows, OM_SOFTMAX, NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unaligned_weights_are_packed),
      cmocka_unit_test(test_strides_of_an_empty_shape),
      cmocka_unit_test(test_rows_of_no_elements_take_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
