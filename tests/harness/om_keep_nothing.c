/* In every test program: no file of kernels, unless the test or the environment names a folder.
 * What an earlier run left must not change what a test sees. */
#include <stdlib.h>

__attribute__((constructor)) static void keep_nothing(void) {
  setenv("ONEMODEL_GPU_CACHE", "", 0);
}
