/* Memory freed as a whole.
 *
 * A list of blocks; the first one is filled from its start. A request that does not fit there
 * opens a new block, twice as large as the last up to BLOCK_BYTES_MAX; a large request gets a
 * block of its own behind the first, so that the first's rest stays in use.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/om_base.h"

enum { BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 256 * 1024, POOL_ALIGNMENT = 16 };

struct om_pool_block {
  om_pool_block *next;
  size_t used_bytes;     /* of data */
  size_t capacity_bytes; /* of data */
};

/* The data follows the header at the next multiple of the alignment. */
static unsigned char *block_data(om_pool_block *block) {
  return (unsigned char *)block + om_size_align(sizeof *block, POOL_ALIGNMENT);
}

static om_pool_block *block_create(om_ctx *ctx, size_t capacity_bytes) {
  size_t total = 0;
  if (!om_size_add(capacity_bytes, om_size_align(sizeof(om_pool_block), POOL_ALIGNMENT), &total)) {
    OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu bytes are too many.", capacity_bytes);
    return NULL;
  }
  om_pool_block *block = om_new_bytes(ctx, total, 1);
  if (block) block->capacity_bytes = capacity_bytes;
  return block;
}

/* A block with room for `bytes`, already in the list. */
static om_pool_block *block_with_room(om_ctx *ctx, om_pool *pool, size_t bytes) {
  om_pool_block *first = pool->blocks;
  if (first && bytes <= first->capacity_bytes - first->used_bytes) return first;
  size_t capacity = first ? first->capacity_bytes * 2 : BLOCK_BYTES_MIN;
  if (capacity > BLOCK_BYTES_MAX) capacity = BLOCK_BYTES_MAX;
  bool is_large = bytes > capacity / 4;
  om_pool_block *block = block_create(ctx, is_large ? bytes : capacity);
  if (!block) return NULL;
  if (is_large && first) {
    block->next = first->next;
    first->next = block;
  } else {
    block->next = first;
    pool->blocks = block;
  }
  return block;
}

void *om_pool_new_bytes(om_ctx *ctx, om_pool *pool, size_t count, size_t elem_bytes) {
  size_t bytes = 0;
  if (!om_size_mul(count, elem_bytes, &bytes) || bytes > SIZE_MAX - POOL_ALIGNMENT) {
    OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu elements of %zu bytes are too many.", count, elem_bytes);
    return NULL;
  }
  bytes = om_size_align(bytes > 0 ? bytes : 1, POOL_ALIGNMENT);
  om_pool_block *block = block_with_room(ctx, pool, bytes);
  if (!block) return NULL;
  void *data = block_data(block) + block->used_bytes;
  block->used_bytes += bytes;
  return data;
}

char *om_pool_text(om_ctx *ctx, om_pool *pool, const char *text, size_t bytes) {
  if (bytes == SIZE_MAX) {
    OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu bytes of text are too many.", bytes);
    return NULL;
  }
  char *copy = om_pool_new_bytes(ctx, pool, bytes + 1, 1);
  if (copy && bytes > 0) memcpy(copy, text, bytes);
  return copy;
}

char *om_pool_format(om_ctx *ctx, om_pool *pool, const char *fmt, ...) {
  char *text = NULL;
  va_list args;
  va_list again;
  va_start(args, fmt);
  va_copy(again, args);
  int bytes = vsnprintf(NULL, 0, fmt, args);
  if (bytes < 0) {
    OM_FAIL(ctx, OM_E_INTERNAL, "A text could not be formatted.");
  } else {
    text = om_pool_new_bytes(ctx, pool, (size_t)bytes + 1, 1);
    if (text) (void)vsnprintf(text, (size_t)bytes + 1, fmt, again);
  }
  va_end(again);
  va_end(args);
  return text;
}

void om_pool_deinit(om_ctx *ctx, om_pool *pool) {
  om_pool_block *block = pool->blocks;
  while (block) {
    om_pool_block *next = block->next;
    om_delete(ctx, block);
    block = next;
  }
  pool->blocks = NULL;
}
