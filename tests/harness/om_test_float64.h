/* A model's result in double precision: the graph in float64 (rewrite/om_float64.h) on the CPU.
 * Failures fail the running cmocka test. */
#ifndef OM_TEST_FLOAT64_H
#define OM_TEST_FLOAT64_H

#include "onemodel/onemodel.h"

/* The output of this name; inputs are the model's own, float32 and float16 ones are widened. The
 * caller frees the doubles. */
double *om_test_run_float64(const om_model *model,
                            const om_named_tensor *inputs,
                            size_t input_count,
                            const char *output,
                            size_t *out_elems);

/* What float32 itself does to the model: the largest scaled error among some runs in float64 with
 * each value rounded to float32, so of an executor whose operators lose nothing but that rounding.
 * Each run has the float32 input `input` changed in its last bits: a new draw of roundings. */
double om_test_float32_noise(const om_model *model,
                             const om_named_tensor *input,
                             const char *output,
                             uint32_t draws);

#endif
