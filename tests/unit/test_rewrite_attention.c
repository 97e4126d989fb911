/* Attention from its parts: the forms that exporters write. Each graph runs with the rewrite and
 * without it ("without" is a session that returns the probabilities, which keeps the nodes apart)
 * and must give the same bits in exact mode, and nearly the same numbers in fast mode. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_graph_builder.h"
#include "harness/om_model_text.h"
#include "onemodel/gpu.h"
#include "ops/op_attention.h"
#include "rewrite/om_rewrite.h"
#include "session/om_session.h"

enum { BATCH = 2, ROWS = 5, HEADS = 3, SIZE = 4, WIDTH = HEADS * SIZE };

typedef enum scale_place { NO_SCALE, SCORES_MUL, SCORES_DIV, Q_MUL, K_MUL, Q_AND_K } scale_place;
typedef enum mask_kind {
  NO_MASK,
  MASK_OF_KEYS,
  MASK_OF_ROWS,
  MASK_FIRST,
  MASK_PER_ROW,
  MASK_SUBTRACTED,
  SHOWN_WHERE,    /* Where(shown, scores, lowest) */
  HIDDEN_WHERE,   /* Where(hidden, -infinity, scores) */
  HIDDEN_EXPANDED /* the same, expanded to the scores' shape */
} mask_kind;

typedef struct form {
  const char *name;
  scale_place scale;
  mask_kind mask;
  int64_t opset; /* 0: 17 */
  int64_t axis;  /* 0: -1 */
  bool turns_k_twice;
  bool zeroes_nan;
  bool keeps_result;   /* no Transpose behind */
  bool folds_heads;    /* rank 3: heads are part of the batch */
  bool computes_scale; /* from the shape of q */
} form;

/* Numbers in [-1, 1) that are the same everywhere. */
static void fill(float *data, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
}

static float weights[3][WIDTH * WIDTH];
static float masks[ROWS * ROWS];

/* A projection split into heads, and turned by `perm`. */
static om_value_id make_heads(
    om_graph_builder *b, om_value_id x, int part, const int64_t *perm, size_t rank) {
  static const char *const names[3][4] = {{"wq", "q_product", "q_split", "q"},
                                          {"wk", "k_product", "k_split", "k"},
                                          {"wv", "v_product", "v_split", "v"}};
  static const int64_t split_4[] = {0, 0, HEADS, SIZE}, split_3[] = {ROWS, BATCH * HEADS, SIZE};
  static const char *const shapes[] = {"q_shape", "k_shape", "v_shape"};
  const char *const *name = names[part];
  om_value_id w =
      om_build_constant(b, name[0], OM_DTYPE_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[part]);
  om_value_id y = om_build_node(b, "MatMul", name[1], 2, (om_value_id[]){x, w});
  om_value_id shape = om_build_constant(
      b, shapes[part], OM_DTYPE_I64, 1, (int64_t[]){(int64_t)rank}, rank == 4 ? split_4 : split_3);
  y = om_build_node(b, "Reshape", name[2], 2, (om_value_id[]){y, shape});
  y = om_build_node(b, "Transpose", name[3], 1, &y);
  om_build_ints(b, "perm", rank, perm);
  return y;
}

static om_value_id scaled(
    om_graph_builder *b, const form *f, const char *type, const char *name, om_value_id x) {
  static const float factor = 0.7f, one = 1.0f;
  static const int64_t minus_one = -1, many = INT64_MAX;
  char *names[] = {"extents", "last", "last_float", "root"};
  om_value_id c;
  if (f->computes_scale) {
    om_value_id starts =
        om_build_constant(b, "starts", OM_DTYPE_I64, 1, (int64_t[]){1}, &minus_one);
    om_value_id ends = om_build_constant(b, "ends", OM_DTYPE_I64, 1, (int64_t[]){1}, &many);
    om_value_id whole = om_build_constant(b, "whole", OM_DTYPE_F32, 0, NULL, &one);
    om_value_id extents = om_build_node(b, "Shape", names[0], 1, &x);
    om_value_id last =
        om_build_node(b, "Slice", names[1], 3, (om_value_id[]){extents, starts, ends});
    last = om_build_node(b, "Cast", names[2], 1, &last);
    om_build_int(b, "to", OM_DTYPE_F32);
    last = om_build_node(b, "Sqrt", names[3], 1, &last);
    c = om_build_node(b, "Div", "factor", 2, (om_value_id[]){whole, last});
  } else {
    char *own = strcmp(name, "k_scaled") == 0 ? "k_factor" : "factor";
    c = om_build_constant(b, own, OM_DTYPE_F32, 0, NULL, &factor);
  }
  return om_build_node(b, type, name, 2, (om_value_id[]){x, c});
}

/* Where of a triangle: keys up to the row. */
static om_value_id chosen(om_graph_builder *b, const form *f, om_value_id scores) {
  static const float lowest = -FLT_MAX, nothing = -INFINITY;
  static bool triangle[ROWS * ROWS];
  const bool is_shown = f->mask == SHOWN_WHERE;
  for (size_t i = 0; i < OM_COUNT_OF(triangle); ++i) {
    triangle[i] = (i % ROWS <= i / ROWS) == is_shown;
  }
  om_value_id c =
      om_build_constant(b, "fill", OM_DTYPE_F32, 0, NULL, is_shown ? &lowest : &nothing);
  om_value_id t =
      om_build_constant(b, "triangle", OM_DTYPE_BOOL, 2, (int64_t[]){ROWS, ROWS}, triangle);
  if (f->mask == HIDDEN_EXPANDED) {
    om_value_id extents = om_build_node(b, "Shape", "scores_shape", 1, &scores);
    t = om_build_node(b, "Expand", "expanded", 2, (om_value_id[]){t, extents});
  }
  const om_value_id shown[] = {t, scores, c}, hidden[] = {t, c, scores};
  return om_build_node(b, "Where", "masked", 3, is_shown ? shown : hidden);
}

static om_value_id masked(om_graph_builder *b, const form *f, om_value_id scores) {
  const bool has_rows = f->mask == MASK_OF_ROWS || f->mask == MASK_PER_ROW;
  const int64_t dims[] = {1, 1, has_rows ? ROWS : 1, f->mask == MASK_PER_ROW ? 1 : ROWS};
  if (f->mask == NO_MASK) return scores;
  if (f->mask >= SHOWN_WHERE) return chosen(b, f, scores);
  om_value_id mask = om_build_constant(b, "mask", OM_DTYPE_F32, 4, dims, masks);
  const om_value_id inputs[] = {scores, mask}, swapped[] = {mask, scores};
  const char *type = f->mask == MASK_SUBTRACTED ? "Sub" : "Add";
  return om_build_node(b, type, "masked", 2, f->mask == MASK_FIRST ? swapped : inputs);
}

static om_value_id without_nan(om_graph_builder *b, om_value_id p) {
  static const float zero = 0.0f;
  om_value_id c = om_build_constant(b, "zero", OM_DTYPE_F32, 0, NULL, &zero);
  om_value_id is_nan = om_build_node(b, "IsNaN", "is_nan", 1, &p);
  return om_build_node(b, "Where", "clean", 3, (om_value_id[]){is_nan, c, p});
}

static om_model *make_model(const form *f) {
  static const int64_t back_4[] = {0, 2, 1, 3}, turned_4[] = {0, 2, 3, 1}, last_4[] = {0, 1, 3, 2};
  static const int64_t back_3[] = {1, 0, 2}, turned_3[] = {1, 2, 0}, last_3[] = {0, 2, 1};
  const size_t rank = f->folds_heads ? 3 : 4;
  const int64_t *back = f->folds_heads ? back_3 : back_4;
  const int64_t *turned = f->folds_heads ? turned_3 : turned_4;
  om_graph_builder b;
  for (uint32_t i = 0; i < 3; ++i) fill(weights[i], WIDTH * WIDTH, i + 1);
  fill(masks, ROWS * ROWS, 9);
  for (size_t i = 0; f->zeroes_nan && i < ROWS; ++i) masks[i] = -INFINITY;
  om_build_begin(&b, f->opset ? f->opset : 17);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 3, (int64_t[]){BATCH, ROWS, WIDTH}, NULL);
  om_value_id q = make_heads(&b, x, 0, back, rank);
  om_value_id k = make_heads(&b, x, 1, f->turns_k_twice ? back : turned, rank);
  om_value_id v = make_heads(&b, x, 2, back, rank);
  if (f->turns_k_twice) {
    k = om_build_node(&b, "Transpose", "k_turned", 1, &k);
    om_build_ints(&b, "perm", rank, f->folds_heads ? last_3 : last_4);
  }
  if (f->scale == Q_MUL || f->scale == Q_AND_K) q = scaled(&b, f, "Mul", "q_scaled", q);
  if (f->scale == K_MUL || f->scale == Q_AND_K) k = scaled(&b, f, "Mul", "k_scaled", k);
  om_value_id p = om_build_node(&b, "MatMul", "product", 2, (om_value_id[]){q, k});
  if (f->scale == SCORES_MUL) p = scaled(&b, f, "Mul", "scaled", p);
  if (f->scale == SCORES_DIV) p = scaled(&b, f, "Div", "scaled", p);
  p = masked(&b, f, p);
  p = om_build_node(&b, "Softmax", "p", 1, &p);
  om_build_int(&b, "axis", f->axis ? f->axis : -1);
  if (f->zeroes_nan) p = without_nan(&b, p);
  om_value_id y =
      om_build_node(&b, "MatMul", f->keeps_result ? "y" : "values", 2, (om_value_id[]){p, v});
  if (!f->keeps_result) {
    y = om_build_node(&b, "Transpose", "y", 1, &y);
    om_build_ints(&b, "perm", rank, back);
  }
  om_build_output(&b, y);
  return om_build_model(&b);
}

static om_session *make_session(om_model *model, om_mode mode, const char *extra) {
  om_error error;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = mode;
  options.extra_outputs = &extra;
  options.extra_output_count = extra ? 1 : 0;
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

/* The type under which a node runs; NULL: it does not. */
static const char *type_of(om_session *session, const char *node) {
  om_error error;
  const om_diagnostics *d = NULL;
  assert_int_equal(om_session_diagnose(session, NULL, 0, &d, &error), OM_OK);
  for (size_t i = 0; i < d->node_count; ++i) {
    if (strcmp(d->nodes[i].name, node) != 0) continue;
    return d->nodes[i].place == OM_PLACE_FOLDED ? NULL : d->nodes[i].op_type;
  }
  fail_msg("the diagnostics lack %s", node);
  return NULL;
}

static void run(om_session *session, float out[BATCH * ROWS * WIDTH]) {
  static const int64_t dims[] = {BATCH, ROWS, WIDTH};
  om_error error;
  float x[BATCH * ROWS * WIDTH];
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 3, dims, x)};
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  fill(x, OM_COUNT_OF(x), 7);
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  assert_int_equal(om_tensor_elems(&output.tensor), BATCH * ROWS * WIDTH);
  memcpy(out, output.tensor.data, sizeof x);
}

static void merges_what_exporters_write(void **state) {
  static const form forms[] = {
      {"plain", .scale = NO_SCALE},
      {"bert", .scale = SCORES_DIV, .mask = MASK_OF_KEYS},
      {"bert_opset_11", .scale = SCORES_DIV, .mask = MASK_OF_KEYS, .opset = 11, .axis = 3},
      {"axis_3", .scale = SCORES_DIV, .mask = MASK_OF_ROWS, .axis = 3},
      {"mask_first", .scale = SCORES_MUL, .mask = MASK_FIRST},
      {"scaled_q", .scale = Q_MUL, .mask = MASK_OF_ROWS, .turns_k_twice = true},
      {"scaled_k", .scale = K_MUL, .turns_k_twice = true},
      {"torch_2", .scale = Q_AND_K, .mask = MASK_OF_ROWS, .turns_k_twice = true},
      {"computed_scale", .scale = Q_MUL, .computes_scale = true},
      {"per_row", .scale = SCORES_MUL, .mask = MASK_PER_ROW},
      {"subtracted", .scale = SCORES_MUL, .mask = MASK_SUBTRACTED},
      {"shown", .scale = SCORES_MUL, .mask = SHOWN_WHERE},
      {"hidden", .scale = Q_MUL, .mask = HIDDEN_WHERE},
      {"hidden_expanded", .scale = Q_MUL, .mask = HIDDEN_EXPANDED},
      {"no_nan", .scale = SCORES_MUL, .mask = MASK_OF_ROWS, .zeroes_nan = true},
      {"result_as_it_is", .scale = SCORES_MUL, .keeps_result = true},
      {"rank_3", .scale = Q_MUL, .folds_heads = true, .turns_k_twice = true},
  };
  float merged[BATCH * ROWS * WIDTH], parts[BATCH * ROWS * WIDTH];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    om_model *model = make_model(&forms[i]);
    for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
      om_session *with = make_session(model, (om_mode)mode, NULL);
      om_session *without = make_session(model, (om_mode)mode, "p");
      const char *type = type_of(with, "y");
      if (!type || strcmp(type, "Attention") != 0) fail_msg("%s is not merged", forms[i].name);
      assert_null(type_of(with, "p"));
      assert_null(type_of(with, "q"));
      assert_string_equal(type_of(without, "p"), "Softmax");
      run(with, merged);
      run(without, parts);
      if (mode == OM_MODE_EXACT && memcmp(merged, parts, sizeof merged) != 0) {
        fail_msg("%s differs", forms[i].name);
      }
      for (size_t k = 0; k < OM_COUNT_OF(merged); ++k) {
        if (!(fabsf(merged[k] - parts[k]) <= 1e-6f)) fail_msg("%s is off", forms[i].name);
      }
      om_session_destroy(with);
      om_session_destroy(without);
    }
    om_model_destroy(model);
  }
}

/* What the caller wants to see stays, with all that makes it. */
static void leaves_what_is_wanted(void **state) {
  static const form torch_2 = {"torch_2", .scale = SCORES_MUL, .mask = MASK_OF_ROWS};
  static const char *const wanted[] = {"product", "scaled", "masked", "p", "values"};
  om_model *model = make_model(&torch_2);
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(wanted); ++i) {
    om_session *session = make_session(model, OM_MODE_EXACT, wanted[i]);
    const bool is_result = strcmp(wanted[i], "values") == 0;
    assert_string_equal(type_of(session, wanted[i]),
                        is_result                           ? "Attention"
                        : strcmp(wanted[i], "product") == 0 ? "MatMul"
                        : strcmp(wanted[i], "scaled") == 0  ? "Mul"
                        : strcmp(wanted[i], "masked") == 0  ? "Add"
                                                            : "Softmax");
    assert_string_equal(type_of(session, "y"), "Transpose");
    om_session_destroy(session);
  }
  om_model_destroy(model);
}

static void leaves_a_softmax_over_another_axis(void **state) {
  static const form forms[] = {{"axis_2", .axis = 2}, {"rows", .axis = 1, .opset = 11}};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    om_model *model = make_model(&forms[i]);
    om_session *session = make_session(model, OM_MODE_EXACT, NULL);
    assert_string_equal(type_of(session, "p"), "Softmax");
    om_session_destroy(session);
    om_model_destroy(model);
  }
}

/* On the device the projections are one product, unless the options keep things apart. */
static void packs_projections_for_the_device(void **state) {
  static const struct {
    bool no_fusion, no_fused_attention;
    const char *y, *product;
  } cases[] = {
      {false, false, "Attention", NULL},
      {true, false, "Transpose", "MatMul"},
      {false, true, "Transpose", "MatMul"},
  };
  static const form bert = {"bert", .scale = SCORES_DIV, .mask = MASK_OF_KEYS};
  om_model *model = make_model(&bert);
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_error error;
    om_session *session = NULL;
    om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    gpu.backend = "null";
    gpu.no_fusion = cases[i].no_fusion;
    gpu.no_fused_attention = cases[i].no_fused_attention;
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
    if (om_session_create(model, &options, &session, &error) != OM_OK) {
      fail_msg("%s", error.message);
    }
    const char *product = type_of(session, "q_product");
    assert_string_equal(type_of(session, "y"), cases[i].y);
    if (cases[i].product) assert_string_equal(product, cases[i].product);
    if (!cases[i].product) {
      assert_null(product);
      assert_string_equal(type_of(session, "y.projections"), "MatMul");
    }
    om_session_destroy(session);
  }
  om_model_destroy(model);
}

/* Projections of rows, whose heads' shape begins with a part of another one: [2, 8] behind it are
 * the heads and their size, and not the other way round. */
static void counts_a_part_of_a_shape_as_what_it_is(void **state) {
  static const char rows[] =
      "(x: f32[b, s, 16]) -> y { c0 = Constant() value_ints=[0]; c2 = Constant() value_ints=[2]; "
      "c28 = Constant() value_ints=[2, 8]; flat = Constant() value_ints=[-1, 16]; "
      "d = Constant() value_ints=[16, 16]; f1 = Constant() value_float=0.1; "
      "f2 = Constant() value_float=0.2; f3 = Constant() value_float=0.3; wq = Expand(f1, d); "
      "wk = Expand(f2, d); wv = Expand(f3, d); e = Shape(x); front = Slice(e, c0, c2); "
      "l = Concat(front, c28) axis=0; r = Reshape(x, flat); qm = MatMul(r, wq); "
      "km = MatMul(r, wk); vm = MatMul(r, wv); qs = Reshape(qm, l); ks = Reshape(km, l); "
      "vs = Reshape(vm, l); q = Transpose(qs) perm=[0, 2, 1, 3]; "
      "k = Transpose(ks) perm=[0, 2, 3, 1]; v = Transpose(vs) perm=[0, 2, 1, 3]; "
      "p = MatMul(q, k); a = Softmax(p); o = MatMul(a, v); y = Transpose(o) perm=[0, 2, 1, 3]; }";
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_text_rig rig;
  size_t products = 0, attentions = 0;
  (void)state;
  gpu.backend = "null";
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  om_text_rig_open(&rig, rows, 17, &options);
  const om_graph *graph = &rig.session->scope.graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    products += strcmp(graph->nodes[i].type, "MatMul") == 0;
    if (strcmp(graph->nodes[i].type, "Attention") != 0) continue;
    const om_attention_params *p = graph->nodes[i].params;
    for (size_t k = 0; k < 3; ++k) assert_int_equal(p->columns[k].heads, 2);
    ++attentions;
  }
  assert_int_equal(products, 1);
  assert_int_equal(attentions, 1);
  om_text_rig_close(&rig);
}

/* Heads as a part of the batch: what the Reshapes are given tells whether they are heads. */
static void spreads_heads_that_are_in_the_batch(void **state) {
  static const char graph_form[] =
      "(x: f32[2, 5, 12], m: f32[%s, 1, 5, 5]) -> y { l4 = Constant() value_ints=[2, 5, 3, 4]; "
      "l3 = Constant() value_ints=[%s]; s4 = Constant() value_ints=[%s]; "
      "s3 = Constant() value_ints=[6, 5, 5]; r4 = Constant() value_ints=[%s]; "
      "xs = Reshape(x, l4); xt = Transpose(xs) perm=[0, 2, 1, 3]; q = Reshape(xt, l3); "
      "k = Transpose(q) perm=[0, 2, 1]; p = MatMul(q, k); ps = Reshape(p, s4); pm = Add(ps, m); "
      "pf = Reshape(pm, s3); a = Softmax(pf) axis=-1; o = MatMul(a, q); os = Reshape(o, r4); "
      "y = Transpose(os) perm=[0, 2, 1, 3]; }";
  static const struct {
    const char *mask, *merged, *scores, *result;
    size_t attentions;
  } cases[] = {
      {"2", "6, 5, 4", "2, 3, 5, 5", "2, 3, 5, 4", 1},
      {"1", "6, -1, 4", "2, 3, 5, -1", "2, 3, 5, -1", 0}, /* -1 may be anything */
      {"3", "6, 5, 4", "3, 2, 5, 5", "2, 3, 5, 4", 0},    /* others than the heads */
      {"2", "6, 5, 4", "2, 3, 5, 5", "3, 2, 5, 4", 0},
      {"2", "6, 5, 4", "2, 3, 5, 5", "2, 3, 4, 5", 0},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    om_text_rig rig;
    char text[1024];
    size_t attentions = 0;
    snprintf(text,
             sizeof text,
             graph_form,
             cases[i].mask,
             cases[i].merged,
             cases[i].scores,
             cases[i].result);
    om_text_rig_open(&rig, text, 17, &options);
    const om_graph *graph = &rig.session->scope.graph;
    for (size_t n = 0; n < graph->node_count; ++n) {
      attentions += strcmp(graph->nodes[n].type, "Attention") == 0;
    }
    if (attentions != cases[i].attentions) fail_msg("case %zu: %zu attentions", i, attentions);
    om_text_rig_close(&rig);
  }
}

/* The Expand in front of a mask goes behind what is made of it, where attentions alone read that.
 */
static void expands_masks_last(void **state) {
  static const char graph_form[] =
      "(q: f32[2, 3, 5, 4], k: f32[2, 3, 4, 5], m: i64[2, 1, 1, 5]) -> y%s { "
      "l = Constant() value_ints=[2, 1, 5, 5]; two = Constant() value_float=2.0; "
      "low = Constant() value_float=-9000.0; e = Expand(m, l); f = Cast(e) to=1; "
      "i = Sub(two, f); b = Cast(i) to=9; w = Where(b, low, i); p = MatMul(q, k); "
      "s = Add(p, w); a = Softmax(s) axis=-1; y = MatMul(a, q); %s }";
  static const struct {
    const char *output, *node;
    const char *maker; /* of the attention's mask */
  } cases[] = {{"", "", "Expand"}, {", z", "z = Neg(w);", "Where"}, {", f", "", "Where"}};
  float results[2][2 * 3 * 5 * 4];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    om_text_rig rig;
    char text[1024];
    float q[2 * 3 * 5 * 4], k[2 * 3 * 4 * 5];
    int64_t m[] = {2, 2, 0, 2, 0, 2, 0, 0, 0, 0};
    om_error error;
    om_named_tensor y = {"y", {0}};
    om_named_tensor in[] = {
        {"q", om_tensor_of(OM_DTYPE_F32, 4, (int64_t[]){2, 3, 5, 4}, q)},
        {"k", om_tensor_of(OM_DTYPE_F32, 4, (int64_t[]){2, 3, 4, 5}, k)},
        {"m", om_tensor_of(OM_DTYPE_I64, 4, (int64_t[]){2, 1, 1, 5}, m)},
    };
    om_run_args args = {sizeof args, in, OM_COUNT_OF(in), &y, 1, NULL};
    options.mode = OM_MODE_EXACT;
    snprintf(text, sizeof text, graph_form, cases[i].output, cases[i].node);
    om_text_rig_open(&rig, text, 17, &options);
    const om_graph *graph = &rig.session->scope.graph;
    const char *maker = NULL;
    for (size_t n = 0; n < graph->node_count; ++n) {
      if (strcmp(graph->nodes[n].type, "Attention") != 0) continue;
      maker = graph->nodes[graph->values[graph->nodes[n].inputs[3]].producer].type;
    }
    if (!maker || strcmp(maker, cases[i].maker) != 0) fail_msg("case %zu", i);
    fill(q, OM_COUNT_OF(q), 1);
    fill(k, OM_COUNT_OF(k), 2);
    if (om_session_run(rig.session, &args, &error) != OM_OK) fail_msg("%s", error.message);
    memcpy(results[i > 0], y.tensor.data, sizeof results[0]);
    if (i > 0) assert_memory_equal(results[0], results[1], sizeof results[0]);
    om_text_rig_close(&rig);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(merges_what_exporters_write),
      cmocka_unit_test(leaves_what_is_wanted),
      cmocka_unit_test(leaves_a_softmax_over_another_axis),
      cmocka_unit_test(packs_projections_for_the_device),
      cmocka_unit_test(counts_a_part_of_a_shape_as_what_it_is),
      cmocka_unit_test(spreads_heads_that_are_in_the_batch),
      cmocka_unit_test(expands_masks_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
