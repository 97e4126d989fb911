/* The tiles of a product, once for each float type; included by om_matmul.c alone, which sets
 *
 *   OM_TILE_TYPE    the type of an element
 *   OM_TILE_VECTOR  a vector of OM_TILE_LANES of them
 *   OM_TILE_NAME(n) the name of a function
 *
 * A tile is 4 rows (or 1) by two vectors of columns. Lanes are columns, so each result has its own
 * chain, and the vector's width changes no bit. The total lives in y. On machines with wider
 * vectors than the build assumes, the loader picks the wider clone.
 */

enum { OM_TILE_NAME(cols) = 2 * OM_TILE_LANES };

#define OM_TILE_ROWS(count)                                                                   \
  do {                                                                                        \
    OM_TILE_VECTOR group[count][2] = {{{0}}};                                                 \
    for (size_t begin = 0; begin < depth; begin += OM_PRODUCT_BLOCK) {                        \
      const size_t end = depth - begin > OM_PRODUCT_BLOCK ? begin + OM_PRODUCT_BLOCK : depth; \
      OM_TILE_VECTOR sum[count][2] = {{{0}}};                                                 \
      for (size_t k = begin; k < end; ++k) {                                                  \
        OM_TILE_VECTOR left, right;                                                           \
        memcpy(&left, b + k * b_row_stride, sizeof left);                                     \
        memcpy(&right, b + k * b_row_stride + OM_TILE_LANES, sizeof right);                   \
        OM_UNROLL                                                                             \
        for (size_t row = 0; row < (count); ++row) {                                          \
          const OM_TILE_TYPE x = a[row * a_row_stride + k * a_depth_stride];                  \
          sum[row][0] += left * x;                                                            \
          sum[row][1] += right * x;                                                           \
        }                                                                                     \
      }                                                                                       \
      const bool is_first = begin % OM_PRODUCT_GROUP == 0;                                    \
      const bool is_last = end == depth || end % OM_PRODUCT_GROUP == 0;                       \
      OM_UNROLL                                                                               \
      for (size_t row = 0; row < (count); ++row) {                                            \
        OM_UNROLL                                                                             \
        for (size_t half = 0; half < 2; ++half) {                                             \
          OM_TILE_VECTOR total;                                                               \
          OM_TILE_TYPE *to = y + row * y_row_stride + half * OM_TILE_LANES;                   \
          group[row][half] = is_first ? sum[row][half] : group[row][half] + sum[row][half];   \
          if (!is_last) continue;                                                             \
          memcpy(&total, to, sizeof total);                                                   \
          total = begin < OM_PRODUCT_GROUP ? group[row][half] : total + group[row][half];     \
          memcpy(to, &total, sizeof total);                                                   \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
  } while (0)

OM_CLONES static void OM_TILE_NAME(tile4)(size_t depth,
                                          const OM_TILE_TYPE *a,
                                          size_t a_row_stride,
                                          size_t a_depth_stride,
                                          const OM_TILE_TYPE *b,
                                          size_t b_row_stride,
                                          OM_TILE_TYPE *y,
                                          size_t y_row_stride) {
  OM_TILE_ROWS(4);
}

OM_CLONES static void OM_TILE_NAME(tile1)(size_t depth,
                                          const OM_TILE_TYPE *a,
                                          size_t a_depth_stride,
                                          const OM_TILE_TYPE *b,
                                          size_t b_row_stride,
                                          OM_TILE_TYPE *y) {
  const size_t a_row_stride = 0;
  const size_t y_row_stride = 0;
  OM_TILE_ROWS(1);
}

#undef OM_TILE_ROWS

/* One row, fewer columns than a tile has. */
static void OM_TILE_NAME(edge)(size_t depth,
                               const OM_TILE_TYPE *a,
                               size_t a_depth_stride,
                               const OM_TILE_TYPE *b,
                               size_t b_row_stride,
                               size_t cols,
                               OM_TILE_TYPE *y) {
  OM_TILE_TYPE group[2 * OM_TILE_LANES];
  OM_TILE_TYPE sum[2 * OM_TILE_LANES];
  for (size_t begin = 0; begin < depth; begin += OM_PRODUCT_BLOCK) {
    const size_t end = depth - begin > OM_PRODUCT_BLOCK ? begin + OM_PRODUCT_BLOCK : depth;
    for (size_t col = 0; col < cols; ++col) sum[col] = 0;
    for (size_t k = begin; k < end; ++k) {
      const OM_TILE_TYPE x = a[k * a_depth_stride];
      for (size_t col = 0; col < cols; ++col) sum[col] += b[k * b_row_stride + col] * x;
    }
    const bool is_first = begin % OM_PRODUCT_GROUP == 0;
    const bool is_last = end == depth || end % OM_PRODUCT_GROUP == 0;
    for (size_t col = 0; col < cols; ++col) {
      group[col] = is_first ? sum[col] : group[col] + sum[col];
      if (is_last) y[col] = begin < OM_PRODUCT_GROUP ? group[col] : y[col] + group[col];
    }
  }
}

/* Rows [row_begin, row_end) and columns [col_begin, col_end) of one product. */
static void OM_TILE_NAME(part)(const om_matmul *m,
                               const void *a_data,
                               const void *b_data,
                               void *y_data,
                               const om_matmul_part *part) {
  const OM_TILE_TYPE *a = (const OM_TILE_TYPE *)a_data + part->a_offset;
  const OM_TILE_TYPE *b = (const OM_TILE_TYPE *)b_data + part->b_offset;
  OM_TILE_TYPE *y = (OM_TILE_TYPE *)y_data + part->y_offset;
  for (size_t col = part->col_begin; col < part->col_end; col += OM_TILE_NAME(cols)) {
    const size_t width = part->col_end - col;
    for (size_t row = part->row_begin; row < part->row_end;) {
      const OM_TILE_TYPE *from = a + row * m->a_row_stride;
      OM_TILE_TYPE *to = y + row * m->cols + col;
      if (width < OM_TILE_NAME(cols)) {
        OM_TILE_NAME(edge)(m->depth, from, m->a_depth_stride, b + col, m->cols, width, to);
        row += 1;
      } else if (part->row_end - row < 4) {
        OM_TILE_NAME(tile1)(m->depth, from, m->a_depth_stride, b + col, m->cols, to);
        row += 1;
      } else {
        OM_TILE_NAME(tile4)
        (m->depth, from, m->a_row_stride, m->a_depth_stride, b + col, m->cols, to, m->cols);
        row += 4;
      }
    }
  }
}
