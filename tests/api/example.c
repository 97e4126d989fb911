#include <stdio.h>

#include <onemodel/gpu.h>

int main(int argc, char **argv) {
  om_error error = {0};
  om_model *model = NULL;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.provider = om_gpu_provider(); /* without this line: the CPU alone */
  float numbers[4] = {-2, -1, 1, 2};
  om_named_tensor x = {"x", om_tensor_of(OM_DTYPE_F32, 2, (const int64_t[]){1, 4}, numbers)};
  om_named_tensor y = {.name = "y"};
  om_run_args args = {sizeof args, &x, 1, &y, 1, NULL};
  om_status status = om_model_load_file(argc > 1 ? argv[1] : "model.onnx", NULL, &model, &error);
  if (status == OM_OK) status = om_session_create(model, &options, &session, &error);
  if (status == OM_OK) status = om_session_run(session, &args, &error);
  if (status != OM_OK) fprintf(stderr, "%s: %s\n", om_status_name(status), error.message);
  for (size_t i = 0; status == OM_OK && i < om_tensor_elems(&y.tensor); ++i) {
    printf("%g\n", ((const float *)y.tensor.data)[i]);
  }
  om_session_destroy(session);
  om_model_destroy(model);
  return status == OM_OK ? 0 : 1;
}
