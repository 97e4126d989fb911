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
  RUNNERS = COMMAND_RUN | COMMAND_BENCH | COMMAND_COMPARE | COMMAND_PLACEMENT,
  LISTERS = COMMAND_DEVICES | COMMAND_INFO | COMMAND_OPS,
};

static const option table[] = {
    {"--device", TEXT, FIELD(device), RUNNERS},
    {"--mode", TEXT, FIELD(mode), RUNNERS},
    {"--reference-device", TEXT, FIELD(reference_device), COMMAND_COMPARE},
    {"--reference-mode", TEXT, FIELD(reference_mode), COMMAND_COMPARE},
    {"--out", TEXT, FIELD(out), COMMAND_RUN},
    {"--threads", COUNT, FIELD(threads), RUNNERS},
    {"--runs", COUNT, FIELD(runs), COMMAND_BENCH},
    {"--warmup", COUNT, FIELD(warmup), COMMAND_BENCH},
    {"--seed", SEED, FIELD(seed), RUNNERS},
    {"--tolerance", NUMBER, FIELD(tolerance), COMMAND_COMPARE},
    {"--require-gpu", FLAG, FIELD(require_gpu), RUNNERS},
    {"--no-fusion", FLAG, FIELD(no_fusion), RUNNERS},
    {"--no-matrix-hardware", FLAG, FIELD(no_matrix_hardware), RUNNERS},
    {"--no-sm90", FLAG, FIELD(no_sm90), RUNNERS},
    {"--profile", FLAG, FIELD(profiles), COMMAND_BENCH},
    {"--own-memory", FLAG, FIELD(own_memory), COMMAND_BENCH},
    {"--json", FLAG, FIELD(as_json), RUNNERS | LISTERS},
    {"--by-node", FLAG, FIELD(by_node), COMMAND_COMPARE},
    {"--attribute", FLAG, FIELD(attributes), COMMAND_COMPARE},
    {"--worst", FLAG, FIELD(worst_first), COMMAND_COMPARE},
    {"--markdown", FLAG, FIELD(as_markdown), COMMAND_OPS},
    {"--input", GIVEN_INPUT, 0, RUNNERS},
    {"--shape", GIVEN_SHAPE, 0, RUNNERS},
};

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
      if (!*value || *end || errno) return mistake(it->name, "expects a number.");
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

bool options_parse(int argc, char **argv, command which, options *out) {
  const bool needs_model = !(which & (COMMAND_DEVICES | COMMAND_OPS));
  *out = (options){.mode = "fast",
                   .reference_device = "cpu",
                   .reference_mode = "exact",
                   .seed = 1,
                   .runs = 50,
                   .warmup = 5,
                   .tolerance = 1e-5};
  for (int i = 0; i < argc; ++i) {
    const option *found = NULL;
    if (argv[i][0] != '-') {
      if (!needs_model || out->model) return mistake(argv[i], "is one argument too many.");
      out->model = argv[i];
      continue;
    }
    for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
      if (strcmp(argv[i], table[k].name) == 0) found = &table[k];
    }
    if (!found) return mistake(argv[i], "is not an option; see onemodel --help.");
    if (!(found->commands & which)) {
      return mistake(argv[i], "is an option of other subcommands; see onemodel --help.");
    }
    const char *value = NULL;
    if (found->kind != FLAG) {
      if (i + 1 == argc) return mistake(argv[i], "needs a value.");
      value = argv[++i];
    }
    if (!set_option(found, value, out)) return false;
  }
  if (needs_model && !out->model) return mistake("MODEL", "is missing.");
  if (out->require_gpu && out->device && strcmp(out->device, "cpu") == 0) {
    return mistake("--require-gpu", "contradicts --device cpu.");
  }
  return is_mode("--mode", out->mode) && is_mode("--reference-mode", out->reference_mode);
}
