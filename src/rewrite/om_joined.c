/* Reading matrices side by side: see om_joined.h. */
#include "rewrite/om_joined.h"

typedef struct joined {
  om_stored stored; /* first */
  om_joined_part parts[OM_JOINED_PARTS];
  size_t part_count;
} joined;

typedef struct range { /* of elements of the joined matrix */
  size_t begin, end;
} range;

static size_t elem_bytes_of(const om_tensor *tensor) {
  return om_dtype_bits(tensor->dtype) / 8;
}

static range range_of(const om_stored *self, uint64_t offset, uint64_t byte_count) {
  const size_t bytes = elem_bytes_of(&self->tensor);
  return (range){(size_t)(offset / bytes), (size_t)((offset + byte_count) / bytes)};
}

static om_status ask_range(om_ctx *ctx,
                           const om_stored *self,
                           uint64_t offset,
                           uint64_t byte_count) {
  const joined *j = (const joined *)self;
  const range r = range_of(self, offset, byte_count);
  const size_t columns = (size_t)self->tensor.dims[1];
  const size_t first_row = r.begin / columns, end_row = (r.end + columns - 1) / columns;
  om_status late = OM_OK;
  for (size_t i = 0; i < j->part_count; ++i) {
    const om_joined_part *p = &j->parts[i];
    const uint64_t row_bytes = p->width * elem_bytes_of(p->source);
    const uint64_t begin = p->is_turned ? 0 : first_row * row_bytes;
    const uint64_t bytes = p->is_turned ? p->source->data_bytes : (end_row - first_row) * row_bytes;
    OM_TRY(om_put_off(om_constant_ask(ctx, p->source, begin, bytes), &late));
  }
  return late;
}

/* What of the part's rows is in the range, a run of columns at a time. */
static om_status read_rows(
    om_ctx *ctx, const om_joined_part *p, range r, size_t columns, char *to) {
  const size_t bytes = elem_bytes_of(p->source);
  for (size_t row = r.begin / columns; row * columns < r.end; ++row) {
    size_t begin = row * columns + p->first, end = begin + p->width;
    const size_t row_begin = begin;
    if (begin < r.begin) begin = r.begin;
    if (end > r.end) end = r.end;
    if (begin >= end) continue;
    const size_t at = row * p->width + (begin - row_begin);
    OM_TRY(om_constant_read(
        ctx, p->source, at * bytes, (end - begin) * bytes, to + (begin - r.begin) * bytes));
  }
  return OM_OK;
}

/* The same where each column of the range is a run of the source. `run` has room for one. */
static om_status read_columns(
    om_ctx *ctx, const om_joined_part *p, range r, const om_tensor *whole, char *run, char *to) {
  const size_t bytes = elem_bytes_of(p->source);
  const size_t rows = (size_t)whole->dims[0], columns = (size_t)whole->dims[1];
  for (size_t col = p->first; col < p->first + p->width; ++col) {
    const size_t begin = r.begin > col ? (r.begin - col + columns - 1) / columns : 0;
    const size_t end = r.end > col ? (r.end - col + columns - 1) / columns : 0;
    if (begin >= end) continue;
    const size_t at = (col - p->first) * rows + begin;
    OM_TRY(om_constant_read(ctx, p->source, at * bytes, (end - begin) * bytes, run));
    for (size_t row = begin; row < end; ++row) {
      memcpy(to + (row * columns + col - r.begin) * bytes, run + (row - begin) * bytes, bytes);
    }
  }
  return OM_OK;
}

static om_status read_range(
    om_ctx *ctx, const om_stored *self, uint64_t offset, size_t byte_count, void *to) {
  om_status st = OM_OK;
  const joined *j = (const joined *)self;
  const om_tensor *whole = &self->tensor;
  const range r = range_of(self, offset, byte_count);
  char *run = NULL; /* scratch */
  OM_GO_NEW(run, (size_t)whole->dims[0] * elem_bytes_of(whole));
  for (size_t i = 0; i < j->part_count; ++i) {
    const om_joined_part *p = &j->parts[i];
    if (p->is_turned) {
      OM_GO(read_columns(ctx, p, r, whole, run, to));
    } else {
      OM_GO(read_rows(ctx, p, r, (size_t)whole->dims[1], to));
    }
  }
done:
  om_delete(ctx, run);
  return st;
}

om_status om_joined_create(om_ctx *ctx,
                           om_pool *pool,
                           const om_tensor *like,
                           const om_joined_part *parts,
                           size_t part_count,
                           const om_tensor **out_tensor) {
  joined *j = OM_POOL_NEW(ctx, pool, joined, 1);
  if (!j) return OM_E_OUT_OF_MEMORY;
  j->stored = (om_stored){.tensor = *like, .ask = ask_range, .read = read_range};
  j->stored.tensor.data = NULL;
  j->stored.tensor.data_bytes = om_tensor_elems(like) * elem_bytes_of(like);
  memcpy(j->parts, parts, part_count * sizeof *parts);
  j->part_count = part_count;
  *out_tensor = &j->stored.tensor;
  return OM_OK;
}
