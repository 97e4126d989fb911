/* Products: a pass whose window is one element and whose grid is the rows. Weights that are not
 * constant are read where they lie if their rows are dense and few rows of A read them; else they
 * are brought into panels in each run. */
#include "cpu/fast/om_fast_pass.h"

enum { FEW_ROWS = 2 * OM_TILE_ROWS };

static om_fast_order order_of(const om_fast_product *p, const om_tile_set *set) {
  const uint32_t row = p->rank - 2;
  const uint32_t col = p->rank - 1;
  om_fast_order order;
  memset(&order, 0, sizeof order); /* compared as a whole */
  order.groups = 1;
  order.depth = p->b_dims[row];
  order.cols = p->b_dims[col];
  order.depth_stride = p->b_strides[row];
  order.col_stride = p->b_strides[col];
  for (int i = 0; i < OM_FAST_AXES; ++i) order.taps[i] = 1;
  order.width = 2 * (int64_t)set->lanes;
  return order;
}

static void dense_strides(uint32_t rank, const int64_t *dims, int64_t *out_strides) {
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0; stride *= dims[i]) out_strides[i] = dims[i] == 1 ? 0 : stride;
}

static void describe(const om_fast_product *p, om_fast_pass *pass) {
  const uint32_t row = p->rank - 2;
  const uint32_t col = p->rank - 1;
  int64_t y[OM_MAX_RANK];
  int64_t residual[OM_MAX_RANK];
  dense_strides(p->rank, p->y_dims, y);
  if (p->y_strides[col] != 0) memcpy(y, p->y_strides, sizeof y);
  dense_strides(p->rank, p->epilogue.residual_dims, residual);
  pass->batch_axes = row;
  for (uint32_t i = 0; i < row; ++i) {
    pass->batch[i] = p->y_dims[i];
    pass->x_steps[i] = p->a_dims[i] == 1 ? 0 : p->a_strides[i];
    pass->w_steps[i] = p->b_dims[i] == 1 ? 0 : p->b_strides[i];
    pass->y_steps[i] = y[i];
    pass->residual_steps[i] = residual[i];
  }
  for (int i = 0; i < OM_FAST_AXES; ++i) pass->count[i] = pass->in[i] = pass->in_step[i] = 1;
  pass->count[2] = pass->in[2] = p->y_dims[row];
  memcpy(pass->inside_end, pass->count, sizeof pass->count);
  pass->is_all_inside = true;
  pass->x_strides[2] = p->a_strides[row];
  pass->y_strides[2] = y[row];
  pass->residual_strides[2] = residual[row];
  pass->residual_step = residual[col];
  pass->depth = (size_t)p->a_dims[col];
}

/* A whose rows are not dense is brought into scratch. */
static void turn_a(const om_fast_product *p, om_fast_kernel *kernel) {
  om_fast_pass *pass = kernel->passes;
  om_strided *turn = &kernel->x_turn;
  const uint32_t row = p->rank - 2;
  const uint32_t col = p->rank - 1;
  size_t elems = 1;
  if (p->a_strides[col] == 1 || p->a_dims[col] == 1) return;
  kernel->turns_x = true;
  turn->rank = p->rank;
  for (uint32_t i = p->rank; i-- > 0;) {
    turn->extents[i] = p->a_dims[i];
    turn->source_strides[i] = p->a_strides[i];
    turn->target_strides[i] = (int64_t)elems;
    if (i < row) pass->x_steps[i] = p->a_dims[i] == 1 ? 0 : (int64_t)elems;
    elems *= (size_t)p->a_dims[i];
  }
  pass->x_strides[2] = turn->target_strides[row];
  om_strided_simplify(turn);
  kernel->x_bytes = om_size_align(elems * sizeof(float), 64);
}

/* Weights of each run. */
static void place_weights(om_fast_kernel *kernel) {
  om_fast_pass *pass = kernel->passes;
  const om_fast_order *o = &pass->order;
  const int64_t last = om_fast_panel_count(o) - 1;
  size_t elems = om_fast_group_elems(o);
  kernel->weights = OM_FAST_TURNED;
  kernel->w_count = 1;
  for (uint32_t i = pass->batch_axes; i-- > 0;) {
    if (pass->w_steps[i] == 0) continue;
    kernel->w_at[i] = kernel->w_count;
    kernel->w_count *= pass->batch[i];
  }
  if (o->col_stride == 1 && pass->count[2] <= FEW_ROWS) {
    kernel->weights = OM_FAST_IN_PLACE;
    elems = (size_t)(om_fast_panel_width(o, last) * o->depth);
    if (o->cols - last * o->width == om_fast_panel_width(o, last)) elems = 0;
  }
  kernel->w_bytes = om_size_align((size_t)kernel->w_count * elems * sizeof(float), 64);
}

static bool has_batch(const om_fast_pass *pass) {
  for (uint32_t i = 0; i < pass->batch_axes; ++i) {
    if (pass->w_steps[i] != 0) return true;
  }
  return false;
}

om_status om_fast_product_create(om_ctx *ctx,
                                 om_fast *fast,
                                 const om_fast_product *product,
                                 om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  om_fast_kernel *kernel = NULL;
  *out_kernel = NULL;
  OM_GO(om_fast_kernel_new(ctx, &product->epilogue, 1, &kernel));
  om_fast_pass *pass = kernel->passes;
  OM_GO_NEW(pass->taps, 1);
  pass->tap_count = 1;
  describe(product, pass);
  pass->order = order_of(product, kernel->set);
  turn_a(product, kernel);
  if (product->b.data && !has_batch(pass)) {
    OM_GO(om_fast_pack_get(ctx, fast, &product->b, &pass->order, kernel, &pass->packed));
  } else {
    place_weights(kernel);
  }
  OM_GO(om_fast_kernel_complete(ctx, kernel));
  *out_kernel = kernel;
  kernel = NULL; /* the caller owns it now */
done:
  om_fast_kernel_destroy(ctx, kernel);
  return st;
}
