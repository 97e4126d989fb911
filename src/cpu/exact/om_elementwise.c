/* The engine: rows of a broadcast walk, cut into blocks where an operand must be repeated or
 * converted. */
#include "cpu/exact/om_elementwise.h"

#include "base/om_float16.h"
#include "base/om_thread.h"

enum {
  OM_BLOCKS_BYTES = 640, /* on the stack: with clang too a frame stays below 1 KiB */
  OM_GRAIN = 16384,      /* elements a piece: some tens of microseconds for a simple operation */
};

typedef struct om_walk {
  const om_elementwise_job *job;
  om_broadcast shape;
  size_t elem_bytes[OM_BROADCAST_OPERANDS]; /* in memory */
  size_t result_bytes;
  bool is_half[OM_BROADCAST_OPERANDS];
  bool result_is_half;
} om_walk;

static bool dtype_is_half(om_dtype dtype) {
  return dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
}

void om_half_to_f32(om_dtype dtype, const uint16_t *in, size_t count, float *out) {
  if (dtype == OM_DTYPE_BF16) {
    for (size_t i = 0; i < count; ++i) out[i] = om_bf16_to_f32(in[i]);
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = om_f16_to_f32(in[i]);
  }
}

void om_half_from_f32(om_dtype dtype, const float *in, size_t count, uint16_t *out) {
  if (dtype == OM_DTYPE_BF16) {
    for (size_t i = 0; i < count; ++i) out[i] = om_bf16_from_f32(in[i]);
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = om_f16_from_f32(in[i]);
  }
}

static const void *operand_at(const om_walk *w, uint32_t i, size_t offset) {
  return (const uint8_t *)w->job->operands[i]->data + offset * w->elem_bytes[i];
}

/* Fills `block` with `count` copies of the element. */
static void repeat(const void *elem, size_t elem_bytes, size_t count, uint8_t *block) {
  if (elem_bytes == sizeof(uint32_t)) {
    uint32_t *words = (uint32_t *)(void *)block;
    uint32_t word;
    memcpy(&word, elem, sizeof word);
    for (size_t i = 0; i < count; ++i) words[i] = word;
    return;
  }
  for (size_t i = 0; i < count; ++i) memcpy(block + i * elem_bytes, elem, elem_bytes);
}

/* The operand's elements as the kernel wants them, in the block or where they lie. */
static const void *load(const om_walk *w,
                        uint32_t i,
                        const om_broadcast_row *row,
                        size_t done,
                        size_t count,
                        uint8_t *block) {
  const void *source = operand_at(w, i, row->offsets[i] + (row->advances[i] ? done : 0));
  if (!w->is_half[i]) {
    if (row->advances[i]) return source;
    if (done == 0) repeat(source, w->elem_bytes[i], count, block);
    return block;
  }
  if (row->advances[i]) {
    om_half_to_f32(w->job->operands[i]->dtype, source, count, (float *)(void *)block);
  } else if (done == 0) {
    float value;
    om_half_to_f32(w->job->operands[i]->dtype, source, 1, &value);
    repeat(&value, sizeof value, count, block);
  }
  return block;
}

/* Operands that stay where they are, or are converted, share the blocks with such a result. */
static void run_row_in_blocks(const om_walk *w, const om_broadcast_row *row, size_t widest) {
  _Alignas(64) uint8_t blocks[OM_BLOCKS_BYTES];
  uint8_t *own[OM_BROADCAST_OPERANDS + 1] = {NULL};
  size_t count_of_blocks = w->result_is_half ? 1 : 0;
  for (uint32_t i = 0; i < w->job->operand_count; ++i) {
    if (w->is_half[i] || !row->advances[i]) ++count_of_blocks;
  }
  const size_t block_bytes = OM_BLOCKS_BYTES / count_of_blocks / 64 * 64;
  const size_t block_elems = block_bytes / widest;
  for (uint32_t i = 0; i <= w->job->operand_count; ++i) {
    const bool is_result = i == w->job->operand_count;
    if (is_result ? !w->result_is_half : !w->is_half[i] && row->advances[i]) continue;
    own[i] = blocks + --count_of_blocks * block_bytes;
  }
  float *result = (float *)(void *)own[w->job->operand_count];
  uint8_t *target = (uint8_t *)w->job->result->data + row->first * w->result_bytes;
  for (size_t done = 0; done < row->count; done += block_elems) {
    size_t count = row->count - done < block_elems ? row->count - done : block_elems;
    const void *in[OM_BROADCAST_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < w->job->operand_count; ++i) {
      in[i] = load(w, i, row, done, count, own[i]);
    }
    uint8_t *out = target + done * w->result_bytes;
    if (w->result_is_half) {
      w->job->fn(in, result, count, w->job->arg);
      om_half_from_f32(w->job->result->dtype, result, count, (uint16_t *)(void *)out);
    } else {
      w->job->fn(in, out, count, w->job->arg);
    }
  }
}

static void run_range(void *arg, size_t begin, size_t end) {
  const om_walk *w = arg;
  const om_elementwise_job *job = w->job;
  size_t widest = w->result_is_half ? sizeof(float) : w->result_bytes;
  bool is_half = w->result_is_half;
  for (uint32_t i = 0; i < job->operand_count; ++i) {
    size_t bytes = w->is_half[i] ? sizeof(float) : w->elem_bytes[i];
    if (bytes > widest) widest = bytes;
    is_half = is_half || w->is_half[i];
  }
  for (size_t first = begin; first < end;) {
    om_broadcast_row row = om_broadcast_row_at(&w->shape, first, end);
    bool is_direct = !is_half;
    const void *in[OM_BROADCAST_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < job->operand_count; ++i) {
      is_direct = is_direct && (row.advances[i] || row.count == 1);
      in[i] = operand_at(w, i, row.offsets[i]);
    }
    if (is_direct) {
      job->fn(in, (uint8_t *)job->result->data + first * w->result_bytes, row.count, job->arg);
    } else {
      run_row_in_blocks(w, &row, widest);
    }
    first += row.count;
  }
}

void om_elementwise_run(om_ctx *ctx, const om_elementwise_job *job) {
  om_walk w = {.job = job,
               .result_bytes = om_dtype_bits(job->result->dtype) / 8,
               .result_is_half = dtype_is_half(job->result->dtype)};
  for (uint32_t i = 0; i < job->operand_count; ++i) {
    w.elem_bytes[i] = om_dtype_bits(job->operands[i]->dtype) / 8;
    w.is_half[i] = dtype_is_half(job->operands[i]->dtype);
  }
  om_broadcast_init(&w.shape, job->operands, job->operand_count, job->result);
  om_parallel_for(ctx, w.shape.count, OM_GRAIN, run_range, &w);
}
