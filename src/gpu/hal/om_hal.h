/* The hardware abstraction: what the GPU package needs of a graphics interface.
 *
 * A backend is one const om_hal in a folder beside this file. The common ground is what WebGPU
 * can do: storage buffers bound as (buffer, offset, bytes), at most 8 of them a dispatch,
 * parameters in one small block, no order between dispatches without a barrier.
 *
 * Objects are owned by their device and destroyed before it. A destroy waits for nothing: the
 * caller has waited for the last submission that uses the object.
 *
 * Threads: one call on a device at a time, except kernels_create, which may use threads inside.
 *          Devices beside each other (open_beside) may be called by a thread each.
 * Errors:  every function maps its interface's codes in one place and names the call:
 *          OM_E_DEVICE_LOST, OM_E_OUT_OF_DEVICE_MEMORY (with the size asked for), OM_E_UNSUPPORTED.
 */
#ifndef OM_HAL_H
#define OM_HAL_H

#include "base/om_base.h"
#include "onemodel/gpu.h"

typedef struct om_hal om_hal;
typedef struct om_hal_device om_hal_device;
typedef struct om_hal_buffer om_hal_buffer;
typedef struct om_hal_kernel om_hal_kernel;
typedef struct om_hal_recording om_hal_recording;

enum {
  OM_HAL_MAX_BINDINGS = 8,       /* WebGPU promises 8 storage buffers a stage */
  OM_HAL_MAX_PARAMS_BYTES = 128, /* Vulkan promises 128 bytes of push constants */
  OM_HAL_MAX_CONSTANTS = 32,
  OM_HAL_SM90_SHARED_BYTES = 232448, /* of one workgroup of a kernel in PTX: 227 KiB on Hopper */
};

typedef struct om_hal_limits {
  uint64_t max_binding_bytes; /* of one storage buffer binding */
  uint64_t max_buffer_bytes;
  uint64_t binding_alignment; /* of a binding's offset; a power of two */
  uint32_t max_shared_bytes;  /* of one workgroup */
  uint32_t max_invocations;   /* of one workgroup */
  uint32_t max_groups[3];     /* of one dispatch */
  uint32_t subgroup_size;
} om_hal_limits;

typedef struct om_hal_features {
  bool timestamps;
  bool subgroups;          /* arithmetic and shuffle in compute */
  bool storage_16bit;      /* storage buffers of float16, loaded, stored and converted */
  bool cooperative_matrix; /* f16 inputs, f32 accumulation, 16x16x16 */
  bool cuts_matrix_sums;   /* the accumulation cuts off what does not fit; it does not round */
  bool sm90;               /* kernels in PTX for sm_90a: Hopper's own matrix instructions */
  bool separate_slabs;     /* one dispatch must not read and write one buffer */
  bool unified_memory;     /* device memory is the host's: an integrated GPU, a CPU */
  bool never_waits;        /* a wait for what is not done fails: a browser */
  bool hands_over_early;   /* submitting pieces while recording pays */
  bool in_turn;            /* a workgroup's invocations run in turn: barriers and shared memory are
                              dear, as where a CPU plays the device */
} om_hal_features;

typedef enum om_hal_memory {
  OM_HAL_DEVICE,   /* storage, copied from and to */
  OM_HAL_UPLOAD,   /* the host writes, copies read */
  OM_HAL_READBACK, /* copies write, the host reads */
  OM_HAL_LENT,     /* as UPLOAD, but the host finds it with host_view, and may read it too */
} om_hal_memory;

/* PTX is text for sm_90a, which the driver compiles; its function has the kernel's name. It takes
 * one struct: the 64-bit addresses of its bindings, its parameters, its constants; with takes_turns
 * an om_hal_turn behind them, at a multiple of 8. */
typedef enum om_hal_code { OM_HAL_SPIRV, OM_HAL_WGSL, OM_HAL_MSL, OM_HAL_PTX } om_hal_code;

/* What a kernel that takes turns is told: it waits by itself until the counter at `awaited` has
 * come to `awaited_count`, which says that the launches before are done, and each workgroup adds 1
 * at `own` when it is. Addresses; 0: nothing is to wait for, or to add. sm90.h reads it. */
typedef struct om_hal_turn {
  uint64_t awaited, own;
  uint32_t awaited_count, unused;
} om_hal_turn;

/* The code of many kernels, compressed by the build (om_hal_code.h). static. */
typedef struct om_hal_block {
  const uint8_t *packed;
  size_t packed_bytes, bytes; /* of it, and of what it becomes */
} om_hal_block;

/* A kernel as the build embedded it. static. */
typedef struct om_hal_shader {
  const char *name; /* no other has it */
  om_hal_code code_kind;
  const void *code; /* NULL: it is in a block, if there is one */
  size_t code_bytes;
  const om_hal_block *block;
  uint32_t block_offset, block_bytes; /* its part of what the block becomes */
  uint32_t binding_count;             /* storage buffers at bindings 0..n-1 */
  uint32_t write_mask;                /* bit b: binding b is written */
  uint32_t half_mask; /* bit b: binding b holds float16: the kernel needs storage_16bit */
  uint32_t params_bytes;
  uint32_t workgroup_size[3]; /* fixed in the text */
  uint32_t shared_bytes;      /* of PTX: asked for with each dispatch */
  uint32_t constant_count;    /* specialization constants, ids 0..n-1, 32 bits each */
  bool takes_turns;           /* PTX: a backend may order it without a barrier (om_hal_turn) */
  uint32_t per_core;          /* PTX: workgroups that a core holds at least; 0: one */
} om_hal_shader;

typedef struct om_hal_kernel_desc {
  const om_hal_shader *shader;
  uint32_t constants[OM_HAL_MAX_CONSTANTS];
} om_hal_kernel_desc;

typedef struct om_hal_binding {
  om_hal_buffer *buffer;
  uint64_t offset; /* a multiple of binding_alignment */
  uint64_t bytes;  /* above 0, a multiple of 4 */
} om_hal_binding;

typedef struct om_hal_dispatch {
  om_hal_kernel *kernel;
  om_hal_binding bindings[OM_HAL_MAX_BINDINGS]; /* shader->binding_count of them */
  const void *params;                           /* shader->params_bytes; copied */
  uint32_t groups[3];                           /* each at least 1 */
} om_hal_dispatch;

/* What kept kernels depend on: they serve where all of it is equal. No padding: compared as bytes.
 */
typedef struct om_hal_cache_id {
  uint32_t vendor, device, driver_version;
  uint8_t device_uuid[16], driver_uuid[16], cache_uuid[16];
} om_hal_cache_id;

struct om_hal {
  const char *name; /* "vulkan"; static */

  /* Devices, hardware first; as om_gpu_list. */
  om_status (*list)(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count);

  /* Opens the device with this index in list's order. takes_ptx: it has the feature sm90 where it
   * can; an NVIDIA H200's driver (580) takes 115 ms more for that. */
  om_status (*open)(om_ctx *ctx, size_t index, bool takes_ptx, om_hal_device **out_device);
  /* A device of its own buffers, kernels and submissions on what an open one has from its driver.
   * That one outlives it; one is lost with the other. NULL: the backend has no such devices. */
  om_status (*open_beside)(om_ctx *ctx, om_hal_device *opened, om_hal_device **out_device);
  void (*close)(om_ctx *ctx, om_hal_device *device);
  /* As list has it. */
  void (*describe)(const om_hal_device *device, om_gpu_device *out_device);
  const om_hal_limits *(*limits)(const om_hal_device *device);
  const om_hal_features *(*features)(const om_hal_device *device);

  /* Device memory starts undefined. bytes is a multiple of 4. LENT memory is OM_E_UNSUPPORTED where
   * the host cannot read it at the speed of its own. */
  om_status (*buffer_create)(om_ctx *ctx,
                             om_hal_device *device,
                             om_hal_memory memory,
                             uint64_t bytes,
                             om_hal_buffer **out_buffer);
  void (*buffer_destroy)(om_ctx *ctx, om_hal_device *device, om_hal_buffer *buffer);

  /* Into an UPLOAD buffer: a copy in host memory. Into a DEVICE buffer: done when the call
   * returns or before the next submission; the data is read during the call. */
  om_status (*upload)(om_ctx *ctx,
                      om_hal_device *device,
                      om_hal_buffer *buffer,
                      uint64_t offset,
                      const void *data,
                      uint64_t bytes);
  /* From a READBACK buffer, after the wait for what wrote it. */
  om_status (*download)(om_ctx *ctx,
                        om_hal_device *device,
                        om_hal_buffer *buffer,
                        uint64_t offset,
                        void *data,
                        uint64_t bytes);

  /* A LENT buffer's bytes where they lie, at a multiple of 64; a READBACK buffer's, if the host
   * reads them there at the speed of its own memory; else NULL. The function may be NULL: a browser
   * maps for a moment only, and lends nothing. */
  void *(*host_view)(const om_hal_device *device, const om_hal_buffer *buffer);

  /* Makes `count` kernels, in parallel where the interface can. All or none. A kernel that breaks
   * a limit of the device (shared memory, invocations) is OM_E_UNSUPPORTED, before the driver
   * sees it. */
  om_status (*kernels_create)(om_ctx *ctx,
                              om_hal_device *device,
                              const om_hal_kernel_desc *descs,
                              size_t count,
                              om_hal_kernel **out_kernels);
  void (*kernel_destroy)(om_ctx *ctx, om_hal_device *device, om_hal_kernel *kernel);

  /* What the interface may keep of the kernels it makes, for a process to come. All three are NULL
   * where it keeps nothing. The caller sees to it that what it loads was saved under an equal id.
   */
  const om_hal_cache_id *(*cache_id)(const om_hal_device *device);
  /* Begins to keep what is made from now on, and adds what an earlier save gave (0 bytes: nothing).
   */
  om_status (*cache_load)(om_ctx *ctx, om_hal_device *device, const void *data, size_t bytes);
  /* data NULL: *bytes becomes what there is to save; a new kernel makes it more. Else *bytes is the
   * room at data, and becomes what was written. */
  om_status (*cache_save)(om_ctx *ctx, om_hal_device *device, void *data, size_t *bytes);

  /* A recording is made once and submitted any number of times, one submission of it at a time.
   * `dispatch_count` and `timestamp_count` bound what will be recorded. */
  om_status (*recording_begin)(om_ctx *ctx,
                               om_hal_device *device,
                               size_t dispatch_count,
                               uint32_t timestamp_count,
                               om_hal_recording **out_recording);
  om_status (*record_dispatch)(om_ctx *ctx,
                               om_hal_recording *recording,
                               const om_hal_dispatch *dispatch);
  om_status (*record_copy)(om_ctx *ctx,
                           om_hal_recording *recording,
                           const om_hal_binding *source,
                           const om_hal_binding *target); /* source->bytes bytes */
  /* What is recorded before is done and visible to what is recorded after. */
  om_status (*record_barrier)(om_ctx *ctx, om_hal_recording *recording);
  /* Writes the time when what was recorded before is done into slot `index`. */
  om_status (*record_timestamp)(om_ctx *ctx, om_hal_recording *recording, uint32_t index);
  om_status (*recording_end)(om_ctx *ctx, om_hal_recording *recording);
  void (*recording_destroy)(om_ctx *ctx, om_hal_device *device, om_hal_recording *recording);

  /* Hands recordings over, in order; what was submitted before is done first, and its writes are
   * visible. *out_number grows with each submission. */
  om_status (*submit)(om_ctx *ctx,
                      om_hal_device *device,
                      om_hal_recording *const *recordings,
                      size_t count,
                      uint64_t *out_number);
  /* Whether submission `number` is done, so that a wait for it returns at once. */
  om_status (*is_done)(om_ctx *ctx, om_hal_device *device, uint64_t number, bool *out_is_done);
  /* Returns when submission `number` is done. */
  om_status (*wait)(om_ctx *ctx, om_hal_device *device, uint64_t number);

  /* Nanoseconds of the recording's timestamps, after the wait. */
  om_status (*timestamps)(om_ctx *ctx,
                          om_hal_recording *recording,
                          uint32_t count,
                          uint64_t *out_ns);
};

/* The backends of this build, best first; NULL past the last. */
const om_hal *om_hal_get(size_t index);

extern const om_hal om_hal_null;
#ifdef OM_WITH_VULKAN
extern const om_hal om_hal_vulkan;
#endif
#ifdef OM_WITH_WEBGPU
extern const om_hal om_hal_webgpu;
#endif

#endif
