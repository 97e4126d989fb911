/* Elementwise computation over broadcast operands: an engine that hands rows to kernels, and the
 * kernels of ops/elementwise.def.
 *
 * A kernel sees dense arrays of its own type. The engine repeats operands that stay where they
 * are, and turns float16 and bfloat16 into float32 and back, in blocks on the stack.
 */
#ifndef OM_ELEMENTWISE_H
#define OM_ELEMENTWISE_H

#include "cpu/exact/om_broadcast.h"

/* The numbers of elementwise.def by operator: OM_ELEMENTWISE_Relu, ... */
enum {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  OM_ELEMENTWISE_##type = number,
#define OM_BINARY(number, type, name, opset, expression) OM_ELEMENTWISE_##type = number,
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
};

/* out[i] = f(in[0][i], in[1][i], ...) for i < count; arg is the job's. */
typedef void (*om_elementwise_fn)(const void *const *in, void *out, size_t count, const void *arg);

typedef struct om_elementwise_job {
  om_elementwise_fn fn;
  const void *arg; /* for float kernels: two scalars of their type */
  const om_tensor *operands[OM_BROADCAST_OPERANDS];
  uint32_t operand_count;
  om_tensor *result;
} om_elementwise_job;

/* Computes the result on the context's threads. Where an operand or the result is float16 or
 * bfloat16 the kernel is a float32 one. */
void om_elementwise_run(om_ctx *ctx, const om_elementwise_job *job);

/* The kernel of an operation of elementwise.def (its number); NULL: there is none for the type.
 * float16 and bfloat16 have float32's. */
om_elementwise_fn om_elementwise_kernel(uint8_t number, om_dtype dtype);

/* The same for integers: Add Sub Mul Div Neg Abs Sign Relu Clip Shrink Erf PRelu Min Max. Sums and
 * products wrap, quotients truncate; a divisor must not be 0. */
om_elementwise_fn om_elementwise_int_kernel(uint8_t number, om_dtype dtype);

/* The number of scalars that the operation has. */
uint32_t om_elementwise_scalar_count(uint8_t number);

/* Converts between float32 and float16 or bfloat16. */
void om_half_to_f32(om_dtype dtype, const uint16_t *in, size_t count, float *out);
void om_half_from_f32(om_dtype dtype, const float *in, size_t count, uint16_t *out);

#endif
