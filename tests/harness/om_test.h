/* Table-driven operator tests: a test program is a table of cases and a reference.
 *
 *     static void reference(const om_node *node, const om_ref_tensor *inputs, size_t input_count,
 *                           om_ref_tensor *outputs, size_t output_count) {
 *       for (size_t i = 0; i < outputs[0].elems; ++i)
 *         outputs[0].values[i] = om_ref_broadcast(&inputs[0], &outputs[0], i) +
 *                                om_ref_broadcast(&inputs[1], &outputs[0], i);
 *     }
 *     static const om_op_case cases[] = {
 *         {.name = "rows", .inputs = {"f32 4x7", "f32 7 const"}},
 *         {.name = "edges", .inputs = {"f32 100 edges", "f32 100 edges"}, .bit_exact = true},
 *         {.name = "wrong", .inputs = {"f32 2", "f32 3"}, .error = "do not broadcast"},
 *         {.name = "double", .inputs = {"f64 4", "f64 4"}, .declined = "float64"},
 *     };
 *     OM_OP_TEST("Add", cases, reference)
 *
 * Each case becomes a one-node model, which runs on every backend:
 *
 *   direct   the operator's entry alone: resolve, infer, run; guards around results and scratch
 *   cpu      a session without a provider, exact and fast, 1 and 3 threads
 *   null     the device package on the null backend: plans and recordings are checked, and the
 *            kernel that the case names for NVIDIA Hopper
 *   vulkan   a Vulkan device ($OM_TEST_DEVICE, else the first): exact (the CPU's bits) and fast
 *   alone    the same, fast, with the kernels that share nothing, which a software device takes
 *            outside of tests; cases of operators that have such kernels
 *   wide     the same as if it had no 16-bit storage; cases with float16 inputs alone
 *   webgpu   in a browser's build (tests/web): fast; webgpu_shared: with a real device's kernels;
 *            webgpu_exact: the CPU's bits, wherever the adapter's self-test puts the operator
 *
 * Every run is done twice, into the session's memory and into the caller's with guard words
 * around it, and must give the same bits. On a device the operator must be accepted (require_gpu)
 * unless the case says why it is not. A log line of level OM_LOG_ERROR, or any
 * message of Vulkan's validation layer, fails the case.
 *
 * Output is TAP, a line for each case and backend, then "N passed, N failed, N skipped". Exit code
 * 0, 1 (failures) or 77 (nothing ran). Options: --op NAME, --case PART, --backend LIST
 * ("direct,cpu"; also $OM_TEST_BACKENDS), --seed N (also $OM_TEST_SEED), --each N (every Nth case).
 *
 * Inputs are texts: TYPE SHAPE [const] [FILL]
 *
 *   TYPE   f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 b8 str i4 u4 (those with "=");
 *          "-" alone: an absent input
 *   SHAPE  2x3x4, or "scalar"
 *   const  an initializer; else an input of the model
 *   FILL   (none)           random in [-2, 2), integers in [-8, 8), unsigned [0, 8)
 *          range LOW HIGH   random in [LOW, HIGH)
 *          edges            zeros, ties, large and small values, infinities, NaN, in turn
 *          ramp             0 1 2 3 ...
 *          = V V ...        these, from the start again when there are more elements (strings
 *                           are words)
 *
 * Attributes are a text too: axis=-1 pads=1,1 axes=[0] alpha=0.2f mode="linear" keys="a","b"
 * value={f32 1 = 2.5}. A number with a point, an exponent or an f is a float; a comma or
 * brackets make a list ("[]" is an empty list of integers).
 */
#ifndef OM_TEST_H
#define OM_TEST_H

#include "graph/om_graph.h"
#include "harness/om_test_compare.h"

enum { OM_CASE_INPUTS = 10, OM_CASE_OUTPUTS = 8 };

typedef struct om_op_case {
  const char *name;
  int32_t opset;                         /* 0: 21 */
  const char *inputs[OM_CASE_INPUTS];    /* texts; the first NULL ends the list */
  const char *attrs;                     /* NULL: none */
  uint32_t output_count;                 /* 0: 1 */
  const char *graph;                     /* NULL: the operator alone. Else nodes separated by ';':
                                            "t = Conv(x0, x1) pads=1,1,1,1; y0 = Relu(t)" with
                                            inputs x0 x1 ..., outputs y0 y1 ..., "" absent ones */
  const char *shapes[OM_CASE_OUTPUTS];   /* expected shapes, as in inputs; NULL: not checked */
  const char *expected[OM_CASE_OUTPUTS]; /* expected values as after "="; NULL: the reference's */
  double scaled_error;                   /* limit of max|a-b| / max|b|. 0: 1e-6 for float32, 1e-12
                                            float64, 1e-3 float16, 8e-3 bfloat16. Fast mode: at
                                            least 1e-5. Integers and bools must always be equal. */
  double elem_error;                     /* above 0: limit of |a-b| / |b| of each element instead */
  double drift;    /* above 0: limit of |sum (a-b) b / sum b b| in both modes: no common factor */
  bool bit_exact;  /* in exact mode the result is the reference rounded once */
  bool exact_only; /* fast mode runs, but its values are not compared */
  const char *declined;       /* part of the reason why the device does not take it */
  const char *declined_exact; /* the same where it is so in exact mode only */
  const char *error;          /* part of the message of the expected failure */
  const char *hopper_kernel;  /* the kernel that fast mode takes on Hopper; NULL: any */
} om_op_case;

typedef struct om_ref_tensor {
  om_dtype dtype;
  uint32_t rank;
  int64_t dims[OM_MAX_RANK];
  size_t elems;
  double *values; /* NULL: the input is absent, nothing asks for the output */
} om_ref_tensor;

/* Fills outputs[].values, whose shapes are those of the run. node has the attributes (om_ref_int
 * and its kin read them) and the opset; it is the last node of a graph of several. */
typedef void (*om_op_reference)(const om_node *node,
                                const om_ref_tensor *inputs,
                                size_t input_count,
                                om_ref_tensor *outputs,
                                size_t output_count);

typedef struct om_op_suite {
  const char *op_type;
  const om_op_case *cases;
  size_t case_count;
  om_op_reference reference; /* NULL: cases have `expected`, or only backends are
                                compared with each other */
  const char *declined;      /* of every case without its own; NULL: none */
  const char *domain;        /* NULL: ai.onnx */
  bool is_composed;          /* the entry stands for others and cannot run alone: no `direct` */
} om_op_suite;

int om_op_test_main(int argc, char **argv, const om_op_suite *suites, size_t suite_count);

#define OM_OP_SUITE(type, table, function)           \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = (function)}

/* The program for an array of om_op_suite. */
#define OM_OP_TESTS(suites)                                                             \
  int main(int argc, char **argv) {                                                     \
    return om_op_test_main(argc, argv, (suites), sizeof(suites) / sizeof((suites)[0])); \
  }

/* The program for one operator. */
#define OM_OP_TEST(type, table, function)                                              \
  static const om_op_suite om_op_test_suites[] = {OM_OP_SUITE(type, table, function)}; \
  OM_OP_TESTS(om_op_test_suites)

/* ---- For references ---- */

int64_t om_ref_int(const om_node *node, const char *name, int64_t fallback);
double om_ref_float(const om_node *node, const char *name, double fallback);
/* True if the attribute (or the fallback, where it is absent) is this text. */
bool om_ref_text_is(const om_node *node, const char *name, const char *fallback, const char *text);
/* Element `index` of a list; the fallback where the list is absent or shorter. */
int64_t om_ref_ints(const om_node *node, const char *name, size_t index, int64_t fallback);
size_t om_ref_ints_count(const om_node *node, const char *name);

/* Multi-index of element `elem`, and back; strides in elements. */
void om_ref_unravel(const om_ref_tensor *tensor, size_t elem, int64_t index[OM_MAX_RANK]);
size_t om_ref_ravel(const om_ref_tensor *tensor, const int64_t index[OM_MAX_RANK]);

/* The value of `input`, broadcast to the shape of `output`, at the output's element `elem`. */
double om_ref_broadcast(const om_ref_tensor *input, const om_ref_tensor *output, size_t elem);

/* An axis attribute counted from the end where it is negative. */
uint32_t om_ref_axis(int64_t axis, uint32_t rank);

#endif
