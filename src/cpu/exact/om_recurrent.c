/* A direction is a product of all inputs with W, then for each step a product of the states with
 * R and a pass over the items of the batch.
 *
 *     scratch: [R turned] [x W] [h R] [h] [c] [h times r] [biases] [a row per item] [products' own]
 *
 * Of R the gates that read the same state are turned together: all of them, except for the
 * candidate of a GRU that is reset before the product.
 */
#include "cpu/exact/om_recurrent.h"

#include "base/om_thread.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_matmul.h"

typedef struct om_recurrent_job {
  const om_recurrent *r;
  size_t elem_bytes;
  size_t width;  /* gates * hidden: a row of gates */
  size_t early;  /* columns of R whose product needs the state alone */
  size_t step;   /* 0, 1, ... also where the direction is reverse */
  size_t turned; /* offsets into the scratch, in elements */
  size_t own;    /* the products' */
  size_t xw, hr, h, c, reset, bias, row;
  size_t elems;
  char *scratch;
} om_recurrent_job;

size_t om_recurrent_gates(om_recurrent_kind kind) {
  return kind == OM_RNN ? 1 : kind == OM_GRU ? 3 : 4;
}

size_t om_recurrent_early(const om_recurrent *r) {
  const bool resets_before = r->kind == OM_GRU && !r->resets_after;
  return (resets_before ? 2 : om_recurrent_gates(r->kind)) * r->hidden;
}

static size_t take(om_recurrent_job *job, size_t elems) {
  const size_t at = job->elems;
  job->elems += om_size_align(elems, 16);
  return at;
}

/* Of `rows` rows with W as it lies (is_turned false), or with columns of R that are turned. */
static om_matmul product_of(size_t rows, size_t depth, size_t cols, bool is_turned) {
  return (om_matmul){
      .rows = rows,
      .cols = cols,
      .depth = depth,
      .a_row_stride = depth,
      .a_depth_stride = 1,
      .b_depth_stride = is_turned ? cols : 1,
      .b_col_stride = is_turned ? 1 : depth,
      .batch = {.rank = 1, .extents = {1}, .source_strides = {1}, .target_strides = {1}},
  };
}

/* Not inlined, as multiply: the description is large. */
__attribute__((noinline)) static size_t own_elems(
    const om_recurrent_job *job, size_t rows, size_t depth, size_t cols, bool is_turned) {
  const om_matmul m = product_of(rows, depth, cols, is_turned);
  return om_matmul_scratch_bytes(&m, job->elem_bytes) / job->elem_bytes;
}

/* Elements that the largest of the products needs. */
static size_t products_own(const om_recurrent_job *job) {
  const om_recurrent *r = job->r;
  const size_t all[3] = {own_elems(job, r->steps * r->batch, r->input, job->width, false),
                         own_elems(job, r->batch, r->hidden, job->early, true),
                         own_elems(job, r->batch, r->hidden, job->width - job->early, true)};
  size_t most = 0;
  for (size_t i = 0; i < OM_COUNT_OF(all); ++i) most = all[i] > most ? all[i] : most;
  return most;
}

static om_recurrent_job job_of(const om_recurrent *r) {
  om_recurrent_job job = {
      .r = r,
      .elem_bytes = r->dtype == OM_DTYPE_F64 ? sizeof(double) : sizeof(float),
      .width = om_recurrent_gates(r->kind) * r->hidden,
  };
  const size_t states = r->batch * r->hidden;
  job.early = om_recurrent_early(r);
  job.turned = take(&job, job.width * r->hidden);
  job.xw = take(&job, r->steps * r->batch * job.width);
  job.hr = take(&job, r->batch * job.width);
  job.h = take(&job, states);
  job.c = take(&job, states);
  job.reset = take(&job, states);
  job.bias = take(&job, 2 * job.width);
  job.row = take(&job, states);
  job.own = take(&job, products_own(&job));
  return job;
}

size_t om_recurrent_scratch_bytes(const om_recurrent *r) {
  const om_recurrent_job job = job_of(r);
  return job.elems * job.elem_bytes;
}

static void *place(const om_recurrent_job *job, size_t offset) {
  return job->scratch + offset * job->elem_bytes;
}

static const void *shifted(const om_recurrent_job *job, const void *base, size_t elems) {
  return (const char *)base + elems * job->elem_bytes;
}

/* ---- Vectors of the hidden size ---- */

static void binary(
    const om_recurrent_job *job, uint8_t number, const void *a, const void *b, void *out) {
  const void *const in[2] = {a, b};
  om_elementwise_kernel(number, job->r->dtype)(in, out, job->r->hidden, NULL);
}

static void unary(const om_recurrent_job *job, uint8_t number, const float scalars[2], void *x) {
  const double wide[2] = {(double)scalars[0], (double)scalars[1]};
  const void *const in[1] = {x};
  const bool is_wide = job->r->dtype == OM_DTYPE_F64;
  om_elementwise_kernel(number, job->r->dtype)(
      in, x, job->r->hidden, is_wide ? (const void *)wide : (const void *)scalars);
}

/* x = x * factor + shift; each only where it changes something. */
static void scale(const om_recurrent_job *job, float factor, float shift, void *x) {
  for (size_t i = 0; i < job->r->hidden; ++i) {
    if (job->r->dtype == OM_DTYPE_F64) {
      double *v = (double *)x + i;
      if (factor != 1.0f) *v = *v * (double)factor;
      if (shift != 0.0f) *v = *v + (double)shift;
    } else {
      float *v = (float *)x + i;
      if (factor != 1.0f) *v = *v * factor;
      if (shift != 0.0f) *v = *v + shift;
    }
  }
}

/* out = 1 - x */
static void complement(const om_recurrent_job *job, const void *x, void *out) {
  for (size_t i = 0; i < job->r->hidden; ++i) {
    if (job->r->dtype == OM_DTYPE_F64) {
      ((double *)out)[i] = 1.0 - ((const double *)x)[i];
    } else {
      ((float *)out)[i] = 1.0f - ((const float *)x)[i];
    }
  }
}

static void activate(const om_recurrent_job *job, uint32_t index, void *x) {
  const om_recurrent_activation *a = &job->r->activations[index];
  const float limits[2] = {-job->r->clip, job->r->clip};
  if (job->r->clips) unary(job, OM_ELEMENTWISE_Clip, limits, x);
  if (a->form == OM_RECURRENT_AFFINE) {
    scale(job, a->scalars[0], a->scalars[1], x);
    return;
  }
  if (a->form == OM_RECURRENT_SCALED_TANH) scale(job, a->scalars[1], 0.0f, x);
  unary(job, a->number, a->scalars, x);
  if (a->form == OM_RECURRENT_SCALED_TANH) scale(job, a->scalars[0], 0.0f, x);
}

/* ---- One item at one step ---- */

typedef struct om_recurrent_item {
  char *z;  /* its row of gates: x W of this step, then what becomes of it */
  char *hr; /* its row of h R */
  void *h, *c, *reset, *row;
  size_t position; /* of the step in x and y */
  bool is_over;
} om_recurrent_item;

static om_recurrent_item item_at(const om_recurrent_job *job, size_t index) {
  const om_recurrent *r = job->r;
  const size_t length = r->lengths ? (size_t)r->lengths[index] : r->steps;
  om_recurrent_item item = {.is_over = job->step >= length};
  if (item.is_over) return item;
  item.position = r->is_reverse ? length - 1 - job->step : job->step;
  const size_t x_row = item.position * r->x_step_stride + index * r->x_batch_stride;
  item.z = place(job, job->xw + x_row * job->width);
  item.hr = place(job, job->hr + index * job->early);
  item.h = place(job, job->h + index * r->hidden);
  item.c = place(job, job->c + index * r->hidden);
  item.reset = place(job, job->reset + index * r->hidden);
  item.row = place(job, job->row + index * r->hidden);
  return item;
}

static void *gate(const om_recurrent_job *job, char *row, size_t index) {
  return row + index * job->r->hidden * job->elem_bytes;
}

/* z = (x W + h R) + (both biases) for the gate at `index`. */
static void join(const om_recurrent_job *job, const om_recurrent_item *item, size_t index) {
  const size_t at = index * job->r->hidden;
  void *z = gate(job, item->z, index);
  binary(job, OM_ELEMENTWISE_Add, z, gate(job, item->hr, index), z);
  if (job->r->bias) binary(job, OM_ELEMENTWISE_Add, z, place(job, job->bias + at), z);
}

static void peep(const om_recurrent_job *job, const om_recurrent_item *item, size_t index) {
  void *z = gate(job, item->z, index);
  if (!job->r->peepholes) return;
  const void *weights = shifted(job, job->r->peepholes, index * job->r->hidden);
  binary(job, OM_ELEMENTWISE_Mul, weights, item->c, item->row);
  binary(job, OM_ELEMENTWISE_Add, z, item->row, z);
}

static void finish(const om_recurrent_job *job, const om_recurrent_item *item, size_t index) {
  const om_recurrent *r = job->r;
  const size_t at = item->position * r->y_step_stride + index * r->y_batch_stride;
  if (!r->y) return;
  memcpy((char *)r->y + at * job->elem_bytes, item->h, r->hidden * job->elem_bytes);
}

/* Gates i o f c. */
static void lstm_item(const om_recurrent_job *job, const om_recurrent_item *item) {
  void *in = gate(job, item->z, 0);
  void *out = gate(job, item->z, 1);
  void *forget = gate(job, item->z, 2);
  void *cell = gate(job, item->z, 3);
  for (size_t g = 0; g < 4; ++g) join(job, item, g);
  peep(job, item, 0);
  activate(job, 0, in);
  if (job->r->couples) {
    complement(job, in, forget);
  } else {
    peep(job, item, 2);
    activate(job, 0, forget);
  }
  activate(job, 1, cell);
  binary(job, OM_ELEMENTWISE_Mul, forget, item->c, forget);
  binary(job, OM_ELEMENTWISE_Mul, in, cell, cell);
  binary(job, OM_ELEMENTWISE_Add, forget, cell, item->c);
  peep(job, item, 1);
  activate(job, 0, out);
  memcpy(item->row, item->c, job->r->hidden * job->elem_bytes);
  activate(job, 2, item->row);
  binary(job, OM_ELEMENTWISE_Mul, out, item->row, item->h);
}

/* Gates z r h. The update and reset gates, and what the reset gate is applied to. */
static void gru_gates(const om_recurrent_job *job, const om_recurrent_item *item) {
  const om_recurrent *r = job->r;
  void *reset = gate(job, item->z, 1);
  for (size_t g = 0; g < 2; ++g) {
    join(job, item, g);
    activate(job, 0, gate(job, item->z, g));
  }
  if (!r->resets_after) {
    binary(job, OM_ELEMENTWISE_Mul, reset, item->h, item->reset);
    return;
  }
  void *u = gate(job, item->hr, 2);
  const void *bias = place(job, job->bias + job->width + 2 * r->hidden);
  if (r->bias) binary(job, OM_ELEMENTWISE_Add, u, bias, u);
  binary(job, OM_ELEMENTWISE_Mul, reset, u, u);
}

/* `u` is what joins the candidate's x W: the product of the reset state with R, or the reset
 * product. */
static void gru_state(const om_recurrent_job *job, const om_recurrent_item *item, const void *u) {
  const om_recurrent *r = job->r;
  void *update = gate(job, item->z, 0);
  void *candidate = gate(job, item->z, 2);
  binary(job, OM_ELEMENTWISE_Add, candidate, u, candidate);
  if (r->bias) {
    const void *bias = place(job, job->bias + 2 * r->hidden);
    binary(job, OM_ELEMENTWISE_Add, candidate, bias, candidate);
  }
  activate(job, 1, candidate);
  complement(job, update, item->row);
  binary(job, OM_ELEMENTWISE_Mul, item->row, candidate, candidate);
  binary(job, OM_ELEMENTWISE_Mul, update, item->h, item->row);
  binary(job, OM_ELEMENTWISE_Add, candidate, item->row, item->h);
}

static void run_items(void *arg, size_t begin, size_t end) {
  const om_recurrent_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    const om_recurrent_item item = item_at(job, i);
    if (item.is_over) continue;
    if (job->r->kind == OM_LSTM) {
      lstm_item(job, &item);
    } else if (job->r->kind == OM_GRU) {
      gru_gates(job, &item);
      if (!job->r->resets_after) continue; /* gru_late_items does the rest */
      gru_state(job, &item, gate(job, item.hr, 2));
    } else {
      join(job, &item, 0);
      activate(job, 0, item.z);
      memcpy(item.h, item.z, job->r->hidden * job->elem_bytes);
    }
    finish(job, &item, i);
  }
}

/* The second half of a step whose product needed the reset gate; h R lies behind the early part. */
static void run_late_items(void *arg, size_t begin, size_t end) {
  const om_recurrent_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    const om_recurrent_item item = item_at(job, i);
    if (item.is_over) continue;
    const size_t late = job->hr + job->r->batch * job->early + i * job->r->hidden;
    gru_state(job, &item, place(job, late));
    finish(job, &item, i);
  }
}

/* ---- A direction ---- */

__attribute__((noinline)) static void multiply(
    om_ctx *ctx, const om_recurrent_job *job, om_recurrent_product which, const void *a, void *y) {
  const om_recurrent *r = job->r;
  const bool is_turned = which != OM_RECURRENT_INPUTS;
  const bool is_late = which == OM_RECURRENT_LATE;
  const void *turned = place(job, job->turned + (is_late ? job->early * r->hidden : 0));
  void *own = place(job, job->own);
  if (r->multiply) {
    r->multiply(ctx, r->products, which, a, y);
    return;
  }
  om_matmul m = product_of(r->steps * r->batch, r->input, job->width, false);
  if (is_turned) {
    m = product_of(r->batch, r->hidden, is_late ? job->width - job->early : job->early, true);
  }
  if (r->dtype == OM_DTYPE_F64) {
    om_matmul_f64(ctx, &m, a, is_turned ? turned : r->w, y, own);
  } else {
    om_matmul_f32(ctx, &m, a, is_turned ? turned : r->w, y, own);
  }
}

/* target[col, row] = source[row, col] */
static void turn(om_ctx *ctx,
                 const om_recurrent_job *job,
                 size_t rows,
                 size_t cols,
                 const void *source,
                 void *target) {
  om_strided copy = {
      .rank = 2,
      .extents = {(int64_t)cols, (int64_t)rows},
      .source_strides = {1, (int64_t)cols},
      .target_strides = {(int64_t)rows, 1},
  };
  om_strided_copy(ctx, &copy, job->elem_bytes, source, target);
}

/* [hidden] rows of a state in or out of the dense scratch; zeros where there is no source. */
static void copy_states(const om_recurrent_job *job, const void *from, size_t state, void *to) {
  const om_recurrent *r = job->r;
  const size_t bytes = r->hidden * job->elem_bytes;
  for (size_t i = 0; i < r->batch; ++i) {
    char *dense = place(job, state + i * r->hidden);
    const size_t at = i * r->state_batch_stride * job->elem_bytes;
    if (to) {
      memcpy((char *)to + at, dense, bytes);
    } else if (from) {
      memcpy(dense, (const char *)from + at, bytes);
    } else {
      memset(dense, 0, bytes);
    }
  }
}

/* The first half is the sum of both biases, the second those of R. */
static void prepare_bias(const om_recurrent_job *job) {
  const om_recurrent *r = job->r;
  if (!r->bias) return;
  const bool keeps_candidate = r->kind == OM_GRU && r->resets_after;
  for (size_t at = 0; at < job->width; at += r->hidden) {
    const void *own = shifted(job, r->bias, at);
    const void *other = shifted(job, r->bias, job->width + at);
    void *sum = place(job, job->bias + at);
    memcpy(place(job, job->bias + job->width + at), other, r->hidden * job->elem_bytes);
    if (keeps_candidate && at == 2 * r->hidden) {
      memcpy(sum, own, r->hidden * job->elem_bytes);
    } else {
      binary(job, OM_ELEMENTWISE_Add, own, other, sum);
    }
  }
}

static void turn_r(om_ctx *ctx, const om_recurrent_job *job) {
  const om_recurrent *r = job->r;
  const size_t late = job->width - job->early;
  turn(ctx, job, job->early, r->hidden, r->r, place(job, job->turned));
  if (late > 0) {
    turn(ctx,
         job,
         late,
         r->hidden,
         shifted(job, r->r, job->early * r->hidden),
         place(job, job->turned + job->early * r->hidden));
  }
}

static void prepare(om_ctx *ctx, const om_recurrent_job *job) {
  const om_recurrent *r = job->r;
  if (!r->multiply) turn_r(ctx, job);
  multiply(ctx, job, OM_RECURRENT_INPUTS, r->x, place(job, job->xw));
  prepare_bias(job);
  copy_states(job, r->h0, job->h, NULL);
  copy_states(job, r->c0, job->c, NULL);
}

void om_recurrent_run(om_ctx *ctx, const om_recurrent *r, void *scratch) {
  om_recurrent_job job = job_of(r);
  job.scratch = scratch;
  prepare(ctx, &job);
  const size_t grain = 4096 / (job.width + 1) + 1;
  for (job.step = 0; job.step < r->steps; ++job.step) {
    multiply(ctx, &job, OM_RECURRENT_EARLY, place(&job, job.h), place(&job, job.hr));
    om_parallel_for(ctx, r->batch, grain, run_items, &job);
    if (job.width == job.early) continue;
    multiply(ctx,
             &job,
             OM_RECURRENT_LATE,
             place(&job, job.reset),
             place(&job, job.hr + r->batch * job.early));
    om_parallel_for(ctx, r->batch, grain, run_late_items, &job);
  }
  if (r->last_h) copy_states(&job, NULL, job.h, r->last_h);
  if (r->last_c) copy_states(&job, NULL, job.c, r->last_c);
}
