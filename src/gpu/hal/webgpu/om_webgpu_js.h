/* What the backend calls in om_webgpu.js. A handle is a number above 0 that belongs to a device; 0
 * is a failure, whose reason om_webgpu_js_error gives. Sizes and offsets are doubles: they may be
 * above 4 GB, and all of them are whole numbers that a double holds. */
#ifndef OM_WEBGPU_JS_H
#define OM_WEBGPU_JS_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t om_webgpu_handle;

enum { /* of om_webgpu_js_limit */
       OM_WEBGPU_MAX_BINDING_BYTES,
       OM_WEBGPU_MAX_BUFFER_BYTES,
       OM_WEBGPU_BINDING_ALIGNMENT,
       OM_WEBGPU_MAX_SHARED_BYTES,
       OM_WEBGPU_MAX_INVOCATIONS,
       OM_WEBGPU_MAX_GROUPS,
};

enum { /* of om_webgpu_js_buffer_create */
       OM_WEBGPU_STORAGE,
       OM_WEBGPU_STAGING,
       OM_WEBGPU_MAPPED,
};

enum {                          /* the first word of a recorded operation */
       OM_WEBGPU_DISPATCH = 1,  /* kernel, groups x y z, params offset, then for each binding of the
                                   kernel: buffer, offset, bytes */
       OM_WEBGPU_COPY = 2,      /* source, offset, target, offset, bytes */
       OM_WEBGPU_TIMESTAMP = 3, /* slot */
};

/* The devices that the page has made ready and that no session has opened yet. */
uint32_t om_webgpu_js_device_count(void);
/* Its name, as a terminated text of at most `capacity` bytes. */
void om_webgpu_js_device_name(uint32_t index, char *name, size_t capacity);
om_webgpu_handle om_webgpu_js_open(uint32_t index);
void om_webgpu_js_close(om_webgpu_handle device);
double om_webgpu_js_limit(om_webgpu_handle device, uint32_t which);
uint32_t om_webgpu_js_has_float16(om_webgpu_handle device);
uint32_t om_webgpu_js_has_clock(om_webgpu_handle device);
uint32_t om_webgpu_js_is_software(om_webgpu_handle device); /* a CPU plays it */

/* The device's first failure since it was opened: 1 if it is lost, 2 if it ran out of memory, 3 for
 * another; 0: none. The reason as above. */
uint32_t om_webgpu_js_error(om_webgpu_handle device, char *reason, size_t capacity);

om_webgpu_handle om_webgpu_js_buffer_create(om_webgpu_handle device, uint32_t kind, double bytes);
void om_webgpu_js_buffer_destroy(om_webgpu_handle device, om_webgpu_handle buffer);
void om_webgpu_js_write(om_webgpu_handle device,
                        om_webgpu_handle buffer,
                        double offset,
                        const void *data,
                        size_t bytes);
/* 0: the buffer is not mapped. */
uint32_t om_webgpu_js_read(
    om_webgpu_handle device, om_webgpu_handle buffer, double offset, void *data, size_t bytes);

/* Begins to compile; a submission waits for the kernels it uses. */
om_webgpu_handle om_webgpu_js_kernel_create(om_webgpu_handle device,
                                            const char *name,
                                            const char *text,
                                            size_t text_bytes,
                                            const uint32_t *constants,
                                            uint32_t constant_count,
                                            uint32_t binding_count,
                                            uint32_t write_mask,
                                            uint32_t params_bytes);
void om_webgpu_js_kernel_destroy(om_webgpu_handle device, om_webgpu_handle kernel);

/* A recording of these operations; params is one block, an aligned piece for each dispatch. */
om_webgpu_handle om_webgpu_js_recording_create(om_webgpu_handle device,
                                               const uint32_t *words,
                                               size_t word_count,
                                               const void *params,
                                               size_t params_bytes,
                                               uint32_t timestamp_count);
void om_webgpu_js_recording_destroy(om_webgpu_handle device, om_webgpu_handle recording);

/* Nanoseconds of its first `count` slots, once a submission of it is done. 0: none is. */
uint32_t om_webgpu_js_timestamps(om_webgpu_handle device,
                                 om_webgpu_handle recording,
                                 uint32_t count,
                                 uint64_t *times);

/* Hands recordings over as submission `number`, and maps the buffers for reading that they write.
 */
void om_webgpu_js_submit(om_webgpu_handle device,
                         const om_webgpu_handle *recordings,
                         size_t count,
                         double number);
/* The last submission that is done, its mappings included. */
double om_webgpu_js_finished(om_webgpu_handle device);

#endif
