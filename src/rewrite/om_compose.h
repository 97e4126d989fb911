/* Composed operators: those that stand for others (om_op.is_composed). A rewrite puts the others in
 * their place before anything else looks at the graph, for every executor; docs/exact.md says what
 * each stands for.
 *
 * A composition is a function that adds nodes one after the other. Failures stick: after the first
 * one nothing is added any more, and values are OM_NO_VALUE.
 */
#ifndef OM_COMPOSE_H
#define OM_COMPOSE_H

#include "rewrite/om_rewrite_facts.h"

enum { OM_COMPOSE_OPSET = 24 }; /* of the nodes that are added */

typedef struct om_composer {
  om_ctx *ctx;
  om_rewriter *rw;
  const om_value_fact *facts; /* of the values there were before */
  size_t fact_count;
  om_node node;        /* the one that goes; a copy */
  uint32_t node_count; /* added so far */
  om_status status;
} om_composer;

typedef struct om_composition { /* what one operator stands for */
  const char *domain;
  const char *type;
  void (*compose)(om_composer *c);
} om_composition;

/* A file's array; ends with a NULL type. */
extern const om_composition om_compositions_attention[];
extern const om_composition om_compositions_decoder[];
extern const om_composition om_compositions_encoder[];
extern const om_composition om_compositions_quantized[];

/* ---- The node that goes ---- */

/* OM_NO_VALUE where it is absent. */
om_value_id om_compose_input(const om_composer *c, uint32_t index);
bool om_compose_wants(const om_composer *c, uint32_t output);
int64_t om_compose_attr_int(om_composer *c, const char *name, int64_t fallback);
float om_compose_attr_float(om_composer *c, const char *name, float fallback);

/* What is known of a value before a run. */
om_dtype om_compose_dtype(const om_composer *c, om_value_id value);
uint32_t om_compose_rank(const om_composer *c, om_value_id value);
/* -1: not known. A negative axis counts from the end. */
int64_t om_compose_extent(const om_composer *c, om_value_id value, int axis);

/* OM_E_INVALID_MODEL with the sentence. */
void om_compose_fail(om_composer *c, const char *fmt, ...) OM_PRINTF(2, 3);
/* OM_E_UNSUPPORTED: the node is valid, but not for this build. */
void om_compose_refuse(om_composer *c, const char *fmt, ...) OM_PRINTF(2, 3);

/* `value` is what the node wrote as its output `index`. */
void om_compose_result(om_composer *c, uint32_t index, om_value_id value);

/* ---- Nodes that are added: the value that each makes ---- */

om_value_id om_compose_node(om_composer *c,
                            const char *type,
                            const om_value_id *inputs,
                            uint32_t input_count,
                            const om_attr *attrs,
                            uint32_t attr_count);
om_value_id om_compose_1(om_composer *c, const char *type, om_value_id a);
om_value_id om_compose_2(om_composer *c, const char *type, om_value_id a, om_value_id b);
om_value_id om_compose_3(
    om_composer *c, const char *type, om_value_id a, om_value_id b, om_value_id d);
om_value_id om_compose_cast(om_composer *c, om_value_id x, om_dtype to);
om_value_id om_compose_transpose(om_composer *c, om_value_id x, const int64_t *perm, uint32_t rank);
om_value_id om_compose_reshape(om_composer *c, om_value_id x, const int64_t *dims, uint32_t rank);
om_value_id om_compose_unsqueeze(om_composer *c, om_value_id x, int64_t axis);
om_value_id om_compose_concat(om_composer *c, om_value_id a, om_value_id b, int64_t axis);
/* Elements begin..end-1 along an axis. */
om_value_id om_compose_slice(
    om_composer *c, om_value_id x, int64_t axis, int64_t begin, int64_t end);
/* The extents begin..end-1 of x, a list; one of them as a scalar. */
om_value_id om_compose_shape(om_composer *c, om_value_id x, int64_t begin, int64_t end);
om_value_id om_compose_scalar_extent(om_composer *c, om_value_id x, int64_t axis);

/* ---- Constants ---- */

om_value_id om_compose_ints(om_composer *c, const int64_t *values, uint32_t count); /* a list */
om_value_id om_compose_int(om_composer *c, int64_t value);                          /* rank 0 */
/* Of rank 0, in the type of `like`; OM_NO_VALUE: float32. */
om_value_id om_compose_number(om_composer *c, float value, om_value_id like);

#endif
