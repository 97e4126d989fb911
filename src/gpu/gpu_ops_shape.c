/* Operators that give data another shape: their results are the memory of their inputs. */
#include "gpu/om_gpu_copy.h"

static const char *bind_view(om_gpu_binder *b) {
  om_gpu_make_view(b);
  return NULL;
}

static const char *bind_dropout(om_gpu_binder *b) {
  const om_tensor *training = om_gpu_input(b, 2);
  if (om_gpu_output(b, 1)) return "its mask is read";
  if (training && (!training->data || *(const uint8_t *)training->data != 0)) {
    return "it may be in training mode";
  }
  om_gpu_make_view(b);
  return NULL;
}

#define OM_VIEW(name, function) \
  {.domain = "", .type = (name), .dtypes = OM_DT_MOVED, .has_exact = true, .bind = (function)}

const om_gpu_op om_gpu_ops_shape[] = {
    OM_VIEW("Dropout", bind_dropout),
    OM_VIEW("Flatten", bind_view),
    OM_VIEW("Identity", bind_view),
    OM_VIEW("Reshape", bind_view),
    OM_VIEW("Squeeze", bind_view),
    OM_VIEW("Unsqueeze", bind_view),
    {.type = NULL},
};
