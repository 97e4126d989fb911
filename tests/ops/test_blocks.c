/* Blocks of well-known vision models, of one region: backends are compared with each other, and in
 * exact mode bit by bit.
 */
#include "harness/om_test.h"

#define BOTTLENECK                                                                     \
  "a = Conv(x0, x1, x2); b = Relu(a); c = Conv(b, x3, x4) pads=1,1,1,1; d = Relu(c); " \
  "e = Conv(d, x5, x6); f = Add(e, x0); y0 = Relu(f)"

/* The expansion, depthwise, squeeze-and-excite, the projection, the shortcut. */
#define INVERTED                                                                         \
  "a = Conv(x0, x1); b = HardSwish(a); c = Conv(b, x2) group=24 pads=2,2,2,2; "          \
  "d = HardSwish(c); p = GlobalAveragePool(d); s = Conv(p, x3, x4); t = Relu(s); "       \
  "u = Conv(t, x5, x6); v = HardSigmoid(u) alpha=0.16666667f beta=0.5f; w = Mul(d, v); " \
  "z = Conv(w, x7); y0 = Add(z, x0)"

/* The head of LRASPP: a gate, a larger map, the classes of two scales together. */
#define SEGMENTATION                                                                           \
  "a = Conv(x0, x1, x2); b = Relu(a); p = GlobalAveragePool(x0); g = Conv(p, x3); "            \
  "h = Sigmoid(g); m = Mul(b, h); r = Resize(m, \"\", x4) mode=\"linear\"; l = Conv(x5, x6); " \
  "t = Conv(r, x7); y0 = Add(t, l)"

/* The head of SSDLite: boxes as rows. */
#define BOXES                                                                              \
  "a = Conv(x0, x1, x2) group=12 pads=1,1,1,1; b = Clip(a, x3, x4); c = Conv(b, x5, x6); " \
  "d = Transpose(c) perm=0,2,3,1; y0 = Reshape(d, x7)"

/* Patches of a vision transformer as rows, normalised. */
#define PATCHES                                                                         \
  "a = Conv(x0, x1, x2) strides=4,4; b = Reshape(a, x3); c = Transpose(b) perm=0,2,1; " \
  "d = Concat(x4, c) axis=1; e = Add(d, x5); y0 = LayerNormalization(e, x6, x7)"

#define CASES(type)                         \
  {.name = "bottleneck_" type,              \
   .inputs = {type " 2x24x9x10",            \
              type " 8x24x1x1 const",       \
              type " 8 const",              \
              type " 8x8x3x3 const",        \
              type " 8 const",              \
              type " 24x8x1x1 const",       \
              type " 24 const"},            \
   .graph = BOTTLENECK},                    \
      {.name = "inverted_residual_" type,   \
       .inputs = {type " 1x8x9x10",         \
                  type " 24x8x1x1 const",   \
                  type " 24x1x5x5 const",   \
                  type " 8x24x1x1 const",   \
                  type " 8 const",          \
                  type " 24x8x1x1 const",   \
                  type " 24 const",         \
                  type " 8x24x1x1 const"},  \
       .graph = INVERTED},                  \
      {.name = "segmentation_head_" type,   \
       .inputs = {type " 1x16x5x6",         \
                  type " 8x16x1x1 const",   \
                  type " 8 const",          \
                  type " 8x16x1x1 const",   \
                  "f32 4 const = 1 1 2 2",  \
                  type " 1x6x10x12",        \
                  type " 3x6x1x1 const",    \
                  type " 3x8x1x1 const"},   \
       .graph = SEGMENTATION},              \
      {.name = "box_head_" type,            \
       .inputs = {type " 2x12x7x5",         \
                  type " 12x1x3x3 const",   \
                  type " 12 const",         \
                  type " scalar const = 0", \
                  type " scalar const = 6", \
                  type " 24x12x1x1 const",  \
                  type " 24 const",         \
                  "i64 3 const = 2 -1 4"},  \
       .graph = BOXES},                     \
  {                                         \
    .name = "patches_" type,                \
    .inputs = {type " 1x3x12x16",           \
               type " 20x3x4x4 const",      \
               type " 20 const",            \
               "i64 3 const = 1 20 -1",     \
               type " 1x1x20",              \
               type " 1x13x20 const",       \
               type " 20 const",            \
               type " 20 const"},           \
    .graph = PATCHES                        \
  }

static const om_op_case cases[] = {CASES("f32"), CASES("f16")};

static const om_op_suite suites[] = {
    {.op_type = "Blocks", .cases = cases, .case_count = sizeof cases / sizeof cases[0]},
};
OM_OP_TESTS(suites)
