/* The self-test: exact primitives on the device against the same text on the CPU, bit for bit.
 *
 * The cases are pairs of special values (ties, powers of two and their neighbours, limits,
 * infinities, NaN, subnormals) and random bit patterns, with a third operand that cancels a
 * product, so that a fused a*b+c shows. Every expression of om_gpu_selftest.def is one dispatch;
 * all go in one submission.
 *
 * Subnormals count as zero, as docs/exact.md has it. A device that keeps them is found by one
 * product. It is not failed for it: where the result depends on subnormals (the CPU, asked both
 * ways, answers twice), either answer passes. A CPU that cannot flush, in WebAssembly, is not asked
 * where they arise.
 *
 * Where the device takes kernels for NVIDIA Hopper, these go through the same expressions in a
 * kernel of their kind. If one is wrong the session has none of them.
 *
 * float16 in memory is tried with all values there are, and with floats around and between them.
 *
 * Any NaN equals any other.
 */
#include "gpu/om_gpu_selftest.h"

#include <stdio.h>

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"

enum {
  SPECIAL_COUNT = 64,
  CASE_COUNT = 2 * SPECIAL_COUNT * SPECIAL_COUNT, /* pairs, then as many random ones */
};

static const uint32_t specials[SPECIAL_COUNT] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, /* 0, -0, 1, -1 */
    0x3f000000, 0xbf000000, 0x3fc00000, 0xbfc00000, /* 0.5, 1.5 */
    0x40200000, 0xc0200000, 0x3effffff, 0x3f000001, /* 2.5, around 0.5 */
    0x3f7fffff, 0x3f800001, 0xbf7fffff, 0xbf800001, /* around 1 */
    0x40000000, 0x40400000, 0x3eaaaaab, 0x40490fdb, /* 2, 3, 1/3, pi */
    0x3fc90fdb, 0xc0490fdb, 0x402df854, 0x3fb504f3, /* pi/2, -pi, e, sqrt 2 */
    0x4b000000, 0x4affffff, 0x4b000001, 0xcaffffff, /* 2^23 and around */
    0x4b7fffff, 0x4b800000, 0x4b800001, 0xcb800001, /* 2^24 and around */
    0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, /* 2^31, 2^32 */
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, /* the largest, infinities */
    0x7fc00000, 0xffc00000, 0x7f800001, 0x00800000, /* NaNs, the smallest normal */
    0x80800000, 0x00800001, 0x00ffffff, 0x01000000, /* around it */
    0x00000001, 0x807fffff, 0x00400000, 0x80000001, /* subnormals */
    0x42b17218, 0x42b17217, 0xc2aeac50, 0xc2ce8ed0, /* exp's limits */
    0x3a83126f, 0x34000000, 0xb3800000, 0x1f800000, /* small: 0.001, 2^-23, 2^-24, 2^-64 */
    0x5f800000, 0x7e800000, 0x42fe0000, 0x3f317218, /* 2^64, 2^126, 127, ln 2 */
};

typedef struct cases {
  uint32_t a[CASE_COUNT];
  uint32_t b[CASE_COUNT];
  uint32_t c[CASE_COUNT];
} cases;

typedef float (*evaluate_fn)(float a, float b, float c);

#define OM_SELFTEST(number, primitive, expression)            \
  static float evaluate_##number(float a, float b, float c) { \
    (void)a, (void)b, (void)c;                                \
    return expression;                                        \
  }
#include "gpu/om_gpu_selftest.def"
#undef OM_SELFTEST

static const struct test {
  uint32_t primitive;
  evaluate_fn evaluate;
} tests[] = {
#define OM_SELFTEST(number, primitive, expression) \
  [number] = {OM_PRIMITIVE_##primitive, evaluate_##number},
#include "gpu/om_gpu_selftest.def"
#undef OM_SELFTEST
};

enum { TEST_COUNT = sizeof tests / sizeof tests[0] };

/* ---- Cases ---- */

static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
  return (uint32_t)(*state >> 32);
}

/* Magnitudes from 2^-16 to 2^15, where most work is done; every mantissa. */
static uint32_t random_moderate(uint64_t *state) {
  uint32_t bits = next_random(state);
  return (bits & 0x807fffff) | (111 + (bits >> 23) % 32) << 23;
}

static void make_cases(cases *list) {
  uint64_t state = 1;
  for (uint32_t i = 0; i < CASE_COUNT; ++i) {
    bool is_pair = i < CASE_COUNT / 2;
    bool is_moderate = i % 4 != 0;
    list->a[i] = is_moderate ? random_moderate(&state) : next_random(&state);
    list->b[i] = is_moderate ? random_moderate(&state) : next_random(&state);
    if (is_pair) {
      list->a[i] = specials[i / SPECIAL_COUNT];
      list->b[i] = specials[i % SPECIAL_COUNT];
    }
    /* The product rounded, negated: a*b+c is 0, or the rounding error where it is fused. */
    float product = om_float(list->a[i]) * om_float(list->b[i]);
    list->c[i] = i % 2 == 0 ? om_bits(product) ^ 0x80000000u : random_moderate(&state);
  }
}

/* ---- float16 in memory ---- */

enum { HALF_COUNT = 1 << 16, HALF_CASES = 2 * HALF_COUNT };

typedef struct half_cases { /* parts of equal size, as a trial wants them */
  uint16_t halves[2 * HALF_CASES];
  uint32_t floats[HALF_CASES];
} half_cases;

typedef struct half_results {
  uint32_t loaded[HALF_CASES];
  uint16_t stored[2 * HALF_CASES];
} half_results;

/* Every half twice; its value as a float, and then a float with other places behind it. */
static void make_half_cases(half_cases *list) {
  uint64_t state = 1;
  for (uint32_t i = 0; i < HALF_CASES; ++i) {
    const uint16_t half = (uint16_t)(i % HALF_COUNT);
    const uint32_t tail = i % 4 == 0 ? 0x1000 : next_random(&state) & 0x1fff; /* ties, others */
    list->halves[i] = half;
    list->floats[i] = om_bits(om_f16_to_f32(half)) | (i < HALF_COUNT ? 0 : tail);
  }
}

static bool is_nan_half(uint16_t bits) {
  return (bits & 0x7fff) > 0x7c00;
}

static bool are_halves_right(const half_cases *list, const half_results *results) {
  for (uint32_t i = 0; i < HALF_CASES; ++i) {
    const float loaded = om_float(results->loaded[i]);
    const float value = om_f16_to_f32(list->halves[i]);
    const uint16_t wanted = om_f16_from_f32(om_float(list->floats[i]));
    if (om_bits(loaded) != om_bits(value) && !(om_is_nan(loaded) && om_is_nan(value))) return false;
    if (results->stored[i] != wanted && !(is_nan_half(results->stored[i]) && is_nan_half(wanted)))
      return false;
  }
  return true;
}

/* ---- Comparing ---- */

static bool is_nan_bits(uint32_t bits) {
  return (bits & 0x7fffffff) > 0x7f800000;
}

static uint32_t flushed(uint32_t bits) {
  return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

static bool is_same(uint32_t a, uint32_t b) {
  return a == b || (is_nan_bits(a) && is_nan_bits(b));
}

static uint32_t evaluate(const struct test *test, const cases *list, uint32_t i) {
  return om_bits(test->evaluate(om_float(list->a[i]), om_float(list->b[i]), om_float(list->c[i])));
}

/* Whether subnormals count as zero here, between begin and end: not in WebAssembly. */
static bool cpu_flushes(void) {
  const volatile float least = 1.17549435e-38f;
  return least * 0.5f == 0.0f;
}

static bool is_tiny(uint32_t bits) {
  return (bits & 0x7fffffff) != 0 && (bits & 0x7fffffff) <= 0x00800000;
}

/* Subnormals arise, or may: what a CPU that keeps them says then is no measure for a device. */
static bool has_subnormals(const cases *list, uint32_t i, uint32_t expected) {
  const float product = om_float(list->a[i]) * om_float(list->b[i]);
  return is_tiny(list->a[i]) || is_tiny(list->b[i]) || is_tiny(list->c[i]) ||
         is_tiny(om_bits(product)) || is_tiny(expected);
}

/* True if the device's results are the CPU's. The float environment flushes when called. */
static bool is_right(const struct test *test,
                     const cases *list,
                     const uint32_t *results,
                     bool keeps_subnormals,
                     uint64_t kept_environment) {
  const bool can_flush = cpu_flushes();
  for (uint32_t i = 0; i < CASE_COUNT; ++i) {
    if (!can_flush && has_subnormals(list, i, evaluate(test, list, i))) continue;
    uint32_t result = keeps_subnormals ? flushed(results[i]) : results[i];
    if (is_same(result, flushed(evaluate(test, list, i)))) continue;
    if (!keeps_subnormals) return false;
    om_flush_subnormals_end(kept_environment);
    uint32_t kept = flushed(evaluate(test, list, i));
    (void)om_flush_subnormals_begin(); /* the state is known */
    if (!is_same(result, kept)) return false;
  }
  return true;
}

/* 2^-126 * 0.5, which the pairs have: nonzero where subnormals are kept. */
static bool finds_subnormals(const cases *list, const uint32_t *products) {
  for (uint32_t i = 0; i < CASE_COUNT / 2; ++i) {
    if (list->a[i] == 0x00800000 && list->b[i] == 0x3f000000) return products[i] != 0;
  }
  return false;
}

static void judge(om_provider_session *session, const cases *list, const uint32_t *results) {
  uint64_t state = om_flush_subnormals_begin();
  bool keeps = finds_subnormals(list, results + (size_t)2 * CASE_COUNT);
  session->info.keeps_subnormals = keeps;
  for (uint32_t t = 0; t < TEST_COUNT; ++t) {
    if (!is_right(&tests[t], list, results + (size_t)t * CASE_COUNT, keeps, state)) {
      session->failed_primitives |= tests[t].primitive;
    }
  }
  om_flush_subnormals_end(state);
}

/* Kernels for Hopper flush, or the device has none. */
static void judge_sm90(om_provider_session *session, const cases *list, const uint32_t *results) {
  uint64_t state = om_flush_subnormals_begin();
  for (uint32_t t = 0; t < TEST_COUNT; ++t) {
    if (!is_right(&tests[t], list, results + (size_t)t * CASE_COUNT, false, state)) {
      session->failed_primitives |= OM_PRIMITIVE_SM90;
      session->features.sm90 = false;
      session->info.has_sm90 = false;
    }
  }
  om_flush_subnormals_end(state);
}

/* ---- Names ---- */

static const struct {
  uint32_t primitive;
  const char *name;
  const char *reason;
} names[] = {
#define NAMED(primitive, name) \
  {OM_PRIMITIVE_##primitive, name, "the device failed the exact self-test for " name}
    NAMED(ARITHMETIC, "arithmetic"),
    NAMED(DIVIDE, "division"),
    NAMED(SQRT, "square root"),
    NAMED(FUNCTIONS, "functions"),
    NAMED(ROUND, "rounding"),
    NAMED(FLOAT16, "float16"),
    NAMED(SM90, "kernels for Hopper"),
#undef NAMED
};

const char *om_gpu_primitive_reason(uint32_t primitives) {
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    if (primitives & names[i].primitive) return names[i].reason;
  }
  return NULL;
}

static void list_failures(om_provider_session *session) {
  size_t used = 0;
  session->exact_failures[0] = '\0';
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    if ((session->failed_primitives & names[i].primitive) == 0) continue;
    int written = snprintf(session->exact_failures + used,
                           sizeof session->exact_failures - used,
                           "%s%s",
                           used > 0 ? ", " : "",
                           names[i].name);
    if (written > 0) used += (size_t)written; /* the names together fit */
  }
}

/* ---- The test ---- */

struct om_gpu_selftest {
  cases *list;       /* owned, as all of it */
  uint32_t *results; /* of the expressions */
  om_gpu_trial expressions;
  uint32_t *sm90_results; /* NULL: the device has no kernels for Hopper */
  om_gpu_trial sm90;
  half_cases *half_list; /* NULL: the device has no 16-bit storage */
  half_results *half_results;
  om_gpu_trial halves;
};

static om_status begin_expressions(om_ctx *ctx,
                                   om_provider_session *session,
                                   om_gpu_selftest *test) {
  om_status st = OM_OK;
  OM_GO_NEW(test->list, 1);
  OM_GO_NEW(test->results, (size_t)TEST_COUNT * CASE_COUNT);
  make_cases(test->list);
  test->expressions = (om_gpu_trial){.shader = OM_SHADER_SELFTEST_EXACT,
                                     .runs = TEST_COUNT,
                                     .count = CASE_COUNT,
                                     .inputs = test->list,
                                     .input_count = 3,
                                     .results = test->results,
                                     .result_count = 1};
  OM_GO(om_gpu_trial_begin(ctx, session, &test->expressions));
done:
  return st;
}

static om_status begin_sm90(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test) {
  om_status st = OM_OK;
  OM_GO_NEW(test->sm90_results, (size_t)TEST_COUNT * CASE_COUNT);
  test->sm90 = (om_gpu_trial){.shader = OM_SHADER_SELFTEST_SM90_EXACT,
                              .runs = TEST_COUNT,
                              .count = CASE_COUNT,
                              .inputs = test->list,
                              .input_count = 3,
                              .results = test->sm90_results,
                              .result_count = 1};
  OM_GO(om_gpu_trial_begin(ctx, session, &test->sm90));
done:
  return st;
}

static om_status begin_halves(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test) {
  om_status st = OM_OK;
  OM_GO_NEW(test->half_list, 1);
  OM_GO_NEW(test->half_results, 1);
  make_half_cases(test->half_list);
  test->halves = (om_gpu_trial){.shader = OM_SHADER_SELFTEST_HALF_EXACT,
                                .runs = 1,
                                .count = HALF_CASES,
                                .inputs = test->half_list,
                                .input_count = 2,
                                .results = test->half_results,
                                .result_count = 2};
  OM_GO(om_gpu_trial_begin(ctx, session, &test->halves));
done:
  return st;
}

static void end(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test) {
  om_gpu_settle(ctx, session);
  om_gpu_trial_end(ctx, session, &test->expressions);
  om_gpu_trial_end(ctx, session, &test->sm90);
  om_gpu_trial_end(ctx, session, &test->halves);
  om_delete(ctx, test->list);
  om_delete(ctx, test->results);
  om_delete(ctx, test->sm90_results);
  om_delete(ctx, test->half_list);
  om_delete(ctx, test->half_results);
  om_delete(ctx, test);
}

om_status om_gpu_selftest_begin(om_ctx *ctx,
                                om_provider_session *session,
                                om_gpu_selftest **out_test) {
  om_status st = OM_OK;
  om_gpu_selftest *test = NULL;
  *out_test = NULL;
  session->failed_primitives = 0;
  list_failures(session);
  if (session->hal == &om_hal_null) return OM_OK; /* computes nothing, so nothing wrong */
  OM_GO_NEW(test, 1);
  OM_GO(begin_expressions(ctx, session, test));
  if (session->features.sm90) OM_GO(begin_sm90(ctx, session, test));
  if (session->features.storage_16bit) OM_GO(begin_halves(ctx, session, test));
  *out_test = test;
  test = NULL; /* the caller owns it now */
done:
  if (st != OM_OK) om_error_prefix(ctx, "The exact self-test: ");
  if (test) end(ctx, session, test);
  return st;
}

static om_status finish(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test) {
  OM_TRY(session->hal->wait(ctx, session->device, session->submitted));
  session->waited = session->submitted;
  OM_TRY(om_gpu_trial_read(ctx, session, &test->expressions));
  judge(session, test->list, test->results);
  if (test->half_list) {
    OM_TRY(om_gpu_trial_read(ctx, session, &test->halves));
    if (!are_halves_right(test->half_list, test->half_results)) {
      session->failed_primitives |= OM_PRIMITIVE_FLOAT16;
    }
  }
  if (test->sm90_results) {
    OM_TRY(om_gpu_trial_read(ctx, session, &test->sm90));
    judge_sm90(session, test->list, test->sm90_results);
  }
  list_failures(session);
  return OM_OK;
}

om_status om_gpu_selftest_finish(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test) {
  if (!test) return OM_OK;
  om_status st = finish(ctx, session, test);
  if (st != OM_OK) om_error_prefix(ctx, "The exact self-test: ");
  end(ctx, session, test);
  return st;
}

om_status om_gpu_selftest_run(om_ctx *ctx, om_provider_session *session) {
  om_gpu_selftest *test = NULL;
  OM_TRY(om_gpu_selftest_begin(ctx, session, &test));
  return om_gpu_selftest_finish(ctx, session, test);
}
