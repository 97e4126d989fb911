/* Finds a graph's values by name while the model is loaded: a hash table with open addressing. */
#ifndef OM_NAME_TABLE_H
#define OM_NAME_TABLE_H

#include "graph/om_graph.h"

typedef struct om_name_slot {
  uint32_t hash;
  om_value_id value; /* OM_NO_VALUE: free */
} om_name_slot;

typedef struct om_name_table {
  om_name_slot *slots; /* owned */
  size_t slot_count;   /* a power of two, at least twice the names */
  size_t name_count;
  uint64_t lookups, probes; /* so far: hostile names that all collide are refused */
} om_name_table;

/* A table for about `name_count` names; more of them make it grow. */
om_status om_name_table_init(om_ctx *ctx, size_t name_count, om_name_table *out_table);
void om_name_table_deinit(om_ctx *ctx, om_name_table *table);

/* The value of that name, or OM_NO_VALUE. */
om_status om_name_table_find(
    om_ctx *ctx, om_name_table *table, const om_graph *graph, om_string name, om_value_id *out_id);

/* Adds a value whose name is not in the table. */
om_status om_name_table_add(om_ctx *ctx,
                            om_name_table *table,
                            const om_graph *graph,
                            om_value_id id);

#endif
