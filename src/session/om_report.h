/* Nodes that cannot run somewhere, grouped by operator type and reason, as one error message. */
#ifndef OM_REPORT_H
#define OM_REPORT_H

#include "graph/om_graph.h"

/* More groups than fit in a message anyway; nodes beyond them are only counted. */
enum { OM_REPORT_MAX_GROUPS = 32 };

typedef struct om_report_group {
  const om_node *first; /* borrowed from the graph */
  const char *reason;   /* borrowed */
  size_t node_count;
} om_report_group;

typedef struct om_report { /* single; about 1 KiB: not on the stack */
  om_report_group groups[OM_REPORT_MAX_GROUPS];
  size_t group_count;
  size_t node_count; /* all that were added */
} om_report;

void om_report_add(om_report *report, const om_node *node, const char *reason);

/* Fails with `status`: "<head>: Softmax: the axis is not the last one (3 nodes, first 'a'); ...".
 * What does not fit is counted. */
om_status om_report_fail(om_ctx *ctx, const om_report *report, om_status status, const char *head);

#endif
