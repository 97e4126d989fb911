/* Embeddings as one launch: which sums of lookups become one, and that the bits stay. */
#include "base/om_float16.h"
#include "unit/gpu_rig.h"

enum { ITEMS = 2, LENGTH = 3, WIDTH = 24, WORDS = 7, PLACES = 5, ROWS = ITEMS * LENGTH };
enum { MOST_ELEMS = ROWS * WIDTH, INPUTS = 4 };

static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float tables[4][WORDS * WIDTH]; /* of either type */
static float vectors[2][WIDTH];
static uint32_t table_count;
static om_dtype dtype;

/* Of words, whose negative ones count from the end; and of places. */
static const int64_t words[ROWS] = {3, -1, 0, 6, -7, 2};
static const int32_t places[LENGTH] = {4, 0, 2};
static float states[MOST_ELEMS];

static void fill(float *data, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = (float)(int32_t)seed * (1.0f / 1073741824.0f);
    if (dtype == OM_DTYPE_F16) {
      ((uint16_t *)(void *)data)[i] = om_f16_from_f32(value);
    } else {
      data[i] = value;
    }
  }
}

static uint32_t add_input(om_dtype type, uint32_t rank, const int64_t *dims) {
  om_tensor tensor = om_tensor_of(type, rank, dims, NULL);
  const uint32_t value = rig_value(rig, &tensor);
  rig->reads[rig->region.read_count++] = value;
  return value;
}

static uint32_t add_weight(uint32_t rank, const int64_t *dims, float *data) {
  om_tensor tensor = om_tensor_of(dtype, rank, dims, data);
  fill(data, om_tensor_elems(&tensor), 11 + rank + (uint32_t)rig->view.value_count);
  const uint32_t value = rig_value(rig, &tensor);
  rig->values[value].is_weight = true;
  return value;
}

static uint32_t word_ids(void) {
  return add_input(OM_DTYPE_I64, 2, (int64_t[]){ITEMS, LENGTH});
}
static uint32_t place_ids(void) {
  return add_input(OM_DTYPE_I32, 1, (int64_t[]){LENGTH});
}
static uint32_t some_states(void) {
  return add_input(dtype, 3, (int64_t[]){ITEMS, LENGTH, WIDTH});
}
static uint32_t look_up(uint32_t ids) {
  const int64_t rows = rig->values[ids].tensor.rank == 1 ? PLACES : WORDS;
  return rig_binary(
      rig, "Gather", add_weight(2, (int64_t[]){rows, WIDTH}, tables[table_count++]), ids);
}
static uint32_t known_places(void) {
  return add_weight(3, (int64_t[]){1, LENGTH, WIDTH}, tables[table_count++]);
}
static uint32_t add(uint32_t x, uint32_t y) {
  return rig_binary(rig, "Add", x, y);
}
static uint32_t normalised(uint32_t x) {
  const int64_t width = rig->values[x].tensor.dims[rig->values[x].tensor.rank - 1];
  const uint32_t inputs[] = {
      x, add_weight(1, &width, vectors[0]), add_weight(1, &width, vectors[1])};
  return rig_step(rig, "LayerNormalization", inputs, 3);
}

/* ---- Graphs ---- */

static uint32_t words_alone(void) {
  return normalised(look_up(word_ids()));
}

/* BERT: kinds are looked up by other ids; places are known. */
static uint32_t bert(void) {
  const uint32_t sum = add(look_up(word_ids()), look_up(word_ids()));
  return normalised(add(sum, known_places()));
}

static uint32_t bert_kinds_last(void) {
  const uint32_t sum = add(known_places(), look_up(word_ids()));
  return normalised(add(look_up(word_ids()), sum));
}

static uint32_t words_and_places(void) {
  return normalised(add(look_up(word_ids()), look_up(place_ids())));
}

static uint32_t states_first(void) {
  const uint32_t sum = add(some_states(), known_places());
  return normalised(add(sum, look_up(word_ids())));
}

/* There are bindings for two lookups. */
static uint32_t three_lookups(void) {
  const uint32_t sum = add(look_up(word_ids()), look_up(word_ids()));
  return normalised(add(sum, look_up(word_ids())));
}

static uint32_t no_bias(void) {
  const int64_t width = WIDTH;
  const uint32_t x = add(look_up(word_ids()), known_places());
  return rig_binary(rig, "LayerNormalization", x, add_weight(1, &width, vectors[0]));
}

/* ---- Graphs that stay ---- */

/* Four terms. */
static uint32_t too_many(void) {
  const uint32_t sum = add(add(look_up(word_ids()), known_places()), some_states());
  return normalised(add(sum, known_places()));
}

/* Rows of the table are two rows of the normalisation. */
static uint32_t halves_of_rows(void) {
  static const int64_t dims[] = {ITEMS, LENGTH, 2, WIDTH / 2};
  static int64_t shape[] = {ITEMS, LENGTH, 2, WIDTH / 2};
  om_tensor tensor = om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){OM_COUNT_OF(dims)}, shape);
  const uint32_t x = look_up(word_ids());
  return normalised(rig_binary(rig, "Reshape", x, rig_value(rig, &tensor)));
}

/* The sum is a residual, too. */
static uint32_t read_twice(void) {
  const uint32_t sum = add(look_up(word_ids()), known_places());
  return add(normalised(sum), sum);
}

typedef struct graph_case {
  uint32_t (*build)(void);
  size_t launches; /* left in exact mode */
} graph_case;

static const graph_case cases[] = {
    {words_alone, 1},
    {bert, 1},
    {bert_kinds_last, 1},
    {words_and_places, 1},
    {states_first, 1},
    {three_lookups, 2},
    {no_bias, 1},
    {too_many, 4},
    {halves_of_rows, 2},
    {read_twice, 3},
};

/* ---- Tests ---- */

static void open(om_mode mode, bool no_fusion) {
  rig_open(rig, NULL, mode, no_fusion);
  if (!rig->session->features.subgroups || rig->session->limits.subgroup_size < 4) {
    om_gpu_provider()->close(&rig->ctx, rig->session);
    OM_TEST_SKIP("the device has no subgroups of 4 and more");
  }
}

/* Runs the graph; the launches that it became. */
static size_t run(const graph_case *of, om_mode mode, bool no_fusion, float *result) {
  const void *reads[INPUTS];
  open(mode, no_fusion);
  table_count = 0;
  uint32_t out = of->build();
  rig_compile(rig, &out, 1);
  fill(states, MOST_ELEMS, 3);
  for (size_t i = 0; i < rig->region.read_count; ++i) {
    const om_dtype type = rig->values[rig->reads[i]].tensor.dtype;
    reads[i] = states;
    if (type == OM_DTYPE_I64) reads[i] = words;
    if (type == OM_DTYPE_I32) reads[i] = places;
  }
  memset(result, 0, MOST_ELEMS * sizeof *result);
  rig_run(rig, reads, (void *const[]){result});
  const size_t launches = rig->plan->regions[0].launch_count;
  rig_close(rig);
  return launches;
}

static float element(const float *data, size_t i) {
  return dtype == OM_DTYPE_F16 ? om_f16_to_f32(((const uint16_t *)(const void *)data)[i]) : data[i];
}

static void test_one_launch(void **state) {
  float fused[MOST_ELEMS], apart[MOST_ELEMS], fast[MOST_ELEMS];
  dtype = *(const om_dtype *)*state;
  const float limit = dtype == OM_DTYPE_F16 ? 8e-3f : 1e-5f; /* of results up to 4 */
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    const size_t launches = run(&cases[i], OM_MODE_EXACT, false, fused);
    print_message("# graph %zu: %zu launches\n", i, launches);
    assert_int_equal(launches, cases[i].launches);
    assert_true(run(&cases[i], OM_MODE_EXACT, true, apart) > 1);
    assert_memory_equal(fused, apart, sizeof fused);
    run(&cases[i], OM_MODE_FAST, false, fast);
    for (size_t k = 0; k < MOST_ELEMS; ++k) {
      const float difference = element(fast, k) - element(fused, k);
      if (!(difference < limit && difference > -limit)) fail_msg("graph %zu: %g", i, difference);
    }
  }
}

/* The host still looks at the indices first. */
static void test_indices_are_checked(void **state) {
  static const int64_t outside[ROWS] = {0, 1, 2, 3, WORDS, 5};
  float result[MOST_ELEMS];
  (void)state;
  dtype = OM_DTYPE_F32;
  open(OM_MODE_FAST, false);
  table_count = 0;
  uint32_t out = bert();
  rig_compile(rig, &out, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, 1);
  om_status st =
      om_gpu_provider()->begin(&rig->ctx, rig->plan, 0, (const void *const[]){words, outside});
  if (st == OM_OK) {
    st = om_gpu_provider()->finish(&rig->ctx, rig->plan, 0, (void *const[]){result});
  }
  assert_int_equal(st, OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig->error.message, "(Gather)"));
  rig_close(rig);
}

int main(void) {
  static om_dtype types[] = {OM_DTYPE_F32, OM_DTYPE_F16};
  const struct CMUnitTest tests[] = {
      {"float32", test_one_launch, NULL, NULL, &types[0]},
      {"float16", test_one_launch, NULL, NULL, &types[1]},
      cmocka_unit_test(test_indices_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
