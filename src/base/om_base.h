/* What every file of the library stands on: the context, errors, memory and checked sizes.
 *
 * A context travels first through every internal function that can fail or allocate. It names
 * the allocator, the error to fill, the log and the thread count; it owns nothing and is passed
 * by pointer down the stack only.
 */
#ifndef OM_BASE_H
#define OM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "onemodel/onemodel.h"

#if defined(__GNUC__)
#  define OM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#  define OM_PRINTF(fmt, args)
#endif

#define OM_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Counts what one session or model holds. shared: updated atomically. */
typedef struct om_memory_use {
  uint64_t allocations; /* made so far */
  uint64_t live_bytes;
  uint64_t peak_bytes;
  uint64_t limit_bytes; /* of live_bytes; 0: none. Set before anything is counted. */
} om_memory_use;

typedef struct om_thread_pool om_thread_pool; /* base/om_thread_pool.h */

typedef struct om_ctx {
  om_allocator allocator;
  om_memory_use *use; /* borrowed; NULL: not counted */
  om_error *error;    /* borrowed; never NULL inside the library */
  om_log log;
  uint32_t thread_count;    /* at least 1 */
  om_thread_pool *workers;  /* borrowed; NULL: loops run on the caller's thread */
  const om_cancel *cancel;  /* borrowed; NULL: the work cannot be cancelled. Who keeps what kernels
                               compute (plans, folding) sets it to NULL meanwhile */
  const om_cancel *give_up; /* borrowed; NULL, or what cancel was: asked between the nodes of a
                               plan, which is thrown away then */
} om_ctx;

/* ---- Errors ---- */

/* Records the error unless one is recorded already (the first failure wins). Returns `status`. */
om_status om_fail(om_ctx *ctx, om_status status, const char *file, int line, const char *fmt, ...)
    OM_PRINTF(5, 6);

/* Puts "<what> '<name>': " in front of the recorded message: who, added once by the caller that
 * knows the name. The ": " is added unless the text ends with a space. */
void om_error_prefix(om_ctx *ctx, const char *fmt, ...) OM_PRINTF(2, 3);

/* Forgets the recorded error: for code that recovers from a failure. */
void om_error_clear(om_error *error);

#define OM_FAIL(ctx, status, ...) om_fail((ctx), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Returns from the function while it owns nothing. */
#define OM_TRY(call)                                  \
  do {                                                \
    om_status om_try_status = (call);                 \
    if (om_try_status != OM_OK) return om_try_status; \
  } while (0)

/* Leaves through `done` with `st` set. */
#define OM_GO(call)             \
  do {                          \
    st = (call);                \
    if (st != OM_OK) goto done; \
  } while (0)

/* ptr = zeroed array of `count`; leaves through `done` when there is no memory. */
#define OM_GO_NEW(ptr, count)                          \
  do {                                                 \
    (ptr) = om_new_bytes(ctx, (count), sizeof *(ptr)); \
    if (!(ptr)) {                                      \
      st = OM_E_OUT_OF_MEMORY;                         \
      goto done;                                       \
    }                                                  \
  } while (0)

/* Drops a status on purpose; say why beside it. */
#define OM_IGNORE(call)            \
  do {                             \
    om_status om_ignored = (call); \
    (void)om_ignored;              \
  } while (0)

void om_log_write(const om_ctx *ctx, om_log_level level, const char *fmt, ...) OM_PRINTF(3, 4);

/* ---- Cancelling ---- */

static inline bool om_is_cancelled(const om_ctx *ctx) {
  return ctx->cancel && __atomic_load_n(&ctx->cancel->is_asked, __ATOMIC_RELAXED) != 0;
}

/* OM_E_CANCELLED if it is. */
om_status om_check_cancelled(om_ctx *ctx);

/* The same of what is made whole, or given up between two of its parts. */
om_status om_check_given_up(om_ctx *ctx);

/* The first at each 1024th turn of a loop, for turns that are short. */
static inline om_status om_check_turn(om_ctx *ctx, size_t turn) {
  return turn % 1024 == 0 ? om_check_cancelled(ctx) : OM_OK;
}

/* ---- Memory ---- */

/* Zeroed memory for `count` elements, aligned to 64; records OM_E_OUT_OF_MEMORY and returns NULL
 * on failure or overflow. A count of 0 gives memory that must be deleted too. */
void *om_new_bytes(om_ctx *ctx, size_t count, size_t elem_bytes);

/* Frees what om_new_bytes or om_resize returned; NULL is fine. */
void om_delete(om_ctx *ctx, void *ptr);

/* Grows an array to `count` elements, keeping the first `old_count`; the new part is zeroed. */
om_status om_resize_bytes(
    om_ctx *ctx, void **ptr, size_t old_count, size_t count, size_t elem_bytes);

/* Makes room for one more element in an array that doubles. */
#define OM_GROW(ctx, array, count, capacity) \
  om_grow((ctx), (void **)&(array), (count), &(capacity), sizeof *(array))
om_status om_grow(om_ctx *ctx, void **array, size_t count, size_t *capacity, size_t elem_bytes);

/* Counts in `use` (NULL: nowhere) what `more` counted too; its limit is not looked at. */
void om_memory_use_add(om_memory_use *use, const om_memory_use *more);

/* Makes *given the context's allocator, if it is not NULL; one without both functions is
 * OM_E_INVALID_ARGUMENT. */
om_status om_ctx_use_allocator(om_ctx *ctx, const om_allocator *given);

/* The C library's allocator. */
om_allocator om_default_allocator(void);

/* Memory freed as a whole: load and planning. single. */
typedef struct om_pool_block om_pool_block;
typedef struct om_pool {
  om_pool_block *blocks; /* owned */
} om_pool;

/* Zeroed memory aligned to 16, freed by om_pool_deinit; NULL and a recorded error on failure. */
void *om_pool_new_bytes(om_ctx *ctx, om_pool *pool, size_t count, size_t elem_bytes);
#define OM_POOL_NEW(ctx, pool, type, count) \
  ((type *)om_pool_new_bytes((ctx), (pool), (count), sizeof(type)))
/* A terminated copy of `bytes` bytes. */
char *om_pool_text(om_ctx *ctx, om_pool *pool, const char *text, size_t bytes);
char *om_pool_format(om_ctx *ctx, om_pool *pool, const char *fmt, ...) OM_PRINTF(3, 4);
void om_pool_deinit(om_ctx *ctx, om_pool *pool);

/* ---- Checked sizes ---- */

/* *out = a * b or a + b; false on overflow. */
static inline bool om_size_mul(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) return false;
  *out = a * b;
  return true;
}
static inline bool om_size_add(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b) return false;
  *out = a + b;
  return true;
}
static inline size_t om_size_align(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/* True for sequences, optionals and maps: their elements are om_tensor. */
static inline bool om_dtype_is_nested(om_dtype dtype) {
  return dtype == OM_DTYPE_SEQUENCE || dtype == OM_DTYPE_OPTIONAL || dtype == OM_DTYPE_MAP;
}

/* Elements and bytes of a shape; false on a negative extent, or where a product of its extents
 * overflows, even if another one is 0. */
bool om_shape_elems(uint32_t rank, const int64_t *dims, size_t *out_elems);
bool om_shape_bytes(om_dtype dtype, uint32_t rank, const int64_t *dims, size_t *out_bytes);

/* Writes "[1, 3, 48, 320]" into buffer (terminated, cut where it does not fit); returns buffer. */
enum { OM_SHAPE_TEXT = 128 };
const char *om_shape_text(char *buffer, size_t buffer_bytes, uint32_t rank, const int64_t *dims);

#endif
