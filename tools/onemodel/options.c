/* The options, spelled alike in every subcommand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef enum kind { TEXT, COUNT, SEED, NUMBER, FLAG, GIVEN_INPUT, GIVEN_SHAPE } kind;

typedef struct option {
  const char *name;
  kind kind;
  size_t offset;     /* of the field in options */
  unsigned commands; /* those that take it */
} option;

#define FIELD(member) offsetof(options, member)
enum {
  ATTRIBUTION = 128, /* compare --attribute, beside the commands */
  RUNNERS = COMMAND_RUN | COMMAND_BENCH | COMMAND_COMPARE | ATTRIBUTION | COMMAND_PLACEMENT,
  LISTERS = COMMAND_DEVICES | COMMAND_INFO | COMMAND_OPS,
};

static const option table[] = {
    {"--device", TEXT, FIELD(device), RUNNERS},
    {"--mode", TEXT, FIELD(mode), RUNNERS & ~ATTRIBUTION},
    {"--reference-device", TEXT, FIELD(reference_device), COMMAND_COMPARE},
    {"--reference-mode", TEXT, FIELD(reference_mode), COMMAND_COMPARE},
    {"--out", TEXT, FIELD(out), COMMAND_RUN},
    {"--threads", COUNT, FIELD(threads), RUNNERS},
    {"--runs", COUNT, FIELD(runs), COMMAND_BENCH},
    {"--warmup", COUNT, FIELD(warmup), COMMAND_BENCH},
    {"--seed", SEED, FIELD(seed), RUNNERS},
    {"--tolerance", NUMBER, FIELD(tolerance), COMMAND_COMPARE | ATTRIBUTION},
    {"--require-gpu", FLAG, FIELD(require_gpu), RUNNERS},
    {"--no-fusion", FLAG, FIELD(no_fusion), RUNNERS},
    {"--no-matrix-hardware", FLAG, FIELD(no_matrix_hardware), RUNNERS},
    {"--no-sm90", FLAG, FIELD(no_sm90), RUNNERS},
    {"--profile", FLAG, FIELD(profiles), COMMAND_BENCH},
    {"--own-memory", FLAG, FIELD(own_memory), COMMAND_BENCH},
    {"--json", FLAG, FIELD(as_json), RUNNERS | LISTERS},
    {"--by-node", FLAG, FIELD(by_node), COMMAND_COMPARE},
    {"--attribute", FLAG, FIELD(attributes), COMMAND_COMPARE | ATTRIBUTION},
    {"--worst", FLAG, FIELD(worst_first), ATTRIBUTION},
    {"--markdown", FLAG, FIELD(as_markdown), COMMAND_OPS},
    {"--input", GIVEN_INPUT, 0, RUNNERS},
    {"--shape", GIVEN_SHAPE, 0, RUNNERS},
};

enum { OPTION_COUNT = sizeof table / sizeof table[0] };

static bool mistake(const char *option_name, const char *what) {
  fprintf(stderr, "onemodel: %s %s\n", option_name, what);
  return false;
}

static bool add_given(const char *option_name, const char *value, given *list, size_t *count) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) return mistake(option_name, "expects NAME=VALUE.");
  if (*count == MAX_GIVEN) return mistake(option_name, "is given too often.");
  list[(*count)++] = (given){value, (size_t)(equals - value), equals + 1};
  return true;
}

static bool set_option(const option *it, const char *value, options *o) {
  char *field = (char *)o + it->offset, *end = NULL;
  errno = 0;
  switch (it->kind) {
    case FLAG:
      memcpy(field, &(bool){true}, sizeof(bool));
      return true;
    case TEXT:
      if (!*value) return mistake(it->name, "needs a value.");
      memcpy(field, &value, sizeof value);
      return true;
    case GIVEN_INPUT:
      return add_given(it->name, value, o->inputs, &o->input_count);
    case GIVEN_SHAPE:
      return add_given(it->name, value, o->shapes, &o->shape_count);
    case COUNT: {
      unsigned long n = strtoul(value, &end, 10);
      const unsigned long least = it->offset == FIELD(runs);
      if (!*value || *value == '-' || *end || n < least || n > 1000000) {
        return mistake(
            it->name,
            least ? "expects a number from 1 to 1000000." : "expects a number from 0 to 1000000.");
      }
      memcpy(field, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
      return true;
    }
    case SEED: {
      uint64_t n = strtoull(value, &end, 10);
      if (!*value || *value == '-' || *end || errno) return mistake(it->name, "expects a number.");
      memcpy(field, &n, sizeof n);
      return true;
    }
    case NUMBER: {
      double n = strtod(value, &end);
      if (!*value || *end || !(n >= 0)) return mistake(it->name, "expects a number of at least 0.");
      memcpy(field, &n, sizeof n);
      return true;
    }
  }
  return false;
}

static bool is_mode(const char *option_name, const char *mode) {
  if (strcmp(mode, "fast") == 0 || strcmp(mode, "exact") == 0) return true;
  return mistake(option_name, "expects fast or exact.");
}

static bool is_same_name(const given *a, const given *b) {
  return a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0;
}

/* Each input is given once, as a file or as a shape. */
static bool are_inputs_given_once(const options *o) {
  for (size_t i = 0; i < o->input_count + o->shape_count; ++i) {
    const given *one = i < o->input_count ? &o->inputs[i] : &o->shapes[i - o->input_count];
    for (size_t k = 0; k < i; ++k) {
      const given *other = k < o->input_count ? &o->inputs[k] : &o->shapes[k - o->input_count];
      if (!is_same_name(one, other)) continue;
      fprintf(stderr, "onemodel: input '%.*s' is given twice.\n", (int)one->name_bytes, one->name);
      return false;
    }
  }
  return true;
}

/* Every option that is given has an effect beside the others. */
static bool do_options_agree(const options *o, command which, const bool is_given[OPTION_COUNT]) {
  const unsigned form = o->attributes ? ATTRIBUTION : which;
  for (size_t i = 0; i < OPTION_COUNT; ++i) {
    if (!is_given[i] || (table[i].commands & form)) continue;
    return mistake(table[i].name,
                   o->attributes ? "contradicts --attribute." : "is an option of --attribute.");
  }
  if (o->require_gpu && o->device && strcmp(o->device, "cpu") == 0) {
    return mistake("--require-gpu", "contradicts --device cpu.");
  }
  if (o->as_json && o->as_markdown) return mistake("--json", "contradicts --markdown.");
  return are_inputs_given_once(o) && is_mode("--mode", o->mode) &&
         is_mode("--reference-mode", o->reference_mode);
}

/* The option of this name, where the command has it; else says so and returns NULL. */
static const option *find_option(const char *name, command which) {
  const unsigned forms = which | (which == COMMAND_COMPARE ? ATTRIBUTION : 0u);
  for (size_t i = 0; i < OPTION_COUNT; ++i) {
    if (strcmp(name, table[i].name) != 0) continue;
    if (table[i].commands & forms) return &table[i];
    mistake(name, "is an option of other subcommands; see onemodel --help.");
    return NULL;
  }
  mistake(name, "is not an option; see onemodel --help.");
  return NULL;
}

bool options_parse(int argc, char **argv, command which, options *out) {
  const bool needs_model = !(which & (COMMAND_DEVICES | COMMAND_OPS));
  *out = (options){.mode = "fast",
                   .reference_device = "cpu",
                   .reference_mode = "exact",
                   .seed = 1,
                   .runs = 50,
                   .warmup = 5,
                   .tolerance = 1e-5};
  bool is_given[OPTION_COUNT] = {false};
  for (int i = 0; i < argc; ++i) {
    if (argv[i][0] != '-') {
      if (!needs_model || out->model) return mistake(argv[i], "is one argument too many.");
      out->model = argv[i];
      continue;
    }
    const option *found = find_option(argv[i], which);
    if (!found) return false;
    is_given[found - table] = true;
    const char *value = NULL;
    if (found->kind != FLAG) {
      if (i + 1 == argc) return mistake(argv[i], "needs a value.");
      value = argv[++i];
    }
    if (!set_option(found, value, out)) return false;
  }
  if (needs_model && !out->model) return mistake("MODEL", "is missing.");
  return do_options_agree(out, which, is_given);
}
