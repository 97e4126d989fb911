/* The table of GPU operators: the families' arrays, one after the other. A family is a file,
 * gpu_ops_<family>.c; the build lists them. */
#include <stdio.h>

#include "gpu/om_gpu_op.h"

#define OM_FAMILY(name) extern const om_gpu_op om_gpu_ops_##name[];
#include "om_gpu_op_families.def"
#undef OM_FAMILY

static const om_gpu_op *const families[] = {
#define OM_FAMILY(name) om_gpu_ops_##name,
#include "om_gpu_op_families.def"
#undef OM_FAMILY
    NULL,
};

const om_gpu_op *om_gpu_op_get(size_t index) {
  for (size_t family = 0; families[family]; ++family) {
    for (const om_gpu_op *op = families[family]; op->type; ++op) {
      if (index-- == 0) return op;
    }
  }
  return NULL;
}

const om_gpu_op *om_gpu_op_find(const char *domain, const char *type) {
  for (size_t family = 0; families[family]; ++family) {
    for (const om_gpu_op *op = families[family]; op->type; ++op) {
      if (strcmp(op->type, type) == 0 && strcmp(op->domain, domain) == 0) return op;
    }
  }
  return NULL;
}

static int compare_ops(const om_gpu_op *a, const om_gpu_op *b) {
  int order = strcmp(a->domain, b->domain);
  return order != 0 ? order : strcmp(a->type, b->type);
}

/* The entry with `rank` entries before it in sorted order. */
static const om_gpu_op *find_by_rank(size_t rank) {
  const om_gpu_op *op = NULL;
  for (size_t i = 0; (op = om_gpu_op_get(i)) != NULL; ++i) {
    size_t before = 0;
    const om_gpu_op *other = NULL;
    for (size_t j = 0; (other = om_gpu_op_get(j)) != NULL; ++j) {
      if (compare_ops(other, op) < 0) ++before;
    }
    if (before == rank) return op;
  }
  return NULL;
}

bool om_gpu_operator_get(size_t index, om_gpu_operator_info *out_info) {
  const om_gpu_op *op = find_by_rank(index);
  size_t used = 0;
  *out_info = (om_gpu_operator_info){0};
  if (!op) return false;
  out_info->domain = op->domain;
  out_info->type = op->type;
  out_info->has_exact = op->has_exact;
  for (int dtype = 1; dtype < OM_DTYPE_COUNT; ++dtype) {
    if ((op->dtypes & OM_DT(dtype)) == 0) continue;
    int written = snprintf(out_info->dtypes + used,
                           sizeof out_info->dtypes - used,
                           "%s%s",
                           used > 0 ? ", " : "",
                           om_dtype_name((om_dtype)dtype));
    if (written > 0) used += (size_t)written;
    if (used >= sizeof out_info->dtypes) break;
  }
  return true;
}
