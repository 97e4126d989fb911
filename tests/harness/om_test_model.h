/* Whole models in tests: loading, one run, and its distance from other results. Failures fail the
 * running cmocka test. */
#ifndef OM_TEST_MODEL_H
#define OM_TEST_MODEL_H

#include "onemodel/gpu.h"

om_model *om_test_load_model(const char *path);

typedef struct om_test_executor {
  const char *backend; /* NULL: the CPU alone; else all of the model must run there */
  om_mode mode;
  uint32_t thread_count; /* 0: all cores */
} om_test_executor;

/* On the program's device, or on one of its own. */
om_session *om_test_open(const om_model *model, const om_test_executor *executor);
om_session *om_test_open_alone(const om_model *model, const om_test_executor *executor);

/* Of these sessions, in their log; for when they are destroyed. */
void om_test_no_complaints(void);

/* Runs the model's first output into memory that the caller frees. On a device it checks that the
 * whole of the model is one region. */
om_tensor om_test_run_model(const om_model *model,
                            const om_test_executor *executor,
                            const om_named_tensor *inputs,
                            size_t input_count);

/* Fails where a step is on the CPU, or where there is more than one region. */
void om_test_check_placement(om_session *session, const om_named_tensor *inputs, size_t count);

/* Reads a file of a rank, the extents (int64) and float32 elements, which become elements of
 * `dtype`: what write_references.py writes. The caller frees the data. */
om_tensor om_test_read_array(const char *path, om_dtype dtype);

/* Type, shape and bits are the same. */
void om_test_same_bits(const om_tensor *a, const om_tensor *b);

/* The scaled error against doubles; NaN and infinities must stand in the same places. */
double om_test_scaled_error(const om_tensor *tensor, const double *expected, size_t count);

#endif
