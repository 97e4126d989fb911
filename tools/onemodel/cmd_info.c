/* onemodel info: what a model file holds. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef struct type_count {
  const char *domain, *type;
  size_t count;
} type_count;

static size_t count_in_bodies(const om_model *model, size_t node_count) {
  size_t count = 0;
  for (size_t i = 0; i < node_count; ++i) {
    if (om_model_get_node(model, i).outer != OM_NO_OUTER) ++count;
  }
  return count;
}

static int by_count(const void *a, const void *b) {
  const type_count *x = a, *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return strcmp(x->type, y->type);
}

/* How often each operator occurs, the most frequent first; the caller frees it. */
static type_count *histogram(const om_model *model, size_t node_count, size_t *out_count) {
  type_count *types = calloc(node_count + 1, sizeof *types);
  size_t count = 0;
  for (size_t i = 0; types && i < node_count; ++i) {
    om_node_info node = om_model_get_node(model, i);
    size_t k = 0;
    while (k < count &&
           (strcmp(types[k].type, node.op_type) || strcmp(types[k].domain, node.domain)))
      ++k;
    if (k == count) types[count++] = (type_count){node.domain, node.op_type, 0};
    types[k].count += 1;
  }
  if (types) qsort(types, count, sizeof *types, by_count);
  *out_count = count;
  return types;
}

/* A sequence's or an optional's type is told down to the tensors in it. */
static void print_values(const char *title, const om_value_info *values, size_t count) {
  char shape[512];
  for (size_t i = 0; i < count; ++i) {
    const om_value_info *type = &values[i];
    printf("%-10s %-24s ", i ? "" : title, type->name);
    for (; type->elem; type = type->elem) printf("%s of ", om_dtype_name(type->dtype));
    printf("%-9s %s\n", om_dtype_name(type->dtype), shape_words(shape, sizeof shape, type));
  }
}

static void print_table(const om_model_info *info,
                        const type_count *types,
                        size_t count,
                        size_t in_bodies) {
  print_values("inputs", info->inputs, info->input_count);
  print_values("outputs", info->outputs, info->output_count);
  for (size_t i = 0; i < info->opset_count; ++i) {
    const char *domain = info->opsets[i].domain;
    printf("%-10s %s %lld\n",
           i ? "" : "opsets",
           *domain ? domain : "ai.onnx",
           (long long)info->opsets[i].version);
  }
  printf("%-10s %zu nodes of %zu types", "operators", info->node_count, count);
  if (in_bodies > 0) printf(", %zu of them in bodies", in_bodies);
  printf("\n");
  for (size_t i = 0; i < count; ++i) {
    printf("%10s %6zu %s%s%s\n",
           "",
           types[i].count,
           types[i].domain,
           *types[i].domain ? "." : "",
           types[i].type);
  }
  char bytes[32];
  printf("%-10s %zu, %s\n",
         "weights",
         info->weight_count,
         byte_words(bytes, sizeof bytes, info->weight_bytes));
  printf("%-10s %s, IR version %lld%s%s\n",
         "file",
         byte_words(bytes, sizeof bytes, info->file_bytes),
         (long long)info->ir_version,
         *info->producer ? ", made by " : "",
         info->producer);
}

static void json_values(const char *key, const om_value_info *values, size_t count) {
  printf("\"%s\": [", key);
  for (size_t i = 0; i < count; ++i) {
    printf("%s{\"name\": ", i ? ", " : "");
    json_text(stdout, values[i].name);
    printf(", \"dtype\": \"");
    for (const om_value_info *type = &values[i]; type; type = type->elem) {
      printf("%s%s", om_dtype_name(type->dtype), type->elem ? " of " : "");
    }
    printf("\", \"shape\": ");
    if (!values[i].has_rank) {
      printf("null}");
      continue;
    }
    printf("[");
    for (uint32_t d = 0; d < values[i].rank; ++d) {
      printf("%s", d ? ", " : "");
      if (values[i].dims[d] >= 0) {
        printf("%lld", (long long)values[i].dims[d]);
      } else if (values[i].dim_names[d]) {
        json_text(stdout, values[i].dim_names[d]);
      } else {
        printf("null");
      }
    }
    printf("]}");
  }
  printf("], ");
}

static void print_json(const om_model_info *info, const type_count *types, size_t count) {
  printf("{");
  json_values("inputs", info->inputs, info->input_count);
  json_values("outputs", info->outputs, info->output_count);
  printf("\"opsets\": {");
  for (size_t i = 0; i < info->opset_count; ++i) {
    printf("%s", i ? ", " : "");
    json_text(stdout, info->opsets[i].domain);
    printf(": %lld", (long long)info->opsets[i].version);
  }
  printf("}, \"operators\": {");
  for (size_t i = 0; i < count; ++i) {
    char name[512];
    snprintf(
        name, sizeof name, "%s%s%s", types[i].domain, *types[i].domain ? "." : "", types[i].type);
    printf("%s", i ? ", " : "");
    json_text(stdout, name);
    printf(": %zu", types[i].count);
  }
  printf(
      "}, \"nodes\": %zu, \"weights\": %zu, \"weight_bytes\": %llu, \"file_bytes\": %llu, "
      "\"ir_version\": %lld, \"producer\": ",
      info->node_count,
      info->weight_count,
      (unsigned long long)info->weight_bytes,
      (unsigned long long)info->file_bytes,
      (long long)info->ir_version);
  json_text(stdout, info->producer);
  printf("}\n");
}

int command_info(int argc, char **argv) {
  options o;
  om_model *model = NULL;
  size_t count = 0;
  if (!options_parse(argc, argv, COMMAND_INFO, &o)) return EXIT_USAGE;
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  const om_model_info *info = om_model_get_info(model);
  type_count *types = histogram(model, info->node_count, &count);
  if (!types) {
    code = report_problem(EXIT_FAILED, "There is no memory for the list of operators.");
  } else if (o.as_json) {
    print_json(info, types, count);
  } else {
    print_table(info, types, count, count_in_bodies(model, info->node_count));
  }
  free(types);
  om_model_destroy(model);
  return code;
}
