/* The copy is simplified, then cut along its outer axes into rows; a row is one memcpy where both
 * sides are dense, else a loop over elements of a fixed width. */
#include "cpu/exact/om_strided.h"

#include "base/om_thread.h"

typedef struct om_elem16 { /* strings and complex128 */
  uint64_t halves[2];
} om_elem16;

void om_dense_strides(uint32_t rank, const int64_t *dims, int64_t *out_strides) {
  int64_t stride = 1;
  bool is_empty = false; /* then the product of the other extents may overflow */
  for (uint32_t i = 0; i < rank; ++i) is_empty = is_empty || dims[i] == 0;
  for (uint32_t i = rank; i-- > 0;) {
    out_strides[i] = stride;
    if (!is_empty) stride *= dims[i];
  }
}

size_t om_strided_elems(const om_strided *copy) {
  size_t elems = 1;
  for (uint32_t i = 0; i < copy->rank; ++i) elems *= (size_t)copy->extents[i];
  return elems;
}

static void set_single_axis(om_strided *copy, int64_t extent) {
  copy->rank = 1;
  copy->extents[0] = extent;
  copy->source_strides[0] = 1;
  copy->target_strides[0] = 1;
}

void om_strided_simplify(om_strided *copy) {
  uint32_t rank = 0;
  if (om_strided_elems(copy) == 0) {
    set_single_axis(copy, 0);
    return;
  }
  for (uint32_t i = 0; i < copy->rank; ++i) {
    int64_t extent = copy->extents[i];
    int64_t source = copy->source_strides[i];
    int64_t target = copy->target_strides[i];
    if (extent == 1) continue;
    if (rank != 0 && copy->source_strides[rank - 1] == source * extent &&
        copy->target_strides[rank - 1] == target * extent) {
      copy->extents[rank - 1] *= extent;
    } else {
      copy->extents[rank++] = extent;
    }
    copy->source_strides[rank - 1] = source;
    copy->target_strides[rank - 1] = target;
  }
  copy->rank = rank;
  if (rank == 0) set_single_axis(copy, 1);
}

typedef struct om_strided_job {
  const om_strided *copy;
  const uint8_t *source;
  uint8_t *target;
  size_t elem_bytes;
} om_strided_job;

#define OM_COPY_ROW(type)                                                          \
  do {                                                                             \
    const type *from = (const type *)(const void *)source;                         \
    type *to = (type *)(void *)target;                                             \
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride]; \
  } while (0)

static void copy_row(size_t elem_bytes,
                     int64_t count,
                     const uint8_t *source,
                     int64_t from_stride,
                     uint8_t *target,
                     int64_t to_stride) {
  if (from_stride == 1 && to_stride == 1) {
    memcpy(target, source, (size_t)count * elem_bytes);
  } else if (elem_bytes == 1) {
    OM_COPY_ROW(uint8_t);
  } else if (elem_bytes == 2) {
    OM_COPY_ROW(uint16_t);
  } else if (elem_bytes == 4) {
    OM_COPY_ROW(uint32_t);
  } else if (elem_bytes == 8) {
    OM_COPY_ROW(uint64_t);
  } else {
    OM_COPY_ROW(om_elem16);
  }
}

static void copy_rows(void *arg, size_t begin, size_t end) {
  const om_strided_job *job = arg;
  const om_strided *copy = job->copy;
  const uint32_t last = copy->rank - 1;
  int64_t index[OM_STRIDED_MAX_RANK] = {0};
  int64_t source = copy->source_offset;
  int64_t target = copy->target_offset;
  size_t rest = begin;
  for (uint32_t axis = last; axis-- > 0;) {
    index[axis] = (int64_t)(rest % (size_t)copy->extents[axis]);
    rest /= (size_t)copy->extents[axis];
    source += index[axis] * copy->source_strides[axis];
    target += index[axis] * copy->target_strides[axis];
  }
  const int64_t bytes = (int64_t)job->elem_bytes;
  for (size_t row = begin; row < end; ++row) {
    copy_row(job->elem_bytes,
             copy->extents[last],
             job->source + source * bytes,
             copy->source_strides[last],
             job->target + target * bytes,
             copy->target_strides[last]);
    for (uint32_t axis = last; axis-- > 0;) {
      source += copy->source_strides[axis];
      target += copy->target_strides[axis];
      if (++index[axis] < copy->extents[axis]) break;
      source -= index[axis] * copy->source_strides[axis];
      target -= index[axis] * copy->target_strides[axis];
      index[axis] = 0;
    }
  }
}

enum {
  OM_PIECE_BYTES = 1 << 16, /* of one thread's turn: far above the cost of taking it */
  OM_SHORT_ROW = 8,
  OM_NEAR_STEP = 16, /* elements: neighbours share a line of 64 bytes */
  OM_NEAR_BYTES = 1 << 15,
};

/* A short row is not worth its beginning. An axis that goes by neighbours on one side takes the
 * place of the last one, where it is far longer. */
static void lengthen_rows(om_strided *copy) {
  const uint32_t last = copy->rank - 1;
  uint32_t best = last;
  if (copy->extents[last] >= OM_SHORT_ROW) return;
  for (uint32_t i = 0; i < last; ++i) {
    const int64_t source = copy->source_strides[i];
    const int64_t target = copy->target_strides[i];
    const bool is_near =
        (source > 0 && source < OM_NEAR_STEP) || (target > 0 && target < OM_NEAR_STEP);
    if (is_near && copy->extents[i] > 4 * copy->extents[best]) best = i;
  }
  if (best == last) return;
  const om_strided old = *copy;
  copy->extents[last] = old.extents[best];
  copy->source_strides[last] = old.source_strides[best];
  copy->target_strides[last] = old.target_strides[best];
  copy->extents[best] = old.extents[last];
  copy->source_strides[best] = old.source_strides[last];
  copy->target_strides[best] = old.target_strides[last];
}

/* Where a row goes by far steps on one side, and another axis by neighbours there, the rows are cut
 * so that the lines of one part stay near until that axis has had all of them. What is left of the
 * rows is *out_rest; 0 elements: nothing. */
static void cut_rows(om_strided *copy, size_t elem_bytes, om_strided *out_rest) {
  const uint32_t last = copy->rank - 1;
  const int64_t source = copy->source_strides[last];
  const int64_t target = copy->target_strides[last];
  const int64_t step = source > target ? source : target;
  const int64_t *strides = source > target ? copy->source_strides : copy->target_strides;
  const int64_t part = step > 1 ? OM_NEAR_BYTES / (step * (int64_t)elem_bytes) : 0;
  uint32_t near = 0;
  *out_rest = (om_strided){.rank = 1};
  while (near < last && strides[near] != 1) ++near;
  if (near == last || copy->rank == OM_STRIDED_MAX_RANK) return;
  if (part < OM_NEAR_STEP || part >= copy->extents[last]) return;
  const int64_t parts = copy->extents[last] / part;
  *out_rest = *copy;
  out_rest->extents[last] -= parts * part;
  out_rest->source_offset += parts * part * source;
  out_rest->target_offset += parts * part * target;
  for (uint32_t i = last + 1; i > near; --i) {
    copy->extents[i] = copy->extents[i - 1];
    copy->source_strides[i] = copy->source_strides[i - 1];
    copy->target_strides[i] = copy->target_strides[i - 1];
  }
  ++copy->rank;
  copy->extents[last + 1] = part;
  copy->extents[near] = parts;
  copy->source_strides[near] = part * source;
  copy->target_strides[near] = part * target;
}

static void run_copy(
    om_ctx *ctx, const om_strided *copy, size_t elem_bytes, const void *source, void *target) {
  const size_t elems = om_strided_elems(copy);
  const size_t row = (size_t)copy->extents[copy->rank - 1];
  if (elems == 0 || row == 0) return;
  const size_t grain = OM_PIECE_BYTES / (row * elem_bytes);
  om_strided_job job = {copy, source, target, elem_bytes};
  om_parallel_for(ctx, elems / row, grain > 0 ? grain : 1, copy_rows, &job);
}

void om_strided_copy(
    om_ctx *ctx, const om_strided *copy, size_t elem_bytes, const void *source, void *target) {
  om_strided simple = *copy;
  om_strided rest;
  om_strided_simplify(&simple);
  lengthen_rows(&simple);
  cut_rows(&simple, elem_bytes, &rest);
  run_copy(ctx, &simple, elem_bytes, source, target);
  run_copy(ctx, &rest, elem_bytes, source, target);
}

typedef struct om_fill_job {
  uint8_t *target;
  const void *elem;
  size_t elem_bytes;
} om_fill_job;

static void fill_range(void *arg, size_t begin, size_t end) {
  const om_fill_job *job = arg;
  uint8_t *target = job->target + begin * job->elem_bytes;
  const size_t bytes = (end - begin) * job->elem_bytes;
  size_t done = job->elem_bytes;
  memcpy(target, job->elem, done);
  while (done < bytes) { /* what is there, doubled */
    const size_t more = done < bytes - done ? done : bytes - done;
    memcpy(target + done, target, more);
    done += more;
  }
}

void om_fill(om_ctx *ctx, void *target, size_t count, const void *elem, size_t elem_bytes) {
  om_fill_job job = {target, elem, elem_bytes};
  om_parallel_for(ctx, count, OM_PIECE_BYTES / elem_bytes, fill_range, &job);
}
