/* Small models of float16, whole on the device: the shapes of an encoder's layer and of a residual
 * network. Exact mode gives the CPU's bits, which come of operators apart. */
#include "harness/om_test.h"

#define ENCODER                                                                            \
  "q = MatMul(x0, x1); a = Reshape(q, x6); h = Transpose(a) perm=0,2,1,3; "                \
  "t = Transpose(a) perm=0,2,3,1; s = MatMul(h, t); p = Softmax(s); c = MatMul(p, h); "    \
  "ct = Transpose(c) perm=0,2,1,3; m = Reshape(ct, x7); r = Add(m, x0); "                  \
  "n = LayerNormalization(r, x4, x5); f = MatMul(n, x2); g = Gelu(f); o = MatMul(g, x3); " \
  "e = Add(o, n); y0 = LayerNormalization(e, x4, x5)"

#define RESIDUAL                                                                           \
  "c = Conv(x0, x1) strides=2,2 pads=3,3,3,3; b = BatchNormalization(c, x2, x3, x4, x5); " \
  "r = Relu(b); p = MaxPool(r) kernel_shape=3,3 strides=2,2 pads=1,1,1,1; "                \
  "d = Conv(p, x6) pads=1,1,1,1; e = Add(d, p); f = Relu(e); g = GlobalAveragePool(f); "   \
  "h = Flatten(g); y0 = Gemm(h, x7)"

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

static const om_op_case residual_cases[] = {
    {.name = "net",
     .inputs = {"f16 1x3x32x32",
                "f16 8x3x7x7 const range -0.3 0.3",
                "f16 8 const range 0.5 1.5",
                "f16 8 const",
                "f16 8 const",
                "f16 8 const range 0.5 1.5",
                "f16 8x8x3x3 const range -0.3 0.3",
                "f16 8x10 const"},
     .graph = RESIDUAL},
    {.name = "net_of_run_time",
     .inputs = {"f16 2x3x35x33",
                "f16 12x3x7x7 range -0.3 0.3",
                "f16 12 range 0.5 1.5",
                "f16 12",
                "f16 12",
                "f16 12 range 0.5 1.5",
                "f16 12x12x3x3 range -0.3 0.3",
                "f16 12x5"},
     .graph = RESIDUAL},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Encoder", encoder_cases, NULL),
    OM_OP_SUITE("Residual", residual_cases, NULL),
};

OM_OP_TESTS(suites)
