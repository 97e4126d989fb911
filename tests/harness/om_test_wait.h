/* Waiting for a device, where that is a call and where it is not: in a browser's build a wait gives
 * way to the page. */
#ifndef OM_TEST_WAIT_H
#define OM_TEST_WAIT_H

#include "onemodel/gpu.h"
#include "onemodel/onemodel.h"

/* Makes the page's device ready for one session; true elsewhere. */
bool om_test_prepare_page(void);

/* *out_prepared: NULL where a session needs none. The caller destroys it. */
om_status om_test_prepare(const om_gpu_options *options,
                          om_mode mode,
                          om_gpu_prepared **out_prepared,
                          om_error *error);

/* om_session_run. */
om_status om_test_run(om_session *session, const om_run_args *args, om_error *error);

#endif
