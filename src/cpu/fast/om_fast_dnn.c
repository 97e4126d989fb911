/* Kernels of oneDNN: what they share, packed weights, and running them. */
#include "cpu/fast/om_fast_dnn.h"

#include <dlfcn.h>

om_status om_dnn_status(om_ctx *ctx, dnnl_status_t status, const char *what) {
  switch (status) {
    case dnnl_success:
      return OM_OK;
    case dnnl_out_of_memory:
      return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "There is no memory for %s.", what);
    case dnnl_unimplemented:
      return OM_FAIL(ctx, OM_E_UNSUPPORTED, "oneDNN has no code for %s.", what);
    default:
      return OM_FAIL(ctx, OM_E_INTERNAL, "oneDNN refuses %s (%d).", what, (int)status);
  }
}

int om_dnn_threads_begin(const om_ctx *ctx, const om_fast *fast) {
  const om_dnn_library *lib = &fast->lib;
  if (!lib->get_max_threads || !lib->set_num_threads) return 0;
  const int before = lib->get_max_threads();
  lib->set_num_threads((int)ctx->thread_count);
  return before;
}

void om_dnn_threads_end(const om_fast *fast, int before) {
  if (before > 0) fast->lib.set_num_threads(before);
}

/* ---- Packed weights ---- */

static void delete_pack(om_ctx *ctx, const om_dnn_library *lib, om_dnn_pack *pack) {
  if (!pack) return;
  if (pack->given) lib->memory_desc_destroy(pack->given);
  if (pack->order) lib->memory_desc_destroy(pack->order);
  om_delete(ctx, pack->data);
  om_delete(ctx, pack);
}

/* Copies from one order to another. */
static om_status reorder(om_ctx *ctx,
                         const om_fast *fast,
                         dnnl_memory_desc_t from,
                         const void *source,
                         const_dnnl_memory_desc_t to,
                         void *target) {
  om_status st = OM_OK;
  const om_dnn_library *lib = &fast->lib;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t memories[2] = {NULL, NULL};
  void *unwritten = NULL; /* oneDNN reads it, but has no type to say so */
  memcpy(&unwritten, &source, sizeof unwritten);
  OM_GO(om_dnn_status(
      ctx,
      lib->reorder_primitive_desc_create(&desc, from, fast->engine, to, fast->engine, NULL),
      "packing weights"));
  OM_GO(om_dnn_status(ctx, lib->primitive_create(&primitive, desc), "packing weights"));
  OM_GO(om_dnn_status(
      ctx, lib->memory_create(&memories[0], from, fast->engine, unwritten), "packing weights"));
  OM_GO(om_dnn_status(
      ctx, lib->memory_create(&memories[1], to, fast->engine, target), "packing weights"));
  dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, memories[0]}, {DNNL_ARG_TO, memories[1]}};
  OM_GO(om_dnn_status(
      ctx, lib->primitive_execute(primitive, fast->stream, 2, args), "packing weights"));
done:
  if (memories[0]) lib->memory_destroy(memories[0]);
  if (memories[1]) lib->memory_destroy(memories[1]);
  if (primitive) lib->primitive_destroy(primitive);
  if (desc) lib->primitive_desc_destroy(desc);
  return st;
}

static om_status make_pack(om_ctx *ctx,
                           const om_fast *fast,
                           const float *data,
                           dnnl_memory_desc_t given,
                           const_dnnl_memory_desc_t order,
                           om_dnn_pack **out_pack) {
  om_status st = OM_OK;
  const om_dnn_library *lib = &fast->lib;
  om_dnn_pack *pack = NULL;
  OM_GO_NEW(pack, 1);
  pack->source = data;
  OM_GO(om_dnn_status(ctx, lib->memory_desc_clone(&pack->given, given), "weights"));
  OM_GO(om_dnn_status(ctx, lib->memory_desc_clone(&pack->order, order), "weights"));
  pack->data = om_new_bytes(ctx, lib->memory_desc_get_size(order), 1);
  if (!pack->data) OM_GO(OM_E_OUT_OF_MEMORY);
  OM_GO(reorder(ctx, fast, given, data, order, pack->data));
  *out_pack = pack;
  pack = NULL; /* the caller owns it now */
done:
  delete_pack(ctx, &fast->lib, pack);
  return st;
}

static om_dnn_pack *find_pack(const om_fast *fast,
                              const float *data,
                              const_dnnl_memory_desc_t given,
                              const_dnnl_memory_desc_t order) {
  const om_dnn_library *lib = &fast->lib;
  for (om_dnn_pack *pack = fast->packs; pack; pack = pack->next) {
    if (pack->source == data && lib->memory_desc_equal(pack->given, given) &&
        lib->memory_desc_equal(pack->order, order)) {
      return pack;
    }
  }
  return NULL;
}

static om_status pack_weights(om_ctx *ctx,
                              om_fast_kernel *kernel,
                              const om_fast_weights *weights,
                              dnnl_memory_desc_t given,
                              const_dnnl_memory_desc_t order,
                              void **out_data) {
  om_fast *fast = kernel->fast;
  om_dnn_pack *pack = weights->is_kept ? find_pack(fast, weights->data, given, order) : NULL;
  if (!pack) {
    OM_TRY(make_pack(ctx, fast, weights->data, given, order, &pack));
    if (weights->is_kept) {
      pack->next = fast->packs;
      fast->packs = pack;
    } else {
      kernel->own_pack = pack;
    }
  }
  *out_data = pack->data;
  return OM_OK;
}

/* ---- The library ---- */

/* False: it is not there, or lacks a function. */
static bool open_library(om_dnn_library *out_lib) {
  void *handle = dlopen(OM_DNN_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) return false;
  bool has_all = true;
#define X(name)                                                     \
  {                                                                 \
    void *found = dlsym(handle, "dnnl_" #name);                     \
    memcpy(&out_lib->name, &found, sizeof found); /* POSIX's way */ \
    has_all = has_all && found;                                     \
  }
  OM_DNN_FUNCTIONS(X)
#undef X
  /* OpenMP's, where oneDNN is built with it. */
  void *found = dlsym(handle, "omp_get_max_threads");
  memcpy(&out_lib->get_max_threads, &found, sizeof found);
  found = dlsym(handle, "omp_set_num_threads");
  memcpy(&out_lib->set_num_threads, &found, sizeof found);
  (void)dlclose(handle); /* it stays all the same */
  return has_all;
}

om_status om_dnn_open(om_ctx *ctx, om_fast *fast, bool *out_is_there) {
  if (!fast->is_tried) {
    const om_dnn_library *lib = &fast->lib;
    fast->is_tried = true;
    if (!open_library(&fast->lib)) {
      om_log_write(ctx,
                   OM_LOG_WARNING,
                   "oneDNN (" OM_DNN_LIBRARY
                   ") cannot be opened: the CPU runs its exact kernels in "
                   "fast mode too.");
    } else {
      OM_TRY(om_dnn_status(ctx, lib->engine_create(&fast->engine, dnnl_cpu, 0), "its engine"));
      OM_TRY(
          om_dnn_status(ctx,
                        lib->stream_create(&fast->stream, fast->engine, dnnl_stream_default_flags),
                        "a stream"));
    }
  }
  *out_is_there = fast->stream != NULL;
  return OM_OK;
}

bool om_fast_is_there(om_ctx *ctx, om_fast *fast) {
  bool is_there = false;
  if (!fast) return false;
  if (om_dnn_open(ctx, fast, &is_there) != OM_OK) om_error_clear(ctx->error); /* kernels say it */
  return is_there;
}

/* ---- The session's part ---- */

om_status om_fast_create(om_ctx *ctx, om_fast **out_fast) {
  *out_fast = om_new_bytes(ctx, 1, sizeof **out_fast);
  return *out_fast ? OM_OK : OM_E_OUT_OF_MEMORY;
}

void om_fast_destroy(om_ctx *ctx, om_fast *fast) {
  if (!fast) return;
  const om_dnn_library *lib = &fast->lib;
  while (fast->packs) {
    om_dnn_pack *pack = fast->packs;
    fast->packs = pack->next;
    delete_pack(ctx, lib, pack);
  }
  if (fast->stream) lib->stream_destroy(fast->stream);
  if (fast->engine) lib->engine_destroy(fast->engine);
  om_delete(ctx, fast);
}

/* ---- Descriptions ---- */

om_status om_dnn_desc(om_ctx *ctx,
                      const om_dnn_library *lib,
                      int rank,
                      const int64_t *dims,
                      const int64_t *strides,
                      dnnl_memory_desc_t *out_desc) {
  dnnl_dims_t own_dims = {0}; /* as long as oneDNN declares them */
  dnnl_dims_t own_strides = {0};
  dnnl_status_t status;
  memcpy(own_dims, dims, (size_t)rank * sizeof *dims);
  if (strides) {
    memcpy(own_strides, strides, (size_t)rank * sizeof *strides);
    status = lib->memory_desc_create_with_strides(out_desc, rank, own_dims, dnnl_f32, own_strides);
  } else {
    status =
        lib->memory_desc_create_with_tag(out_desc, rank, own_dims, dnnl_f32, dnnl_format_tag_any);
  }
  return om_dnn_status(ctx, status, "an operand");
}

static om_status add_activation(om_ctx *ctx,
                                const om_dnn_library *lib,
                                const om_fast_epilogue *epilogue,
                                dnnl_post_ops_t ops) {
  static const struct {
    dnnl_alg_kind_t kind;
    bool has_scalars;
  } kinds[] = {
      [OM_FAST_RELU] = {dnnl_eltwise_relu, false},
      [OM_FAST_LEAKY_RELU] = {dnnl_eltwise_relu, true},
      [OM_FAST_CLIP] = {dnnl_eltwise_clip, true},
      [OM_FAST_SIGMOID] = {dnnl_eltwise_logistic, false},
      [OM_FAST_TANH] = {dnnl_eltwise_tanh, false},
      [OM_FAST_GELU] = {dnnl_eltwise_gelu_erf, false},
      [OM_FAST_HARD_SWISH] = {dnnl_eltwise_hardswish, true},
      [OM_FAST_HARD_SIGMOID] = {dnnl_eltwise_hardsigmoid, true},
  };
  if (epilogue->activation == OM_FAST_NONE) return OM_OK;
  const bool has_scalars = kinds[epilogue->activation].has_scalars;
  return om_dnn_status(ctx,
                       lib->post_ops_append_eltwise(ops,
                                                    kinds[epilogue->activation].kind,
                                                    has_scalars ? epilogue->alpha : 0.0f,
                                                    has_scalars ? epilogue->beta : 0.0f),
                       "an activation");
}

static om_status add_residual(om_ctx *ctx,
                              const om_fast_epilogue *epilogue,
                              int rank,
                              const int64_t *strides,
                              dnnl_post_ops_t ops,
                              om_dnn_parts *parts) {
  const om_dnn_library *lib = parts->lib;
  parts->residual_at = lib->post_ops_len(ops);
  OM_TRY(om_dnn_desc(ctx, lib, rank, epilogue->residual_dims, strides, &parts->residual));
  return om_dnn_status(
      ctx, lib->post_ops_append_binary(ops, dnnl_binary_add, parts->residual), "a residual");
}

om_status om_dnn_epilogue(om_ctx *ctx,
                          const om_fast_epilogue *epilogue,
                          int rank,
                          const int64_t *residual_strides,
                          om_dnn_parts *parts) {
  om_status st = OM_OK;
  const om_dnn_library *lib = parts->lib;
  dnnl_post_ops_t ops = NULL;
  OM_GO(om_dnn_status(ctx, lib->primitive_attr_create(&parts->attr), "attributes"));
  OM_GO(
      om_dnn_status(ctx,
                    lib->primitive_attr_set_scratchpad_mode(parts->attr, dnnl_scratchpad_mode_user),
                    "attributes"));
  OM_GO(om_dnn_status(ctx, lib->post_ops_create(&ops), "attributes"));
  if (epilogue->scale != 1.0f) {
    OM_GO(
        om_dnn_status(ctx,
                      lib->post_ops_append_eltwise(ops, dnnl_eltwise_linear, epilogue->scale, 0.0f),
                      "a factor"));
  }
  if (epilogue->has_residual) {
    OM_GO(add_residual(ctx, epilogue, rank, residual_strides, ops, parts));
  }
  OM_GO(add_activation(ctx, lib, epilogue, ops));
  OM_GO(om_dnn_status(ctx, lib->primitive_attr_set_post_ops(parts->attr, ops), "attributes"));
done:
  if (ops) lib->post_ops_destroy(ops);
  return st;
}

void om_dnn_parts_deinit(om_dnn_parts *parts) {
  const om_dnn_library *lib = parts->lib;
  if (parts->primitive) lib->primitive_desc_destroy(parts->primitive);
  if (parts->x) lib->memory_desc_destroy(parts->x);
  if (parts->w) lib->memory_desc_destroy(parts->w);
  if (parts->bias) lib->memory_desc_destroy(parts->bias);
  if (parts->residual) lib->memory_desc_destroy(parts->residual);
  if (parts->y) lib->memory_desc_destroy(parts->y);
  if (parts->attr) lib->primitive_attr_destroy(parts->attr);
}

/* ---- Kernels ---- */

static om_status add_memory(om_ctx *ctx,
                            om_fast_kernel *kernel,
                            om_dnn_operand operand,
                            int arg,
                            const_dnnl_memory_desc_t desc,
                            void *data) {
  const om_dnn_library *lib = &kernel->fast->lib;
  dnnl_memory_t *memory = &kernel->memories[operand];
  OM_TRY(om_dnn_status(
      ctx, lib->memory_create(memory, desc, kernel->fast->engine, data), "an operand"));
  kernel->args[kernel->arg_count++] = (dnnl_exec_arg_t){arg, *memory};
  return OM_OK;
}

static om_status add_operands(om_ctx *ctx,
                              om_fast_kernel *kernel,
                              const om_dnn_parts *parts,
                              const om_fast_weights *weights,
                              dnnl_memory_desc_t given) {
  const om_dnn_library *lib = parts->lib;
  const const_dnnl_primitive_desc_t desc = parts->primitive;
  const const_dnnl_memory_desc_t order =
      lib->primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
  const const_dnnl_memory_desc_t scratch =
      lib->primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  const int residual_arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(parts->residual_at) | DNNL_ARG_SRC_1;
  void *packed = NULL;
  kernel->is_packed = weights->data != NULL;
  if (kernel->is_packed) OM_TRY(pack_weights(ctx, kernel, weights, given, order, &packed));
  OM_TRY(add_memory(ctx, kernel, OM_DNN_X, DNNL_ARG_SRC, parts->x, NULL));
  OM_TRY(add_memory(ctx, kernel, OM_DNN_W, DNNL_ARG_WEIGHTS, order, packed));
  OM_TRY(add_memory(ctx, kernel, OM_DNN_Y, DNNL_ARG_DST, parts->y, NULL));
  if (parts->bias) OM_TRY(add_memory(ctx, kernel, OM_DNN_BIAS, DNNL_ARG_BIAS, parts->bias, NULL));
  if (parts->residual) {
    OM_TRY(add_memory(ctx, kernel, OM_DNN_RESIDUAL, residual_arg, parts->residual, NULL));
  }
  kernel->scratch_bytes = scratch ? om_size_align(lib->memory_desc_get_size(scratch), 64) : 0;
  if (kernel->scratch_bytes == 0) return OM_OK;
  return add_memory(ctx, kernel, OM_DNN_SCRATCH, DNNL_ARG_SCRATCHPAD, scratch, NULL);
}

om_status om_dnn_kernel_create(om_ctx *ctx,
                               om_fast *fast,
                               const om_dnn_parts *parts,
                               const om_fast_weights *weights,
                               dnnl_memory_desc_t given,
                               om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  const om_dnn_library *lib = parts->lib;
  om_fast_kernel *kernel = NULL;
  OM_GO_NEW(kernel, 1);
  kernel->fast = fast;
  OM_GO(
      om_dnn_status(ctx, lib->primitive_create(&kernel->primitive, parts->primitive), "a kernel"));
  OM_GO(add_operands(ctx, kernel, parts, weights, given));
  *out_kernel = kernel;
  kernel = NULL; /* the caller owns it now */
done:
  om_fast_kernel_destroy(ctx, kernel);
  return st;
}

om_status om_dnn_turn_add(om_ctx *ctx,
                          om_fast_kernel *kernel,
                          om_dnn_operand operand,
                          dnnl_memory_desc_t outside,
                          dnnl_memory_desc_t inside) {
  om_status st = OM_OK;
  const om_dnn_library *lib = &kernel->fast->lib;
  const bool is_result = operand == OM_DNN_Y;
  om_dnn_turn *turn = is_result ? &kernel->y_turn : &kernel->x_turn;
  dnnl_engine_t engine = kernel->fast->engine;
  dnnl_memory_desc_t from = is_result ? inside : outside;
  dnnl_memory_desc_t to = is_result ? outside : inside;
  dnnl_primitive_desc_t desc = NULL;
  OM_GO(om_dnn_status(ctx,
                      lib->reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL),
                      "another order"));
  OM_GO(om_dnn_status(ctx, lib->primitive_create(&turn->primitive, desc), "another order"));
  OM_GO(om_dnn_status(ctx, lib->memory_create(&turn->from, from, engine, NULL), "another order"));
  OM_GO(om_dnn_status(ctx, lib->memory_create(&turn->to, to, engine, NULL), "another order"));
  turn->offset = kernel->scratch_bytes;
  kernel->scratch_bytes += om_size_align(lib->memory_desc_get_size(inside), 64);
done:
  if (desc) lib->primitive_desc_destroy(desc);
  return st;
}

static void delete_turn(const om_dnn_library *lib, om_dnn_turn *turn) {
  if (turn->from) lib->memory_destroy(turn->from);
  if (turn->to) lib->memory_destroy(turn->to);
  if (turn->primitive) lib->primitive_destroy(turn->primitive);
}

void om_fast_kernel_destroy(om_ctx *ctx, om_fast_kernel *kernel) {
  if (!kernel) return;
  const om_dnn_library *lib = &kernel->fast->lib;
  delete_turn(lib, &kernel->x_turn);
  delete_turn(lib, &kernel->y_turn);
  for (size_t i = 0; i < OM_DNN_OPERANDS; ++i) {
    if (kernel->memories[i]) lib->memory_destroy(kernel->memories[i]);
  }
  if (kernel->primitive) lib->primitive_destroy(kernel->primitive);
  delete_pack(ctx, lib, kernel->own_pack);
  om_delete(ctx, kernel);
}

size_t om_fast_scratch_bytes(const om_fast_kernel *kernel) {
  return kernel->scratch_bytes;
}

/* ---- Runs ---- */

static void *without_const(const void *data) {
  void *plain = NULL; /* oneDNN reads it, but has no type to say so */
  memcpy(&plain, &data, sizeof plain);
  return plain;
}

static om_status point(om_ctx *ctx,
                       const om_dnn_library *lib,
                       dnnl_memory_t memory,
                       const void *data) {
  if (!memory || !data) return OM_OK;
  return om_dnn_status(
      ctx, lib->memory_set_data_handle(memory, without_const(data)), "an operand's place");
}

static om_status run_turn(
    om_ctx *ctx, const om_fast *fast, const om_dnn_turn *turn, const void *from, void *to) {
  const om_dnn_library *lib = &fast->lib;
  dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, turn->from}, {DNNL_ARG_TO, turn->to}};
  OM_TRY(point(ctx, lib, turn->from, from));
  OM_TRY(point(ctx, lib, turn->to, to));
  return om_dnn_status(
      ctx, lib->primitive_execute(turn->primitive, fast->stream, 2, args), "another order");
}

static om_status run(om_ctx *ctx, om_fast_kernel *kernel, const om_fast_operands *o) {
  const om_fast *fast = kernel->fast;
  const om_dnn_library *lib = &fast->lib;
  uint8_t *scratch = o->scratch;
  const void *x = o->x;
  void *y = o->y;
  if (kernel->x_turn.primitive) {
    OM_TRY(run_turn(ctx, fast, &kernel->x_turn, x, scratch + kernel->x_turn.offset));
    x = scratch + kernel->x_turn.offset;
  }
  if (kernel->y_turn.primitive) y = scratch + kernel->y_turn.offset;
  OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_X], x));
  if (!kernel->is_packed) OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_W], o->w));
  OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_BIAS], o->bias));
  OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_RESIDUAL], o->residual));
  OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_Y], y));
  OM_TRY(point(ctx, lib, kernel->memories[OM_DNN_SCRATCH], scratch));
  OM_TRY(om_dnn_status(
      ctx,
      lib->primitive_execute(kernel->primitive, fast->stream, kernel->arg_count, kernel->args),
      "a kernel's run"));
  if (!kernel->y_turn.primitive) return OM_OK;
  return run_turn(ctx, fast, &kernel->y_turn, y, o->y);
}

om_status om_fast_run(om_ctx *ctx, om_fast_kernel *kernel, const om_fast_operands *operands) {
  const int before = om_dnn_threads_begin(ctx, kernel->fast);
  om_status st = run(ctx, kernel, operands);
  om_dnn_threads_end(kernel->fast, before);
  return st;
}
