#include "rewrite/om_list_element.h"

enum { MOST_CASTS = 8 };

bool om_list_element_at(const om_rewriter *rw,
                        const om_value_fact *facts,
                        om_value_id list,
                        size_t index,
                        om_list_element *out) {
  const om_tensor *constant = om_rewriter_constant(rw, list);
  const om_node *concat = om_rewriter_made_by(rw, list, "Concat");
  for (uint32_t i = 0; concat && i < concat->input_count; ++i) {
    const om_node *scalar = om_rewriter_made_by(rw, concat->inputs[i], "Unsqueeze");
    const size_t count = scalar ? 1 : om_value_list_count(rw, facts, concat->inputs[i]);
    if (count == OM_RANK_UNKNOWN) return false;
    if (index >= count) {
      index -= count;
      continue;
    }
    if (scalar) *out = (om_list_element){.value = scalar->inputs[0]};
    if (scalar) return true;
    constant = om_rewriter_constant(rw, concat->inputs[i]);
    break;
  }
  if (!constant || constant->dtype != OM_DTYPE_I64 || index >= om_tensor_elems(constant)) {
    return false;
  }
  *out = (om_list_element){.value = OM_NO_VALUE, .number = om_list_int(constant, index)};
  return true;
}

bool om_extent_of(const om_rewriter *rw,
                  om_value_id value,
                  om_value_id *out_tensor,
                  int64_t *out_axis) {
  const om_node *node = om_rewriter_made_by(rw, value, "Cast");
  for (uint32_t i = 0; node && i < MOST_CASTS; ++i) {
    value = node->inputs[0];
    node = om_rewriter_made_by(rw, value, "Cast");
  }
  const om_node *gather = om_rewriter_made_by(rw, value, "Gather");
  const om_node *shape = gather ? om_rewriter_made_by(rw, gather->inputs[0], "Shape") : NULL;
  const om_tensor *index = gather ? om_rewriter_constant(rw, gather->inputs[1]) : NULL;
  if (!shape || shape->attr_count != 0 || !index || index->dtype != OM_DTYPE_I64 ||
      om_tensor_elems(index) != 1) {
    return false;
  }
  *out_tensor = shape->inputs[0];
  *out_axis = om_list_int(index, 0);
  return true;
}

bool om_list_elements_are_same(const om_rewriter *rw,
                               const om_list_element *a,
                               const om_list_element *b) {
  om_value_id tensors[2];
  int64_t axes[2];
  if (a->value == OM_NO_VALUE || b->value == OM_NO_VALUE) {
    return a->value == b->value && a->number == b->number;
  }
  if (a->value == b->value) return true;
  return om_extent_of(rw, a->value, &tensors[0], &axes[0]) &&
         om_extent_of(rw, b->value, &tensors[1], &axes[1]) && tensors[0] == tensors[1] &&
         axes[0] == axes[1];
}
