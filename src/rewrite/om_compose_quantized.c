/* What Microsoft's operators on 8-bit tensors stand for where no kernel of integers is worth it:
 * the operator between DequantizeLinear and QuantizeLinear. */
#include "rewrite/om_compose.h"

enum { MOST_ATTRS = 16 };

/* With a scale, and the zero point behind it where it is there. */
static om_value_id with_scale(
    om_composer *c, const char *type, om_value_id x, uint32_t scale, const om_attr *attr) {
  const om_value_id zero = om_compose_input(c, scale + 1);
  const om_value_id inputs[] = {x, om_compose_input(c, scale), zero};
  if (x == OM_NO_VALUE || inputs[1] == OM_NO_VALUE) {
    om_compose_fail(c, "Its input %u, a scale, or what it is for is absent.", (unsigned)scale);
  }
  return om_compose_node(c, type, inputs, zero == OM_NO_VALUE ? 2 : 3, attr, attr ? 1 : 0);
}

static om_value_id dequantized(om_composer *c, uint32_t input) {
  return with_scale(c, "DequantizeLinear", om_compose_input(c, input), input + 1, NULL);
}

/* The result has the type of input `like`, also where there is no zero point to tell. */
static void quantize_result(om_composer *c, om_value_id x, uint32_t scale, uint32_t like) {
  const om_dtype dtype = om_compose_dtype(c, om_compose_input(c, like));
  const om_attr attr = {
      .name = "output_dtype", .kind = OM_ATTR_INT, .count = 1, .i = (int64_t)dtype};
  const om_attr *given = dtype == OM_DTYPE_NONE ? NULL : &attr;
  om_compose_result(c, 0, with_scale(c, "QuantizeLinear", x, scale, given));
}

/* The node's own attributes, but for those of Microsoft's. */
static om_value_id with_attrs(om_composer *c, const char *type, om_value_id x) {
  om_attr attrs[MOST_ATTRS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->node.attr_count && count < MOST_ATTRS; ++i) {
    const char *name = c->node.attrs[i].name;
    if (strcmp(name, "channels_last") != 0 && strcmp(name, "opset") != 0) {
      attrs[count++] = c->node.attrs[i];
    }
  }
  return om_compose_node(c, type, &x, 1, attrs, count);
}

static void compose_average_pool(om_composer *c) {
  if (om_compose_attr_int(c, "channels_last", 0) != 0) {
    om_compose_refuse(c, "Channels at the end (channels_last) are not implemented.");
  }
  quantize_result(c, with_attrs(c, "AveragePool", dequantized(c, 0)), 3, 0);
}

/* Before opset 13 the axis and all after it were one row: the same where it is the last one. */
static void compose_softmax(om_composer *c) {
  const int64_t axis = om_compose_attr_int(c, "axis", -1);
  const uint32_t rank = om_compose_rank(c, om_compose_input(c, 0));
  const bool is_last = axis == -1 || (rank != OM_RANK_UNKNOWN && axis + 1 == (int64_t)rank);
  if (om_compose_attr_int(c, "opset", 13) < 13 && !is_last) {
    om_compose_refuse(c, "A Softmax of several axes (opset below 13) is not implemented.");
  }
  quantize_result(c, with_attrs(c, "Softmax", dequantized(c, 0)), 3, 0);
}

static void compose_where(om_composer *c) {
  const om_value_id x = dequantized(c, 1), y = dequantized(c, 4);
  quantize_result(c, om_compose_3(c, "Where", om_compose_input(c, 0), x, y), 7, 1);
}

const om_composition om_compositions_quantized[] = {
    {"com.microsoft", "QLinearAveragePool", compose_average_pool},
    {"com.microsoft", "QLinearSoftmax", compose_softmax},
    {"com.microsoft", "QLinearWhere", compose_where},
    {.type = NULL},
};
