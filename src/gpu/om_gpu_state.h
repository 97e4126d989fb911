/* The GPU package's own state: what a session, a plan and a region keep.
 *
 *     om_provider_session   the device, weights, kernels, arena, staging: one for each session
 *       om_provider_plan    steps with the dispatches that bind made, constants, regions
 *         om_gpu_region     dispatches in order, memory of each value, recordings
 *
 * Children die first. Everything on the device belongs to the session except a plan's constants
 * and recordings. All of it is single: the core calls one function of a session at a time.
 */
#ifndef OM_GPU_STATE_H
#define OM_GPU_STATE_H

#include "base/om_interval.h"
#include "base/om_thread.h"
#include "gpu/om_gpu_op.h"
#include "graph/om_stored.h"

enum {
  OM_GPU_ALIGNMENT = 256, /* of constants and slots; the most a device asks for */
  OM_GPU_MAX_SLABS = 64,  /* of one arena */
};

enum { OM_GPU_CHAIN_PARAMS_BYTES = 40 }; /* sizeof(om_chain_params), abi/om_params.h */

/* ---- Constants: om_gpu_weights.c ---- */

typedef struct om_gpu_block { /* a piece of a buffer */
  om_hal_buffer *buffer;      /* borrowed from the store */
  uint64_t offset;
  uint64_t bytes; /* a multiple of 4 */
} om_gpu_block;

typedef struct om_gpu_source { /* what a constant is made of: bytes of the model, or of a plan */
  const void *data;            /* where they lie; only compared if they are stored */
  const om_stored *stored;     /* not NULL: they are read through this */
  bool is_widened;             /* stored float16, of which the float32 are meant */
  bool is_lost;                /* what is made is never found again */
  uint64_t offset, bytes;      /* the range of them, as they are meant */
} om_gpu_source;

typedef struct om_gpu_store_entry {
  const void *source; /* compared, never read; NULL: never found again */
  uint64_t offset;    /* of a stored source */
  const char *recipe; /* static */
  uint64_t bytes;
  om_gpu_block block;
} om_gpu_store_entry;

typedef struct om_gpu_store {
  om_hal_buffer **buffers; /* owned */
  size_t buffer_count, buffer_capacity;
  om_hal_buffer *shared; /* of buffers: the one small constants go to; may be NULL */
  uint64_t shared_used, shared_bytes;
  om_gpu_store_entry *entries; /* owned */
  size_t entry_count, entry_capacity;
  uint64_t total_bytes; /* of all buffers */
} om_gpu_store;

/* ---- Kernels: om_gpu_kernels.c ---- */

typedef struct om_gpu_kernel_key { /* what makes one kernel differ from another */
  om_shader shader;
  uint32_t constants[OM_HAL_MAX_CONSTANTS];
} om_gpu_kernel_key;

typedef struct om_gpu_kernel_entry {
  om_gpu_kernel_key key;
  om_hal_shader *trimmed; /* owned; what the kernel was made from, where it has a chain */
  om_hal_kernel *kernel;  /* owned */
} om_gpu_kernel_entry;

typedef struct om_gpu_kernels {
  om_gpu_kernel_entry *entries; /* owned */
  size_t count, capacity;
} om_gpu_kernels;

/* ---- The file of kernels: om_gpu_cache.c ---- */

typedef struct om_gpu_cache {
  char *path;          /* owned; NULL: nothing is kept */
  size_t folder_bytes; /* of the path */
  size_t kept_bytes;   /* what the device kept when it was last in step with the file */
  uint64_t file_hash;  /* of the payload this session last read or wrote */
} om_gpu_cache;

/* ---- The arena: om_gpu_arena.c ---- */

typedef struct om_gpu_arena {
  om_hal_buffer *slabs[OM_GPU_MAX_SLABS]; /* owned */
  uint64_t slab_bytes[OM_GPU_MAX_SLABS];
  om_hal_buffer *upload;   /* owned: staging for a region's reads; may be NULL */
  om_hal_buffer *readback; /* owned: for its writes; may be NULL */
  uint64_t upload_bytes, readback_bytes;
  uint64_t generation; /* grows when a buffer is replaced: recordings are stale then */
} om_gpu_arena;

/* ---- Memory lent to callers: om_gpu_lent.c ---- */

typedef struct om_gpu_lent {
  om_hal_buffer *buffer; /* owned */
  char *data;            /* its bytes on the host */
  uint64_t bytes;
} om_gpu_lent;

typedef struct om_gpu_head {   /* the uploads of a region from one set of places */
  om_hal_recording *recording; /* owned; NULL: none */
  om_hal_binding *sources;     /* in the plan's pool, by read */
} om_gpu_head;

enum { OM_GPU_MAX_HEADS = 8 }; /* of a region: for as many callers that have memory of their own */

/* ---- float16 as float32: om_gpu_widen.c ---- */

typedef struct om_gpu_wide { /* a constant of the session */
  const void *source;        /* compared, never read */
  size_t elems;
  float *data; /* owned */
} om_gpu_wide;

typedef struct om_gpu_slot { /* where a block of a region lies */
  uint64_t bytes;            /* a multiple of 4 */
  uint32_t first, last;      /* levels that use it, inclusive */
  uint32_t color;            /* blocks of different colors never share a slab */
  uint32_t slab;             /* out */
  uint64_t offset;           /* out */
} om_gpu_slot;

/* ---- Sessions, plans, regions ---- */

struct om_provider_session {
  const om_hal *hal;       /* static */
  om_hal_device *device;   /* owned */
  om_gpu_prepared *shared; /* counted; whose device this one is beside. NULL: none */
  om_hal_limits limits;    /* copies of the device's */
  om_hal_features features;
  om_mode mode;
  bool no_fusion;
  bool widens_halves; /* om_gpu_widen.c */
  bool collect_timings;
  bool profiles; /* om_gpu_profile.c */
  bool logs_profiles;
  uint64_t submission_flops;
  uint32_t failed_primitives; /* bits of om_primitive; exact mode only */
  char exact_failures[128];   /* their names */
  om_gpu_wide *wides;         /* owned */
  size_t wide_count, wide_capacity;
  float *wide_room; /* owned; for what is uploaded and read back */
  size_t wide_room_elems;
  om_gpu_store weights;
  om_gpu_block zeros; /* of weights: what unused bindings get */
  char *room;         /* owned; where the host makes constants, until a plan is compiled */
  size_t room_bytes;
  om_gpu_kernels kernels;
  om_gpu_cache cache;
  om_gpu_arena arena;
  om_gpu_lent *lents; /* owned */
  size_t lent_count, lent_capacity;
  uint64_t lent_generation;         /* grows when one is given back: heads are stale then */
  const om_provider_plan *profiled; /* of the last run, for its step times; may be NULL */
  uint64_t submitted;               /* number of the last submission */
  uint64_t waited;                  /* the last one known to be done */
  uint64_t submitted_ns;            /* when the region under way was handed over */
  om_gpu_info info;
};

typedef enum om_gpu_demand_kind { /* the numbers are the shader's */
                                  OM_GPU_DEMAND_INDEX = 0,
                                  OM_GPU_DEMAND_DIVISOR = 1,
} om_gpu_demand_kind;

typedef struct om_gpu_demand { /* of a step on the values of an input: om_gpu_demand.c */
  om_gpu_demand_kind kind;
  uint32_t value;    /* of view->values */
  uint32_t dispatch; /* of the step's: the one that looks; not recorded where the host does */
  uint32_t scratch;  /* of the step's blocks: the finding */
  uint32_t extent_count;
  int64_t extents[OM_MAX_RANK]; /* of an INDEX */
} om_gpu_demand;

typedef struct om_gpu_step {   /* what bind answered */
  om_gpu_dispatch *dispatches; /* owned */
  size_t dispatch_count, dispatch_capacity;
  uint64_t *scratch_bytes; /* owned */
  size_t scratch_count, scratch_capacity;
  om_gpu_demand *demands; /* owned */
  size_t demand_count, demand_capacity;
  bool is_view;
} om_gpu_step;

typedef struct om_gpu_launch { /* a dispatch's place in a region */
  om_gpu_dispatch *dispatch;   /* borrowed from its step */
  uint32_t step;
  uint32_t level;   /* of one level: nothing waits for another (om_gpu_order.c) */
  bool is_absorbed; /* its chain moved to an earlier one: records nothing */
} om_gpu_launch;

#define OM_GPU_NO_READ UINT32_MAX

typedef struct om_gpu_finding { /* who looks at a demand's values in a region */
  const om_gpu_demand *demand;  /* borrowed from its step */
  uint32_t step;
  uint32_t read;   /* of the region's reads: the host; OM_GPU_NO_READ: the device */
  uint64_t offset; /* into the readback buffer, for the device's */
} om_gpu_finding;

typedef struct om_gpu_region {
  om_gpu_launch *launches; /* in the plan's pool, as all arrays here */
  size_t launch_count;
  uint32_t level_count;
  const uint32_t *reads, *writes; /* copies of the core's lists */
  size_t read_count, write_count;
  uint64_t *read_offsets, *write_offsets; /* into the staging buffers */
  uint64_t upload_bytes, readback_bytes;
  om_gpu_finding *findings;
  size_t finding_count;
  uint32_t *slot_of_memory;     /* by om_gpu_memory_of; OM_GPU_NO_SLOT: not of this region */
  uint32_t *first_slot_of_step; /* its scratch blocks' */
  om_gpu_slot *slots;
  size_t slot_count;
  uint64_t slab_bytes[OM_GPU_MAX_SLABS];
  uint64_t live_bytes;           /* the most that its slots hold at once */
  om_hal_recording **recordings; /* owned; the array itself too */
  size_t recording_count, recording_capacity;
  uint64_t generation; /* of the arena when they were made; 0: none */
  om_gpu_head *heads;  /* in the pool. NULL: no run gave it lent memory, and the first recording has
                          the uploads; else that is a head, which it does not own */
  size_t next_head;    /* the one to be made anew */
  uint64_t lent_generation; /* of the session when the heads were made */
  om_hal_binding *sources;  /* in the pool; of the run under way, by read. NULL: no heads */
  uint64_t dispatches;      /* recorded */
  uint64_t *times;          /* profiles only: the start, the uploads, each launch, the end */
} om_gpu_region;

#define OM_GPU_NO_SLOT   UINT32_MAX
#define OM_GPU_NO_MEMORY UINT32_MAX

struct om_provider_plan {
  om_provider_session *session;  /* borrowed; outlives the plan */
  const om_plan_view *host_view; /* borrowed from the core until plan_end */
  const om_plan_view *view;      /* the same, or in the pool: values as the device has them */
  om_pool pool;                  /* reasons, regions */
  om_gpu_store store;            /* constants that are this plan's alone */
  om_gpu_block *constants;       /* owned array; blocks of a store */
  size_t constant_count, constant_capacity;
  om_gpu_step *steps;     /* in the pool; view->step_count of them */
  uint32_t *roots;        /* in the pool; by value: itself, or what it is a view of */
  om_gpu_region *regions; /* in the pool */
  size_t region_count;
  om_gpu_step_time *step_times; /* in the pool; profiles only */
  size_t step_time_count;
  uint32_t *time_of_step; /* in the pool; indices into step_times of steps that dispatch */
};

struct om_gpu_binder {
  om_ctx *ctx;
  om_provider_plan *plan;
  uint32_t step_index;
  om_gpu_step *step;
  om_status status; /* the first failure that is not a refusal */
};

/* ---- om_gpu_provider.c, om_gpu_prepare.c ---- */

/* The caller's options (NULL: none), as far as its build knew them. */
om_status om_gpu_read_options(om_ctx *ctx, const void *options, om_gpu_options *out_options);
/* A session with its device, which has not been tried yet. `beside`: whose device it shares; it is
 * not called meanwhile. NULL: nobody's. */
om_status om_gpu_session_open(om_ctx *ctx,
                              const om_gpu_options *options,
                              om_mode mode,
                              const om_provider_session *beside,
                              om_provider_session **out_session);
void om_gpu_session_close(om_ctx *ctx, om_provider_session *session);
/* Moves what was made ready, and its memory, to the context's owner. */
om_status om_gpu_prepared_take(om_ctx *ctx,
                               om_gpu_prepared *prepared,
                               om_mode mode,
                               om_provider_session **out_session);
/* A session beside others of the prepared device; *out_is_tried: exact mode is earned. */
om_status om_gpu_prepared_share(om_ctx *ctx,
                                const om_gpu_options *options,
                                om_mode mode,
                                om_provider_session **out_session,
                                bool *out_is_tried);
/* Counts one user less; the last one closes the device. */
void om_gpu_prepared_leave(om_gpu_prepared *prepared);

/* ---- om_gpu_weights.c ---- */

/* A buffer of the session's device, counted in its information. */
om_status om_gpu_buffer_create(om_ctx *ctx,
                               om_provider_session *session,
                               om_hal_memory memory,
                               uint64_t bytes,
                               om_hal_buffer **out_buffer);

/* Finds (source, recipe, bytes), or makes it: fill(arg, source, memory) or, where fill is NULL, a
 * copy of the source. source NULL: there is none, and it is not found again. OM_E_NOT_READY: its
 * bytes were asked for. */
om_status om_gpu_store_get(om_ctx *ctx,
                           om_provider_session *session,
                           om_gpu_store *store,
                           const om_gpu_source *source,
                           const char *recipe,
                           uint64_t bytes,
                           om_gpu_fill fill,
                           const void *arg,
                           om_gpu_block *out_block);
void om_gpu_store_deinit(om_ctx *ctx, om_provider_session *session, om_gpu_store *store);
/* Brings a stored source to memory: source->bytes bytes. */
om_status om_gpu_source_read(om_ctx *ctx, const om_gpu_source *source, void *to);
/* Frees the memory in which constants were made; more may be made later. */
void om_gpu_room_deinit(om_ctx *ctx, om_provider_session *session);

/* ---- om_gpu_kernels.c, om_gpu_trim.c ---- */

/* Makes what of these kernels is not there yet, all at once. */
om_status om_gpu_kernels_prepare(om_ctx *ctx,
                                 om_provider_session *session,
                                 const om_gpu_kernel_key *keys,
                                 size_t count);
/* The kernel made for an equal key, or NULL. */
om_hal_kernel *om_gpu_kernels_find(const om_provider_session *session,
                                   const om_gpu_kernel_key *key);
void om_gpu_kernels_deinit(om_ctx *ctx, om_provider_session *session);

/* Fills `trimmed` of the entries: copies of the kernels' code without what their chains do not use,
 * NULL where there is no chain. The caller frees them and, earlier if it likes, their code; also
 * where this fails. */
om_status om_gpu_trim(om_ctx *ctx, om_gpu_kernel_entry *entries, size_t count);
/* Frees the copy's code alone; or all of it, NULL included. */
void om_gpu_free_code(om_ctx *ctx, om_hal_shader *trimmed);
void om_gpu_free_trimmed(om_ctx *ctx, om_hal_shader *trimmed);

/* ---- om_gpu_widen.c ---- */

/* Makes the plan's view one with float32 in place of float16, where the session widens. */
om_status om_gpu_widen_view(om_ctx *ctx, om_provider_plan *plan);
void om_gpu_widen_deinit(om_ctx *ctx, om_provider_session *session);
/* Behind a binder: rounds its float16 results where they have to be. A reason, or NULL. */
const char *om_gpu_round_results(om_gpu_binder *b);
/* A value's bytes on the host, and whether they are halves of those on the device. */
size_t om_gpu_host_bytes(const om_provider_plan *plan, uint32_t value);
bool om_gpu_value_is_widened(const om_provider_plan *plan, uint32_t value);
/* Room for that many floats, until the next call. */
om_status om_gpu_widen_room(om_ctx *ctx,
                            om_provider_session *session,
                            size_t elems,
                            float **out_room);
/* Halves of the host's as floats, until the next call; and back. */
om_status om_gpu_widen_read(om_ctx *ctx,
                            om_provider_session *session,
                            const void *data,
                            size_t elems,
                            const void **out_wide);
void om_gpu_narrow(const float *wide, void *out_halves, size_t elems);

/* ---- om_gpu_arena.c ---- */

/* The largest sum of slots that are in use at one level. */
om_status om_gpu_arena_live(om_ctx *ctx,
                            const om_gpu_slot *slots,
                            size_t count,
                            uint64_t *out_bytes);

/* Places the slots in slabs; *slab_bytes gets what each slab must hold. */
om_status om_gpu_arena_place(om_ctx *ctx,
                             const om_provider_session *session,
                             om_gpu_slot *slots,
                             size_t count,
                             uint64_t slab_bytes[OM_GPU_MAX_SLABS]);
/* Grows the session's slabs and staging buffers to what the region needs. */
om_status om_gpu_arena_fit(om_ctx *ctx, om_provider_session *session, const om_gpu_region *region);
void om_gpu_arena_deinit(om_ctx *ctx, om_provider_session *session);

/* ---- om_gpu_lent.c ---- */

/* om_provider.memory_lend and memory_return. */
om_status om_gpu_memory_lend(om_ctx *ctx,
                             om_provider_session *session,
                             size_t byte_count,
                             void **out_data);
void om_gpu_memory_return(om_ctx *ctx, om_provider_session *session, void *data);
void om_gpu_memory_deinit(om_ctx *ctx, om_provider_session *session);

/* Whether one of the region's reads lies in lent memory, for a region without heads. */
bool om_gpu_reads_lent(const om_provider_plan *plan,
                       const om_gpu_region *region,
                       const void *const *reads);
/* Room for the heads of a region that has no recordings. */
om_status om_gpu_add_heads(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region);
/* Fills region->sources: places in lent memory, or in the staging buffer. */
void om_gpu_find_sources(const om_provider_plan *plan,
                         const om_gpu_region *region,
                         const void *const *reads);
/* The recording that uploads from region->sources: kept, or made. `is_timed`: its start is taken.
 */
om_status om_gpu_get_head(om_ctx *ctx,
                          om_provider_plan *plan,
                          om_gpu_region *region,
                          bool is_timed,
                          om_hal_recording **out_head);
/* Destroys the recordings of the heads; nothing of them is running. */
void om_gpu_drop_heads(om_ctx *ctx, om_provider_session *session, om_gpu_region *region);

/* ---- om_gpu_elementwise.c ---- */

/* True for the elementwise kernels, whose binding 0 is read and 1 written. */
bool om_gpu_is_elementwise(const om_gpu_dispatch *dispatch);
/* True if Sin or Cos is among its operations. Devices' own are 2^-11 away in places, and far more
 * for arguments above a few hundred, so they are exact in fast mode too: in the elementwise kernels
 * alone, which have an exact form for them. */
bool om_gpu_chain_turns(const om_gpu_chain *chain);
/* Chooses the kernel's form and its grid, once the chain is final. */
void om_gpu_finish_elementwise(const om_provider_session *session, om_gpu_dispatch *dispatch);
/* Splits `count` workgroups over three dimensions. */
void om_gpu_split_groups(const om_hal_limits *limits, uint64_t count, uint32_t out_groups[3]);

/* ---- om_gpu_fuse.c ---- */

/* Moves chains into the launches before them. is_fused[step] is set for steps absorbed. */
om_status om_gpu_fuse(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region, bool *is_fused);
/* True if the item has an operand in a buffer. */
bool om_gpu_reads_operand(const om_chain_item *item);

/* ---- om_gpu_fuse_lookup.c ---- */

/* Makes one launch of embeddings: of lookups, their sum and its normalisation. */
void om_gpu_fuse_lookups(const om_provider_plan *plan, om_gpu_region *region);

/* ---- om_gpu_fuse_pool.c ---- */

/* The launch before `end` that writes the value with this root, or NULL. */
om_gpu_launch *om_gpu_find_writer(const om_provider_plan *plan,
                                  om_gpu_region *region,
                                  size_t end,
                                  uint32_t root);
/* In fast mode a depthwise convolution makes the mean of each of its planes as well. */
void om_gpu_fuse_pools(const om_provider_plan *plan, om_gpu_region *region);

/* ---- om_gpu_fuse_gate.c ---- */

/* Makes one launch of the end of each squeeze-and-excite block; the chains are final. */
om_status om_gpu_fuse_gates(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region);

/* ---- om_gpu_fuse_norm.c ---- */

/* Normalisations take the sums before them; the chains are final but for those. */
om_status om_gpu_fuse_norms(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region);

/* ---- om_gpu_program.c ---- */

om_status om_gpu_compile(om_ctx *ctx,
                         om_provider_plan *plan,
                         const om_plan_region *regions,
                         size_t region_count,
                         bool *step_is_fused);

/* The number of a VALUE's or WIDE operand's memory, below 2 * view->value_count: views share it.
 * OM_GPU_NO_MEMORY for the others. */
uint32_t om_gpu_memory_of(const om_provider_plan *plan, const om_gpu_operand *operand);

/* The slot of a VALUE, WIDE or SCRATCH operand; NULL for the others. */
om_gpu_slot *om_gpu_operand_slot(const om_provider_plan *plan,
                                 const om_gpu_region *region,
                                 uint32_t step,
                                 const om_gpu_operand *operand);

/* ---- om_gpu_demand.c ---- */

/* Lists the demands of the region's steps, once its reads are known. */
om_status om_gpu_demands_list(om_ctx *ctx,
                              om_provider_plan *plan,
                              const om_plan_region *source,
                              om_gpu_region *region);
/* True for a dispatch that has nothing to do, as the host does its work. */
bool om_gpu_demand_is_for_host(const om_gpu_region *region, uint32_t step, uint32_t dispatch);
/* Looks at what is about to be uploaded. */
om_status om_gpu_demands_check_reads(om_ctx *ctx,
                                     const om_provider_plan *plan,
                                     const om_gpu_region *region,
                                     const void *const *reads);
/* Looks at what the device found, after the wait. */
om_status om_gpu_demands_check_findings(om_ctx *ctx,
                                        const om_provider_plan *plan,
                                        const om_gpu_region *region);

/* ---- om_gpu_order.c ---- */

/* Sorts the launches into levels. */
om_status om_gpu_order(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region);

/* ---- om_gpu_profile.c ---- */

/* Makes room for the times of the plan's steps, once its launches stand. */
om_status om_gpu_profile_prepare(om_ctx *ctx, om_provider_plan *plan);
/* Takes the times of the region's run that has just ended. */
om_status om_gpu_profile_read(om_ctx *ctx, om_provider_plan *plan, size_t region_index);

/* ---- om_gpu_record.c ---- */

/* The kernel a dispatch needs: its constants, then the chain's items. */
void om_gpu_describe_kernel(const om_gpu_dispatch *dispatch, om_gpu_kernel_key *out_key);

/* om_provider.begin, is_done and finish. */
om_status om_gpu_region_begin(om_ctx *ctx,
                              om_provider_plan *plan,
                              size_t region_index,
                              const void *const *reads);
om_status om_gpu_region_is_done(om_ctx *ctx,
                                om_provider_plan *plan,
                                size_t region_index,
                                bool *out_is_done);
om_status om_gpu_region_finish(om_ctx *ctx,
                               om_provider_plan *plan,
                               size_t region_index,
                               void *const *writes);
/* om_provider.lend: the result in the readback staging, where the host reads it in place. */
const void *om_gpu_lend(om_provider_plan *plan, size_t region_index, size_t write);

/* Waits for what a failed run left on the device: before anything it may use is destroyed. */
void om_gpu_settle(om_ctx *ctx, om_provider_session *session);

void om_gpu_region_deinit(om_ctx *ctx, om_provider_session *session, om_gpu_region *region);

#endif
