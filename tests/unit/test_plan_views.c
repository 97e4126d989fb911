/* Operands that are read where they lie: views through copies, against the copies made, and plans
 * whose attention reads through Transposes, Slices and the like, with the bits of those made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/exact/om_view.h"
#include "harness/om_each_mode.h"
#include "harness/om_model_text.h"

/* ---- Views ---- */

enum { MOST_ELEMS = 4096, TRIALS = 4000 };

static uint32_t next(uint32_t *state, uint32_t count) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % count;
}

static void shuffle(uint32_t *state, uint32_t rank, uint32_t *axes) {
  for (uint32_t i = 0; i < rank; ++i) axes[i] = i;
  for (uint32_t i = rank; i-- > 1;) {
    const uint32_t other = next(state, i + 1), kept = axes[i];
    axes[i] = axes[other];
    axes[other] = kept;
  }
}

/* A copy of parts of a dense source, turned, repeated and backwards. */
static om_strided random_copy(uint32_t *state) {
  om_strided copy = {.rank = 1 + next(state, 4)};
  int64_t dims[4], strides[4];
  uint32_t axes[4];
  for (uint32_t i = 0; i < copy.rank; ++i) dims[i] = 1 + next(state, 6);
  om_dense_strides(copy.rank, dims, strides);
  shuffle(state, copy.rank, axes);
  for (uint32_t i = 0; i < copy.rank; ++i) {
    const uint32_t axis = axes[i];
    const int64_t first = next(state, (uint32_t)dims[axis]);
    const uint32_t kind = next(state, 8);
    copy.extents[i] = kind == 0 ? 3 : kind == 1 ? first + 1 : dims[axis] - first;
    copy.source_strides[i] = kind == 0 ? 0 : kind == 1 ? -strides[axis] : strides[axis];
    copy.source_offset += first * strides[axis];
  }
  om_dense_strides(copy.rank, copy.extents, copy.target_strides);
  return copy;
}

/* The target under another shape, a part of it, turned. */
static om_view random_view(uint32_t *state, int64_t elems) {
  om_view view = {.rank = 0};
  int64_t dims[OM_MAX_RANK], strides[OM_MAX_RANK];
  uint32_t axes[OM_MAX_RANK], rank = 0;
  while (elems > 1 && rank < 4) {
    int64_t extent = 2;
    while (extent < elems && (elems % extent != 0 || next(state, 2) == 0)) ++extent;
    dims[rank++] = extent;
    elems /= extent;
  }
  dims[rank++] = elems;
  om_dense_strides(rank, dims, strides);
  shuffle(state, rank, axes);
  for (; view.rank < rank; ++view.rank) {
    const uint32_t axis = axes[view.rank];
    const int64_t first = next(state, 4) == 0 ? next(state, (uint32_t)dims[axis]) : 0;
    const int64_t step = 1 + next(state, 8) / 7;
    view.dims[view.rank] = (dims[axis] - first - 1) / step + 1;
    view.strides[view.rank] = step * strides[axis];
    view.offset += first * strides[axis];
  }
  return view;
}

/* Element `number` of a view, in its own order. */
static int64_t place_of(const om_view *view, int64_t number) {
  int64_t place = view->offset;
  for (uint32_t i = view->rank; i-- > 0;) {
    place += number % view->dims[i] * view->strides[i];
    number /= view->dims[i];
  }
  return place;
}

static bool trial(uint32_t *state) {
  static int32_t source[MOST_ELEMS], target[MOST_ELEMS];
  om_ctx ctx = {0};
  const om_strided copy = random_copy(state);
  const int64_t elems = (int64_t)om_strided_elems(&copy);
  const om_view view = random_view(state, elems);
  om_view through = view;
  int64_t count = 1;
  assert_true(elems <= MOST_ELEMS);
  for (int32_t i = 0; i < MOST_ELEMS; ++i) source[i] = i;
  om_strided_copy(&ctx, &copy, sizeof *source, source, target);
  if (!om_view_through(&copy, &through)) {
    assert_memory_equal(&through, &view, sizeof view);
    return false;
  }
  for (uint32_t i = 0; i < view.rank; ++i) count *= view.dims[i];
  for (int64_t i = 0; i < count; ++i) {
    assert_int_equal(source[place_of(&through, i)], target[place_of(&view, i)]);
  }
  return true;
}

static void views_are_what_the_copies_made(void **state) {
  uint32_t seed = 3, passed = 0;
  (void)state;
  for (uint32_t i = 0; i < TRIALS; ++i) passed += trial(&seed);
  print_message("# %u of %u views went through\n", passed, (unsigned)TRIALS);
  assert_true(passed > TRIALS / 4 && passed < TRIALS);
}

/* [2, 3, 4] turned to [3, 2, 4]: its rows are one axis no more, but each column is. */
static void an_axis_has_one_stride(void **state) {
  const om_strided turned = {
      .rank = 3, .extents = {3, 2, 4}, .source_strides = {4, 12, 1}, .target_strides = {8, 4, 1}};
  om_view rows = {.rank = 2, .dims = {6, 4}, .strides = {4, 1}};
  om_view halves = {.rank = 3, .dims = {2, 3, 4}, .strides = {4, 8, 1}};
  (void)state;
  assert_false(om_view_through(&turned, &rows));
  assert_true(om_view_through(&turned, &halves));
  assert_int_equal(halves.strides[0], 12);
  assert_int_equal(halves.strides[1], 4);
  assert_int_equal(halves.strides[2], 1);
}

/* ---- Plans ---- */

enum { BATCH = 2, ROWS = 5, HEADS = 3, SIZE = 4, WIDTH = HEADS * SIZE };

typedef struct form {
  const char *name, *nodes;
  size_t moved; /* nodes that are no steps where they are read through */
} form;

#define SPLIT_3 "s = Constant() value_ints=[5, 2, 3, 12]; a = Reshape(y, s); "
#define HEADS_4 "h = Constant() value_ints=[2, 5, 3, 4]; "
#define TURN    " perm=[0, 2, 1, 3]; "

/* y is x times a constant; q, k and v are what is multiplied. */
static const form forms[] = {
    {"gathered",
     "t = Transpose(x) perm=[1, 0, 2]; y = MatMul(t, w); " SPLIT_3
     "b = Transpose(a) perm=[2, 0, 1, 3]; i = Constant() value_int=0; j = Constant() value_int=1; "
     "l = Constant() value_int=-1; c = Gather(b, i); d = Gather(b, j); e = Gather(b, l); "
     "f = Constant() value_ints=[5, 6, 4]; g = Constant() value_ints=[2, 3, 5, 4]; "
     "c1 = Reshape(c, f); c2 = Transpose(c1) perm=[1, 0, 2]; q0 = Reshape(c2, g); "
     "d1 = Reshape(d, f); d2 = Transpose(d1) perm=[1, 0, 2]; k0 = Reshape(d2, g); "
     "e1 = Reshape(e, f); e2 = Transpose(e1) perm=[1, 0, 2]; v0 = Reshape(e2, g);",
     8},
    {"sliced",
     "y = MatMul(x, w); z = Constant() value_ints=[0]; m = Constant() value_ints=[12]; "
     "n = Constant() value_ints=[24]; o = Constant() value_ints=[36]; p = Constant() "
     "value_ints=[2]; " HEADS_4
     "c = Slice(y, z, m, p); d = Slice(y, m, n, p); e = Slice(y, n, o, p); "
     "c1 = Reshape(c, h); q0 = Transpose(c1)" TURN "d1 = Reshape(d, h); k0 = Transpose(d1)" TURN
     "e1 = Reshape(e, h); v0 = Transpose(e1)" TURN,
     6},
    {"shared",
     "y = MatMul(x, w); z = Constant() value_ints=[0]; m = Constant() value_ints=[12]; "
     "n = Constant() value_ints=[16]; o = Constant() value_ints=[20]; p = Constant() "
     "value_ints=[2]; " HEADS_4
     "c = Slice(y, z, m, p); d = Slice(y, m, n, p); e = Slice(y, n, o, p); "
     "c1 = Reshape(c, h); q0 = Transpose(c1)" TURN
     "u = Constant() value_ints=[1]; r = Constant() value_ints=[2, 3, 5, 4]; "
     "d1 = Unsqueeze(d, u); k0 = Expand(d1, r); e1 = Unsqueeze(e, u); v0 = Expand(e1, r);",
     6},
    /* The Slice stays; of the Transposes, which are one, none. */
    {"little of much",
     "y = MatMul(x, w); t0 = Constant() value_ints=[1, 1, 2]; a = Tile(y, t0); "
     "z = Constant() value_ints=[0]; m = Constant() value_ints=[12]; p = Constant() "
     "value_ints=[2]; " HEADS_4 "c = Slice(a, z, m, p); c1 = Reshape(c, h); q0 = Transpose(c1)" TURN
     "k0 = Transpose(c1)" TURN "v0 = Transpose(c1)" TURN,
     1},
};

typedef struct result {
  float y[BATCH * ROWS * WIDTH];
  size_t moving; /* steps that only move elements */
} result;

/* apart: each operand is the larger of itself and itself, which is not read through. */
static void run(const form *f, bool is_apart, const om_session_options *options, result *out) {
  static const char *const moves[] = {"Expand", "Gather", "Slice", "Transpose"};
  static const char direct[] = "q = Identity(q0); k = Identity(k0); v = Identity(v0); ";
  static const char apart[] = "q = Max(q0, q0); k = Max(k0, k0); v = Max(v0, v0); ";
  float x[BATCH * ROWS * WIDTH], w[WIDTH * 3 * WIDTH];
  uint32_t seed = 11;
  char text[2048];
  om_text_rig rig;
  const om_diagnostics *d = NULL;
  snprintf(text,
           sizeof text,
           "(x: f32[2, 5, 12], w: f32[12, 36]) -> y_all { %s %s "
           "kt = Transpose(k) perm=[0, 1, 3, 2]; scores = MatMul(q, kt); p_all = Softmax(scores); "
           "o_all = MatMul(p_all, v); y_all = Transpose(o_all)" TURN "}",
           f->nodes,
           is_apart ? apart : direct);
  for (size_t i = 0; i < OM_COUNT_OF(x); ++i) x[i] = (float)next(&seed, 2000) * 1e-3f - 1.0f;
  for (size_t i = 0; i < OM_COUNT_OF(w); ++i) w[i] = (float)next(&seed, 2000) * 1e-3f - 1.0f;
  om_text_rig_open(&rig, text, 17, options);
  om_named_tensor inputs[2] = {
      {"x", om_tensor_of(OM_DTYPE_F32, 3, (int64_t[]){BATCH, ROWS, WIDTH}, x)},
      {"w", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){WIDTH, 3 * WIDTH}, w)}};
  om_named_tensor output = {"y_all", {0}};
  if (om_text_rig_run(&rig, inputs, 2, &output, 1) != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(output.tensor.data_bytes, sizeof out->y);
  memcpy(out->y, output.tensor.data, sizeof out->y);
  assert_int_equal(om_session_diagnose(rig.session, inputs, 2, &d, &rig.error), OM_OK);
  out->moving = 0;
  for (size_t i = 0; i < d->node_count; ++i) {
    if (d->nodes[i].place == OM_PLACE_FOLDED) continue;
    for (size_t k = 0; k < OM_COUNT_OF(moves); ++k) {
      out->moving += strcmp(d->nodes[i].op_type, moves[k]) == 0;
    }
  }
  om_text_rig_close(&rig);
}

static void check(const om_session_options *options) {
  static result in_place, apart; /* large for a frame */
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    print_message("# %s\n", forms[i].name);
    run(&forms[i], false, options, &in_place);
    run(&forms[i], true, options, &apart);
    assert_int_equal(apart.moving - in_place.moving, forms[i].moved);
    if (options->mode == OM_MODE_EXACT) {
      assert_memory_equal(in_place.y, apart.y, sizeof apart.y);
      continue;
    }
    for (size_t k = 0; k < OM_COUNT_OF(apart.y); ++k) {
      assert_float_equal(in_place.y[k], apart.y[k], 1e-5f);
    }
  }
}

static void attention_reads_in_place_on_the_cpu(void **state) {
  (void)state;
  om_each_mode_on_the_cpu(check);
}

static void attention_reads_in_place_on_a_device(void **state) {
  (void)state;
  om_each_mode_on_a_device(check);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(views_are_what_the_copies_made),
                                     cmocka_unit_test(an_axis_has_one_stride),
                                     cmocka_unit_test(attention_reads_in_place_on_the_cpu),
                                     cmocka_unit_test(attention_reads_in_place_on_a_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
