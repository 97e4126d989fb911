/* Helpers for references: attributes and indices. A wrong attribute kind reads as the fallback;
 * the operator under test is what reports it. */
#include "harness/om_test.h"

int64_t om_ref_int(const om_node *node, const char *name, int64_t fallback) {
  const om_attr *attr = om_node_attr(node, name);
  return attr && attr->kind == OM_ATTR_INT ? attr->i : fallback;
}

double om_ref_float(const om_node *node, const char *name, double fallback) {
  const om_attr *attr = om_node_attr(node, name);
  return attr && attr->kind == OM_ATTR_FLOAT ? (double)attr->f : fallback;
}

bool om_ref_text_is(const om_node *node, const char *name, const char *fallback, const char *text) {
  const om_attr *attr = om_node_attr(node, name);
  if (!attr || attr->kind != OM_ATTR_STRING) return strcmp(fallback, text) == 0;
  return om_string_is(attr->s, text);
}

int64_t om_ref_ints(const om_node *node, const char *name, size_t index, int64_t fallback) {
  const om_attr *attr = om_node_attr(node, name);
  return attr && attr->kind == OM_ATTR_INTS && index < attr->count ? attr->ints[index] : fallback;
}

size_t om_ref_ints_count(const om_node *node, const char *name) {
  const om_attr *attr = om_node_attr(node, name);
  return attr && attr->kind == OM_ATTR_INTS ? attr->count : 0;
}

void om_ref_unravel(const om_ref_tensor *tensor, size_t elem, int64_t index[OM_MAX_RANK]) {
  for (uint32_t d = tensor->rank; d-- > 0;) {
    const size_t extent = (size_t)tensor->dims[d];
    index[d] = (int64_t)(elem % extent);
    elem /= extent;
  }
}

size_t om_ref_ravel(const om_ref_tensor *tensor, const int64_t index[OM_MAX_RANK]) {
  size_t elem = 0;
  for (uint32_t d = 0; d < tensor->rank; ++d)
    elem = elem * (size_t)tensor->dims[d] + (size_t)index[d];
  return elem;
}

double om_ref_broadcast(const om_ref_tensor *input, const om_ref_tensor *output, size_t elem) {
  int64_t index[OM_MAX_RANK] = {0}, source[OM_MAX_RANK] = {0};
  om_ref_unravel(output, elem, index);
  const uint32_t skip = output->rank - input->rank;
  for (uint32_t d = 0; d < input->rank; ++d) source[d] = input->dims[d] == 1 ? 0 : index[d + skip];
  return input->values[om_ref_ravel(input, source)];
}

uint32_t om_ref_axis(int64_t axis, uint32_t rank) {
  return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}
