/* Unique: each part is looked up among those before it, then sorted by counting smaller ones. */
#include <math.h>

#include "harness/om_test.h"

typedef struct parts {
  const om_ref_tensor *x;
  size_t count, outer, inner;
} parts;

static int order(const parts *p, size_t a, size_t b) {
  for (size_t o = 0; o < p->outer; ++o) {
    for (size_t i = 0; i < p->inner; ++i) {
      const double u = p->x->values[(o * p->count + a) * p->inner + i];
      const double v = p->x->values[(o * p->count + b) * p->inner + i];
      if (isnan(u) || isnan(v)) {
        if (isnan(u) != isnan(v)) return isnan(u) ? 1 : -1;
      } else if (u != v) {
        return u > v ? 1 : -1;
      }
    }
  }
  return 0;
}

static size_t first_of(const parts *p, size_t part) {
  size_t i = 0;
  while (order(p, i, part) != 0) ++i;
  return i;
}

/* How many groups come before that of `part`. */
static size_t place_of(const parts *p, size_t part, bool is_sorted) {
  size_t place = 0;
  for (size_t i = 0; i < p->count; ++i) {
    if (first_of(p, i) != i) continue;
    place += is_sorted ? order(p, i, part) < 0 : i < first_of(p, part);
  }
  return place;
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  parts p = {&inputs[0], inputs[0].elems, 1, 1};
  const bool is_sorted = om_ref_int(node, "sorted", 1) != 0;
  (void)input_count;
  if (om_node_attr(node, "axis")) {
    const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 0), p.x->rank);
    p.count = (size_t)p.x->dims[axis];
    for (uint32_t d = 0; d < p.x->rank; ++d) {
      if (d < axis) p.outer *= (size_t)p.x->dims[d];
      if (d > axis) p.inner *= (size_t)p.x->dims[d];
    }
  }
  size_t groups = 0;
  for (size_t i = 0; i < p.count; ++i) groups += first_of(&p, i) == i;
  for (size_t o = 1; o < output_count; ++o) {
    if (outputs[o].values) memset(outputs[o].values, 0, outputs[o].elems * sizeof(double));
  }
  for (size_t i = 0; i < p.count; ++i) {
    const size_t place = place_of(&p, i, is_sorted);
    const size_t first = first_of(&p, i);
    for (size_t k = 0; k < p.outer * p.inner; ++k) {
      outputs[0].values[(k / p.inner * groups + place) * p.inner + k % p.inner] =
          p.x->values[(k / p.inner * p.count + first) * p.inner + k % p.inner];
    }
    if (output_count > 1) outputs[1].values[place] = (double)first;
    if (output_count > 2) outputs[2].values[i] = (double)place;
    if (output_count > 3) outputs[3].values[place] += 1.0;
  }
}

static const om_op_case cases[] = {
    {.name = "flat",
     .inputs = {"f32 7 = 2 1 1 3 4 3 1"},
     .output_count = 4,
     .shapes = {"4", "4", "7", "4"}},
    {.name = "unsorted",
     .inputs = {"f32 7 = 2 1 1 3 4 3 1"},
     .attrs = "sorted=0",
     .output_count = 4},
    {.name = "alone", .inputs = {"i32 5x7 const"}},
    {.name = "many", .inputs = {"i32 3x111"}, .output_count = 4},
    {.name = "axis",
     .inputs = {"i64 4x3 = 1 0 0 1 0 0 2 3 4 0 9 9"},
     .attrs = "axis=0",
     .output_count = 4,
     .shapes = {"3x3"}},
    {.name = "axis_last", .inputs = {"u8 3x20 = 1 2"}, .attrs = "axis=-1", .output_count = 4},
    {.name = "axis_middle",
     .inputs = {"i8 2x9x2 = 1 1 2 2 1 1"},
     .attrs = "axis=1 sorted=0",
     .output_count = 4},
    {.name = "nan", .inputs = {"f32 6 = nan 1 -inf nan inf 1"}, .output_count = 4},
    {.name = "zeros", .inputs = {"f32 3 = 0 -0 0"}, .output_count = 4},
    {.name = "f64", .inputs = {"f64 9 = 1 2 1.5"}, .output_count = 4},
    {.name = "f16", .inputs = {"f16 9 = 1 2 1.5"}, .output_count = 4},
    {.name = "bool", .inputs = {"b8 9"}, .output_count = 4},
    {.name = "u64", .inputs = {"u64 30"}, .output_count = 4},
    {.name = "large_i64",
     .inputs = {"i64 3 = 9007199254740993 9007199254740992 9007199254740993"},
     .shapes = {"2"},
     .expected = {"9007199254740992 9007199254740993"}},
    {.name = "rank_8", .inputs = {"i8 2x1x3x2x1x2x3x2"}, .attrs = "axis=6", .output_count = 4},
    {.name = "empty", .inputs = {"f32 0"}, .output_count = 4, .shapes = {"0", "0", "0", "0"}},
    {.name = "scalar",
     .inputs = {"f32 scalar = 3"},
     .output_count = 4,
     .shapes = {"1", "1", "1", "1"}},
    {.name = "axis_outside", .inputs = {"f32 3"}, .attrs = "axis=1", .error = "axis 1"},
};

static const om_op_case string_cases[] = {
    {.name = "strings", .inputs = {"str 5 = b a b ab a"}, .shapes = {"3"}, .expected = {"a ab b"}},
};

static const om_op_suite suites[] = {
    {.op_type = "Unique",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .declined = ""},
    {.op_type = "Unique",
     .cases = string_cases,
     .case_count = sizeof string_cases / sizeof string_cases[0],
     .declined = ""},
};

OM_OP_TESTS(suites)
