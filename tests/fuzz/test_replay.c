/* The loader's corpus: see replay.h. */
#include "fuzz/fuzz_onnx_load.c"
#include "fuzz/replay.h"

int main(void) {
  return replay_folder(OM_SOURCE_DIR "/tests/fuzz/corpus/onnx_load");
}
