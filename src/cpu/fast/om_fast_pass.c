/* Runs passes: the results' grid cut into pieces of rows by panels, those into tiles.
 *
 * The cut follows from the sizes alone, so that results do not depend on the number of threads.
 */
#include "cpu/fast/om_fast_pass.h"

#include "base/om_thread.h"

enum {
  ROWS = 240,      /* of a piece, about: the 256 terms of a part stay near, 240 KB */
  LEAST_ROWS = 96, /* that are worth it to read a panel of weights again, */
  FEW_ROWS = 24,   /* or, where pieces are less than FEW_PIECES else, these */
  FEW_PIECES = 8,
  READ_ROWS = 6,         /* to read a weight takes as long as so many products */
  PIECES = 16,           /* wanted at least, */
  LEAST_TERMS = 1 << 16, /* as long as they are worth a thread's while: about 3 us, */
  ALONE_TERMS = 1 << 17, /* and others have not to be waited for; */
  MOST_TERMS = 1 << 22,  /* a run ends soon after it is cancelled */
  NEAR_ELEMS = 1 << 14,  /* weights that stay in a cache of the second level, whatever goes by */
  TURN = 4,              /* panels of a piece at least, where panels take turns */
  AHEAD_PARTS = 4,       /* of the next weights: so many tiles fetch all of them */
};

typedef struct job {
  const om_fast_kernel *kernel;
  const om_fast_pass *pass;
  const om_fast_placed *placed;
  const om_fast_operands *operands;
  int64_t rows, row_step, row_pieces;
  int64_t panels, panel_step, panel_pieces;
  int64_t near;        /* so many panels take turns at a tile's rows, which are then placed once */
  size_t first_height; /* of tiles */
  /* A sum is made in parts of at most OM_FAST_CHAIN terms, the later ones added to y: some of the
   * taps, or some terms of one. The weights of a part stay near while a piece's rows go by. */
  size_t parts, depth_parts;    /* in all, and of a tap */
  size_t part_taps, part_depth; /* the last may have less */
} job;

typedef struct spot { /* of a piece */
  const float *x, *w, *last, *bias, *residual;
  float *y;
  int64_t row, row_end, panel, panel_end;
  float last_bias[OM_TILE_COLS]; /* the last panel's, where it is not full: zeros behind */
} spot;

static int64_t at_most(int64_t value, int64_t most) {
  return value < most ? value : most;
}

static spot spot_of(const job *j, size_t piece) {
  const om_fast_pass *p = j->pass;
  const om_fast_operands *o = j->operands;
  int64_t rest = (int64_t)piece;
  spot s = {.x = o->x, .w = j->placed->w, .last = j->placed->last, .y = o->y};
  const int64_t panel_piece = rest % j->panel_pieces;
  rest /= j->panel_pieces;
  const int64_t row_piece = rest % j->row_pieces;
  rest /= j->row_pieces;
  const int64_t group = rest % p->order.groups;
  rest /= p->order.groups;
  int64_t residual = p->residual_first + group * p->order.cols;
  s.x += group * p->order.depth;
  s.w += group * j->placed->group_step;
  s.y += p->y_first + group * p->order.cols;
  for (uint32_t axis = p->batch_axes; axis-- > 0; rest /= p->batch[axis]) {
    const int64_t i = rest % p->batch[axis];
    s.x += i * p->x_steps[axis];
    s.w += i * j->placed->steps[axis];
    s.y += i * p->y_steps[axis];
    residual += i * p->residual_steps[axis];
    if (s.last) s.last += i * j->placed->last_steps[axis];
  }
  if (j->kernel->epilogue.has_bias) s.bias = (const float *)o->bias + group * p->order.cols;
  if (j->kernel->epilogue.has_residual) s.residual = (const float *)o->residual + residual;
  s.row = row_piece * j->row_step;
  s.row_end = row_piece + 1 < j->row_pieces ? s.row + j->row_step : j->rows;
  s.panel = panel_piece * j->panel_step;
  s.panel_end = at_most(s.panel + j->panel_step, j->panels);
  if (s.bias && !j->kernel->is_apart) {
    const int64_t first = (j->panels - 1) * p->order.width;
    const int64_t cols = at_most(p->order.cols - first, OM_TILE_COLS);
    for (int64_t i = 0; i < cols; ++i) s.last_bias[i] = s.bias[first + i];
  }
  return s;
}

typedef struct grid { /* a row's place in the grid, and from there to the end of its line */
  int64_t at[OM_FAST_AXES];
  int64_t x, y, residual;
  bool is_inside; /* along the two slower axes */
} grid;

static grid grid_at(const om_fast_pass *p, int64_t row) {
  grid g = {.at = {0, 0, row}, .is_inside = true};
  if (row >= p->count[2]) {
    const int64_t line = row / p->count[2];
    g.at[0] = line / p->count[1];
    g.at[1] = line - g.at[0] * p->count[1];
    g.at[2] = row - line * p->count[2];
  }
  for (int axis = 0; axis < OM_FAST_AXES; ++axis) {
    const int64_t place = g.at[axis] * p->in_step[axis] + p->in_first[axis];
    g.x += place * p->x_strides[axis];
    g.y += g.at[axis] * p->y_strides[axis];
    g.residual += g.at[axis] * p->residual_strides[axis];
    if (axis + 1 < OM_FAST_AXES &&
        (g.at[axis] < p->inside_begin[axis] || g.at[axis] >= p->inside_end[axis])) {
      g.is_inside = false;
    }
  }
  return g;
}

/* How many results of the line, from g on, have all their taps inside, or (*out_is_inside false)
 * have not. */
static int64_t run_of(const om_fast_pass *p, const grid *g, bool *out_is_inside) {
  const int64_t at = g->at[2];
  const int64_t begin = p->inside_begin[2];
  const int64_t end = p->inside_end[2];
  *out_is_inside = g->is_inside && at >= begin && at < end;
  if (*out_is_inside) return end - at;
  return g->is_inside && at < begin && begin < end ? begin - at : p->count[2] - at;
}

static void set_places(
    const om_fast_pass *p, const grid *g, size_t first, size_t count, om_tile *t) {
  for (size_t r = 0; r < count; ++r) {
    t->place[0][first + r] = (int32_t)(g->at[0] * p->in_step[0] + p->in_first[0]);
    t->place[1][first + r] = (int32_t)(g->at[1] * p->in_step[1] + p->in_first[1]);
    t->place[2][first + r] = (int32_t)((g->at[2] + (int64_t)r) * p->in_step[2] + p->in_first[2]);
  }
}

/* `count` rows further. */
static void advance(const om_fast_pass *p, int64_t count, int64_t row, grid *g) {
  g->at[2] += count;
  if (g->at[2] >= p->count[2]) {
    *g = grid_at(p, row + count);
    return;
  }
  g->x += count * p->in_step[2] * p->x_strides[2];
  g->y += count * p->y_strides[2];
  g->residual += count * p->residual_strides[2];
}

/* (This and run_tile have frames of their own: inside run_piece they would make a large one.)
 *
 * Rows from `first` on, which is row `row`, line by line. */
static __attribute__((noinline)) void set_rows(
    const job *j, const spot *s, const grid *first, int64_t row, size_t count, om_tile *t) {
  const om_fast_pass *p = j->pass;
  const int64_t x_step = p->in_step[2] * p->x_strides[2];
  grid g = *first;
  t->has_outside = false;
  for (size_t done = 0; done < count;) {
    const size_t left = (size_t)at_most(p->count[2] - g.at[2], (int64_t)(count - done));
    if (!g.is_inside || g.at[2] < p->inside_begin[2] ||
        g.at[2] + (int64_t)left > p->inside_end[2]) {
      t->has_outside = true;
    }
    if (!p->is_all_inside) set_places(p, &g, done, left, t);
    for (size_t r = 0; r < left; ++r) {
      t->x_at[done + r] = g.x + (int64_t)r * x_step;
      t->y[done + r] = s->y + g.y + (int64_t)r * p->y_strides[2];
    }
    for (size_t r = 0; s->residual && r < left; ++r) {
      t->residual[done + r] = s->residual + g.residual + (int64_t)r * p->residual_strides[2];
    }
    if (done + left < count) advance(p, (int64_t)left, row + (int64_t)done, &g);
    done += left;
  }
}

/* What a tile reads and writes at its end is on the way while it computes. */
static void fetch_row(const float *row, int64_t cols) {
  __builtin_prefetch(row);
  if (cols > 16) __builtin_prefetch(row + 16); /* of a line of 64 bytes */
}

/* Part `part` of the terms. */
static void set_terms(const job *j, const spot *s, size_t part, om_tile *t) {
  const om_fast_pass *p = j->pass;
  const size_t tap = part / j->depth_parts * j->part_taps;
  const size_t first = part % j->depth_parts * j->part_depth;
  const bool is_last = part + 1 == j->parts;
  t->taps = p->taps + tap;
  t->tap_count = p->tap_count - tap < j->part_taps ? p->tap_count - tap : j->part_taps;
  t->x = s->x + first;
  t->depth = p->depth - first < j->part_depth ? p->depth - first : j->part_depth;
  t->adds = part > 0;
  t->has_residual = j->kernel->adds_residual && is_last;
  t->is_clamped = j->kernel->is_clamped && is_last;
}

/* The rows of t by one panel; tile `index` of those that read these weights. */
static __attribute__((noinline)) void run_tile(const job *j,
                                               const spot *s,
                                               int64_t panel,
                                               size_t part,
                                               size_t rows,
                                               size_t index,
                                               om_tile_fn fn,
                                               om_tile *t) {
  const om_fast_pass *p = j->pass;
  const om_fast_order *o = &p->order;
  const int64_t col = panel * o->width;
  const bool is_last = s->last && panel == j->panels - 1;
  const int64_t width = om_fast_panel_width(o, panel);
  const bool is_end = part + 1 == j->parts;
  t->rows = rows;
  t->col = (size_t)col;
  t->cols = (size_t)at_most(o->cols - col, o->width);
  t->w = is_last ? s->last : s->w + panel * j->placed->panel_step;
  t->w_step = (size_t)(is_last ? j->placed->last_step : j->placed->step);
  if (!is_last && j->placed->step == o->width) t->w_step = (size_t)width;
  const size_t before = (size_t)(t->taps - p->taps) * p->depth + (size_t)(t->x - s->x);
  t->w += before * t->w_step;
  t->bias = j->kernel->zeros;
  if (s->bias && part == 0) {
    const bool is_full = j->kernel->is_apart || (int64_t)t->cols == width;
    t->bias = is_full ? s->bias + col : s->last_bias;
  }
  /* What is read next lies behind, if weights lie panel by panel. */
  const size_t elems = t->tap_count * t->depth * t->w_step;
  t->ahead_step = 0;
  if (index < AHEAD_PARTS && (int64_t)t->w_step == width) {
    t->ahead = t->w + elems + index * (elems / AHEAD_PARTS);
    t->ahead_step = t->w_step;
  }
  if (!j->kernel->is_apart) {
    for (size_t r = 0; r < rows; ++r) fetch_row(t->y[r] + col, width);
    for (size_t r = 0; s->residual && is_end && r < rows; ++r)
      fetch_row(t->residual[r] + col, width);
  }
  fn(t);
  if (j->kernel->needs_finish && is_end) j->kernel->set->finish(t, rows);
}

/* The function for at most `left` rows from g on, and their number. */
static size_t choose(const job *j, const grid *g, int64_t left, int64_t panel, om_tile_fn *out_fn) {
  const om_tile_set *set = j->kernel->set;
  size_t i = j->first_height;
  if (!j->kernel->is_apart) {
    const int64_t width = om_fast_panel_width(&j->pass->order, panel);
    while ((int64_t)set->heights[i] > left) ++i;
    *out_fn = width > (int64_t)set->lanes ? set->wide[i] : set->narrow[i];
    return set->heights[i];
  }
  bool is_inside = false;
  left = at_most(left, run_of(j->pass, g, &is_inside));
  const size_t *heights = is_inside ? set->inside_heights : set->apart_heights;
  while ((int64_t)heights[i] > left) ++i;
  *out_fn = is_inside ? set->inside[i] : set->apart[i];
  return heights[i];
}

static void run_piece(const job *j, size_t piece) {
  const om_fast_pass *p = j->pass;
  const spot s = spot_of(j, piece);
  om_tile_fn fn = NULL;
  om_tile t = {.residual_step = p->residual_step,
               .in = {(uint32_t)p->in[0], (uint32_t)p->in[1], (uint32_t)p->in[2]},
               .zeros = j->kernel->zeros,
               .low = j->kernel->low,
               .high = j->kernel->high,
               .epilogue = &j->kernel->epilogue};
  for (int64_t panel = s.panel; panel < s.panel_end; panel += j->near) {
    const int64_t panel_end = at_most(panel + j->near, s.panel_end);
    for (size_t part = 0; part < j->parts; ++part) {
      grid g = grid_at(p, s.row);
      size_t index = 0;
      set_terms(j, &s, part, &t);
      for (int64_t row = s.row; row < s.row_end; ++index) {
        const size_t rows = choose(j, &g, s.row_end - row, panel, &fn);
        set_rows(j, &s, &g, row, rows, &t);
        for (int64_t i = panel; i < panel_end; ++i) {
          if (i != panel) (void)choose(j, &g, s.row_end - row, i, &fn);
          run_tile(j, &s, i, part, rows, index, fn, &t);
        }
        advance(p, (int64_t)rows, row, &g);
        row += (int64_t)rows;
      }
    }
  }
}

static void run_pieces(void *arg, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) run_piece(arg, i);
}

static int64_t pieces_of(int64_t count, int64_t step) {
  return (count + step - 1) / step;
}

/* Rows that pieces are made of: those of a tile, or a line, which tiles of columns apart end with.
 */
static int64_t rows_of_unit(const job *j) {
  const int64_t line = j->pass->count[2];
  return j->kernel->is_apart && line <= ROWS ? line : OM_TILE_ROWS;
}

/* Pieces of about the same size, of whole tiles where there are several; what fills no tile joins
 * the last one. */
static void cut(job *j, int64_t elements) {
  const om_fast_pass *p = j->pass;
  const int64_t terms = (int64_t)(p->tap_count * p->depth) + 1;
  const int64_t width = at_most(p->order.width, p->order.cols);
  const int64_t unit = rows_of_unit(j);
  const int64_t all = elements * (j->rows + READ_ROWS) * terms * p->order.cols;
  int64_t wanted = all / PIECES;
  if (wanted < LEAST_TERMS) wanted = all < ALONE_TERMS ? all : LEAST_TERMS;
  if (wanted > MOST_TERMS) wanted = MOST_TERMS;
  int64_t rows = at_most(ROWS, j->rows);
  int64_t row_pieces = PIECES / (elements * j->panels); /* where there are few panels */
  if (j->near > 1) {
    const int64_t turn = at_most(at_most(j->near, j->panels), TURN);
    row_pieces = j->rows * terms * width * turn / wanted;
  }
  if (row_pieces > pieces_of(j->rows, rows)) rows = pieces_of(j->rows, row_pieces);
  const int64_t least = elements * j->panels < FEW_PIECES ? FEW_ROWS : LEAST_ROWS;
  if (j->near == 1 && !j->kernel->is_apart && rows < least) rows = at_most(least, j->rows);
  const int64_t panel = (rows + READ_ROWS) * terms * width;
  j->panel_step = at_most(j->panels, wanted / panel + 1);
  if (panel * j->panel_step < wanted) rows *= wanted / (panel * j->panel_step);
  j->row_step = pieces_of(j->rows, pieces_of(j->rows, rows));
  j->row_step = pieces_of(j->row_step, unit) * unit;
  j->row_pieces = (j->rows + j->row_step - unit) / j->row_step;
  if (j->row_pieces < 1) j->row_pieces = 1;
  j->panel_step = pieces_of(j->panels, pieces_of(j->panels, j->panel_step));
  j->panel_pieces = pieces_of(j->panels, j->panel_step);
}

static void cut_terms(job *j) {
  const om_fast_pass *p = j->pass;
  j->parts = j->depth_parts = 1;
  j->part_taps = p->tap_count;
  j->part_depth = p->depth;
  if (j->kernel->is_apart || p->tap_count * p->depth <= OM_FAST_CHAIN) return;
  j->depth_parts = (p->depth + OM_FAST_CHAIN - 1) / OM_FAST_CHAIN;
  j->part_depth = (p->depth + j->depth_parts - 1) / j->depth_parts;
  j->part_taps = OM_FAST_CHAIN / j->part_depth;
  j->parts = j->depth_parts * ((p->tap_count + j->part_taps - 1) / j->part_taps);
}

void om_fast_pass_run(om_ctx *ctx,
                      const om_fast_kernel *kernel,
                      const om_fast_pass *pass,
                      const om_fast_placed *placed,
                      const om_fast_operands *operands) {
  int64_t elements = pass->order.groups;
  job j = {.kernel = kernel,
           .pass = pass,
           .placed = placed,
           .operands = operands,
           .rows = pass->count[0] * pass->count[1] * pass->count[2],
           .panels = om_fast_panel_count(&pass->order)};
  /* Rows a multiple of 4 KiB apart share a set of the nearest cache, which holds eight lines. */
  const int64_t apart = pass->in_step[2] * pass->x_strides[2] * (int64_t)sizeof(float);
  j.first_height = kernel->set->heights[0] > 8 && apart % 4096 == 0 && !kernel->is_apart ? 1 : 0;
  for (uint32_t i = 0; i < pass->batch_axes; ++i) elements *= pass->batch[i];
  if (elements * j.rows * j.panels == 0) return;
  const int64_t elems = (int64_t)(pass->tap_count * pass->depth) * pass->order.width;
  j.near = elems > 0 && NEAR_ELEMS / elems > 1 ? NEAR_ELEMS / elems : 1;
  cut_terms(&j);
  cut(&j, elements);
  om_parallel_for(ctx, (size_t)(elements * j.row_pieces * j.panel_pieces), 1, run_pieces, &j);
}
