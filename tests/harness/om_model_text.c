/* The parser of models written as texts: recursive descent, as deep as the text nests. */
#include "harness/om_model_text.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/om_graph.h"

typedef struct reader {
  const char *at;
} reader;

static void parse_graph(reader *r, om_message *out, bool is_function);

static void skip_blanks(reader *r) {
  while (isspace((unsigned char)*r->at)) ++r->at;
}

static bool accept(reader *r, const char *word) {
  skip_blanks(r);
  size_t bytes = strlen(word);
  if (strncmp(r->at, word, bytes) != 0) return false;
  r->at += bytes;
  return true;
}

static void expect(reader *r, const char *word) {
  if (!accept(r, word)) fail_msg("expected '%s' at: %.40s", word, r->at);
}

static bool is_name(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '/';
}

/* May be empty: an absent operand. */
static void parse_name(reader *r, char name[64]) {
  size_t count = 0;
  skip_blanks(r);
  while (is_name(*r->at) && count < 63) name[count++] = *r->at++;
  name[count] = '\0';
}

static bool accept_word(reader *r, const char *word) {
  reader saved = *r;
  char name[64];
  parse_name(r, name);
  if (strcmp(name, word) == 0) return true;
  *r = saved;
  return false;
}

/* ---- Types ---- */

static void parse_shape(reader *r, om_message *tensor) {
  om_message shape = {.count = 0};
  if (!accept(r, "[")) {
    om_message_nest(tensor, 2, &shape);
    return;
  }
  if (accept(r, "?]")) return;
  while (!accept(r, "]")) {
    om_message dim = {.count = 0};
    char name[64];
    bool is_negative = accept(r, "-");
    parse_name(r, name);
    if (isdigit((unsigned char)name[0])) {
      om_message_number(&dim, 1, is_negative ? -1 : atoll(name));
    } else {
      om_message_text(&dim, 2, name);
    }
    om_message_nest(&shape, 1, &dim);
    (void)accept(r, ",");
  }
  om_message_nest(tensor, 2, &shape);
}

static void parse_type(reader *r, om_message *out) {
  static const struct {
    const char *name;
    om_dtype dtype;
  } types[] = {{"f32", OM_DTYPE_F32},
               {"i32", OM_DTYPE_I32},
               {"i64", OM_DTYPE_I64},
               {"bool", OM_DTYPE_BOOL},
               {"str", OM_DTYPE_STRING}};
  om_message inner = {.count = 0}, wrapped = {.count = 0};
  bool is_sequence = accept_word(r, "seq");
  if (is_sequence || accept_word(r, "opt")) {
    parse_type(r, &inner);
    om_message_nest(&wrapped, 1, &inner);
    om_message_nest(out, is_sequence ? 4 : 9, &wrapped);
    return;
  }
  if (accept_word(r, "map")) {
    const om_dtype keys = accept_word(r, "str") ? OM_DTYPE_STRING : OM_DTYPE_I64;
    if (keys == OM_DTYPE_I64) expect(r, "i64");
    parse_type(r, &inner);
    om_message_number(&wrapped, 1, keys);
    om_message_nest(&wrapped, 2, &inner);
    om_message_nest(out, 5, &wrapped);
    return;
  }
  for (size_t i = 0; i < OM_COUNT_OF(types); ++i) {
    if (!accept_word(r, types[i].name)) continue;
    om_message_number(&inner, 1, types[i].dtype);
    parse_shape(r, &inner);
    om_message_nest(out, 1, &inner);
    return;
  }
  fail_msg("no type at: %.40s", r->at);
}

/* name, or name: type */
static void parse_value(reader *r, om_message *graph, uint32_t field, bool is_function) {
  om_message value = {.count = 0}, type = {.count = 0};
  char name[64];
  parse_name(r, name);
  if (is_function) {
    om_message_text(graph, field, name);
    return;
  }
  om_message_text(&value, 1, name);
  if (accept(r, ":")) {
    parse_type(r, &type);
    om_message_nest(&value, 2, &type);
  }
  om_message_nest(graph, field, &value);
}

/* ---- Attributes ---- */

static void parse_item(reader *r, om_message *attr, bool is_list, int *kind) {
  if (accept(r, "\"")) {
    const char *end = strchr(r->at, '"');
    if (!end) fail_msg("no end of the text at: %.40s", r->at);
    om_message_bytes(attr, is_list ? 9 : 4, r->at, (size_t)(end - r->at));
    r->at = end + 1;
    *kind = is_list ? OM_ATTR_STRINGS : OM_ATTR_STRING;
    return;
  }
  char *end = NULL;
  skip_blanks(r);
  double number = strtod(r->at, &end);
  if (end == r->at) fail_msg("no value at: %.40s", r->at);
  bool is_float = memchr(r->at, '.', (size_t)(end - r->at)) != NULL;
  r->at = end;
  if (is_float) {
    om_message_float(attr, is_list ? 7 : 2, (float)number);
    *kind = is_list ? OM_ATTR_FLOATS : OM_ATTR_FLOAT;
  } else {
    om_message_number(attr, is_list ? 8 : 3, (int64_t)number);
    *kind = is_list ? OM_ATTR_INTS : OM_ATTR_INT;
  }
}

static void parse_attr(reader *r, const char *name, om_message *node) {
  om_message attr = {.count = 0};
  int kind = OM_ATTR_INTS;
  om_message_text(&attr, 1, name);
  if (accept(r, "{")) {
    om_message graph = {.count = 0};
    parse_graph(r, &graph, false);
    expect(r, "}");
    om_message_nest(&attr, 6, &graph);
    kind = OM_ATTR_GRAPH;
  } else if (accept(r, "$")) {
    char source[64];
    parse_name(r, source);
    om_message_text(&attr, 21, source);
    kind = OM_ATTR_INT;
  } else if (accept(r, "[")) {
    while (!accept(r, "]")) {
      parse_item(r, &attr, true, &kind);
      (void)accept(r, ",");
    }
  } else {
    parse_item(r, &attr, false, &kind);
  }
  om_message_number(&attr, 20, kind);
  om_message_nest(node, 5, &attr);
}

/* ---- Nodes and graphs ---- */

/* a, b = domain:Type(x, , y) attr=1; */
static void parse_node(reader *r, om_message *out) {
  char name[64];
  do {
    parse_name(r, name);
    om_message_text(out, 2, name);
  } while (accept(r, ","));
  expect(r, "=");
  parse_name(r, name);
  if (accept(r, ":")) {
    om_message_text(out, 7, name);
    parse_name(r, name);
  }
  om_message_text(out, 4, name);
  expect(r, "(");
  while (!accept(r, ")")) {
    parse_name(r, name);
    om_message_text(out, 1, name);
    if (accept(r, ",")) continue;
    expect(r, ")");
    break;
  }
  while (!accept(r, ";")) {
    parse_name(r, name);
    expect(r, "=");
    parse_attr(r, name, out);
  }
}

static void parse_values(reader *r, om_message *graph, uint32_t field, bool is_function) {
  do {
    parse_value(r, graph, field, is_function);
  } while (accept(r, ","));
}

/* (inputs) -> outputs { nodes }; a function has other field numbers, and no types. */
static void parse_graph(reader *r, om_message *out, bool is_function) {
  expect(r, "(");
  if (!accept(r, ")")) {
    parse_values(r, out, is_function ? 4 : 11, is_function);
    expect(r, ")");
  }
  expect(r, "->");
  parse_values(r, out, is_function ? 5 : 12, is_function);
  expect(r, "{");
  while (!accept(r, "}")) {
    om_message node = {.count = 0};
    parse_node(r, &node);
    om_message_nest(out, is_function ? 7 : 1, &node);
  }
}

static void add_opset(om_message *out, uint32_t field, const char *domain, int64_t version) {
  om_message opset = {.count = 0};
  om_message_text(&opset, 1, domain);
  om_message_number(&opset, 2, version);
  om_message_nest(out, field, &opset);
}

static void parse_function(reader *r, om_message *model, int64_t opset) {
  om_message function = {.count = 0};
  char domain[64], name[64];
  parse_name(r, domain);
  expect(r, ":");
  parse_name(r, name);
  om_message_text(&function, 1, name);
  om_message_text(&function, 10, domain);
  parse_graph(r, &function, true);
  add_opset(&function, 9, "", opset);
  add_opset(&function, 9, "own", 1);
  om_message_nest(model, 25, &function);
}

om_message om_model_text(const char *text, int64_t opset) {
  reader r = {.at = text};
  om_message graph = {.count = 0}, model = {.count = 0};
  parse_graph(&r, &graph, false);
  om_message_number(&model, 1, 8);
  om_message_nest(&model, 7, &graph);
  add_opset(&model, 8, "", opset);
  add_opset(&model, 8, "own", 1);
  add_opset(&model, 8, "ai.onnx.ml", 3);
  while (accept_word(&r, "function")) parse_function(&r, &model, opset);
  skip_blanks(&r);
  if (*r.at) fail_msg("more text at: %.40s", r.at);
  return model;
}

static om_status open_rig(om_text_rig *rig,
                          const char *text,
                          int64_t opset,
                          const om_session_options *given) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.thread_count = 1;
  rig->model = NULL;
  rig->session = NULL;
  rig->bytes = om_model_text(text, opset);
  OM_TRY(om_model_load_memory(rig->bytes.bytes, rig->bytes.count, NULL, &rig->model, &rig->error));
  return om_session_create(rig->model, given ? given : &options, &rig->session, &rig->error);
}

void om_text_rig_open(om_text_rig *rig,
                      const char *text,
                      int64_t opset,
                      const om_session_options *options) {
  if (open_rig(rig, text, opset, options) != OM_OK) fail_msg("%s", rig->error.message);
}

void om_text_rig_close(om_text_rig *rig) {
  om_session_destroy(rig->session);
  om_model_destroy(rig->model);
}

void om_text_rig_expect(const char *text, int64_t opset, const char *word) {
  static om_text_rig rig;
  om_status st = open_rig(&rig, text, opset, NULL);
  om_text_rig_close(&rig);
  if (st == OM_OK) fail_msg("no failure with '%s': %s", word, text);
  if (!strstr(rig.error.message, word)) fail_msg("no '%s' in: %s", word, rig.error.message);
}

om_status om_text_rig_run(om_text_rig *rig,
                          const om_named_tensor *inputs,
                          size_t input_count,
                          om_named_tensor *outputs,
                          size_t output_count) {
  om_run_args args = {.struct_bytes = sizeof args,
                      .inputs = inputs,
                      .input_count = input_count,
                      .outputs = outputs,
                      .output_count = output_count};
  return om_session_run(rig->session, &args, &rig->error);
}

int om_text_rig_count(om_text_rig *rig,
                      const om_named_tensor *inputs,
                      size_t input_count,
                      const char *op_type) {
  const om_diagnostics *d = NULL;
  int count = 0;
  if (om_session_diagnose(rig->session, inputs, input_count, &d, &rig->error) != OM_OK) {
    fail_msg("%s", rig->error.message);
  }
  for (size_t i = 0; i < d->node_count; ++i) {
    const bool runs = d->nodes[i].place == OM_PLACE_CPU && d->nodes[i].output_count > 0;
    count += runs && strcmp(d->nodes[i].op_type, op_type) == 0;
  }
  return count;
}
