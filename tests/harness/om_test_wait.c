/* The page's side is tests/web/op_tests.js. */
#include "harness/om_test_wait.h"

#ifdef __EMSCRIPTEN__

uint32_t om_web_test_prepare(void);
void om_web_test_give_way(void);

bool om_test_prepare_page(void) {
  return om_web_test_prepare() != 0;
}

om_status om_test_prepare(const om_gpu_options *options,
                          om_mode mode,
                          om_gpu_prepared **out_prepared,
                          om_error *error) {
  bool is_done = false;
  *out_prepared = NULL;
  om_status st = om_gpu_prepare_begin(options, mode, NULL, out_prepared, error);
  while (st == OM_OK && !is_done) {
    st = om_gpu_prepare_poll(*out_prepared, &is_done, error);
    if (st == OM_OK && !is_done) om_web_test_give_way();
  }
  return st;
}

om_status om_test_run(om_session *session, const om_run_args *args, om_error *error) {
  om_run *run = NULL;
  bool is_done = false;
  om_status st = om_session_run_begin(session, args, &run, error);
  while (st == OM_OK && !is_done) {
    st = om_run_poll(run, &is_done, error);
    if (st == OM_OK && !is_done) om_web_test_give_way();
  }
  return run ? om_run_finish(run, error) : st;
}

#else

bool om_test_prepare_page(void) {
  return true;
}

om_status om_test_prepare(const om_gpu_options *options,
                          om_mode mode,
                          om_gpu_prepared **out_prepared,
                          om_error *error) {
  (void)options;
  (void)mode;
  (void)error;
  *out_prepared = NULL;
  return OM_OK;
}

om_status om_test_run(om_session *session, const om_run_args *args, om_error *error) {
  return om_session_run(session, args, error);
}

#endif
