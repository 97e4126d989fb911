/* Rows. The 256 lanes of a sum are held 64 at a time, in the order in which the tree joins
 * them: (0 + 2) + (1 + 3), as om_exact_sum.h has it. */
#include "cpu/exact/om_row.h"

#include <math.h>

#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_exact_sum.h"
#include "cpu/exact/om_extremes.h"

enum {
  OM_ROW_CHUNK = 32,    /* elements loaded at a time; divides a slice of lanes */
  OM_ROW_PIECE = 16384, /* elements a parallel piece */
};

static void add_axis(
    uint32_t *rank, size_t *extents, size_t *strides, size_t extent, size_t stride) {
  if (extent == 1) return;
  if (*rank > 0 && strides[*rank - 1] == stride * extent) {
    extents[*rank - 1] *= extent;
    strides[*rank - 1] = stride;
    return;
  }
  extents[*rank] = extent;
  strides[*rank] = stride;
  ++*rank;
}

void om_rows_init(om_rows *rows, const om_tensor *tensor, uint32_t reduced_axes) {
  size_t strides[OM_MAX_RANK] = {0};
  size_t stride = 1;
  memset(rows, 0, sizeof *rows);
  rows->dtype = tensor->dtype;
  rows->row_count = rows->row_elems = 1;
  for (uint32_t d = tensor->rank; d-- > 0;) {
    strides[d] = stride;
    stride *= (size_t)tensor->dims[d];
  }
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    size_t extent = (size_t)tensor->dims[d];
    if (reduced_axes & (1u << d)) {
      rows->row_elems *= extent;
      add_axis(
          &rows->reduced_rank, rows->reduced_extents, rows->reduced_strides, extent, strides[d]);
    } else {
      rows->row_count *= extent;
      add_axis(&rows->kept_rank, rows->kept_extents, rows->kept_strides, extent, strides[d]);
    }
  }
}

static size_t place(uint32_t rank, const size_t *extents, const size_t *strides, size_t index) {
  size_t offset = 0;
  for (uint32_t d = rank; d-- > 0;) {
    offset += index % extents[d] * strides[d];
    index /= extents[d];
  }
  return offset;
}

om_row om_row_get(const om_rows *rows, const void *data, size_t index) {
  return (om_row){
      rows, data, place(rows->kept_rank, rows->kept_extents, rows->kept_strides, index)};
}

size_t om_row_place(const om_row *row, size_t index) {
  const om_rows *r = row->rows;
  return row->offset + place(r->reduced_rank, r->reduced_extents, r->reduced_strides, index);
}

const float *om_row_dense(const om_row *row) {
  const om_rows *r = row->rows;
  bool is_dense = r->reduced_rank == 0 || (r->reduced_rank == 1 && r->reduced_strides[0] == 1);
  if (r->dtype != OM_DTYPE_F32 || !is_dense) return NULL;
  return (const float *)row->data + row->offset;
}

/* Calls for runs of elements that are `stride` apart: from element `index` of the row on, at most
 * `count`. Returns how many. */
static size_t run_at(
    const om_row *row, size_t index, size_t count, size_t *out_place, size_t *out_stride) {
  const om_rows *r = row->rows;
  *out_place = om_row_place(row, index);
  *out_stride = 1;
  if (r->reduced_rank == 0) return count;
  uint32_t last = r->reduced_rank - 1;
  size_t left = r->reduced_extents[last] - index % r->reduced_extents[last];
  *out_stride = r->reduced_strides[last];
  return left < count ? left : count;
}

void om_row_load(const om_row *row, size_t first, size_t count, float *out) {
  for (size_t done = 0; done < count;) {
    size_t from = 0;
    size_t stride = 1;
    size_t run = run_at(row, first + done, count - done, &from, &stride);
    if (row->rows->dtype == OM_DTYPE_F32) {
      const float *x = (const float *)row->data + from;
      if (stride == 1) {
        memcpy(out + done, x, run * sizeof *x);
      } else {
        for (size_t i = 0; i < run; ++i) out[done + i] = x[i * stride];
      }
    } else {
      const uint16_t *x = (const uint16_t *)row->data + from;
      for (size_t i = 0; i < run; ++i) {
        om_half_to_f32(row->rows->dtype, x + i * stride, 1, out + done + i);
      }
    }
    done += run;
  }
}

void om_row_store(
    const om_row *row, void *target, size_t first, size_t count, const float *values) {
  for (size_t done = 0; done < count;) {
    size_t to = 0;
    size_t stride = 1;
    size_t run = run_at(row, first + done, count - done, &to, &stride);
    if (row->rows->dtype == OM_DTYPE_F32) {
      float *y = (float *)target + to;
      if (stride == 1) {
        memcpy(y, values + done, run * sizeof *y);
      } else {
        for (size_t i = 0; i < run; ++i) y[i * stride] = values[done + i];
      }
    } else {
      uint16_t *y = (uint16_t *)target + to;
      for (size_t i = 0; i < run; ++i) {
        om_half_from_f32(row->rows->dtype, values + done + i, 1, y + i * stride);
      }
    }
    done += run;
  }
}

OM_CLONES static void fold_chunk(
    om_row_term term, float c, const float *x, size_t count, float *lane) {
  switch (term) {
    case OM_ROW_VALUE:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + x[i];
      break;
    case OM_ROW_ABS:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + om_abs(x[i]);
      break;
    case OM_ROW_SQUARE:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + x[i] * x[i];
      break;
    case OM_ROW_EXP:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + om_exp(x[i] - c);
      break;
    case OM_ROW_DIFFERENCE_SQUARE:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + (x[i] - c) * (x[i] - c);
      break;
    case OM_ROW_FACTOR:
      for (size_t i = 0; i < count; ++i) lane[i] = lane[i] * x[i];
      break;
  }
}

/* lane[i] joined with other[i]. */
OM_CLONES static void join(om_row_term term, float *lane, const float *other, size_t count) {
  if (term == OM_ROW_FACTOR) {
    for (size_t i = 0; i < count; ++i) lane[i] = lane[i] * other[i];
  } else {
    for (size_t i = 0; i < count; ++i) lane[i] = lane[i] + other[i];
  }
}

/* Lanes [first, first + 64) over the whole row. */
static void fold_slice(const om_row *row, om_row_term term, float c, size_t first, float *lane) {
  float chunk[OM_ROW_CHUNK];
  size_t count = row->rows->row_elems;
  const float *dense = om_row_dense(row);
  for (size_t i = 0; i < OM_ROW_SLICE; ++i) lane[i] = term == OM_ROW_FACTOR ? 1.0f : 0.0f;
  for (size_t base = first; base < count; base += OM_ROW_LANES) {
    if (om_row_is_over(row, base - first)) return;
    size_t lanes = count - base < OM_ROW_SLICE ? count - base : OM_ROW_SLICE;
    if (dense) {
      fold_chunk(term, c, dense + base, lanes, lane);
      continue;
    }
    for (size_t i = 0; i < lanes; i += OM_ROW_CHUNK) {
      size_t part = lanes - i < OM_ROW_CHUNK ? lanes - i : OM_ROW_CHUNK;
      om_row_load(row, base + i, part, chunk);
      fold_chunk(term, c, chunk, part, lane + i);
    }
  }
}

OM_DEFINE_ROW_SUM(sum_values, v)
OM_DEFINE_ROW_SUM(sum_squares, v *v)
OM_DEFINE_ROW_SUM(sum_difference_squares, (v - c) * (v - c))

/* The terms that normalisations add, of a row that is dense. */
OM_CLONES static float fold_dense(om_row_term term, const float *x, size_t count, float c) {
  if (term == OM_ROW_VALUE) return sum_values(x, count, c);
  if (term == OM_ROW_SQUARE) return sum_squares(x, count, c);
  return sum_difference_squares(x, count, c);
}

float om_row_fold(const om_row *row, om_row_term term, float c) {
  /* A long row asks for an end within. */
  const float *dense = row->rows->row_elems <= OM_ROW_PIECE ? om_row_dense(row) : NULL;
  if (dense &&
      (term == OM_ROW_VALUE || term == OM_ROW_SQUARE || term == OM_ROW_DIFFERENCE_SQUARE)) {
    return fold_dense(term, dense, row->rows->row_elems, c);
  }
  float even[OM_ROW_SLICE];
  float odd[OM_ROW_SLICE];
  float other[OM_ROW_SLICE];
  fold_slice(row, term, c, 0, even);
  fold_slice(row, term, c, OM_ROW_SLICE * 2, other);
  join(term, even, other, OM_ROW_SLICE);
  fold_slice(row, term, c, OM_ROW_SLICE, odd);
  fold_slice(row, term, c, OM_ROW_SLICE * 3, other);
  join(term, odd, other, OM_ROW_SLICE);
  join(term, even, odd, OM_ROW_SLICE);
  for (size_t half = OM_ROW_SLICE / 2; half >= 1; half /= 2) join(term, even, even + half, half);
  return even[0];
}

OM_CLONES static void join_extremes(bool wants_largest, float *best, const float *x, size_t count) {
  if (wants_largest) {
    for (size_t k = 0; k < count; ++k) best[k] = om_lane_max(best[k], x[k]);
  } else {
    for (size_t k = 0; k < count; ++k) best[k] = om_lane_min(best[k], x[k]);
  }
}

/* The largest, or the smallest, by lanes of their own: exact in any order. */
static float find_extreme(const om_row *row, bool wants_largest) {
  float chunk[OM_ROW_CHUNK];
  float best[OM_ROW_CHUNK];
  const float *dense = om_row_dense(row);
  float extreme = wants_largest ? -INFINITY : INFINITY;
  for (size_t k = 0; k < OM_ROW_CHUNK; ++k) best[k] = extreme;
  for (size_t i = 0; i < row->rows->row_elems; i += OM_ROW_CHUNK) {
    if (om_row_is_over(row, i)) break;
    size_t left = row->rows->row_elems - i;
    size_t count = left < OM_ROW_CHUNK ? left : OM_ROW_CHUNK;
    const float *x = dense ? dense + i : chunk;
    if (!dense) om_row_load(row, i, count, chunk);
    join_extremes(wants_largest, best, x, count);
  }
  for (size_t k = 0; k < OM_ROW_CHUNK; ++k) {
    extreme = wants_largest ? om_max(extreme, best[k]) : om_min(extreme, best[k]);
  }
  return extreme;
}

float om_row_largest(const om_row *row) {
  return find_extreme(row, true);
}

float om_row_smallest(const om_row *row) {
  return find_extreme(row, false);
}

size_t om_rows_grain(const om_rows *rows) {
  size_t elems = rows->row_elems == 0 ? 1 : rows->row_elems;
  return elems >= OM_ROW_PIECE ? 1 : OM_ROW_PIECE / elems;
}
