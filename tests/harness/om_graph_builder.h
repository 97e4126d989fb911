/* Small models made in memory, for the tests of sessions and rewrites.
 *
 *     om_graph_builder b;
 *     om_build_begin(&b, 17);
 *     om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, 4}, symbols);
 *     om_value_id y = om_build_node(&b, "Relu", "y", 1, (om_value_id[]){x});
 *     om_build_output(&b, y);
 *     om_model *model = om_build_model(&b);
 *
 * Names and data must outlive the model. Failures fail the running cmocka test.
 */
#ifndef OM_GRAPH_BUILDER_H
#define OM_GRAPH_BUILDER_H

#include "graph/om_graph.h"

enum { OM_BUILD_MAX_VALUES = 16 };

typedef struct om_graph_builder {
  om_error error;
  om_allocator allocator; /* of the model */
  om_graph graph;
  om_value_id inputs[OM_BUILD_MAX_VALUES];
  size_t input_count;
  om_value_id outputs[OM_BUILD_MAX_VALUES];
  size_t output_count;
  om_opset opset;
  om_node_id last_node;
} om_graph_builder;

void om_build_begin(om_graph_builder *b, int64_t opset);

/* dims: -1 is a dimension known at run time, named by symbols[i] (symbols may be NULL). */
om_value_id om_build_input(om_graph_builder *b,
                           const char *name,
                           om_dtype dtype,
                           uint32_t rank,
                           const int64_t *dims,
                           const char *const *symbols);
om_value_id om_build_constant(om_graph_builder *b,
                              const char *name,
                              om_dtype dtype,
                              uint32_t rank,
                              const int64_t *dims,
                              const void *data);

/* A node of one output; the node and its output are called `name`. */
om_value_id om_build_node(om_graph_builder *b,
                          const char *type,
                          const char *name,
                          uint32_t input_count,
                          const om_value_id *inputs);

/* Adds an attribute to the last node. */
void om_build_int(om_graph_builder *b, const char *name, int64_t value);
void om_build_float(om_graph_builder *b, const char *name, float value);
void om_build_ints(om_graph_builder *b, const char *name, size_t count, const int64_t *values);

void om_build_output(om_graph_builder *b, om_value_id value);

/* The graph without a model; the caller deinits it with the default allocator. */
om_graph om_build_graph(om_graph_builder *b);

struct om_model *om_build_model(om_graph_builder *b);

#endif
