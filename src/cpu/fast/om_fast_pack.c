/* Weights in the order in which tiles read them: panels of columns, the last one no wider than it
 * has to be, in each of them term by term. They may lie in a model's file, at any byte. */
#include "base/om_thread.h"
#include "cpu/fast/om_fast_pass.h"

int64_t om_fast_panel_count(const om_fast_order *order) {
  return (order->cols + order->width - 1) / order->width;
}

/* The last panel of a product has one vector where that is enough. */
int64_t om_fast_panel_width(const om_fast_order *order, int64_t panel) {
  const int64_t left = order->cols - panel * order->width;
  if (order->width == order->cols) return order->width; /* columns apart: no vectors to fill */
  return left <= order->width / 2 ? order->width / 2 : order->width;
}

static int64_t term_count(const om_fast_order *order) {
  return order->taps[0] * order->taps[1] * order->taps[2] * order->depth;
}

size_t om_fast_group_elems(const om_fast_order *order) {
  const int64_t panels = om_fast_panel_count(order);
  const int64_t width = (panels - 1) * order->width + om_fast_panel_width(order, panels - 1);
  return (size_t)(width * term_count(order));
}

typedef struct job {
  const om_fast_order *order;
  const om_fast_lender *lender;
  int64_t first_panel, panels;
  const float *source;
  float *target;
} job;

static inline float weight_at(const float *from, int64_t index) {
  float weight;
  memcpy(&weight, (const char *)from + index * (int64_t)sizeof weight, sizeof weight);
  return weight;
}

/* One tap of a panel. Reads along the axis on which the source is dense. */
static void pack_tap(
    const om_fast_order *o, const float *from, int64_t cols, int64_t width, float *to) {
  if (o->col_stride == 1) {
    for (int64_t k = 0; k < o->depth; ++k) {
      const float *row = from + k * o->depth_stride;
      for (int64_t c = 0; c < cols; ++c) to[k * width + c] = weight_at(row, c);
      for (int64_t c = cols; c < width; ++c) to[k * width + c] = 0.0f;
    }
    return;
  }
  for (int64_t c = 0; c < width; ++c) {
    const float *col = from + c * o->col_stride;
    for (int64_t k = 0; k < o->depth; ++k) {
      to[k * width + c] = c < cols ? weight_at(col, k * o->depth_stride) : 0.0f;
    }
  }
}

enum { PART = 4 }; /* columns at once: a row of such for each weight lies on the stack */

/* What three weights become along an axis: the sums of four products with what om_tile.inc's SPREAD
 * makes of the inputs are the two results. */
static inline void spread_weights(
    const float *a, const float *b, const float *c, int64_t count, float *const *out) {
  for (int64_t i = 0; i < count; ++i) {
    out[0][i] = a[i];
    out[1][i] = 0.5f * (a[i] + b[i] + c[i]);
    out[2][i] = 0.5f * (a[i] - b[i] + c[i]);
    out[3][i] = c[i];
  }
}

/* All windows of a panel in Winograd's form; with a frame of its own. */
static __attribute__((noinline)) void pack_winograd(
    const om_fast_order *o, const float *from, int64_t cols, int64_t width, float *to) {
  float g[3][3][PART];
  float rows[4][3][PART];
  const int64_t step = width * o->depth; /* from sum to sum */
  for (int64_t at = 0; at < width; at += PART) {
    const int64_t wide = width - at < PART ? width - at : PART;
    const int64_t count = cols - at < wide ? cols - at : wide;
    memset(g, 0, sizeof g);
    for (int64_t k = 0; k < o->depth; ++k) {
      float *y = to + k * width + at;
      for (int64_t c = 0; c < count; ++c) {
        const float *w = from + (at + c) * o->col_stride + k * o->depth_stride;
        for (int i = 0; i < 9; ++i) {
          const int64_t tap = i / 3 * o->tap_strides[1] + i % 3 * o->tap_strides[2];
          g[i / 3][i % 3][c] = weight_at(w, tap);
        }
      }
      for (int i = 0; i < 3; ++i) {
        float *const out[] = {rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
        spread_weights(g[0][i], g[1][i], g[2][i], wide, out);
      }
      for (int i = 0; i < 4; ++i, y += 4 * step) {
        float *const out[] = {y, y + step, y + 2 * step, y + 3 * step};
        spread_weights(rows[i][0], rows[i][1], rows[i][2], wide, out);
      }
    }
  }
}

enum { LARGE_BYTES = 1 << 20 }; /* weights of a panel: worth it to let their pages go at once */

/* Tells of a panel's weights where they lie side by side, so that large ones are never in memory
 * twice as a whole. */
static void tell_packed(const job *j, const float *from, int64_t cols) {
  const om_fast_order *o = j->order;
  const int64_t bytes = cols * o->col_stride * (int64_t)sizeof(float);
  if (!j->lender || !j->lender->on_packed || bytes < LARGE_BYTES) return;
  if (o->col_stride < o->depth || o->depth_stride > o->col_stride) return;
  j->lender->on_packed(j->lender->lender, from, (size_t)bytes);
}

static void pack_panels(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const om_fast_order *o = j->order;
  for (size_t i = begin; i < end; ++i) {
    const int64_t group = (int64_t)i / j->panels;
    const int64_t panel = j->first_panel + (int64_t)i % j->panels;
    const int64_t width = om_fast_panel_width(o, panel);
    const int64_t left = o->cols - panel * o->width;
    const float *from =
        j->source + o->first + group * o->group_stride + panel * o->width * o->col_stride;
    float *to = j->target + (panel - j->first_panel) * o->width * term_count(o);
    to += group * (int64_t)om_fast_group_elems(o); /* where panels are left out there is one */
    if (o->is_winograd) {
      pack_winograd(o, from, left < width ? left : width, width, to);
      tell_packed(j, from, left < width ? left : width);
      continue;
    }
    for (int64_t a = 0; a < o->taps[0]; ++a) {
      for (int64_t b = 0; b < o->taps[1]; ++b) {
        for (int64_t c = 0; c < o->taps[2]; ++c, to += width * o->depth) {
          const float *tap = from + a * o->tap_strides[0] + b * o->tap_strides[1];
          pack_tap(o, tap + c * o->tap_strides[2], left < width ? left : width, width, to);
        }
      }
    }
    tell_packed(j, from, left < width ? left : width);
  }
}

void om_fast_pack_run(om_ctx *ctx,
                      const om_fast_order *order,
                      const om_fast_lender *lender,
                      int64_t first_panel,
                      const float *source,
                      float *target) {
  job j = {.order = order,
           .lender = lender,
           .first_panel = first_panel,
           .panels = om_fast_panel_count(order) - first_panel,
           .source = source,
           .target = target};
  const int64_t elems = order->width * term_count(order);
  const size_t grain = elems >= 16384 ? 1 : (size_t)(16384 / (elems + 1) + 1);
  om_parallel_for(ctx, (size_t)(order->groups * j.panels), grain, pack_panels, &j);
}

static void delete_pack(om_ctx *ctx, om_fast_pack *pack) {
  if (!pack) return;
  om_delete(ctx, pack->data);
  om_delete(ctx, pack);
}

static om_status make_pack(om_ctx *ctx,
                           const om_fast_order *order,
                           const om_fast_lender *lender,
                           const float *source,
                           om_fast_pack **out_pack) {
  om_status st = OM_OK;
  om_fast_pack *pack = NULL;
  OM_GO_NEW(pack, 1);
  pack->source = source;
  pack->order = *order;
  pack->data = om_new_bytes(ctx, (size_t)order->groups * om_fast_group_elems(order), sizeof(float));
  if (!pack->data) OM_GO(OM_E_OUT_OF_MEMORY);
  om_fast_pack_run(ctx, order, lender, 0, source, pack->data);
  *out_pack = pack;
  pack = NULL; /* the caller owns it now */
done:
  delete_pack(ctx, pack);
  return st;
}

om_status om_fast_pack_get(om_ctx *ctx,
                           om_fast *fast,
                           const om_fast_weights *weights,
                           const om_fast_order *order,
                           om_fast_kernel *kernel,
                           const float **out_packed) {
  om_fast_pack **list = weights->is_kept ? &fast->packs : &kernel->own_packs;
  om_fast_pack *pack = weights->is_kept ? fast->packs : NULL;
  while (pack &&
         (pack->source != weights->data || memcmp(&pack->order, order, sizeof *order) != 0)) {
    pack = pack->next;
  }
  if (!pack) {
    OM_TRY(make_pack(ctx, order, weights->is_kept ? &fast->lender : NULL, weights->data, &pack));
    pack->next = *list;
    *list = pack;
  }
  *out_packed = pack->data;
  return OM_OK;
}

void om_fast_packs_delete(om_ctx *ctx, om_fast_pack *packs) {
  while (packs) {
    om_fast_pack *next = packs->next;
    delete_pack(ctx, packs);
    packs = next;
  }
}

static bool is_form(const om_fast_form *a, const om_fast_form *b) {
  return a->kind == b->kind && a->depth == b->depth && a->cols == b->cols;
}

om_status om_fast_block_get(om_ctx *ctx,
                            om_fast *fast,
                            const void *source,
                            om_fast_form form,
                            size_t bytes,
                            bool *out_is_new,
                            uint8_t **out_data) {
  om_status st = OM_OK;
  om_fast_block *block = fast->blocks;
  while (block && (block->source != source || !is_form(&block->form, &form))) block = block->next;
  *out_is_new = block == NULL;
  if (block) {
    *out_data = block->data;
    return OM_OK;
  }
  OM_GO_NEW(block, 1);
  *block = (om_fast_block){fast->blocks, source, form, om_new_bytes(ctx, bytes, 1)};
  if (!block->data) OM_GO(OM_E_OUT_OF_MEMORY);
  *out_data = block->data;
  fast->blocks = block;
  block = NULL; /* the list owns it now */
done:
  om_delete(ctx, block);
  return st;
}

static void delete_blocks(om_ctx *ctx, om_fast_block *blocks) {
  while (blocks) {
    om_fast_block *next = blocks->next;
    om_delete(ctx, blocks->data);
    om_delete(ctx, blocks);
    blocks = next;
  }
}

om_status om_fast_create(om_ctx *ctx, om_fast_lender lender, om_fast **out_fast) {
  *out_fast = om_new_bytes(ctx, 1, sizeof **out_fast);
  if (!*out_fast) return OM_E_OUT_OF_MEMORY;
  (*out_fast)->lender = lender;
  return OM_OK;
}

void om_fast_destroy(om_ctx *ctx, om_fast *fast) {
  if (!fast) return;
  om_fast_packs_delete(ctx, fast->packs);
  delete_blocks(ctx, fast->blocks);
  om_delete(ctx, fast);
}
