/* The foundation: memory, errors, sizes, float16, intervals, threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/om_float16.h"
#include "base/om_interval.h"
#include "base/om_thread.h"
#include "harness/om_fault.h"
#include "harness/om_test_skip.h"

static om_ctx make_ctx(om_error *error) {
  om_error_clear(error);
  return (om_ctx){.allocator = om_default_allocator(), .error = error, .thread_count = 1};
}

/* ---- Memory ---- */

static void new_bytes_are_zeroed_aligned_and_counted(void **state) {
  om_error error;
  om_memory_use use = {0};
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_ctx ctx = make_ctx(&error);
  (void)state;
  ctx.allocator = om_fault_allocator(&fault); /* fills blocks with rubbish */
  ctx.use = &use;
  unsigned char *bytes = om_new_bytes(&ctx, 100, 3);
  assert_non_null(bytes);
  assert_int_equal((uintptr_t)bytes % 64, 0);
  for (size_t i = 0; i < 300; ++i) assert_int_equal(bytes[i], 0);
  assert_int_equal(use.allocations, 1);
  assert_true(use.live_bytes >= 300);
  void *none = om_new_bytes(&ctx, 0, 8);
  assert_non_null(none);
  uint64_t peak = use.live_bytes;
  om_delete(&ctx, bytes);
  om_delete(&ctx, none);
  om_delete(&ctx, NULL);
  assert_int_equal(use.live_bytes, 0);
  assert_int_equal(use.peak_bytes, peak);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 0);
}

static void new_bytes_fail_with_words(void **state) {
  om_error error;
  om_fault fault = {.fail_at = 0};
  om_ctx ctx = make_ctx(&error);
  (void)state;
  assert_null(om_new_bytes(&ctx, SIZE_MAX / 2, 3));
  assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
  om_error_clear(&error);
  assert_null(om_new_bytes(&ctx, SIZE_MAX, 1)); /* the header does not fit any more */
  assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
  om_error_clear(&error);
  ctx.allocator = om_fault_allocator(&fault);
  assert_null(om_new_bytes(&ctx, 10, 1));
  assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "74 bytes"));
}

static void arrays_grow_and_keep_their_elements(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  uint32_t *array = NULL;
  size_t capacity = 0;
  (void)state;
  for (uint32_t i = 0; i < 1000; ++i) {
    assert_int_equal(OM_GROW(&ctx, array, i, capacity), OM_OK);
    assert_true(capacity > i);
    array[i] = i * 7;
  }
  for (uint32_t i = 0; i < 1000; ++i) assert_int_equal(array[i], i * 7);
  void *bytes = array;
  assert_int_equal(om_resize_bytes(&ctx, &bytes, 1000, 2000, sizeof *array), OM_OK);
  array = bytes;
  assert_int_equal(array[999], 999 * 7);
  for (size_t i = 1000; i < 2000; ++i) assert_int_equal(array[i], 0);
  om_delete(&ctx, array);
}

static void pools_free_as_a_whole(void **state) {
  om_error error;
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_ctx ctx = make_ctx(&error);
  om_pool pool = {0};
  (void)state;
  ctx.allocator = om_fault_allocator(&fault);
  for (size_t bytes = 0; bytes < 3000; bytes += 7) {
    unsigned char *block = om_pool_new_bytes(&ctx, &pool, bytes, 1);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    for (size_t i = 0; i < bytes; ++i) assert_int_equal(block[i], 0);
    memset(block, 0xff, bytes); /* whatever follows must still be zero */
  }
  assert_non_null(om_pool_new_bytes(&ctx, &pool, 1000000, 1));
  assert_string_equal(om_pool_text(&ctx, &pool, "abcdef", 3), "abc");
  assert_string_equal(om_pool_format(&ctx, &pool, "%s_%d", "Conv", 12), "Conv_12");
  assert_true(atomic_load(&fault.allocations) < 60);
  assert_null(om_pool_new_bytes(&ctx, &pool, SIZE_MAX, 2));
  assert_null(om_pool_new_bytes(&ctx, &pool, SIZE_MAX - 3, 1));
  om_pool_deinit(&ctx, &pool);
  om_pool_deinit(&ctx, &pool);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 0);
}

/* ---- Errors ---- */

static void the_first_failure_wins(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  (void)state;
  assert_int_equal(OM_FAIL(&ctx, OM_E_IO, "Index %d is outside.", 40), OM_E_IO);
  assert_int_equal(OM_FAIL(&ctx, OM_E_INTERNAL, "Later."), OM_E_INTERNAL);
  assert_int_equal(error.status, OM_E_IO);
  assert_string_equal(error.message, "Index 40 is outside.");
  assert_string_equal(error.file, "test_base.c");
  om_error_prefix(&ctx, "Node '%s'", "a");
  om_error_prefix(&ctx, "Model 'm': ");
  assert_string_equal(error.message, "Model 'm': Node 'a': Index 40 is outside.");
  om_error_clear(&error);
  om_error_prefix(&ctx, "Node '%s'", "a");
  assert_string_equal(error.message, "");
}

static void long_messages_are_cut(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  static char name[3000];
  (void)state;
  memset(name, 'n', sizeof name - 1);
  OM_IGNORE(OM_FAIL(&ctx, OM_E_IO, "File '%s' is gone.", name)); /* the text is what counts */
  assert_int_equal(strlen(error.message), OM_MAX_MESSAGE - 1);
  assert_string_equal(error.message + OM_MAX_MESSAGE - 4, "...");
  om_error_prefix(&ctx, "Node '%s'", name);
  assert_int_equal(strlen(error.message), OM_MAX_MESSAGE - 1);
  assert_int_equal(strncmp(error.message, "Node 'nnn", 9), 0);
  assert_non_null(strstr(error.message, "...: File 'nnn")); /* both parts are still there */
}

static void names_cannot_control_a_terminal(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  (void)state;
  OM_IGNORE(OM_FAIL(&ctx, OM_E_IO, "Name 'a\033[2Jb\rc\n'.")); /* the text is what counts */
  assert_string_equal(error.message, "Name 'a?[2Jb?c\n'.");
}

static void keep_line(void *user, om_log_level level, const char *message) {
  (void)snprintf(user, 1024, "%d %s", (int)level, message);
}

static void the_log_is_silent_without_a_callback(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  char line[1024] = "";
  (void)state;
  om_log_write(&ctx, OM_LOG_ERROR, "Nobody hears this.");
  ctx.log = (om_log){.write = keep_line, .user = line};
  om_log_write(&ctx, OM_LOG_WARNING, "Value %d.", 3);
  assert_string_equal(line, "1 Value 3.");
}

static void names_of_constants(void **state) {
  (void)state;
  assert_string_equal(om_status_name(OM_OK), "OM_OK");
  assert_string_equal(om_status_name(OM_E_INTERNAL), "OM_E_INTERNAL");
  assert_string_equal(om_status_name((om_status)77), "?");
  assert_string_equal(om_version(), "0.1.0");
  assert_string_equal(om_dtype_name(OM_DTYPE_BF16), "bfloat16");
  assert_string_equal(om_dtype_name((om_dtype)999), "?");
  for (int i = OM_DTYPE_F32; i < OM_DTYPE_COUNT; ++i) {
    assert_true(om_dtype_bits((om_dtype)i) > 0);
    assert_true(strlen(om_dtype_name((om_dtype)i)) > 2);
  }
  assert_int_equal(om_dtype_bits(OM_DTYPE_NONE), 0);
  assert_int_equal(om_dtype_bits((om_dtype)-1), 0);
  assert_int_equal(om_dtype_bits(OM_DTYPE_I4), 4);
}

/* ---- Sizes ---- */

static void shapes_have_sizes(void **state) {
  size_t size = 0;
  char text[OM_SHAPE_TEXT];
  char small[8];
  int64_t dims[] = {2, 3, 5};
  int64_t negative[] = {2, -1};
  int64_t huge[] = {INT64_MAX, 4};
  int64_t empty[] = {INT32_MAX, 0, 7};
  int64_t huge_and_empty[] = {INT64_MAX / 2, 12, 0};
  (void)state;
  assert_true(om_shape_elems(3, dims, &size));
  assert_int_equal(size, 30);
  assert_true(om_shape_elems(0, NULL, &size));
  assert_int_equal(size, 1);
  assert_true(om_shape_elems(3, empty, &size));
  assert_int_equal(size, 0);
  assert_false(om_shape_elems(2, negative, &size));
  assert_false(om_shape_elems(2, huge, &size));
  assert_false(om_shape_elems(3, huge_and_empty, &size)); /* its strides would overflow */
  assert_false(om_shape_elems(9, dims, &size));
  assert_true(om_shape_bytes(OM_DTYPE_F64, 3, dims, &size));
  assert_int_equal(size, 240);
  assert_true(om_shape_bytes(OM_DTYPE_U4, 1, dims + 2, &size));
  assert_int_equal(size, 3);
  assert_false(om_shape_bytes(OM_DTYPE_NONE, 3, dims, &size));
  assert_string_equal(om_shape_text(text, sizeof text, 3, dims), "[2, 3, 5]");
  assert_string_equal(om_shape_text(text, sizeof text, 0, NULL), "[]");
  assert_string_equal(om_shape_text(small, sizeof small, 3, dims), "[2, 3, ");
}

static void tensors_know_their_bytes(void **state) {
  int64_t dims[] = {2, 3};
  int64_t huge[] = {INT64_MAX, 4};
  float data[6];
  (void)state;
  om_tensor tensor = om_tensor_of(OM_DTYPE_F32, 2, dims, data);
  assert_int_equal(tensor.data_bytes, 24);
  assert_int_equal(om_tensor_elems(&tensor), 6);
  assert_ptr_equal(tensor.data, data);
  tensor = om_tensor_of(OM_DTYPE_F32, 2, huge, data);
  assert_int_equal(tensor.data_bytes, 0);
  assert_int_equal(om_tensor_elems(&tensor), 0);
  tensor = om_tensor_of(OM_DTYPE_F32, 9, dims, data); /* reads no extent at all */
  assert_int_equal(tensor.data_bytes, 0);
}

/* ---- float16 ---- */

/* What a float16 means, by the definition, in double precision (exact). */
static double meaning_of_f16(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f;
  double fraction = bits & 0x3ff;
  double value = exponent == 0    ? ldexp(fraction, -24)
                 : exponent == 31 ? (fraction == 0 ? INFINITY : (double)NAN)
                                  : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

static void every_float16_comes_back(void **state) {
  (void)state;
  for (uint32_t i = 0; i <= UINT16_MAX; ++i) {
    uint16_t bits = (uint16_t)i;
    double meaning = meaning_of_f16(bits);
    float value = om_f16_to_f32(bits);
    if (isnan(meaning)) {
      assert_true(isnan(value));
      assert_true(isnan(om_f16_to_f32(om_f16_from_f32(value))));
      continue;
    }
    assert_true((double)value == meaning);
    assert_int_equal(om_f16_from_f32(value), bits);
    assert_int_equal(om_f16_from_f64(meaning), bits);
  }
}

/* Between two neighbours: the middle goes to the even one, the rest to the nearer one. */
static void float16_rounds_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    uint16_t low = (uint16_t)i;
    uint16_t high = (uint16_t)(i + 1);
    double middle = (meaning_of_f16(low) + meaning_of_f16(high)) / 2;
    double quarter = (meaning_of_f16(high) - meaning_of_f16(low)) / 4;
    uint16_t even = low & 1 ? high : low;
    assert_int_equal(om_f16_from_f32((float)middle), even);
    assert_int_equal(om_f16_from_f32((float)-middle), even | 0x8000);
    assert_int_equal(om_f16_from_f32((float)(middle - quarter)), low);
    assert_int_equal(om_f16_from_f32((float)(middle + quarter)), high);
    /* By way of float32 these two would be ties. */
    assert_int_equal(om_f16_from_f64(nextafter(middle, INFINITY)), high);
    assert_int_equal(om_f16_from_f64(nextafter(middle, 0)), low);
  }
  assert_int_equal(om_f16_from_f32(65519.996f), 0x7bff);
  assert_int_equal(om_f16_from_f32(65520.0f), 0x7c00);
  assert_int_equal(om_f16_from_f32(1e30f), 0x7c00);
  assert_int_equal(om_f16_from_f64(-1e300), 0xfc00);
  assert_int_equal(om_f16_from_f32(1e-30f), 0);
  assert_int_equal(om_f16_from_f64(-1e-300), 0x8000);
  assert_true(isnan(om_f16_to_f32(om_f16_from_f64((double)NAN))));
}

static void bfloat16_rounds_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 0x7f7f; ++i) {
    uint16_t low = (uint16_t)i;
    uint16_t high = (uint16_t)(i + 1);
    float a = om_bf16_to_f32(low);
    float b = om_bf16_to_f32(high);
    assert_int_equal(om_bf16_from_f32(a), low);
    uint32_t bits = (uint32_t)low << 16 | 0x8000; /* the middle */
    float middle;
    memcpy(&middle, &bits, sizeof middle);
    assert_true(middle > a && middle < b);
    assert_int_equal(om_bf16_from_f32(middle), low & 1 ? high : low);
    assert_int_equal(om_bf16_from_f32(nextafterf(middle, a)), low);
    assert_int_equal(om_bf16_from_f32(nextafterf(middle, b)), high);
  }
  assert_int_equal(om_bf16_from_f32(INFINITY), 0x7f80);
  assert_int_equal(om_bf16_from_f32(3.4e38f), 0x7f80);
  assert_true(isnan(om_bf16_to_f32(om_bf16_from_f32(NAN))));
}

/* ---- Intervals ---- */

static bool overlap(const om_interval *a, const om_interval *b) {
  bool in_time = a->first <= b->last && b->first <= a->last;
  bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
  return in_time && in_space;
}

static void intervals_take_the_first_gap(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_interval blocks[] = {
      {.bytes = 100, .first = 0, .last = 1},
      {.bytes = 10, .first = 0, .last = 9},
      {.bytes = 50, .first = 2, .last = 3},
      {.bytes = 64, .first = 2, .last = 4},
      {.bytes = 0, .first = 2, .last = 4},
      {.bytes = 65, .first = 4, .last = 5},
  };
  size_t total = 0;
  (void)state;
  assert_int_equal(om_interval_place(&ctx, blocks, 6, 64, &total), OM_OK);
  assert_int_equal(blocks[0].offset, 0); /* the largest goes first */
  assert_int_equal(blocks[5].offset, 0); /* block 0 is dead */
  assert_int_equal(blocks[3].offset, 128);
  assert_int_equal(blocks[2].offset, 0); /* before block 5 */
  assert_int_equal(blocks[1].offset, 192);
  assert_int_equal(blocks[4].offset, 0);
  assert_int_equal(total, 202);
}

/* By size the small block keeps the two large ones apart; the second attempt puts them together. */
static void a_second_attempt_closes_gaps(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_interval blocks[] = {{.bytes = 100, .first = 1, .last = 2},
                          {.bytes = 30, .first = 2, .last = 3},
                          {.bytes = 30, .first = 3, .last = 4},
                          {.bytes = 100, .first = 4, .last = 5}};
  size_t total = 0;
  (void)state;
  assert_int_equal(om_interval_place(&ctx, blocks, 4, 1, &total), OM_OK);
  assert_int_equal(total, 130);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < i; ++k) assert_false(overlap(&blocks[i], &blocks[k]));
  }
}

/* An encoder's layers, whose stream of residuals has elements twice as large: moving one block at a
 * time does not find the order in which nothing is lost. */
static void intervals_of_layers_are_dense(void **state) {
  enum { LAYERS = 12, BLOCKS = 9 };
  static const om_interval layer[BLOCKS] = {
      {.bytes = 2, .first = 0, .last = 4}, /* the sum before attention */
      {.bytes = 1, .first = 0, .last = 1}, /* normalised */
      {.bytes = 3, .first = 1, .last = 2}, /* Q, K and V */
      {.bytes = 1, .first = 2, .last = 3},
      {.bytes = 1, .first = 3, .last = 4},
      {.bytes = 2, .first = 4, .last = 7}, /* the sum behind it */
      {.bytes = 1, .first = 4, .last = 5},
      {.bytes = 4, .first = 5, .last = 6}, /* Gelu's */
      {.bytes = 1, .first = 6, .last = 7},
  };
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_interval blocks[LAYERS * BLOCKS];
  size_t total = 0;
  uint64_t live = 0;
  (void)state;
  for (uint32_t i = 0; i < LAYERS * BLOCKS; ++i) {
    blocks[i] = layer[i % BLOCKS];
    blocks[i].first += i / BLOCKS * 7;
    blocks[i].last += i / BLOCKS * 7;
  }
  assert_int_equal(om_interval_live(&ctx, blocks, LAYERS * BLOCKS, 1, &live), OM_OK);
  assert_int_equal(om_interval_place(&ctx, blocks, LAYERS * BLOCKS, 1, &total), OM_OK);
  assert_int_equal(total, live);
}

static void intervals_never_overlap(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_interval blocks[300];
  uint32_t seed = 7;
  (void)state;
  for (size_t round = 0; round < 20; ++round) {
    size_t sum = 0, total = 0;
    for (size_t i = 0; i < 300; ++i) {
      seed = seed * 1664525 + 1013904223;
      blocks[i] = (om_interval){.bytes = seed >> 20, .first = (seed >> 8) % 100};
      blocks[i].last = blocks[i].first + (seed >> 4) % 9;
      sum += om_size_align(blocks[i].bytes, 256);
    }
    assert_int_equal(om_interval_place(&ctx, blocks, 300, 256, &total), OM_OK);
    assert_true(total <= sum / 3); /* about a tenth of the blocks live at once */
    for (size_t i = 0; i < 300; ++i) {
      assert_int_equal(blocks[i].offset % 256, 0);
      assert_true(blocks[i].offset + blocks[i].bytes <= total);
      for (size_t k = 0; k < i; ++k) {
        bool is_empty = blocks[i].bytes == 0 || blocks[k].bytes == 0;
        assert_true(is_empty || !overlap(&blocks[i], &blocks[k]));
      }
    }
  }
}

static void what_lives_at_once_is_the_least(void **state) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  const om_interval blocks[] = {{.bytes = 10, .first = 0, .last = 2},
                                {.bytes = 100, .first = 2, .last = 2},
                                {.bytes = 70, .first = 3, .last = 4},
                                {.bytes = 0, .first = 1, .last = 9}};
  uint64_t live = 1;
  (void)state;
  assert_int_equal(om_interval_live(&ctx, blocks, 4, 1, &live), OM_OK);
  assert_int_equal(live, 110);
  assert_int_equal(om_interval_live(&ctx, blocks, 4, 64, &live), OM_OK);
  assert_int_equal(live, 64 + 128);
  assert_int_equal(om_interval_live(&ctx, blocks, 0, 64, &live), OM_OK);
  assert_int_equal(live, 0);
}

static void intervals_report_overflow(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_interval blocks[] = {{.bytes = SIZE_MAX - 100, .last = 1}, {.bytes = 200, .last = 1}};
  size_t total = 0;
  (void)state;
  assert_int_equal(om_interval_place(&ctx, blocks, 2, 64, &total), OM_E_OUT_OF_MEMORY);
}

/* ---- Threads ---- */

enum { LOOP_COUNT = 10007, LOOP_GRAIN = 100 };

typedef struct loop_record {
  uint8_t visits[LOOP_COUNT];
  uint8_t is_begin[LOOP_COUNT];
  uint8_t is_flushed[LOOP_COUNT];
} loop_record;

static void record_piece(void *arg, size_t begin, size_t end) {
  loop_record *record = arg;
  volatile float tiny = 1e-38f;
  volatile float half = 0.25f;
  record->is_begin[begin] = 1;
  for (size_t i = begin; i < end; ++i) {
    ++record->visits[i];
    record->is_flushed[i] = tiny * half == 0.0f;
  }
}

static void loops_visit_every_element_once(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  static loop_record record;
  (void)state;
  for (uint32_t threads = 1; threads <= 4; ++threads) {
    memset(&record, 0, sizeof record);
    ctx.thread_count = threads;
    om_parallel_for(&ctx, LOOP_COUNT, LOOP_GRAIN, record_piece, &record);
    for (size_t i = 0; i < LOOP_COUNT; ++i) {
      assert_int_equal(record.visits[i], 1);
      assert_int_equal(record.is_begin[i], i % LOOP_GRAIN == 0); /* whatever the threads */
      assert_false(record.is_flushed[i]);
    }
  }
  memset(&record, 0, sizeof record);
  om_parallel_for(&ctx, 0, 1, record_piece, &record);
  assert_int_equal(record.is_begin[0], 0);
}

static void threads_flush_subnormals_as_their_caller_does(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  static loop_record record;
  (void)state;
#if !defined(__SSE2__) && !defined(__aarch64__)
  OM_TEST_SKIP("the processor is told nothing of subnormals");
#endif
  memset(&record, 0, sizeof record);
  ctx.thread_count = 4;
  uint64_t before = om_flush_subnormals_begin();
  om_parallel_for(&ctx, LOOP_COUNT, LOOP_GRAIN, record_piece, &record);
  om_flush_subnormals_end(before);
  for (size_t i = 0; i < LOOP_COUNT; ++i) assert_true(record.is_flushed[i]);
  om_parallel_for(&ctx, LOOP_COUNT, LOOP_GRAIN, record_piece, &record);
  for (size_t i = 0; i < LOOP_COUNT; ++i) assert_false(record.is_flushed[i]);
}

static void the_clock_goes_on(void **state) {
  om_error error;
  om_ctx ctx = make_ctx(&error);
  om_mutex *mutex = NULL;
  (void)state;
  uint64_t before = om_now_ns();
  assert_int_equal(om_mutex_create(&ctx, &mutex), OM_OK);
  om_mutex_lock(mutex);
  om_mutex_unlock(mutex);
  om_mutex_destroy(&ctx, mutex);
  om_mutex_destroy(&ctx, NULL);
  assert_true(om_now_ns() >= before);
  assert_true(om_core_count() >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_bytes_are_zeroed_aligned_and_counted),
      cmocka_unit_test(new_bytes_fail_with_words),
      cmocka_unit_test(arrays_grow_and_keep_their_elements),
      cmocka_unit_test(pools_free_as_a_whole),
      cmocka_unit_test(the_first_failure_wins),
      cmocka_unit_test(long_messages_are_cut),
      cmocka_unit_test(names_cannot_control_a_terminal),
      cmocka_unit_test(the_log_is_silent_without_a_callback),
      cmocka_unit_test(names_of_constants),
      cmocka_unit_test(shapes_have_sizes),
      cmocka_unit_test(tensors_know_their_bytes),
      cmocka_unit_test(every_float16_comes_back),
      cmocka_unit_test(float16_rounds_to_nearest_even),
      cmocka_unit_test(bfloat16_rounds_to_nearest_even),
      cmocka_unit_test(intervals_take_the_first_gap),
      cmocka_unit_test(a_second_attempt_closes_gaps),
      cmocka_unit_test(intervals_of_layers_are_dense),
      cmocka_unit_test(intervals_never_overlap),
      cmocka_unit_test(what_lives_at_once_is_the_least),
      cmocka_unit_test(intervals_report_overflow),
      cmocka_unit_test(loops_visit_every_element_once),
      cmocka_unit_test(threads_flush_subnormals_as_their_caller_does),
      cmocka_unit_test(the_clock_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
