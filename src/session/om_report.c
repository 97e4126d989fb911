/* Grouped reasons as one message: see om_report.h. */
#include "session/om_report.h"

#include "session/om_text.h"

static bool is_same(const om_report_group *group, const om_node *node, const char *reason) {
  return strcmp(group->first->type, node->type) == 0 &&
         strcmp(group->first->domain, node->domain) == 0 && strcmp(group->reason, reason) == 0;
}

void om_report_add(om_report *report, const om_node *node, const char *reason) {
  report->node_count += 1;
  for (size_t i = 0; i < report->group_count; ++i) {
    if (is_same(&report->groups[i], node, reason)) {
      report->groups[i].node_count += 1;
      return;
    }
  }
  if (report->group_count == OM_REPORT_MAX_GROUPS) return;
  report->groups[report->group_count++] =
      (om_report_group){.first = node, .reason = reason, .node_count = 1};
}

static void add_group(om_text *text, const om_report_group *group, const char *separator) {
  const om_node *node = group->first;
  const char *dot = node->domain[0] != '\0' ? "." : "";
  if (group->node_count == 1) {
    om_text_add(text,
                "%s%.60s%s%.60s: %.300s ('%.100s')",
                separator,
                node->domain,
                dot,
                node->type,
                group->reason,
                node->name);
  } else {
    om_text_add(text,
                "%s%.60s%s%.60s: %.300s (%zu nodes, first '%.100s')",
                separator,
                node->domain,
                dot,
                node->type,
                group->reason,
                group->node_count,
                node->name);
  }
}

om_status om_report_fail(om_ctx *ctx, const om_report *report, om_status status, const char *head) {
  /* Room for " and N more nodes." at the end. */
  enum { TAIL = 48 };
  char buffer[720];
  om_text text = om_text_in(buffer, sizeof buffer - TAIL);
  size_t told = 0;
  for (size_t i = 0; i < report->group_count; ++i) {
    size_t before = text.used;
    add_group(&text, &report->groups[i], i == 0 ? " " : "; ");
    if (text.used == before) break;
    told += report->groups[i].node_count;
  }
  text.capacity = sizeof buffer;
  if (told < report->node_count) {
    om_text_add(&text, "; and %zu more nodes", report->node_count - told);
  }
  return OM_FAIL(ctx, status, "%s:%s.", head, buffer);
}
