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

static void put_value(const char *name, uint32_t field, om_dtype dtype, int rank, int extent_1) {
  value.count = type.count = shape.count = 0;
  for (int i = 0; i < rank; ++i) {
    dim.count = 0;
    put_int(&dim, 1, i == 1 ? (uint64_t)extent_1 : 1);
    put_part(&shape, 1, dim.data, dim.count);
  }
  dim.count = 0;
  put_int(&dim, 1, dtype);
  put_part(&dim, 2, shape.data, shape.count);
  put_part(&type, 1, dim.data, dim.count);
  put_text(&value, 1, name);
  put_part(&value, 2, type.data, type.count);
  put_part(&graph, field, value.data, value.count);
}

/* y = operator(first, second), with the weights w moved by `shift` bytes; the caller puts x and y.
 */
static void begin_model(const char *op, const char *first, const char *second, size_t shift) {
  static float weights[CHANNELS * CHANNELS]; /* above the 4 KiB that the loader copies */
  for (int i = 0; i < CHANNELS * CHANNELS; ++i) weights[i] = (float)i;
  node.count = tensor.count = graph.count = model.count = 0;
  put_text(&node, 1, first);
  put_text(&node, 1, second);
  put_text(&node, 2, "y");
  put_text(&node, 4, op);
  const bool is_conv = strcmp(op, "Conv") == 0;
  for (int i = 0; i < (is_conv ? 4 : 2); ++i) put_int(&tensor, 1, i < 2 ? CHANNELS : 1);
  put_int(&tensor, 2, OM_DTYPE_F32);
  put_text(&tensor, 8, "w");
  put_part(&tensor, 9, weights, sizeof weights);
  put_part(&graph, 1, node.data, node.count);
  put_part(&graph, 2, "name", shift);
  put_part(&graph, 5, tensor.data, tensor.count);
}

static void end_model(void) {
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
    begin_model("Conv", "x", "w", shift);
    put_value("x", 11, OM_DTYPE_F32, 4, CHANNELS);
    put_value("y", 12, OM_DTYPE_F32, 4, CHANNELS);
    end_model();
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

/* The table of a lookup was copied to align it, though rows of it are copied byte by byte: 47 MB of
 * a model of 90. */
static void test_unaligned_tables_are_read_where_they_lie(void **state) {
  (void)state;
  uint64_t least = 0, most = 0;
  for (size_t shift = 0; shift < 4; ++shift) {
    om_model *loaded = NULL;
    om_session *session = NULL;
    om_error error = {0};
    int64_t row = 7;
    om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){1}, &row)};
    om_named_tensor output = {.name = "y"};
    const om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
    begin_model("Gather", "w", "x", shift);
    put_value("x", 11, OM_DTYPE_I64, 1, 0);
    put_value("y", 12, OM_DTYPE_F32, 2, CHANNELS);
    end_model();
    assert_int_equal(om_model_load_memory(model.data, model.count, NULL, &loaded, &error), OM_OK);
    assert_int_equal(om_session_create(loaded, NULL, &session, &error), OM_OK);
    assert_int_equal(om_session_run(session, &args, &error), OM_OK);
    const float *y = output.tensor.data;
    for (int i = 0; i < CHANNELS; ++i) assert_true(y[i] == (float)(7 * CHANNELS + i));
    const uint64_t held = om_session_get_statistics(session).host_bytes;
    if (shift == 0) least = held;
    if (held < least) least = held;
    if (held > most) most = held;
    om_session_destroy(session);
    om_model_destroy(loaded);
  }
  assert_int_equal(least, most);
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
      cmocka_unit_test(test_unaligned_tables_are_read_where_they_lie),
      cmocka_unit_test(test_strides_of_an_empty_shape),
      cmocka_unit_test(test_rows_of_no_elements_take_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
