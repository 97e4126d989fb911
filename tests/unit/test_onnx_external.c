/* External data: mapped or given, and never from outside of the model's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/om_message.h"
#include "onnx/om_model.h"
static char folder[] = "/tmp/om_test_load_XXXXXX";

static const om_value *find_value(const om_model *model, const char *name) {
  const om_graph *graph = om_model_get_graph(model);
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (strcmp(graph->values[i].name, name) == 0) return &graph->values[i];
  }
  fail_msg("no value '%s'", name);
  return NULL;
}

static void write_file(const char *name, const void *bytes, size_t count) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

/* A model whose weight lies in another file; NULL keys are left out. */
static om_message external_model(const char *location, const char *offset, const char *length) {
  const char *const keys[] = {"location", "offset", "length"};
  const char *const values[] = {location, offset, length};
  om_message graph = {.count = 0}, tensor = {.count = 0};
  om_message_number(&tensor, 1, 2);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "far");
  om_message_number(&tensor, 14, 1);
  for (size_t i = 0; i < 3; ++i) {
    om_message entry = {.count = 0};
    if (!values[i]) continue;
    om_message_text(&entry, 1, keys[i]);
    om_message_text(&entry, 2, values[i]);
    om_message_nest(&tensor, 13, &entry);
  }
  om_message_nest(&graph, 5, &tensor);
  return om_message_model(&graph);
}

static om_status load_external(const char *location,
                               const char *offset,
                               const char *length,
                               om_model **out_model,
                               om_error *error) {
  char path[128];
  om_message bytes = external_model(location, offset, length);
  write_file("model.onnx", bytes.bytes, bytes.count);
  (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
  return om_model_load_file(path, NULL, out_model, error);
}

static void external_data_are_mapped(void **state) {
  const float data[] = {1, 2, 3, 4};
  om_error error;
  om_model *model = NULL;
  (void)state;
  write_file("weights.bin", data, sizeof data);
  write_file("sub/weights.bin", data, sizeof data);
  assert_int_equal(load_external("weights.bin", "8", "8", &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 4.0f);
  om_model_destroy(model);
  assert_int_equal(load_external("sub/weights.bin", NULL, NULL, &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 2.0f);
  om_model_destroy(model);
}

/* What is given stands for files: for a model from memory, and before those of a folder. */
static void external_data_are_given(void **state) {
  const float data[] = {5, 6, 7, 8};
  const om_model_file files[] = {{"other.bin", data, 4}, {"weights.bin", data, sizeof data}};
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_error error;
  om_model *model = NULL;
  om_message bytes = external_model("weights.bin", "8", "8");
  (void)state;
  options.files = files;
  options.file_count = 2;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 8.0f);
  om_model_destroy(model);
  bytes = external_model("weights.bin", "12", "8");
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error),
                   OM_E_INVALID_MODEL);
  assert_non_null(strstr(error.message, "ends at byte 16"));
  options.file_count = 1;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error),
                   OM_E_INVALID_MODEL);
  assert_non_null(strstr(error.message, "it is not given"));
}

static void external_data_stay_in_the_folder(void **state) {
  static const struct {
    const char *location, *offset, *length;
    om_status status;
    const char *word;
  } cases[] = {
      {"../weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "out of the folder"},
      {"sub/../weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "out of the folder"},
      {"./weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "'.'"},
      {"sub//weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "empty"},
      {"/etc/passwd", NULL, NULL, OM_E_INVALID_MODEL, "absolute"},
      {"C:weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "drive"},
      {"sub\\weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "backslash"},
      {"", NULL, NULL, OM_E_INVALID_MODEL, "no file"},
      {NULL, "0", NULL, OM_E_INVALID_MODEL, "no location"},
      {"sub", NULL, NULL, OM_E_INVALID_MODEL, "not a regular file"},
      {"weights.bin/x", NULL, NULL, OM_E_INVALID_MODEL, "not a folder"},
      {"link.bin", NULL, NULL, OM_E_INVALID_MODEL, "symbolic link"},
      {"linked/weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "symbolic link"},
      {"twin.bin", NULL, NULL, OM_E_INVALID_MODEL, "hard links"},
      {"pipe", NULL, NULL, OM_E_INVALID_MODEL, "not a regular file"},
      {"absent.bin", NULL, NULL, OM_E_IO, "does not exist"},
      {"weights.bin", "16", NULL, OM_E_INVALID_MODEL, "16"},
      {"weights.bin", "12", NULL, OM_E_INVALID_MODEL, "12"},
      {"weights.bin", "18446744073709551615", NULL, OM_E_INVALID_MODEL, "18446744073709551615"},
      {"weights.bin", "18446744073709551616", NULL, OM_E_INVALID_MODEL, "not a number"},
      {"weights.bin", "-1", NULL, OM_E_INVALID_MODEL, "'-1'"},
      {"weights.bin", "", NULL, OM_E_INVALID_MODEL, "not a number"},
      {"weights.bin", "0", "4", OM_E_INVALID_MODEL, "4"},
      {"weights.bin", "0", "0", OM_E_INVALID_MODEL, "needs 8"},
  };
  char from[128], to[128];
  om_error error;
  om_model *model = NULL;
  (void)state;
  (void)snprintf(to, sizeof to, "%s/link.bin", folder);
  assert_int_equal(symlink("weights.bin", to), 0);
  (void)snprintf(to, sizeof to, "%s/linked", folder);
  assert_int_equal(symlink("sub", to), 0);
  write_file("once.bin", "12345678", 8);
  (void)snprintf(from, sizeof from, "%s/once.bin", folder);
  (void)snprintf(to, sizeof to, "%s/twin.bin", folder);
  assert_int_equal(link(from, to), 0);
  (void)snprintf(to, sizeof to, "%s/pipe", folder);
  assert_int_equal(mkfifo(to, 0600), 0);
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_status st =
        load_external(cases[i].location, cases[i].offset, cases[i].length, &model, &error);
    assert_null(model);
    if (st != cases[i].status || !strstr(error.message, cases[i].word) ||
        !strstr(error.message, "'far'")) {
      fail_msg("case %zu: %s: %s", i, om_status_name(st), error.message);
    }
  }
}

static int make_folder(void **state) {
  char path[128];
  (void)state;
  if (!mkdtemp(folder)) return -1;
  (void)snprintf(path, sizeof path, "%s/sub", folder);
  return mkdir(path, 0700);
}

static int remove_folder(void **state) {
  static const char *const names[] = {"model.onnx",
                                      "weights.bin",
                                      "sub/weights.bin",
                                      "link.bin",
                                      "linked",
                                      "once.bin",
                                      "twin.bin",
                                      "pipe"};
  char path[128];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  (void)snprintf(path, sizeof path, "%s/sub", folder);
  (void)rmdir(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(external_data_are_mapped),
      cmocka_unit_test(external_data_are_given),
      cmocka_unit_test(external_data_stay_in_the_folder),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
