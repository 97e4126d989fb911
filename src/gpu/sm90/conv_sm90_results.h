/* From sums to results: conv_sm90.c. */
#ifndef CONV_SM90_RESULTS_H
#define CONV_SM90_RESULTS_H

/* The sums of a thread to shared memory, by channel and column. */
SM90_INLINE void store_sums(uint32_t area, uint32_t thread, const tile_sums *sums) {
  EACH(j, TILE / 8) {
    EACH(h, 2) {
      const uint32_t row = thread / 32 * 16 + thread % 32 / 4 + h * 8;
      const uint32_t at = area + (row * SUM_PITCH + j * 8 + thread % 4 * 2) * 4;
      const uint32_t i = 4 * j + 2 * h;
      shared_store2(at, sums->all[i], sums->all[i + 1]);
    }
  }
}

SM90_INLINE float load_sum(uint32_t at) {
  float value;
  __asm__ volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(at) : "memory");
  return value;
}

SM90_INLINE void load_operand(const sm90_chain *chain,
                              uint32_t item,
                              const sm90_units *at,
                              float *out,
                              const uint32_t width) {
  (void)chain;
  EACH(i, width * SM90_UNIT)
  out[i] = (float)((item >> 12 & 1) == 0 ? at->operands[0][i] : at->operands[1][i]);
}

/* A thread makes units of eight results: of one column, or, where four pixels lie side by side in
 * memory and begin at a multiple of that, of four columns in two rows. */
enum {
  THREADS = TEAM * SLICES,
  COLUMN_ROW_STEP = THREADS / TILE, /* from a row to the next one of the thread */
  QUAD_ROW_STEP = THREADS / (TILE / 4),
  UNIT_ROWS = THREADS * SM90_UNIT / TILE, /* of all threads */
};
typedef struct results {
  bool is_quad;
  bool is_plain; /* the chain: sums with its operands, then Relu or HardSwish or nothing */
  uint32_t last; /* that operation */
  const sm90_element *operands[2]; /* those of the chain for channel 0, or NULL */
  uint32_t operand_steps[2];       /* to the next channel */
  bool are_vectors[2];             /* one value a channel */
  uint32_t first_channel, channel_count, row;
  uint32_t element, pixels; /* of channel 0; of a channel */
  uint32_t sums;            /* of the thread's first row, in shared memory */
} results;

/* What the chain's operands are, so that they can be read ahead of its items. */
SM90_INLINE void find_operands(const arguments *a, results *r) {
  EACH(k, 2) r->operands[k] = (const sm90_element *)0;
  r->is_plain = true;
  r->last = 0;
  SM90_LOOP for (uint32_t i = 0; i < SM90_CHAIN_ITEMS; ++i) {
    const uint32_t item = a->items[i];
    const uint32_t source = item >> 8 & 15;
    const uint32_t own = item >> 12 & 1;
    const bool has_operand = source > CHAIN_SCALAR && source != CHAIN_SAVED;
    if (item == 0) break;
    const uint32_t op = item & 255;
    r->is_plain = r->is_plain && r->last == 0 &&
                  (has_operand ? op == CHAIN_ADD : op == CHAIN_RELU || op == CHAIN_HARD_SWISH);
    if (!has_operand) r->last = op;
    EACH(k, 2) {
      if (!has_operand || own != k) continue;
      if (r->operands[k]) r->is_plain = false;
      r->operands[k] = a->operands[k] + (source == CHAIN_VECTOR ? 0 : r->element);
      r->operand_steps[k] = source == CHAIN_VECTOR ? 1 : r->pixels;
      r->are_vectors[k] = source == CHAIN_VECTOR;
    }
  }
}

/* The thread's place; false: it has no result. */
SM90_INLINE bool find_results(const arguments *a,
                              uint32_t first_channel,
                              uint32_t first_column,
                              results *r) {
  const uint32_t index = thread_index();
  r->is_quad = MODE != WINDOW && a->p.pixels % 4 == 0;
  r->first_channel = first_channel;
  r->channel_count = a->p.out_channels;
  r->pixels = a->p.pixels;
  r->row = r->is_quad ? index / (TILE / 4) : index / TILE;
  const uint32_t own = r->is_quad ? index % (TILE / 4) * 4 : index % TILE;
  const uint32_t column = first_column + own;
#if MODE == WINDOW
  uint32_t image;
  uint32_t pixel;
  if (!find_pixel(a, column, &image, &pixel)) return false;
#else
  if (column >= a->p.columns) return false;
  const uint32_t image = column / a->p.pixels;
  const uint32_t pixel = column - image * a->p.pixels;
#endif
  r->element = image * a->p.out_channels * a->p.pixels + pixel;
  r->sums = shared_address((r->row * SUM_PITCH + own) * sizeof(float));
  find_operands(a, r);
  return first_channel + r->row < r->channel_count;
}

SM90_INLINE uint32_t channel_of(const results *r, uint32_t row) {
  const uint32_t channel = r->first_channel + r->row + row;
  return channel < r->channel_count ? channel : r->channel_count - 1;
}

SM90_INLINE void load_quad(const sm90_element *from, sm90_element out[4]) {
#if FLOAT
  const word4 words = *(const word4 *)(const void *)from;
#else
  const uint64_t words = *(const uint64_t *)(const void *)from;
#endif
  memcpy(out, &words, sizeof words);
}

SM90_INLINE void store_quad(sm90_element *to, const float values[4]) {
#if FLOAT
  word4 words;
  memcpy(&words, values, sizeof words);
  *(word4 *)(void *)to = words;
#else
  *(uint64_t *)(void *)to =
      pack_halves(values[0], values[1]) | (uint64_t)pack_halves(values[2], values[3]) << 32;
#endif
}

/* The chain's operands of the unit `row` rows below the thread's first. */
SM90_INLINE void load_operands(const results *r, uint32_t row, sm90_units *out) {
  EACH(k, 2) {
    const sm90_element *from = r->operands[k];
    if (!from) continue;
    const uint32_t step = r->operand_steps[k];
    const bool is_vector = r->are_vectors[k];
    if (!r->is_quad) {
      EACH(i, SM90_UNIT)
      out->operands[k][i] = from[channel_of(r, row + i * COLUMN_ROW_STEP) * step];
    } else {
      EACH(h, 2) {
        const sm90_element *own = from + channel_of(r, row + h * QUAD_ROW_STEP) * step;
        if (is_vector) {
          EACH(i, 4) out->operands[k][4 * h + i] = *own;
        } else {
          load_quad(own, out->operands[k] + 4 * h);
        }
      }
    }
  }
}

SM90_INLINE float factor_of(const arguments *a, const results *r, uint32_t row, float factor) {
#if FLOAT
  return factor * ((const float *)(const void *)a->weights)[channel_of(r, row)];
#else
  (void)a, (void)r, (void)row;
  return factor;
#endif
}

SM90_INLINE void load_sums(
    const arguments *a, const results *r, uint32_t row, float factor, float out[SM90_UNIT]) {
  EACH(i, SM90_UNIT) out[i] = 0.0f;
  EACH(k, SLICES) {
    const uint32_t from = r->sums + k * SLICE_BYTES + row * SUM_PITCH * sizeof(float);
    if (r->is_quad) {
      EACH(h, 2) {
        float four[4];
        shared_load4(from + h * QUAD_ROW_STEP * SUM_PITCH * sizeof(float), four);
        EACH(i, 4) out[4 * h + i] += four[i];
      }
    } else {
      EACH(i, SM90_UNIT) out[i] += load_sum(from + i * COLUMN_ROW_STEP * SUM_PITCH * sizeof(float));
    }
  }
  EACH(i, SM90_UNIT) {
    out[i] *=
        factor_of(a, r, row + (r->is_quad ? i / 4 * QUAD_ROW_STEP : i * COLUMN_ROW_STEP), factor);
  }
}

SM90_INLINE void store_results(const arguments *a,
                               const results *r,
                               uint32_t row,
                               const float values[SM90_UNIT]) {
  sm90_element *to = a->output + r->element;
  const uint32_t first = r->first_channel + r->row + row;
  if (r->is_quad) {
    EACH(h, 2) {
      const uint32_t channel = first + h * QUAD_ROW_STEP;
      if (channel < r->channel_count) store_quad(to + channel * r->pixels, values + 4 * h);
    }
  } else {
    EACH(i, SM90_UNIT) {
      const uint32_t channel = first + i * COLUMN_ROW_STEP;
      if (channel < r->channel_count) to[channel * r->pixels] = (sm90_element)values[i];
    }
  }
}

/* The frequent chains by themselves: others cost several microseconds more. */
SM90_INLINE void finish(const arguments *a,
                        const results *r,
                        const sm90_units *unit,
                        float values[SM90_UNIT]) {
  const sm90_chain chain = {.params = &a->chain, .items = a->items};
  if (!r->is_plain) {
    chain_apply(&chain, unit, values, 1);
    return;
  }
  EACH(k, 2) {
    if (r->operands[k]) EACH(i, SM90_UNIT) values[i] += (float)unit->operands[k][i];
  }
  if (r->last == CHAIN_RELU) {
    EACH(i, SM90_UNIT) values[i] = om_max(values[i], 0.0f);
  } else if (r->last == CHAIN_HARD_SWISH) {
    EACH(i, SM90_UNIT) values[i] *= om_max(0.0f, om_min(1.0f, values[i] * (1.0f / 6.0f) + 0.5f));
  }
}

/* The next unit's operands are under way before this one's results are stored: loads do not pass
 * stores. */
SM90_INLINE void make_results(const arguments *a,
                              const results *r,
                              const sm90_units *first,
                              float factor) {
  sm90_units next = *first;
  SM90_LOOP for (uint32_t row = 0; row < ROWS_OF_TILE; row += UNIT_ROWS) {
    const sm90_units own = next;
    float values[SM90_UNIT];
    if (r->first_channel + r->row + row >= r->channel_count) return;
    if (row + UNIT_ROWS < ROWS_OF_TILE) load_operands(r, row + UNIT_ROWS, &next);
    load_sums(a, r, row, factor, values);
    finish(a, r, &own, values);
    store_results(a, r, row, values);
  }
}

#endif
