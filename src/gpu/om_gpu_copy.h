/* Strided copies on the device: how Transpose, Slice, Expand and their kin bind. */
#ifndef OM_GPU_COPY_H
#define OM_GPU_COPY_H

#include "cpu/exact/om_strided.h"
#include "gpu/om_gpu_op.h"

/* Types that the kernels move: their elements are one or two words of 32 bits. */
#define OM_DT_WORDS                                                                        \
  (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_U32) | OM_DT(OM_DTYPE_I64) | \
   OM_DT(OM_DTYPE_U64) | OM_DT(OM_DTYPE_F64))

/* Those, and types whose elements are one or two bytes: their kernels make whole words too. */
#define OM_DT_MOVED                                                               \
  (OM_DT_WORDS | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_I8) | \
   OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_BF16) | OM_DT(OM_DTYPE_U16) | OM_DT(OM_DTYPE_I16))

/* True where elements are counted in bytes, being smaller than a word. */
bool om_gpu_is_small(om_dtype dtype);

/* Words of one element, or bytes of a small one. */
uint32_t om_gpu_words(om_dtype dtype);

/* Words of a tensor, or bytes where its elements are small. */
uint64_t om_gpu_tensor_words(const om_tensor *tensor);

/* Appends the dispatch for a copy of elements of this type. Returns a reason or NULL. */
const char *om_gpu_bind_copy(om_gpu_binder *b,
                             const om_strided *copy,
                             om_dtype dtype,
                             om_gpu_operand source,
                             om_gpu_operand target);

/* True if the copy changes nothing: a view will do. `elems` are the source's. */
bool om_gpu_copy_is_view(const om_strided *copy, uint64_t elems);

/* The reason why more words (or bytes) than a kernel can count stay on the CPU, or NULL. */
const char *om_gpu_check_words(om_gpu_binder *b, uint64_t words);

#endif
