/* GPU operators: the table's entries, and the bindings they make.
 *
 * A binding is data. bind() answers for one step of a plan with a reason or with a list of
 * dispatches: kernel, constants, parameters, operands, workgroups. Nothing of it names memory
 * yet: operands are values of the plan, prepared constants, or scratch. The program gives them
 * places (om_gpu_program.c), fuses elementwise steps into the dispatch before them
 * (om_gpu_fuse.c), and encodes; encoding allocates nothing and needs no code per operator.
 *
 * Chains. Most kernels can apply a short chain of elementwise operations to each element before
 * they store it; the elementwise kernel is nothing but a chain. An item of a chain is an operation
 * of ops/elementwise.def with where its second operand comes from. Fusing is moving items from
 * one dispatch to the one before. The operations round on their own, so fused and unfused give
 * the same bits.
 *
 * float16 is what memory holds; kernels load it as float32, compute, and round once as they store.
 * A chain's operands are of the kernel's type. Fusion marks the items at which an operator began
 * (is_rounded): exact mode rounds there, too.
 */
#ifndef OM_GPU_OP_H
#define OM_GPU_OP_H

#include <string.h>

#include "base/om_float16.h"
#include "gpu/hal/om_hal.h"
#include "graph/om_op.h"
#include "om_shaders.h" /* generated: om_shader, OM_SHADER_<NAME>, om_shader_get() */
#include "onemodel/provider.h"

enum {
  OM_CHAIN_MAX_ITEMS = 8,
  OM_CHAIN_MAX_SCALARS = 8,
  OM_CHAIN_MAX_OPERANDS = 2, /* buffers beside the kernel's own */
  OM_CHAIN_MAX_RUNS = 3,     /* of an item: dimensions of a result that an operand has, apart */
};

typedef enum om_chain_source { /* of an item's second operand; the numbers are the shaders' */
                               OM_CHAIN_NONE = 0,   /* the operation has one operand */
                               OM_CHAIN_SCALAR = 1, /* a scalar of the chain */
                               OM_CHAIN_VECTOR = 2, /* operand[(element / inner) mod channels] */
                               OM_CHAIN_TENSOR = 3, /* operand[element]: the result's own shape */
                               OM_CHAIN_SAVED = 4,  /* the value that SAVE kept */
                               OM_CHAIN_BROADCAST = 5, /* operand by the masks in the elementwise
                                                          kernel, its first item only */
                               OM_CHAIN_REPEAT = 6,    /* operand by the item's own runs */
} om_chain_source;

/* Operations of a chain, spelled as elementwise.def spells them: OM_CHAIN_Add, OM_CHAIN_Relu. */
typedef enum om_chain_op {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) OM_CHAIN_##type = number,
#define OM_BINARY(number, type, name, opset, expression)              OM_CHAIN_##type = number,
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
  OM_CHAIN_SAVE = 250,       /* keeps the value for a later SAVED operand */
  OM_CHAIN_ADD_SCALED = 251, /* x + y * scalar, of an operand in a buffer */
  OM_CHAIN_ROUND_HALF = 252, /* to the nearest float16 (om_gpu_widen.c) */
} om_chain_op;

typedef struct om_chain_item {
  uint8_t op;      /* om_chain_op: a number of elementwise.def, or OM_CHAIN_SAVE */
  uint8_t source;  /* om_chain_source */
  uint8_t operand; /* 0 or 1, for VECTOR, TENSOR, BROADCAST and REPEAT */
  uint8_t runs;    /* of REPEAT: 1 to OM_CHAIN_MAX_RUNS */
  bool is_swapped; /* the chain's value is the second operand: c - x */
  bool is_rounded; /* of float16: the value before it was an operator's result */
} om_chain_item;

/* Scalars that the item takes: a SCALAR operand, an operation's p and q, or two of each run. */
uint32_t om_chain_item_scalars(const om_chain_item *item);

typedef enum om_gpu_operand_kind {
  OM_GPU_NOTHING = 0, /* an unused binding: the program binds a few zeros */
  OM_GPU_VALUE,       /* index: of view->values */
  OM_GPU_CONSTANT,    /* index: of the plan's constants */
  OM_GPU_SCRATCH,     /* index: of the step's scratch blocks */
  OM_GPU_WIDE,        /* index: of view->values; its float32 beside its float16, or in place of it
                         (om_gpu_fuse_norm.c) */
} om_gpu_operand_kind;

typedef struct om_gpu_operand {
  om_gpu_operand_kind kind;
  uint32_t index;
  uint64_t offset_bytes; /* inside it; a multiple of 256 */
  uint64_t bytes;        /* 0: all of it */
} om_gpu_operand;

typedef struct om_gpu_chain {
  om_chain_item items[OM_CHAIN_MAX_ITEMS];
  uint32_t item_count;
  float scalars[OM_CHAIN_MAX_SCALARS]; /* each item takes as many as its operation has, in order */
  uint32_t scalar_count;
  om_gpu_operand operands[OM_CHAIN_MAX_OPERANDS];
  uint32_t operand_count;
  uint32_t inner, channels; /* of VECTOR operands; one pair for the chain */
  bool is_pair_fixed;       /* they hold for every VECTOR to come: the kernel knows its channel */
} om_gpu_chain;

/* A normalisation's last constant: where its residual comes from, and what it stores as float32
 * (shaders/common/residual.glsl). */
typedef enum om_gpu_residual {
  OM_GPU_RESIDUAL_SAME = 1,   /* of the input's type */
  OM_GPU_RESIDUAL_FLOATS = 2, /* float32 */
  OM_GPU_RESIDUAL_STORES_SUM = 4,
  OM_GPU_RESIDUAL_STORES_RESULT = 8,
} om_gpu_residual;

typedef struct om_gpu_dispatch {
  om_shader shader;
  uint32_t constants[OM_HAL_MAX_CONSTANTS]; /* the kernel's own; the chain's follow them */
  uint32_t constant_count;
  om_gpu_operand operands[OM_HAL_MAX_BINDINGS]; /* by binding; the chain's two follow them */
  uint32_t operand_count;
  uint8_t params[OM_HAL_MAX_PARAMS_BYTES]; /* the kernel's own block; the chain's follows it */
  uint32_t params_bytes;
  uint32_t groups[3];
  bool has_chain; /* the kernel takes one (it may be empty) */
  om_gpu_chain chain;
  uint32_t chain_value; /* the value whose elements the chain makes, in dense order */
  bool takes_residual;  /* operand 3, now NOTHING, may become a tensor that is added to operand 0
                           first; the kernel's last constant is OM_GPU_RESIDUAL_SAME then */
  bool takes_wide;      /* that constant and operand 5 may also be om_gpu_fuse_norm.c's */
  uint64_t flops;       /* an estimate, for cutting submissions */
} om_gpu_dispatch;

/* What bind sees, and what it calls to answer. Failures other than refusals stick in `status`. */
typedef struct om_gpu_binder om_gpu_binder;

om_mode om_gpu_binder_mode(const om_gpu_binder *b);
const om_hal_limits *om_gpu_binder_limits(const om_gpu_binder *b);
const om_hal_features *om_gpu_binder_features(const om_gpu_binder *b);
const om_node *om_gpu_binder_node(const om_gpu_binder *b);
/* Whether kernels for NVIDIA Hopper serve this mode: the device has them, the session is in it. */
bool om_gpu_takes_sm90(const om_gpu_binder *b, om_mode mode);
/* Whether fast kernels whose invocations share nothing serve this device best (*_alone.comp). */
bool om_gpu_works_alone(const om_gpu_binder *b);

/* The step's operands: types and shapes, and data where it is known. NULL: absent or unused. Data
 * of more than a few elements may be stored, and then be a name alone: om_gpu_data reads them. */
const om_tensor *om_gpu_input(const om_gpu_binder *b, uint32_t index);
const om_tensor *om_gpu_output(const om_gpu_binder *b, uint32_t index);
/* An input's data in memory, until the plan's end; NULL: not known, absent, or a failure. */
const void *om_gpu_data(om_gpu_binder *b, uint32_t input);
/* Whether data that are known are in memory as they are; only a large constant may not be. */
bool om_gpu_is_at_hand(const om_gpu_binder *b, uint32_t index);

/* Operands. A constant input is uploaded as it is, once per session for weights. */
om_gpu_operand om_gpu_read(om_gpu_binder *b, uint32_t input);
/* A part of a constant input, in bytes; offset and bytes are multiples of 4. */
om_gpu_operand om_gpu_read_part(om_gpu_binder *b, uint32_t input, uint64_t offset, uint64_t bytes);
om_gpu_operand om_gpu_write(om_gpu_binder *b, uint32_t output);
om_gpu_operand om_gpu_scratch(om_gpu_binder *b, uint64_t bytes);

/* A constant made on the host: `bytes` zeroed bytes filled by fill(ctx, arg, input's data, target),
 * which may use ctx's threads and cannot fail. Found again by (input's data, recipe, bytes) if the
 * input is a weight; recipe names what fill does (static; compared as text). input UINT32_MAX: no
 * source, always made. `arg` must not point to a tensor's data: stored ones are there for fill
 * alone. */
typedef void (*om_gpu_fill)(om_ctx *ctx, const void *arg, const void *source, void *target);

/* Element `index` of constant float32 data, which may lie unaligned in the model's file. */
static inline float om_gpu_float_at(const void *data, size_t index) {
  float value;
  memcpy(&value, (const char *)data + index * sizeof value, sizeof value);
  return value;
}

/* The same for float32 and float16 (OM_DT_REAL). */
static inline float om_gpu_real_at(om_dtype dtype, const void *data, size_t index) {
  uint16_t half;
  if (dtype != OM_DTYPE_F16) return om_gpu_float_at(data, index);
  memcpy(&half, (const char *)data + index * sizeof half, sizeof half);
  return om_f16_to_f32(half);
}

om_gpu_operand om_gpu_made_constant(om_gpu_binder *b,
                                    uint32_t input,
                                    const char *recipe,
                                    uint64_t bytes,
                                    om_gpu_fill fill,
                                    const void *arg);

/* The same for a recipe that does not tell all that fill does: always made, for the plan. */
om_gpu_operand om_gpu_made_once(om_gpu_binder *b,
                                uint32_t input,
                                const char *recipe,
                                uint64_t bytes,
                                om_gpu_fill fill,
                                const void *arg);

typedef struct om_gpu_part { /* of a constant input */
  uint32_t input;
  uint64_t offset, bytes; /* bytes 0: to its end */
} om_gpu_part;

/* The same from a part of a constant input; each offset has its own. */
om_gpu_operand om_gpu_made_part(om_gpu_binder *b,
                                const om_gpu_part *part,
                                const char *recipe,
                                uint64_t bytes,
                                om_gpu_fill fill,
                                const void *arg);

/* Demands that the values of an integer input (int32, int64) are indices: value i lies in
 * -extents[i mod extent_count] .. extents[...] - 1; or that none of them is 0. A reason, where they
 * are known and break it. Else whoever has the values checks them at each run: the host before the
 * upload, or the device, by a dispatch that this appends. A run that breaks a demand fails with
 * the CPU's error. Call it behind the step's other dispatches: they need not wait for it. */
const char *om_gpu_demand_indices(om_gpu_binder *b,
                                  uint32_t input,
                                  const int64_t *extents,
                                  uint32_t extent_count);
const char *om_gpu_demand_divisor(om_gpu_binder *b, uint32_t input);

/* Types that kernels compute with as float32. */
#define OM_DT_REAL (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16))

/* A kernel's forms: NAME, NAME_EXACT, NAME_HALF, NAME_HALF_EXACT. */
typedef struct om_gpu_forms {
  om_shader by_half_and_exact[2][2];
} om_gpu_forms;
#define OM_GPU_FORMS(NAME)                                     \
  {                                                            \
    {                                                          \
      {OM_SHADER_##NAME, OM_SHADER_##NAME##_EXACT}, {          \
        OM_SHADER_##NAME##_HALF, OM_SHADER_##NAME##_HALF_EXACT \
      }                                                        \
    }                                                          \
  }

/* The form for elements of this type (OM_DT_REAL) in the session's mode. Whether the device has
 * 16-bit storage is asked once for all binders, behind them. */
om_shader om_gpu_form(const om_gpu_binder *b, const om_gpu_forms *forms, om_dtype dtype);
#define OM_GPU_KERNEL(b, NAME, dtype) \
  om_gpu_form((b), &(const om_gpu_forms)OM_GPU_FORMS(NAME), (dtype))

/* True if the dispatch's chain is one of float16: its operands are. */
static inline bool om_gpu_chain_is_half(const om_gpu_dispatch *dispatch) {
  return (om_shader_get(dispatch->shader)->half_mask >> dispatch->operand_count & 1) != 0;
}

/* For an operator that rounds float16 before its result: a reason, where the input is float16,
 * exact mode wants that and the device has float32 in its place; else NULL. */
const char *om_gpu_rounds_inside(const om_gpu_binder *b, uint32_t input);

/* Appends a zeroed dispatch of this kernel; its pointer holds until the next call. NULL on no
 * memory (sticks in status): bind returns om_gpu_no_memory then. */
om_gpu_dispatch *om_gpu_add_dispatch(om_gpu_binder *b, om_shader shader);

/* The step records nothing: its output 0 is the memory of its input 0. */
void om_gpu_make_view(om_gpu_binder *b);

/* The step is one item of a chain on `input`: appends an elementwise dispatch of that one item,
 * which fusion may later move. Takes care of broadcasting and constants. `other` is the second
 * operand's input index, UINT32_MAX: none. Returns a reason or NULL. */
const char *om_gpu_bind_elementwise(om_gpu_binder *b,
                                    uint8_t op,
                                    uint32_t input,
                                    uint32_t other,
                                    const float *scalars,
                                    uint32_t scalar_count);

/* Appends an elementwise dispatch from `input` to output 0, of as many elements, with an empty
 * chain to fill (om_gpu_chain_add); NULL as above. The kernel is chosen later. */
om_gpu_dispatch *om_gpu_add_elementwise(om_gpu_binder *b, uint32_t input);

/* Appends an item to a chain, with its operand where it takes one (VECTOR, TENSOR) and
 * its scalars. Whoever adds a VECTOR sets
 * inner and channels first. False: the chain is full, and nothing has changed. */
bool om_gpu_chain_add(om_gpu_chain *chain,
                      om_chain_item item,
                      const om_gpu_operand *operand,
                      const float *scalars,
                      uint32_t scalar_count);

/* A reason with values in it; lives as long as the plan. */
const char *om_gpu_reason(om_gpu_binder *b, const char *fmt, ...) OM_PRINTF(2, 3);
extern const char om_gpu_no_memory[];

/* Pieces of at most `size` that `count` make. */
static inline uint64_t om_gpu_pieces(uint64_t count, uint64_t size) {
  return (count + size - 1) / size;
}

/* Splits `count` workgroups over three dimensions within the limits: the kernel's index is
 * x + groups.x * (y + groups.y * z), guarded by its own count. */
void om_gpu_spread_groups(const om_gpu_binder *b, uint64_t count, uint32_t out_groups[3]);

/* The primitives that exact kernels rest on; a bit each. The self-test finds which hold. */
typedef enum om_primitive {
  OM_PRIMITIVE_ARITHMETIC = 1 << 0, /* + - * each rounded on its own, also under a*b+c; min, max */
  OM_PRIMITIVE_DIVIDE = 1 << 1,     /* natively or corrected */
  OM_PRIMITIVE_SQRT = 1 << 2,       /* natively or corrected */
  OM_PRIMITIVE_FUNCTIONS = 1 << 3,  /* exp, log, tanh, erf, sigmoid, sin, cos, pow */
  OM_PRIMITIVE_ROUND = 1 << 4,      /* floor, ceil, round to even, float to integer */
  OM_PRIMITIVE_FLOAT16 = 1 << 5,    /* conversions, and loads and stores of 16-bit storage */
  OM_PRIMITIVE_SM90 = 1 << 6, /* all but float16's, in kernels for Hopper: no operator's, there
                                 are others */
} om_primitive;

typedef struct om_gpu_op {
  const char *domain;
  const char *type;
  om_dtype_set dtypes; /* of input 0 */
  bool has_exact;
  uint32_t primitives; /* what its exact kernel rests on; bits of om_primitive */
  uint32_t splits; /* bit i: a constant input i may be larger than a binding: bind reads parts */
  const char *(*check)(const om_node *node); /* attributes only: NULL or a static reason */
  const char *(*bind)(om_gpu_binder *b);     /* NULL, and the dispatches stand; or a reason */
} om_gpu_op;

/* The entry for an operator, or NULL. Opsets are the core's business: params are the same. */
const om_gpu_op *om_gpu_op_find(const char *domain, const char *type);
const om_gpu_op *om_gpu_op_get(size_t index);

#endif
