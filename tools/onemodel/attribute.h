/* Where the error comes from: every executor against the float64 value of the same graph. */
#ifndef ATTRIBUTE_H
#define ATTRIBUTE_H

#include "command.h"

enum { EXECUTORS = 3 }; /* the device in fast and in exact mode, the CPU in exact mode */

typedef struct attributed { /* one value that a node of the model makes */
  const char *value;        /* the model's */
  char *node, *type;        /* owned; of the step that makes it; NULL: no executor has this value */
  size_t elems;
  bool is_output;           /* of the model */
  bool is_made[EXECUTORS];  /* the executor has this value; the errors are of those */
  double so_far[EXECUTORS]; /* scaled error against the graph in float64 */
  double added[EXECUTORS];  /* against float64 from the executor's own values before it */
} attributed;

typedef struct attribution {
  const char *executors[EXECUTORS]; /* NULL: there is no device */
  bool is_ordinary[EXECUTORS]; /* the outputs have the bits of a run without intermediate values */
  attributed *rows;            /* owned; in the graph's order */
  size_t row_count;
} attribution;

/* Runs the model on all executors and in float64; *out is freed by the caller, also on failure. */
int attribute_errors(const options *o,
                     const om_model *model,
                     const tensors *inputs,
                     attribution *out);
void free_attribution(attribution *it);

/* Prints as the options say; EXIT_DIFFERENT if an output is above the tolerance. */
int report_attribution(const options *o, attribution *it);

#endif
