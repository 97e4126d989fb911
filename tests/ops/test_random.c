/* Random values: the generator's published test vector, and every operator from the definition. */
#include <math.h>

#include "harness/om_test.h"

typedef struct generator {
  uint32_t key[2];
} generator;

/* Philox4x32-10 as its paper has it. */
static void block(generator g, uint64_t index, uint32_t out[4]) {
  uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c[0];
    const uint64_t b = 0xCD9E8D57ull * c[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ g.key[0],
                              (uint32_t)b,
                              (uint32_t)(a >> 32) ^ c[3] ^ g.key[1],
                              (uint32_t)a};
    memcpy(c, next, sizeof c);
    g.key[0] += 0x9E3779B9u;
    g.key[1] += 0xBB67AE85u;
  }
  memcpy(out, c, sizeof c);
}

static generator generator_of(const om_node *node) {
  generator g = {{0, 0}};
  const om_attr *attr = om_node_attr(node, "seed");
  if (attr) {
    const float seed = attr->kind == OM_ATTR_INT ? (float)attr->i : attr->f;
    memcpy(&g.key[0], &seed, sizeof seed);
    return g;
  }
  uint64_t hash = 14695981039346656037ull;
  for (const char *p = node->name; *p; ++p) hash = (hash ^ (uint8_t)*p) * 1099511628211ull;
  g.key[0] = (uint32_t)hash;
  g.key[1] = (uint32_t)(hash >> 32) | 1u;
  return g;
}

static double fraction(const uint32_t *words, bool is_wide) {
  if (!is_wide) return (words[0] >> 8) / 16777216.0;
  return ((words[0] >> 5) * 67108864.0 + (words[1] >> 6)) / 9007199254740992.0;
}

static double uniform(generator g, uint64_t index, bool is_wide) {
  uint32_t words[4];
  block(g, index, words);
  return fraction(words, is_wide);
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const generator g = generator_of(node);
  om_ref_tensor *y = &outputs[0];
  const bool is_wide = y->dtype == OM_DTYPE_F64;
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    uint32_t words[4];
    block(g, i, words);
    if (strncmp(node->type, "RandomNormal", 12) == 0) {
      const double radius = sqrt(-2.0 * log(1.0 - fraction(words, is_wide)));
      const double angle = 2.0 * acos(-1.0) * fraction(words + 2, is_wide);
      y->values[i] =
          om_ref_float(node, "mean", 0.0) + om_ref_float(node, "scale", 1.0) * radius * cos(angle);
    } else if (strncmp(node->type, "RandomUniform", 13) == 0) {
      const double low = om_ref_float(node, "low", 0.0);
      y->values[i] = low + (om_ref_float(node, "high", 1.0) - low) * fraction(words, is_wide);
    } else if (strcmp(node->type, "Bernoulli") == 0) {
      y->values[i] = uniform(g, i, inputs[0].dtype == OM_DTYPE_F64) < inputs[0].values[i];
    } else { /* Dropout */
      const double ratio = input_count > 1 && inputs[1].values ? inputs[1].values[0] : 0.5;
      const bool is_kept = fraction(words, is_wide) >= ratio;
      y->values[i] = is_kept ? inputs[0].values[i] / (1.0 - ratio) : 0.0;
      if (output_count > 1 && outputs[1].values) outputs[1].values[i] = is_kept;
    }
  }
}

/* The class where the summed weights pass the random value. */
static void multinomial(const om_node *node,
                        const om_ref_tensor *inputs,
                        size_t input_count,
                        om_ref_tensor *outputs,
                        size_t output_count) {
  const generator g = generator_of(node);
  const size_t classes = (size_t)inputs[0].dims[1];
  const size_t samples = (size_t)outputs[0].dims[1];
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const double *x = inputs[0].values + i / samples * classes;
    double total = 0.0;
    double sum = 0.0;
    size_t chosen = 0;
    for (size_t c = 0; c < classes; ++c) total += exp(x[c]);
    const double limit = uniform(g, i, inputs[0].dtype == OM_DTYPE_F64) * total;
    while (chosen + 1 < classes && (sum += exp(x[chosen])) <= limit) ++chosen;
    outputs[0].values[i] = (double)chosen;
  }
}

static const om_op_case shaped_cases[] = {
    {.name = "seed", .attrs = "shape=[2,3] seed=1.5f", .shapes = {"2x3"}},
    {.name = "no_seed", .attrs = "shape=[40,3]"},
    {.name = "range",
     .attrs = "shape=[1000] seed=3.0f low=-2.0f high=6.0f mean=1.0f scale=3.0f",
     .scaled_error = 2e-6},
    {.name = "many", .attrs = "shape=[3,5001] seed=3.0f", .scaled_error = 2e-6},
    {.name = "scalar", .attrs = "shape=[] seed=3.0f", .shapes = {"scalar"}},
    {.name = "empty", .attrs = "shape=[0,3] seed=3.0f"},
    {.name = "f64", .attrs = "shape=[30] seed=3.0f dtype=11"},
    {.name = "f16", .attrs = "shape=[30] seed=3.0f dtype=10"},
    {.name = "bf16", .opset = 22, .attrs = "shape=[30] seed=3.0f dtype=16"},
    {.name = "integer", .attrs = "shape=[30] dtype=6", .error = "dtype is 6"},
    {.name = "no_shape", .error = "shape has 0"},
};

static const om_op_case like_cases[] = {
    {.name = "seed", .inputs = {"f32 2x3"}, .attrs = "seed=1.5f"},
    {.name = "of_ints", .inputs = {"i64 2x3"}, .attrs = "seed=1.5f dtype=1"},
    {.name = "of_f64", .inputs = {"f64 2x3"}},
    {.name = "of_ints_without_dtype", .inputs = {"i64 2x3"}, .error = "no random values of int64"},
};

static const om_op_case bernoulli_cases[] = {
    {.name = "seed", .inputs = {"f32 2x300 range 0 1"}, .attrs = "seed=1.5f"},
    {.name = "certain", .inputs = {"f32 4 = 0 1 0 1"}, .attrs = "dtype=9"},
    {.name = "i32", .inputs = {"f64 30 range 0 1"}, .attrs = "dtype=6"},
    {.name = "f16", .inputs = {"f16 30 range 0 1"}},
    {.name = "bad_type", .inputs = {"f32 2"}, .attrs = "dtype=8", .error = "dtype is 8"},
};

static const om_op_case multinomial_cases[] = {
    {.name = "seed",
     .inputs = {"f32 3x5"},
     .attrs = "seed=1.5f sample_size=200",
     .shapes = {"3x200"}},
    {.name = "one", .inputs = {"f32 3x1"}, .attrs = "dtype=7"},
    {.name = "f64", .inputs = {"f64 3x9"}, .attrs = "sample_size=50 dtype=7"},
    {.name = "negative", .inputs = {"f32 3x5"}, .attrs = "sample_size=-1", .error = "sample_size"},
    {.name = "rank", .inputs = {"f32 3"}, .error = "batch of at least one class"},
    {.name = "type", .inputs = {"f32 3x2"}, .attrs = "dtype=1", .error = "dtype is 1"},
};

static const om_op_case dropout_cases[] = {
    {.name = "f8",
     .inputs = {"f32 3 = 1 -2 0.5"},
     .graph = "t = Cast(x0) to=17; u = Dropout(t); y0 = Cast(u) to=1",
     .expected = {"1 -2 0.5"},
     .declined = ""},
    {.name = "training",
     .inputs = {"f32 20x30", "f32 scalar = 0.3", "b8 scalar = 1"},
     .attrs = "seed=7",
     .output_count = 2},
    {.name = "default_ratio", .inputs = {"f32 20x30", "-", "b8 scalar = 1"}},
    {.name = "f16", .inputs = {"f16 30", "f32 scalar = 0.25", "b8 scalar = 1"}, .output_count = 2},
    {.name = "f64", .inputs = {"f64 30", "f64 scalar = 0.25", "b8 scalar = 1"}},
    {.name = "opset_12", .opset = 12, .inputs = {"f32 30", "f32 scalar = 0.25", "b8 scalar = 1"}},
    {.name = "ratio_1",
     .inputs = {"f32 3", "f32 scalar = 1", "b8 scalar = 1"},
     .error = "ratio is 1"},
    {.name = "ratio_list",
     .inputs = {"f32 3", "f32 2", "b8 scalar = 1"},
     .error = "no single float"},
};

#define OM_RANDOM_SUITE(type, table, function)       \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function,                            \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_RANDOM_SUITE("RandomUniform", shaped_cases, reference),
    OM_RANDOM_SUITE("RandomNormal", shaped_cases, reference),
    OM_RANDOM_SUITE("RandomUniformLike", like_cases, reference),
    OM_RANDOM_SUITE("RandomNormalLike", like_cases, reference),
    OM_RANDOM_SUITE("Bernoulli", bernoulli_cases, reference),
    OM_RANDOM_SUITE("Multinomial", multinomial_cases, multinomial),
    {.op_type = "Dropout",
     .cases = dropout_cases,
     .case_count = sizeof dropout_cases / sizeof dropout_cases[0],
     .reference = reference,
     .declined = "it"},
};

int main(int argc, char **argv) {
  static const uint32_t expected[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  uint32_t words[4];
  block((generator){{0, 0}}, 0, words);
  if (memcmp(words, expected, sizeof words) != 0) return 1;
  return om_op_test_main(argc, argv, suites, sizeof suites / sizeof suites[0]);
}
