/* The loader on any bytes (libFuzzer).
 *
 *     build/fuzz/fuzz_onnx_load -max_len=4096 tests/fuzz/corpus/onnx_load
 *
 * Memory comes from an allocator with a limit far above what a file of that length may need, so
 * that an allocation without bound shows as a failure. What loads is described and walked over. */
#include <stdlib.h>

#include "onnx/om_model.h"
#include "onnx/om_tensor_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

typedef struct memory {
  om_allocator heap;
  size_t live_bytes, peak_bytes;
} memory;

static void *counted_alloc(void *user, size_t bytes) {
  memory *m = user;
  m->live_bytes += bytes;
  if (m->live_bytes > m->peak_bytes) m->peak_bytes = m->live_bytes;
  return m->heap.alloc(m->heap.user, bytes);
}

static void counted_free(void *user, void *ptr, size_t bytes) {
  memory *m = user;
  m->live_bytes -= bytes;
  m->heap.free(m->heap.user, ptr, bytes);
}

/* A reader that has 64 KiB and a little under every name, and reads that come short. */
enum { STORED_BYTES = 65544 };

static bool find(void *user, const char *location, uint64_t *out_byte_count) {
  (void)user;
  *out_byte_count = STORED_BYTES;
  return location[0] != 'a';
}

static size_t read_range(
    void *user, const char *location, uint64_t offset, size_t byte_count, void *to) {
  (void)user;
  (void)location;
  if (offset > STORED_BYTES || byte_count > STORED_BYTES - offset) abort();
  memset(to, (int)(offset & 1), byte_count);
  return offset % 5 == 3 ? byte_count / 2 : byte_count;
}

/* Asks for what lies at odd places in vain. */
static bool is_ready(void *user, const char *location, uint64_t offset, uint64_t byte_count) {
  (void)user;
  (void)location;
  (void)byte_count;
  return offset % 7 != 5;
}

static size_t walk_stored(const om_tensor *constant) {
  static unsigned char bytes[STORED_BYTES];
  static om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_error_clear(&error);
  if (om_constant_ask(&ctx, constant, 0, constant->data_bytes) != OM_OK) return 0;
  OM_IGNORE(om_constant_read(&ctx, constant, 0, constant->data_bytes, bytes));
  return bytes[0];
}

/* Reads every byte that the model says it has: a sanitizer watches. */
static size_t walk(const om_model *model) {
  const om_model_info *info = om_model_get_info(model);
  const om_graph *graph = om_model_get_graph(model);
  size_t sum = strlen(info->producer);
  for (size_t i = 0; i < info->node_count; ++i) {
    om_node_info node = om_model_get_node(model, i);
    for (size_t k = 0; k < node.input_count; ++k) sum += strlen(node.input_names[k]);
    for (size_t k = 0; k < node.output_count; ++k) sum += strlen(node.output_names[k]);
  }
  for (size_t i = 0; i < graph->value_count; ++i) {
    const om_tensor *constant = graph->values[i].constant;
    const unsigned char *bytes = constant ? constant->data : NULL;
    if (om_stored_of(constant)) sum += walk_stored(constant);
    for (size_t k = 0; bytes && k < constant->data_bytes; ++k) sum += bytes[k];
  }
  return sum;
}

/* The same bytes as a tensor file of its own. */
static void read_as_tensor(const uint8_t *data, size_t count) {
  static om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_pool pool = {0};
  om_tensor tensor;
  om_string name;
  om_tensor_reading how = {.pool = &pool, .align_below_bytes = SIZE_MAX};
  om_error_clear(&error);
  OM_IGNORE(
      om_tensor_proto_read(&ctx, &how, (om_string){(const char *)data, count}, &tensor, &name));
  om_pool_deinit(&ctx, &pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count) {
  static volatile size_t sink;
  memory m = {.heap = om_default_allocator()};
  om_allocator allocator = {.alloc = counted_alloc, .free = counted_free, .user = &m};
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_model *model = NULL;
  const om_reader reader = {.find = find, .read = read_range, .is_ready = is_ready};
  options.allocator = &allocator;
  options.reader = &reader;
  if (om_model_load_memory(data, count, &options, &model, NULL) == OM_OK) {
    sink = sink + walk(model);
    om_model_destroy(model);
  }
  /* 64 bytes for each of the file's, and a floor for the first blocks of pools and tables. A sparse
   * tensor may ask for 64 MiB more, whatever the file's size; a tensor that lies with the reader
   * for what is there, and takes 24 bytes at least. */
  size_t allowed = 64 * count + ((size_t)1 << 16) + ((size_t)64 << 20);
  allowed += count / 24 * STORED_BYTES;
  if (m.live_bytes != 0 || m.peak_bytes > allowed) abort();
  read_as_tensor(data, count);
  return 0;
}
