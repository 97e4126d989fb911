/* Device time by operator and by node. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

enum { SLOWEST = 10 };

typedef struct operator_time {
  const char *type;
  size_t steps;
  uint64_t dispatches;
  double ms; /* of one run */
} operator_time;

int profile_add(profile *p, const om_session *session) {
  om_error error;
  const om_gpu_step_time *times = NULL;
  size_t count = 0;
  if (om_gpu_get_step_times(session, &times, &count, &error) != OM_OK) return report_error(&error);
  if (p->runs == 0 && count > 0) {
    p->steps = calloc(count, sizeof *p->steps);
    if (!p->steps) return report_problem(EXIT_FAILED, "There is no memory for the times.");
    memcpy(p->steps, times, count * sizeof *p->steps);
    p->count = count;
  }
  for (size_t i = 0; p->runs > 0 && i < p->count && i < count; ++i) p->steps[i].ms += times[i].ms;
  ++p->runs;
  return EXIT_DONE;
}

void profile_free(profile *p) {
  free(p->steps);
  *p = (profile){0};
}

static int slower_operator(const void *a, const void *b) {
  const operator_time *x = a, *y = b;
  return (x->ms < y->ms) - (x->ms > y->ms);
}

static int slower_step(const void *a, const void *b) {
  const om_gpu_step_time *const *x = a, *const *y = b;
  return ((*x)->ms < (*y)->ms) - ((*x)->ms > (*y)->ms);
}

/* The operators, slowest first; NULL without memory. The caller frees them. */
static operator_time *list_operators(const profile *p, size_t *out_count) {
  operator_time *list = calloc(p->count + 1, sizeof *list);
  size_t count = 0;
  for (size_t i = 0; list && i < p->count; ++i) {
    size_t k = 0;
    while (k < count && strcmp(list[k].type, p->steps[i].type) != 0) ++k;
    if (k == count) list[count++].type = p->steps[i].type;
    list[k].steps += 1;
    list[k].dispatches += p->steps[i].dispatches;
    list[k].ms += p->steps[i].ms / p->runs;
  }
  if (list) qsort(list, count, sizeof *list, slower_operator);
  *out_count = count;
  return list;
}

static void print_operators(const profile *p, double total_ms) {
  size_t count = 0;
  operator_time *list = list_operators(p, &count);
  if (!list) return;
  printf("device time by operator, each dispatch on its own, mean of %u runs:\n", p->runs);
  printf("%10s %6s %6s %10s  operator\n", "ms", "%", "nodes", "dispatches");
  for (size_t i = 0; i < count; ++i) {
    printf("%10.4f %6.1f %6zu %10llu  %s\n",
           list[i].ms,
           total_ms > 0 ? 100 * list[i].ms / total_ms : 0,
           list[i].steps,
           (unsigned long long)list[i].dispatches,
           list[i].type);
  }
  free(list);
}

static void print_slowest(const profile *p, double total_ms) {
  const om_gpu_step_time **order = calloc(p->count, sizeof *order);
  if (!order) return;
  for (size_t i = 0; i < p->count; ++i) order[i] = &p->steps[i];
  qsort(order, p->count, sizeof *order, slower_step);
  printf("the slowest nodes, with what is fused into them:\n");
  for (size_t i = 0; i < p->count && i < SLOWEST; ++i) {
    const double ms = order[i]->ms / p->runs;
    printf("%10.4f %6.1f %6s %10llu  %s '%s'\n",
           ms,
           total_ms > 0 ? 100 * ms / total_ms : 0,
           "",
           (unsigned long long)order[i]->dispatches,
           order[i]->type,
           order[i]->node);
  }
  free(order);
}

void profile_print(const profile *p) {
  double total_ms = 0;
  if (p->count == 0) {
    printf("no device time by operator: nothing ran on the device, or it has no clock\n");
    return;
  }
  for (size_t i = 0; i < p->count; ++i) total_ms += p->steps[i].ms / p->runs;
  print_operators(p, total_ms);
  print_slowest(p, total_ms);
}

void profile_print_json(const profile *p) {
  size_t count = 0;
  operator_time *list = list_operators(p, &count);
  printf("\"operators\": [");
  for (size_t i = 0; list && i < count; ++i) {
    printf("%s{\"type\": ", i > 0 ? ", " : "");
    json_text(stdout, list[i].type);
    printf(", \"nodes\": %zu, \"dispatches\": %llu, \"ms\": %.5f}",
           list[i].steps,
           (unsigned long long)list[i].dispatches,
           list[i].ms);
  }
  free(list);
  printf("], \"steps\": [");
  for (size_t i = 0; i < p->count; ++i) {
    printf("%s{\"node\": ", i > 0 ? ", " : "");
    json_text(stdout, p->steps[i].node);
    printf(", \"type\": ");
    json_text(stdout, p->steps[i].type);
    printf(", \"dispatches\": %llu, \"ms\": %.5f}",
           (unsigned long long)p->steps[i].dispatches,
           p->steps[i].ms / p->runs);
  }
  printf("]");
}
