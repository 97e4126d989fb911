/* The command `onemodel`: finds the subcommand. */
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *usage;
} subcommands[] = {
    {"devices", command_devices, "[--json]\n            lists the GPUs"},
    {"info", command_info, "MODEL [--json]\n            inputs, outputs, opsets, operators, size"},
    {"run",
     command_run,
     "MODEL [--out FILE.npz] [--json]\n            runs once; prints or writes the outputs"},
    {"bench",
     command_bench,
     "MODEL [--runs N] [--warmup N] [--profile] [--own-memory] [--json]\n"
     "            time and memory; with --profile device time by operator and by node; inputs in\n"
     "            memory that the device reads, with --own-memory in the caller's"},
    {"compare",
     command_compare,
     "MODEL [--by-node] [--tolerance T] [--reference-device D]\n"
     "                   [--reference-mode M] [--json]\n"
     "            the device against the CPU's exact mode, or any two; a scaled error above T\n"
     "            (default: 1e-5) is a difference\n"
     "  onemodel compare MODEL --attribute [--worst] [--tolerance T] [--json]\n"
     "            device fast, device exact and CPU exact against the graph in float64: each "
     "step's\n"
     "            scaled error so far, and what the step itself adds; --worst: most added first"},
    {"placement",
     command_placement,
     "MODEL [--json]\n            where each operator runs, and why"},
    {"ops", command_ops, "[--json | --markdown]\n            the operators of this build"},
};

static const char common[] =
    "Options of all that run a model:\n"
    "  --device cpu|gpu|gpu:N|NAME   default: the first GPU, else the CPU\n"
    "  --mode fast|exact             default: fast\n"
    "  --threads N                   of the CPU; default: all cores\n"
    "  --require-gpu                 fail if an operator cannot run on the GPU\n"
    "  --no-fusion                   each operator in its own pass\n"
    "  --no-matrix-hardware          fast mode: no products on cooperative matrices\n"
    "  --no-sm90                     none of the kernels for NVIDIA Hopper\n"
    "  --input NAME=FILE             .npy, .npz (member NAME) or a TensorProto .pb\n"
    "  --shape NAME=1x3x48x320       of an input that is filled at random\n"
    "  --seed N                      of random inputs; default: 1\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 compare found a difference,\n"
    "4 not supported or --require-gpu not kept, 5 a file cannot be read or written.\n";

static void print_usage(FILE *out) {
  fprintf(out, "onemodel %s: runs ONNX models on any GPU and on the CPU\n\n", om_version());
  for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; ++i) {
    fprintf(out, "  onemodel %s %s\n", subcommands[i].name, subcommands[i].usage);
  }
  fprintf(out, "\n%s", common);
}

static bool asks_for_help(int argc, char **argv) {
  if (argc >= 2 && strcmp(argv[1], "help") == 0) return true;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  }
  return false;
}

/* What was printed must have arrived: a full disk is a failure. */
static int finish(int code) {
  bool has_arrived = fflush(stdout) == 0 && !ferror(stdout);
  if (has_arrived || code != EXIT_DONE) return code;
  return report_problem(EXIT_FILE, "The output cannot be written.");
}

int main(int argc, char **argv) {
  if (asks_for_help(argc, argv)) {
    print_usage(stdout);
    return finish(EXIT_DONE);
  }
  if (argc >= 2) {
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; ++i) {
      if (strcmp(argv[1], subcommands[i].name) != 0) continue;
      return finish(subcommands[i].run(argc - 2, argv + 2));
    }
    if (strcmp(argv[1], "--version") == 0) {
      printf("onemodel %s\n", om_version());
      return finish(EXIT_DONE);
    }
    return report_problem(EXIT_USAGE, "there is no subcommand '%s'; see onemodel --help.", argv[1]);
  }
  print_usage(stderr);
  return EXIT_USAGE;
}
