/* Elements of lists of extents, as Reshapes are given them: what the graph tells of a number before
 * shapes are known. */
#ifndef OM_LIST_ELEMENT_H
#define OM_LIST_ELEMENT_H

#include <string.h>

#include "rewrite/om_rewrite_facts.h"

/* Element `index` of constant int64 data, which may lie unaligned in the model's file. */
static inline int64_t om_list_int(const om_tensor *tensor, size_t index) {
  int64_t number;
  memcpy(&number, (const char *)tensor->data + index * sizeof number, sizeof number);
  return number;
}

typedef struct om_list_element {
  om_value_id value; /* a scalar that makes it, or OM_NO_VALUE: */
  int64_t number;
} om_list_element;

/* Element `index` of a list that om_value_list_count counted; false for those of a part that is
 * neither constant nor a scalar. */
bool om_list_element_at(const om_rewriter *rw,
                        const om_value_fact *facts,
                        om_value_id list,
                        size_t index,
                        om_list_element *out);

/* The tensor and the axis of which `value` is the extent: Gather(Shape(x), axis), maybe cast. */
bool om_extent_of(const om_rewriter *rw,
                  om_value_id value,
                  om_value_id *out_tensor,
                  int64_t *out_axis);

/* True if both are the same number: one value, or the same extent of one tensor. */
bool om_list_elements_are_same(const om_rewriter *rw,
                               const om_list_element *a,
                               const om_list_element *b);

#endif
