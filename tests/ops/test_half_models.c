/* Small models of float16, whole on the device: an encoder's layer. Exact mode gives the CPU's
 * bits, which come of operators apart. */
#include "harness/om_test.h"

#define ENCODER                                                                            \
  "q = MatMul(x0, x1); a = Reshape(q, x6); h = Transpose(a) perm=0,2,1,3; "                \
  "t = Transpose(a) perm=0,2,3,1; s = MatMul(h, t); p = Softmax(s); c = MatMul(p, h); "    \
  "ct = Transpose(c) perm=0,2,1,3; m = Reshape(ct, x7); r = Add(m, x0); "                  \
  "n = LayerNormalization(r, x4, x5); f = MatMul(n, x2); g = Gelu(f); o = MatMul(g, x3); " \
  "e = Add(o, n); y0 = LayerNormalization(e, x4, x5)"

static const om_op_case encoder_cases[] = {
    {.name = "layer",
     .inputs = {"f16 2x9x64",
                "f16 64x64 const range -0.3 0.3",
                "f16 64x256 const range -0.3 0.3",
                "f16 256x64 const range -0.3 0.3",
                "f16 64 const range 0.5 1.5",
                "f16 64 const",
                "i64 4 const = 2 9 4 16",
                "i64 3 const = 2 9 64"},
     .graph = ENCODER},
    {.name = "odd",
     .inputs = {"f16 1x7x21",
                "f16 21x21 const range -0.5 0.5",
                "f16 21x45 const range -0.5 0.5",
                "f16 45x21 const range -0.5 0.5",
                "f16 21 const range 0.5 1.5",
                "f16 21 const",
                "i64 4 const = 1 7 3 7",
                "i64 3 const = 1 7 21"},
     .graph = ENCODER},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Encoder", encoder_cases, NULL),
};

OM_OP_TESTS(suites)
