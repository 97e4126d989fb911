/* External data from a reader: what is resident, what is read and when, the bits that come out, and
 * what a reader that fails or answers late makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_message.h"
#include "harness/om_test_skip.h"
#include "onemodel/gpu.h"
#include "rewrite/om_joined.h"

enum {
  MIB = 1 << 20,
  LAYERS = 12,
  WIDTH = 1024,
  LAYER_BYTES = WIDTH * WIDTH * 4,
  STORED_BYTES = LAYERS * LAYER_BYTES,
  MOST_RANGES = 64,
};

static uint8_t *stored; /* STORED_BYTES of float32 (or float16) that keep a product's scale */

static int make_data(void **state) {
  uint32_t seed = 1;
  (void)state;
  float *values = malloc(STORED_BYTES);
  assert_non_null(values);
  for (size_t i = 0; i < STORED_BYTES / sizeof *values; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = ((float)(seed >> 8) / (float)(1 << 23) - 1.0f) * 0.054f; /* sqrt(3 / WIDTH) */
  }
  stored = (uint8_t *)values;
  return 0;
}

static int drop_data(void **state) {
  (void)state;
  free(stored);
  return 0;
}

/* ---- The reader ---- */

typedef struct range {
  uint64_t offset, count;
} range;

typedef struct storage {
  uint64_t byte_count;    /* as it says */
  uint64_t fails_from;    /* reads that reach this byte come short; 0: none */
  size_t reads, fails_at; /* the read of this number, from 1 on, comes short; 0: none */
  bool is_absent, is_late;
  range ready[MOST_RANGES]; /* what was asked for, where it is late */
  size_t ready_count, refusals;
  uint64_t read_bytes;
  size_t largest_read;
} storage;

static bool find(void *user, const char *location, uint64_t *out_byte_count) {
  const storage *s = user;
  *out_byte_count = s->byte_count;
  return !s->is_absent && strcmp(location, "weights.bin") == 0;
}

/* Late storage has what was asked for once. */
static bool is_ready(void *user, const char *location, uint64_t offset, uint64_t byte_count) {
  storage *s = user;
  assert_string_equal(location, "weights.bin");
  assert_true(offset + byte_count <= s->byte_count);
  for (size_t i = 0; i < s->ready_count; ++i) {
    if (s->ready[i].offset == offset && s->ready[i].count == byte_count) return true;
  }
  if (!s->is_late) return true;
  assert_true(s->ready_count < MOST_RANGES);
  s->ready[s->ready_count++] = (range){offset, byte_count};
  ++s->refusals;
  return false;
}

static size_t read_range(
    void *user, const char *location, uint64_t offset, size_t byte_count, void *to) {
  storage *s = user;
  assert_string_equal(location, "weights.bin");
  assert_true(offset + byte_count <= STORED_BYTES);
  if (s->largest_read < byte_count) s->largest_read = byte_count;
  s->read_bytes += byte_count;
  if (s->fails_from > 0 && offset + byte_count > s->fails_from) byte_count /= 2;
  if (++s->reads == s->fails_at) byte_count /= 2;
  memcpy(to, stored + offset, byte_count);
  return byte_count;
}

static om_reader reader_of(storage *s) {
  return (om_reader){.find = find, .read = read_range, .is_ready = is_ready, .user = s};
}

/* ---- Models ---- */

/* A value of the graph with its type: what om_message_value has no shape for. */
static void add_value(
    om_message *graph, uint32_t field, const char *name, om_dtype dtype, const char *dims) {
  om_message value = {.count = 0}, type = {.count = 0}, tensor = {.count = 0}, shape = {.count = 0};
  for (const char *at = dims; *at;) {
    char *end = NULL;
    om_message dim = {.count = 0};
    om_message_number(&dim, 1, strtol(at, &end, 10));
    om_message_nest(&shape, 1, &dim);
    at = *end ? end + 1 : end;
  }
  om_message_number(&tensor, 1, dtype);
  om_message_nest(&tensor, 2, &shape);
  om_message_nest(&type, 1, &tensor);
  om_message_text(&value, 1, name);
  om_message_nest(&value, 2, &type);
  om_message_nest(graph, field, &value);
}

static void add_entry(om_message *tensor, const char *key, const char *text) {
  om_message entry = {.count = 0};
  om_message_text(&entry, 1, key);
  om_message_text(&entry, 2, text);
  om_message_nest(tensor, 13, &entry);
}

static void add_weight(
    om_message *graph, const char *name, om_dtype dtype, const char *dims, size_t offset) {
  om_message tensor = {.count = 0};
  char text[32];
  for (const char *at = dims; *at;) {
    char *end = NULL;
    om_message_number(&tensor, 1, strtol(at, &end, 10));
    at = *end ? end + 1 : end;
  }
  om_message_number(&tensor, 2, dtype);
  om_message_text(&tensor, 8, name);
  om_message_number(&tensor, 14, 1);
  (void)snprintf(text, sizeof text, "%zu", offset);
  add_entry(&tensor, "location", "weights.bin");
  add_entry(&tensor, "offset", text);
  om_message_nest(graph, 5, &tensor);
}

static void add_node(om_message *graph, const char *type, const char *inputs, const char *output) {
  om_message node = om_message_node(type, output, inputs, output);
  om_message_nest(graph, 1, &node);
}

/* y = x w0 w1 ..., 48 MB of weights. */
static om_message layers_model(void) {
  om_message graph = {.count = 0};
  char x[16] = "x", w[16], y[16], both[40];
  for (int i = 0; i < LAYERS; ++i) {
    (void)snprintf(w, sizeof w, "w%d", i);
    (void)snprintf(y, sizeof y, i + 1 < LAYERS ? "y%d" : "y", i);
    (void)snprintf(both, sizeof both, "%s,%s", x, w);
    add_weight(&graph, w, OM_DTYPE_F32, "1024,1024", (size_t)i * LAYER_BYTES);
    add_node(&graph, "MatMul", both, y);
    memcpy(x, y, sizeof x);
  }
  add_value(&graph, 11, "x", OM_DTYPE_F32, "1,1024");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "1,1024");
  return om_message_model(&graph);
}

static om_status load(const om_message *bytes,
                      const om_reader *reader,
                      om_model **out_model,
                      om_error *error) {
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  const om_model_file file = {"weights.bin", stored, STORED_BYTES};
  options.reader = reader;
  options.files = &file;
  options.file_count = reader ? 0 : 1;
  return om_model_load_memory(bytes->bytes, bytes->count, &options, out_model, error);
}

/* backend NULL: the CPU. False: there is no such device. */
static om_status create(const om_model *model,
                        const char *backend,
                        om_mode mode,
                        om_session **out_session,
                        om_error *error) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  gpu.backend = backend;
  options.mode = mode;
  options.provider = backend ? om_gpu_provider() : NULL;
  options.provider_options = &gpu;
  return om_session_create(model, &options, out_session, error);
}

static bool has_vulkan(void) {
  om_gpu_device device;
  size_t count = 0;
  return om_gpu_list(&device, 1, &count, NULL) == OM_OK && count > 0;
}

/* ---- What is resident ---- */

/* 48 MB of weights go through a few MB. */
static void weights_pass_through(void **state) {
  om_message bytes = layers_model();
  storage s = {.byte_count = STORED_BYTES};
  const om_reader reader = reader_of(&s);
  om_error error = {0};
  om_model *model = NULL;
  om_session *session = NULL;
  om_gpu_info info;
  (void)state;
  assert_int_equal(load(&bytes, &reader, &model, &error), OM_OK);
  assert_int_equal(s.read_bytes, 0);
  assert_int_equal(om_model_get_info(model)->weight_bytes, STORED_BYTES);
  assert_int_equal(create(model, "null", OM_MODE_FAST, &session, &error), OM_OK);
  assert_int_equal(s.read_bytes, STORED_BYTES);
  assert_true(s.largest_read <= 4 * MIB);
  assert_true(om_session_get_statistics(session).host_peak_bytes < 8 * MIB);
  assert_int_equal(om_gpu_get_info(session, &info, &error), OM_OK);
  assert_true(info.weight_bytes >= STORED_BYTES);
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- The bits ---- */

typedef struct shape_case { /* a model whose weights are read, or made into something first */
  const char *name;
  om_message (*make)(void);
  const char *x;
  om_dtype dtype;
  const char *output;
} shape_case;

static om_message products(void) {
  om_message graph = {.count = 0};
  add_weight(&graph, "w", OM_DTYPE_F32, "130,1024", 0);
  add_weight(&graph, "v", OM_DTYPE_F32, "1024,129", 4 * MIB); /* rows that are no quads */
  add_weight(&graph, "b", OM_DTYPE_F32, "129", 8 * MIB);
  add_node(&graph, "MatMul", "x,w", "p");
  add_node(&graph, "MatMul", "p,v", "q");
  add_node(&graph, "Add", "q,b", "y");
  add_value(&graph, 11, "x", OM_DTYPE_F32, "3,130");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "3,129");
  return om_message_model(&graph);
}

static om_message halves(void) {
  om_message graph = {.count = 0};
  add_weight(&graph, "w", OM_DTYPE_F16, "130,511", 2); /* odd words as halves are what they are */
  add_node(&graph, "MatMul", "x,w", "p");
  add_node(&graph, "Sigmoid", "p", "y");
  add_value(&graph, 11, "x", OM_DTYPE_F16, "3,130");
  add_value(&graph, 12, "y", OM_DTYPE_F16, "3,511");
  return om_message_model(&graph);
}

static om_message folded(void) {
  om_message graph = {.count = 0};
  add_weight(&graph, "w", OM_DTYPE_F32, "200,130", 4);
  add_node(&graph, "Transpose", "w", "t");
  add_node(&graph, "MatMul", "x,t", "y");
  add_value(&graph, 11, "x", OM_DTYPE_F32, "3,130");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "3,200");
  return om_message_model(&graph);
}

static om_message convolutions(void) {
  om_message graph = {.count = 0};
  add_weight(&graph, "w", OM_DTYPE_F32, "64,32,3,3", 0);
  add_weight(&graph, "s", OM_DTYPE_F32, "1,64,1,1", MIB);
  add_weight(&graph, "t", OM_DTYPE_F32, "64,33,3,3", 2 * MIB);
  add_node(&graph, "Conv", "x,w", "p");
  add_node(&graph, "Mul", "p,s", "q"); /* goes into the weights */
  add_node(&graph, "Relu", "q", "r");
  add_node(&graph, "ConvTranspose", "r,t", "y");
  add_value(&graph, 11, "x", OM_DTYPE_F32, "1,32,9,8");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "1,33,9,8");
  return om_message_model(&graph);
}

/* The table is read by a lookup, and is a result too. */
static om_message table(void) {
  om_message graph = {.count = 0};
  add_weight(&graph, "w", OM_DTYPE_F32, "300,64", 12);
  add_node(&graph, "ArgMax", "x", "i");
  add_node(&graph, "Gather", "w,i", "g");
  add_node(&graph, "Sigmoid", "g", "y");
  add_value(&graph, 11, "x", OM_DTYPE_F32, "200,64");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "1,64,64");
  add_value(&graph, 12, "w", OM_DTYPE_F32, "300,64");
  return om_message_model(&graph);
}

/* Weights are turned for the device, and biases of 64 KiB read by the host. */
static om_message recurrent(void) {
  om_message graph = {.count = 0}, size = {.count = 0}, direction = {.count = 0};
  om_message node = om_message_node("LSTM", "y", "x,w,r,b", "y");
  om_message_text(&size, 1, "hidden_size");
  om_message_number(&size, 3, 1024);
  om_message_number(&size, 20, 2);
  om_message_text(&direction, 1, "direction");
  om_message_text(&direction, 4, "bidirectional");
  om_message_number(&direction, 20, 3);
  om_message_nest(&node, 5, &size);
  om_message_nest(&node, 5, &direction);
  add_weight(&graph, "w", OM_DTYPE_F32, "2,4096,8", 0);
  add_weight(&graph, "r", OM_DTYPE_F32, "2,4096,1024", 12 * MIB);
  add_weight(&graph, "b", OM_DTYPE_F32, "2,8192", MIB);
  om_message_nest(&graph, 1, &node);
  add_value(&graph, 11, "x", OM_DTYPE_F32, "2,1,8");
  add_value(&graph, 12, "y", OM_DTYPE_F32, "2,2,1,1024");
  return om_message_model(&graph);
}

static const shape_case cases[] = {
    {"products", products, "3,130", OM_DTYPE_F32, "y"},
    {"halves", halves, "3,130", OM_DTYPE_F16, "y"},
    {"folded", folded, "3,130", OM_DTYPE_F32, "y"},
    {"convolutions", convolutions, "1,32,9,8", OM_DTYPE_F32, "y"},
    {"table", table, "200,64", OM_DTYPE_F32, "y"},
    {"recurrent", recurrent, "2,1,8", OM_DTYPE_F32, "y"},
    {"result", table, "200,64", OM_DTYPE_F32, "w"},
};

static om_named_tensor input_of(const shape_case *c) {
  int64_t dims[OM_MAX_RANK];
  uint32_t rank = 0;
  for (const char *at = c->x; *at;) {
    char *end = NULL;
    dims[rank++] = strtol(at, &end, 10);
    at = *end ? end + 1 : end;
  }
  return (om_named_tensor){"x", om_tensor_of(c->dtype, rank, dims, stored + 16 * MIB)};
}

/* Creates and runs; where storage is late, again until it has all that is wanted. */
static om_status run_all(const om_model *model,
                         const shape_case *c,
                         const char *backend,
                         om_mode mode,
                         om_session **out_session,
                         om_named_tensor *y,
                         om_error *error) {
  const om_named_tensor x = input_of(c);
  const om_run_args args = {sizeof args, &x, 1, y, 1, NULL};
  om_status st = OM_E_NOT_READY;
  for (int i = 0; i < 100 && st == OM_E_NOT_READY; ++i) {
    st = create(model, backend, mode, out_session, error);
  }
  if (st != OM_OK) return st;
  st = OM_E_NOT_READY;
  for (int i = 0; i < 100 && st == OM_E_NOT_READY; ++i) {
    st = om_session_run(*out_session, &args, error);
  }
  return st;
}

static void compare(const shape_case *c, const char *backend, om_mode mode, storage s) {
  om_message bytes = c->make();
  const om_reader reader = reader_of(&s);
  om_error error = {0};
  om_model *models[2] = {NULL, NULL};
  om_session *sessions[2] = {NULL, NULL};
  om_named_tensor y[2] = {{.name = c->output}, {.name = c->output}};
  assert_int_equal(load(&bytes, NULL, &models[0], &error), OM_OK);
  while (load(&bytes, &reader, &models[1], &error) == OM_E_NOT_READY) continue;
  for (int i = 0; i < 2; ++i) {
    om_status st = run_all(models[i], c, backend, mode, &sessions[i], &y[i], &error);
    if (st != OM_OK) fail_msg("%s: %s: %s", c->name, om_status_name(st), error.message);
  }
  assert_true(s.read_bytes > 0);
  assert_true(s.is_late == (s.refusals > 0));
  assert_int_equal(y[0].tensor.data_bytes, y[1].tensor.data_bytes);
  if (memcmp(y[0].tensor.data, y[1].tensor.data, y[0].tensor.data_bytes) != 0) {
    fail_msg("%s on %s has other bits", c->name, backend ? backend : "the CPU");
  }
  for (int i = 0; i < 2; ++i) {
    om_session_destroy(sessions[i]);
    om_model_destroy(models[i]);
  }
}

static void bits_are_the_same(void **state) {
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
      for (int is_late = 0; is_late < 2; ++is_late) {
        const storage s = {.byte_count = STORED_BYTES, .is_late = is_late != 0};
        compare(&cases[i], NULL, (om_mode)mode, s);
        if (has_vulkan()) compare(&cases[i], "vulkan", (om_mode)mode, s);
      }
    }
  }
}

/* float16 that a device cannot store is widened piece by piece. */
static void halves_are_widened(void **state) {
  const storage s = {.byte_count = STORED_BYTES};
  (void)state;
  if (!has_vulkan()) OM_TEST_SKIP("there is no Vulkan device");
  assert_int_equal(setenv("ONEMODEL_GPU_NO_16BIT_STORAGE", "1", 1), 0);
  compare(&cases[1], "vulkan", OM_MODE_FAST, s);
  compare(&cases[1], "vulkan", OM_MODE_EXACT, s);
  assert_int_equal(unsetenv("ONEMODEL_GPU_NO_16BIT_STORAGE"), 0);
}

/* ---- Joined matrices ---- */

enum { JOINED_ROWS = 7, JOINED_COLUMNS = 12 };

/* Every range of a matrix of three parts, one of them turned, one of them stored. */
static void parts_are_joined_as_they_are_read(void **state) {
  static const size_t firsts[] = {0, 5, 9}, widths[] = {5, 4, 3};
  float parts[3][JOINED_ROWS * 5], whole[JOINED_ROWS][JOINED_COLUMNS];
  float read[JOINED_ROWS * JOINED_COLUMNS];
  om_tensor sources[3];
  om_joined_part list[3];
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_pool pool = {0};
  const om_tensor *joined = NULL, *again = NULL;
  (void)state;
  for (size_t p = 0; p < 3; ++p) {
    const bool is_turned = p == 1;
    const int64_t width = (int64_t)widths[p], rows = JOINED_ROWS;
    const int64_t dims[2] = {is_turned ? width : rows, is_turned ? rows : width};
    sources[p] = om_tensor_of(OM_DTYPE_F32, 2, dims, parts[p]);
    list[p] = (om_joined_part){&sources[p], firsts[p], widths[p], is_turned};
    for (size_t row = 0; row < JOINED_ROWS; ++row) {
      for (size_t col = 0; col < widths[p]; ++col) {
        const float value = (float)(row * JOINED_COLUMNS + firsts[p] + col);
        parts[p][is_turned ? col * JOINED_ROWS + row : row * widths[p] + col] = value;
        whole[row][firsts[p] + col] = value;
      }
    }
  }
  const om_tensor like =
      om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){JOINED_ROWS, JOINED_COLUMNS}, NULL);
  assert_int_equal(om_joined_create(&ctx, &pool, &like, list, 3, &joined), OM_OK);
  /* One whole part that is stored itself. */
  const om_joined_part outer = {joined, 0, JOINED_COLUMNS, false};
  assert_int_equal(om_joined_create(&ctx, &pool, &like, &outer, 1, &again), OM_OK);
  assert_non_null(om_stored_of(again));
  for (size_t begin = 0; begin < OM_COUNT_OF(read); ++begin) {
    for (size_t end = begin + 1; end <= OM_COUNT_OF(read); ++end) {
      const size_t bytes = (end - begin) * sizeof(float);
      assert_int_equal(om_constant_ask(&ctx, again, begin * sizeof(float), bytes), OM_OK);
      assert_int_equal(om_constant_read(&ctx, again, begin * sizeof(float), bytes, read), OM_OK);
      assert_memory_equal(read, &whole[0][0] + begin, bytes);
    }
  }
  om_pool_deinit(&ctx, &pool);
}

/* ---- Late storage ---- */

/* Each pass asks for all that is lacking; what went to the device is not read again. */
static void what_was_done_stays_done(void **state) {
  om_message bytes = layers_model();
  storage s = {.byte_count = STORED_BYTES, .is_late = true};
  const om_reader reader = reader_of(&s);
  om_error error = {0};
  om_model *model = NULL;
  om_session *session = NULL;
  (void)state;
  assert_int_equal(load(&bytes, &reader, &model, &error), OM_OK);
  assert_int_equal(create(model, "null", OM_MODE_FAST, &session, &error), OM_OK);
  assert_int_equal(s.refusals, LAYERS);
  s.ready_count = LAYERS / 2; /* what did not fit is to come */
  assert_int_equal(om_session_prepare(session, NULL, 0, &error), OM_E_NOT_READY);
  assert_non_null(strstr(error.message, "still to come"));
  assert_int_equal(s.read_bytes, STORED_BYTES / 2);
  s.ready_count = 0;
  for (int i = LAYERS / 2; i < LAYERS; ++i) {
    s.ready[s.ready_count++] = (range){(uint64_t)i * LAYER_BYTES, LAYER_BYTES};
  }
  assert_int_equal(om_session_prepare(session, NULL, 0, &error), OM_OK);
  assert_int_equal(s.read_bytes, STORED_BYTES);
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- Failures ---- */

static void what_is_not_there_is_told(void **state) {
  om_message bytes = layers_model();
  storage s = {.is_absent = true};
  om_reader reader = reader_of(&s);
  om_error error = {0};
  om_model *model = NULL;
  (void)state;
  assert_int_equal(load(&bytes, &reader, &model, &error), OM_E_IO);
  assert_non_null(strstr(error.message, "External data at 'weights.bin' is not there."));
  s = (storage){.byte_count = STORED_BYTES - 1};
  assert_int_equal(load(&bytes, &reader, &model, &error), OM_E_INVALID_MODEL);
  assert_non_null(strstr(error.message, "ends at byte 50331647"));
  reader.read = NULL;
  assert_int_equal(load(&bytes, &reader, &model, &error), OM_E_INVALID_ARGUMENT);
  assert_null(model);
}

/* A read that fails ends the creation; storage that recovers serves the next session. */
static void short_reads_are_told(void **state) {
  static const char *const backends[] = {NULL, "null"};
  om_message bytes = layers_model();
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(backends); ++i) {
    storage s = {.byte_count = STORED_BYTES, .fails_from = 5 * LAYER_BYTES + 1};
    const om_reader reader = reader_of(&s);
    om_error error = {0};
    om_model *model = NULL;
    om_session *session = NULL;
    assert_int_equal(load(&bytes, &reader, &model, &error), OM_OK);
    assert_int_equal(create(model, backends[i], OM_MODE_EXACT, &session, &error), OM_E_IO);
    assert_non_null(strstr(error.message, "'weights.bin' could not be read"));
    assert_null(session);
    s.fails_from = 0;
    assert_int_equal(create(model, backends[i], OM_MODE_EXACT, &session, &error), OM_OK);
    om_session_destroy(session);
    om_model_destroy(model);
  }
}

/* One life of a model and its session where one allocation or one read fails. */
static om_status live_once(const shape_case *c, const char *backend, om_fault *fault, storage *s) {
  om_message bytes = c->make();
  const om_allocator allocator = om_fault_allocator(fault);
  const om_reader reader = reader_of(s);
  om_model_options model_options = OM_MODEL_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_error error = {0};
  om_model *model = NULL;
  om_session *session = NULL;
  om_named_tensor x = input_of(c), y = {.name = c->output};
  const om_run_args args = {sizeof args, &x, 1, &y, 1, NULL};
  gpu.backend = backend;
  model_options.allocator = options.allocator = &allocator;
  model_options.reader = &reader;
  options.thread_count = 1;
  options.provider = backend ? om_gpu_provider() : NULL;
  options.provider_options = &gpu;
  om_status st = om_model_load_memory(bytes.bytes, bytes.count, &model_options, &model, &error);
  if (st == OM_OK) st = om_session_create(model, &options, &session, &error);
  if (st == OM_OK) st = om_session_run(session, &args, &error);
  if (st != OM_OK) assert_true(error.message[0] != '\0');
  om_session_destroy(session);
  om_model_destroy(model);
  assert_int_equal(om_fault_live_blocks(fault), 0);
  assert_int_equal(fault->damaged_blocks, 0);
  return st;
}

static void each_allocation_and_read_fails_once(void **state) {
  static const char *const backends[] = {NULL, "null"};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases) * OM_COUNT_OF(backends); ++i) {
    const shape_case *c = &cases[i / OM_COUNT_OF(backends)];
    const char *backend = backends[i % OM_COUNT_OF(backends)];
    om_status st = OM_E_OUT_OF_MEMORY;
    if (c->make == recurrent) continue; /* 33 MB a life */
    for (size_t k = 0; st != OM_OK; ++k) {
      om_fault fault = {.fail_at = k};
      storage s = {.byte_count = STORED_BYTES};
      st = live_once(c, backend, &fault, &s);
      assert_int_equal(st, om_fault_has_failed(&fault) ? OM_E_OUT_OF_MEMORY : OM_OK);
    }
    st = OM_E_IO;
    for (size_t k = 1; st != OM_OK; ++k) {
      om_fault fault = {.fail_at = OM_FAULT_NEVER};
      storage s = {.byte_count = STORED_BYTES, .fails_at = k};
      st = live_once(c, backend, &fault, &s);
      assert_int_equal(st, s.reads >= k ? OM_E_IO : OM_OK);
      assert_true(s.reads > 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_pass_through),
      cmocka_unit_test(bits_are_the_same),
      cmocka_unit_test(halves_are_widened),
      cmocka_unit_test(parts_are_joined_as_they_are_read),
      cmocka_unit_test(what_was_done_stays_done),
      cmocka_unit_test(what_is_not_there_is_told),
      cmocka_unit_test(short_reads_are_told),
      cmocka_unit_test(each_allocation_and_read_fails_once),
  };
  return cmocka_run_group_tests(tests, make_data, drop_data);
}
