/* The sessions' corpus: see replay.h. What a fuzzer found on its way from the models of ONNX's node
 * tests: most of them are broken in one place. */
#include "fuzz/fuzz_session.c"
#include "fuzz/replay.h"

int main(void) {
  return replay_folder(OM_SOURCE_DIR "/tests/fuzz/corpus/session");
}
