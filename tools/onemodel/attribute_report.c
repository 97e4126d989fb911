/* An attribution as a table for people, or as JSON. */
#include <math.h>
#include <stdlib.h>

#include "attribute.h"

static bool is_shown(const attributed *row) {
  return row->node != NULL;
}

static double most_added(const attributed *row) {
  double most = -1;
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (row->is_made[k] && row->added[k] > most) most = row->added[k];
  }
  return most;
}

static int by_added(const void *a, const void *b) {
  const double x = most_added(a), y = most_added(b);
  return (x < y) - (x > y);
}

/* ---- The table ---- */

static void print_head(const attribution *it) {
  printf("%-18s %-32s %-32s", "operator", "node", "value");
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (it->executors[k]) printf(" | %-19s", it->executors[k]);
  }
  printf("\n%-18s %-32s %-32s", "", "", "");
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (it->executors[k]) printf(" | %9s %9s", "so far", "added");
  }
  printf("\n");
}

static void print_row(const attribution *it, const attributed *row) {
  printf("%-18s %-32s %-32s", row->type, row->node, row->value);
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (!it->executors[k]) continue;
    if (row->is_made[k]) {
      printf(" | %9.2g %9.2g", row->so_far[k], row->added[k]);
    } else {
      printf(" | %9s %9s", "-", "-");
    }
  }
  printf("%s\n", row->is_output ? "  output" : "");
}

/* The step that adds most, for each executor. */
static void print_summary(const attribution *it) {
  for (size_t k = 0; k < EXECUTORS; ++k) {
    const attributed *worst = NULL;
    if (!it->executors[k]) continue;
    for (size_t i = 0; i < it->row_count; ++i) {
      const attributed *row = &it->rows[i];
      if (row->is_made[k] && (!worst || row->added[k] > worst->added[k])) worst = row;
    }
    if (worst && worst->added[k] == 0) {
      printf("%s: no step adds an error\n", it->executors[k]);
    } else if (worst) {
      printf("%s: %s (%s) adds most, %.2g\n",
             it->executors[k],
             worst->node,
             worst->type,
             worst->added[k]);
    }
    if (!it->is_ordinary[k]) {
      printf("%s: its outputs differ from those of a run that keeps no intermediate values\n",
             it->executors[k]);
    }
  }
}

static void print_table(const attribution *it) {
  print_head(it);
  for (size_t i = 0; i < it->row_count; ++i) {
    if (is_shown(&it->rows[i])) print_row(it, &it->rows[i]);
  }
  print_summary(it);
}

/* ---- JSON ---- */

static void print_number(const char *name, double value) {
  isfinite(value) ? printf("\"%s\": %.9g", name, value) : printf("\"%s\": null", name);
}

static void print_errors(const attribution *it, const attributed *row) {
  const char *gap = "";
  printf(", \"errors\": [");
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (!row->is_made[k]) continue;
    printf("%s{\"executor\": \"%s\", ", gap, it->executors[k]);
    print_number("so_far", row->so_far[k]);
    printf(", ");
    print_number("added", row->added[k]);
    printf("}");
    gap = ", ";
  }
  printf("]");
}

static void print_json(const attribution *it) {
  const char *gap = "";
  printf("[");
  for (size_t i = 0; i < it->row_count; ++i) {
    const attributed *row = &it->rows[i];
    if (!is_shown(row)) continue;
    printf("%s{\"value\": ", gap);
    json_text(stdout, row->value);
    printf(", \"node\": ");
    json_text(stdout, row->node);
    printf(", \"operator\": ");
    json_text(stdout, row->type);
    printf(", \"elements\": %zu, \"is_output\": %s", row->elems, row->is_output ? "true" : "false");
    print_errors(it, row);
    printf("}");
    gap = ",\n ";
  }
  printf("]\n");
}

int report_attribution(const options *o, attribution *it) {
  bool is_above = false;
  for (size_t i = 0; i < it->row_count; ++i) {
    const attributed *row = &it->rows[i];
    for (size_t k = 0; row->is_output && k < EXECUTORS; ++k) {
      if (row->is_made[k] && !(row->so_far[k] <= o->tolerance)) is_above = true;
    }
  }
  if (o->worst_first) qsort(it->rows, it->row_count, sizeof *it->rows, by_added);
  if (o->as_json) {
    print_json(it);
  } else {
    print_table(it);
  }
  return is_above ? EXIT_DIFFERENT : EXIT_DONE;
}
