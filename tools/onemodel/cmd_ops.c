/* onemodel ops: the operators of this build by domain, opset and element type, as text, as JSON, or
 * as the README's table. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef struct tables {
  const om_operator_info **ops; /* owned; in om_operator_get's order */
  size_t op_count;
  om_gpu_operator_info *gpu; /* owned */
  size_t gpu_count;
} tables;

/* One operator in all of its versions: ops[first .. first + count]. */
typedef struct family {
  size_t first, count;
  const om_operator_info *oldest;
  const om_gpu_operator_info *gpu; /* NULL: it is not there */
} family;

static bool list_all(tables *out) {
  om_gpu_operator_info one;
  while (om_operator_get(out->op_count)) ++out->op_count;
  while (om_gpu_operator_get(out->gpu_count, &one)) ++out->gpu_count;
  out->ops = calloc(out->op_count + 1, sizeof *out->ops);
  out->gpu = calloc(out->gpu_count + 1, sizeof *out->gpu);
  for (size_t i = 0; out->ops && i < out->op_count; ++i) out->ops[i] = om_operator_get(i);
  for (size_t i = 0; out->gpu && i < out->gpu_count; ++i) om_gpu_operator_get(i, &out->gpu[i]);
  return out->ops && out->gpu;
}

static bool is_same(const om_operator_info *a, const om_operator_info *b) {
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->type, b->type) == 0;
}

/* The operator whose oldest entry is `first`; false past the last. */
static bool get_family(const tables *t, size_t first, family *out) {
  *out = (family){.first = first};
  if (first >= t->op_count) return false;
  out->oldest = t->ops[first];
  while (first + out->count < t->op_count && is_same(out->oldest, t->ops[first + out->count])) {
    ++out->count;
  }
  for (size_t i = 0; i < t->gpu_count; ++i) {
    const om_gpu_operator_info *gpu = &t->gpu[i];
    if (strcmp(gpu->domain, out->oldest->domain) == 0 &&
        strcmp(gpu->type, out->oldest->type) == 0) {
      out->gpu = gpu;
    }
  }
  return true;
}

static const char *domain_name(const om_operator_info *op) {
  return *op->domain ? op->domain : "ai.onnx";
}

/* "8", "7-9", "13-" */
static void print_opsets(const om_operator_info *op) {
  printf("%d", (int)op->first_opset);
  if (op->last_opset != op->first_opset) printf("-");
  if (op->last_opset > op->first_opset) printf("%d", (int)op->last_opset);
}

static void print_dtypes(uint32_t dtypes, const char *quote, const char *between) {
  const char *before = "";
  for (int i = 1; i < 32; ++i) {
    const char *name = om_dtype_name((om_dtype)i);
    if (!(dtypes >> i & 1) || strcmp(name, "?") == 0) continue;
    printf("%s%s%s%s", before, quote, name, quote);
    before = between;
  }
}

static const char *gpu_words(const family *f) {
  if (f->gpu) return f->gpu->dtypes;
  if (f->oldest->is_composed) return "what it is composed of";
  return f->oldest->may_be_composed ? "what it is composed of, where it is" : "";
}

static void print_markdown(const family *f) {
  const char *exact = f->gpu && !f->gpu->has_exact ? " (fast mode only)" : "";
  printf("| %s%s%s | %d | %s%s |\n",
         f->oldest->domain,
         *f->oldest->domain ? "." : "",
         f->oldest->type,
         (int)f->oldest->first_opset,
         gpu_words(f),
         exact);
}

static void print_text(const tables *t, const family *f) {
  for (size_t i = 0; i < f->count; ++i) {
    const om_operator_info *op = t->ops[f->first + i];
    printf("  %-32s opsets ", i == 0 ? op->type : "");
    print_opsets(op);
    printf(", CPU: ");
    print_dtypes(op->dtypes, "", " ");
    if (op->dtypes == 0) printf("any");
    printf("\n");
  }
  if (*gpu_words(f)) {
    const char *exact = f->gpu && !f->gpu->has_exact ? ", fast mode only" : "";
    printf("  %-32s GPU: %s%s\n", "", gpu_words(f), exact);
  }
}

static void print_json(const tables *t, const family *f) {
  printf("%s{\"domain\": \"%s\", \"operator\": \"%s\", \"versions\": [",
         f->first == 0 ? "" : ", ",
         f->oldest->domain,
         f->oldest->type);
  for (size_t i = 0; i < f->count; ++i) {
    const om_operator_info *op = t->ops[f->first + i];
    printf("%s{\"from_opset\": %d, \"to_opset\": ", i == 0 ? "" : ", ", (int)op->first_opset);
    printf(op->last_opset > 0 ? "%d" : "null", (int)op->last_opset);
    printf(", \"dtypes\": [");
    print_dtypes(op->dtypes, "\"", ", ");
    printf("]}");
  }
  printf("], \"is_composed\": %s, \"gpu\": \"%s\", \"gpu_exact\": %s}",
         f->oldest->is_composed ? "true" : "false",
         gpu_words(f),
         f->gpu && f->gpu->has_exact ? "true" : "false");
}

/* How many operators the domain that begins at entry `first` has, and how many the GPU takes. */
static size_t count_domain(const tables *t, size_t first, size_t *out_on_gpu) {
  family f, begin;
  size_t count = 0;
  *out_on_gpu = 0;
  if (!get_family(t, first, &begin)) return 0;
  for (; get_family(t, first, &f); first += f.count) {
    if (strcmp(f.oldest->domain, begin.oldest->domain) != 0) break;
    *out_on_gpu += f.gpu || f.oldest->is_composed || f.oldest->may_be_composed;
    ++count;
  }
  return count;
}

/* "187 operators of ai.onnx (120 of them on the GPU), 20 of ..." */
static void print_counts(const tables *t) {
  family f;
  const char *domain = NULL, *before = "", *what = " operators";
  for (size_t at = 0; get_family(t, at, &f); at += f.count) {
    if (domain && strcmp(domain, f.oldest->domain) == 0) continue;
    size_t on_gpu = 0;
    const size_t count = count_domain(t, at, &on_gpu);
    domain = f.oldest->domain;
    printf("%s%zu%s of %s (%zu of them on the GPU)",
           before,
           count,
           what,
           domain_name(f.oldest),
           on_gpu);
    before = ", ";
    what = "";
  }
  printf(".\n");
}

static void print_all(const options *o, const tables *t) {
  family f;
  const char *domain = NULL;
  if (!o->as_json) print_counts(t);
  if (o->as_markdown) printf("\n| operator | from opset | GPU |\n| --- | --- | --- |\n");
  if (o->as_json) printf("[");
  for (size_t at = 0; get_family(t, at, &f); at += f.count) {
    if (o->as_markdown) {
      print_markdown(&f);
    } else if (o->as_json) {
      print_json(t, &f);
    } else {
      if (!domain || strcmp(domain, f.oldest->domain) != 0) printf("\n%s\n", domain_name(f.oldest));
      domain = f.oldest->domain;
      print_text(t, &f);
    }
  }
  if (o->as_json) printf("]\n");
}

int command_ops(int argc, char **argv) {
  options o;
  tables t = {0};
  if (!options_parse(argc, argv, COMMAND_OPS, &o)) return EXIT_USAGE;
  const bool is_listed = list_all(&t);
  if (is_listed) print_all(&o, &t);
  free(t.ops);
  free(t.gpu);
  if (is_listed) return EXIT_DONE;
  return report_problem(EXIT_FAILED, "There is no memory for the list of operators.");
}
