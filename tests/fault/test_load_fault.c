/* Every allocation of a load fails once: an error with words, nothing left behind, and the next
 * load works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_message.h"

/* Something of everything that the loader allocates for. */
static om_message make_model(bool has_external) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Softmax", NULL, "s", "y");
  om_message sum = om_message_node("Add", "sum", "x,w", "a");
  om_message scale = om_message_node("Mul", "scale", "a,c", "s"); /* c comes from the Constant */
  om_message constant = {.count = 0}, attr = {.count = 0};
  om_message w = om_message_tensor("w", 4), c = om_message_tensor("t", 4);
  om_message x = om_message_value("x", 4), y = om_message_value("y", 4);
  om_message_text(&attr, 1, "value");
  om_message_nest(&attr, 5, &c);
  om_message_number(&attr, 20, 4);
  om_message_text(&constant, 2, "c");
  om_message_text(&constant, 4, "Constant");
  om_message_nest(&constant, 5, &attr);
  attr.count = 0;
  om_message_text(&attr, 1, "axis");
  om_message_number(&attr, 3, 0);
  om_message_number(&attr, 20, 2);
  om_message_nest(&node, 5, &attr);
  om_message_nest(&graph, 1, &constant);
  om_message_nest(&graph, 1, &node); /* not in order: the sort allocates */
  om_message_nest(&graph, 1, &scale);
  om_message_nest(&graph, 1, &sum);
  if (has_external) {
    om_message entry = {.count = 0};
    w.count = 0;
    om_message_number(&w, 1, 4);
    om_message_number(&w, 2, OM_DTYPE_F32);
    om_message_text(&w, 8, "w");
    om_message_text(&entry, 1, "location");
    om_message_text(&entry, 2, "weights.bin");
    om_message_nest(&w, 13, &entry);
    om_message_number(&w, 14, 1);
  }
  om_message_nest(&graph, 5, &w);
  om_message_nest(&graph, 11, &x);
  om_message_nest(&graph, 12, &y);
  om_message model = om_message_model(&graph);
  om_message function = {.count = 0};
  om_message_text(&function, 1, "Unused");
  om_message_nest(&model, 25, &function);
  return model;
}

/* Loads with each allocation failing in turn; returns how many there were. */
static size_t sweep(const om_message *bytes, const char *path) {
  for (size_t fail_at = 0;; ++fail_at) {
    om_error error;
    om_model *model = NULL;
    om_fault fault = {.fail_at = fail_at};
    om_allocator allocator = om_fault_allocator(&fault);
    om_model_options options = OM_MODEL_OPTIONS_INIT;
    options.allocator = &allocator;
    om_status st = path
                       ? om_model_load_file(path, &options, &model, &error)
                       : om_model_load_memory(bytes->bytes, bytes->count, &options, &model, &error);
    bool has_failed = om_fault_has_failed(&fault);
    om_model_destroy(model);
    assert_int_equal(om_fault_live_blocks(&fault), 0);
    assert_int_equal(atomic_load(&fault.damaged_blocks), 0);
    if (!has_failed) {
      if (st != OM_OK) fail_msg("%s", error.message);
      return fail_at;
    }
    assert_null(model);
    assert_int_equal(st, OM_E_OUT_OF_MEMORY);
    assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
    assert_true(error.message[0] != '\0');
  }
}

static void load_from_memory(void **state) {
  om_message bytes = make_model(false);
  (void)state;
  assert_true(sweep(&bytes, NULL) > 10);
}

static void write_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

static void load_from_files(void **state) {
  char folder[] = "/tmp/om_test_fault_XXXXXX";
  char model[64], weights[64];
  om_message bytes = make_model(true);
  (void)state;
  assert_non_null(mkdtemp(folder));
  (void)snprintf(model, sizeof model, "%s/model.onnx", folder);
  (void)snprintf(weights, sizeof weights, "%s/weights.bin", folder);
  write_file(model, bytes.bytes, bytes.count);
  write_file(weights, "0123456789abcdef", 16);
  size_t count = sweep(&bytes, model);
  assert_int_equal(unlink(model), 0);
  assert_int_equal(unlink(weights), 0);
  assert_int_equal(rmdir(folder), 0);
  assert_true(count > 12);
}

/* What a hostile file may make us allocate is bounded by its size. */
static void memory_is_bounded_by_the_file(void **state) {
  om_message graph = {.count = 0};
  om_error error;
  om_model *model = NULL;
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_allocator allocator = om_fault_allocator(&fault);
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  char name[16];
  (void)state;
  /* A node with as many outputs as fit: the most values for the fewest bytes. */
  om_message node = {.count = 0};
  om_message_text(&node, 4, "Frobnicate");
  for (int i = 0; node.count < OM_MESSAGE_BYTES - 100; ++i) {
    (void)snprintf(name, sizeof name, "%x", (unsigned)i);
    om_message_text(&node, 2, name);
  }
  om_message_nest(&graph, 1, &node);
  om_message bytes = om_message_model(&graph);
  options.allocator = &allocator;
  om_status st = om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error);
  if (st != OM_OK) fail_msg("%s", error.message);
  assert_true(atomic_load(&fault.live_bytes) < 64 * bytes.count);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(load_from_memory),
      cmocka_unit_test(load_from_files),
      cmocka_unit_test(memory_is_bounded_by_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
