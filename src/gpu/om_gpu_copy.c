/* A copy is turned into words (an element of 8 bytes is an axis of two; neighbours of elements
 * smaller than a word are taken four bytes at a time where both sides allow it, else a kernel
 * gathers the bytes of each word), then into quads of words where both sides allow that. Where the
 * innermost axis is dense on one side only, tiles go through shared memory (transpose.comp), also
 * of pairs of 16-bit elements, unless that is dear.
 */
#include "gpu/om_gpu_copy.h"

#include "abi/copy_params.h"

enum {
  OM_COPY_MAX_RANK = 8,
  OM_COPY_THREADS = 256,
  OM_TRANSPOSE_TILE = 32,      /* words; of pairs twice as many elements */
  OM_TRANSPOSE_MIN_EXTENT = 8, /* below that most of a tile is idle */
};

bool om_gpu_is_small(om_dtype dtype) {
  return om_dtype_bits(dtype) < 32;
}

uint32_t om_gpu_words(om_dtype dtype) {
  return (uint32_t)(om_dtype_bits(dtype) / (om_gpu_is_small(dtype) ? 8 : 32));
}

uint64_t om_gpu_tensor_words(const om_tensor *tensor) {
  return (uint64_t)om_tensor_elems(tensor) * om_gpu_words(tensor->dtype);
}

const char *om_gpu_check_words(om_gpu_binder *b, uint64_t words) {
  if (words <= INT32_MAX) return NULL;
  return om_gpu_reason(b, "%llu units are more than a kernel counts", (unsigned long long)words);
}

bool om_gpu_copy_is_view(const om_strided *copy, uint64_t elems) {
  om_strided simple = *copy;
  om_strided_simplify(&simple);
  return simple.rank == 1 && simple.source_offset == 0 && simple.target_offset == 0 &&
         (uint64_t)simple.extents[0] == elems &&
         (elems == 1 || (simple.source_strides[0] == 1 && simple.target_strides[0] == 1));
}

/* The words (or bytes) of an element become an innermost axis. */
static void split_words(om_strided *copy, uint32_t words) {
  if (words == 1) return;
  for (uint32_t i = 0; i < copy->rank; ++i) {
    copy->source_strides[i] *= words;
    copy->target_strides[i] *= words;
  }
  copy->source_offset *= words;
  copy->target_offset *= words;
  copy->extents[copy->rank] = words;
  copy->source_strides[copy->rank] = 1;
  copy->target_strides[copy->rank] = 1;
  ++copy->rank;
}

static bool takes_quads(const om_strided *copy) {
  const uint32_t last = copy->rank - 1;
  if (copy->source_strides[last] != 1 || copy->target_strides[last] != 1) return false;
  if (copy->extents[last] % 4 != 0) return false;
  if (copy->source_offset % 4 != 0 || copy->target_offset % 4 != 0) return false;
  for (uint32_t i = 0; i < last; ++i) {
    if (copy->source_strides[i] % 4 != 0 || copy->target_strides[i] % 4 != 0) return false;
  }
  return true;
}

static void make_quads(om_strided *copy) {
  const uint32_t last = copy->rank - 1;
  copy->extents[last] /= 4;
  copy->source_offset /= 4;
  copy->target_offset /= 4;
  for (uint32_t i = 0; i < last; ++i) {
    copy->source_strides[i] /= 4;
    copy->target_strides[i] /= 4;
  }
}

static void swap_axes(om_strided *copy, uint32_t a, uint32_t b) {
  const int64_t axis[3] = {copy->extents[a], copy->source_strides[a], copy->target_strides[a]};
  copy->extents[a] = copy->extents[b];
  copy->source_strides[a] = copy->source_strides[b];
  copy->target_strides[a] = copy->target_strides[b];
  copy->extents[b] = axis[0];
  copy->source_strides[b] = axis[1];
  copy->target_strides[b] = axis[2];
}

/* Orders the axes as a dense target has them; false where it is not dense. */
static bool sort_axes(om_strided *copy) {
  int64_t stride = 1;
  for (uint32_t i = 1; i < copy->rank; ++i) {
    for (uint32_t k = i; k > 0 && copy->target_strides[k] > copy->target_strides[k - 1]; --k) {
      swap_axes(copy, k, k - 1);
    }
  }
  for (uint32_t i = copy->rank; i-- > 0;) {
    if (copy->extents[i] > 1 && copy->target_strides[i] != stride) return false;
    stride *= copy->extents[i];
  }
  return copy->target_offset == 0;
}

/* Brings the axis that is dense in the source next to the innermost one, which is dense in the
 * target; false where tiles are of no use. */
static bool takes_tiles(om_strided *copy) {
  const uint32_t last = copy->rank - 1;
  if (copy->rank < 2 || copy->target_strides[last] != 1 || copy->source_strides[last] == 1) {
    return false;
  }
  for (uint32_t i = 0; i < last; ++i) {
    if (copy->source_strides[i] != 1) continue;
    if (copy->extents[i] < OM_TRANSPOSE_MIN_EXTENT) return false;
    if (copy->extents[last] < OM_TRANSPOSE_MIN_EXTENT) return false;
    swap_axes(copy, i, last - 1);
    return true;
  }
  return false;
}

/* The same for elements of 16 bits, where a word of each side holds two neighbours. */
static bool takes_pairs(om_strided *copy) {
  const uint32_t last = copy->rank - 1;
  if ((copy->source_offset | copy->target_offset | copy->extents[last]) % 2 != 0) return false;
  for (uint32_t i = 0; i < copy->rank; ++i) {
    if (i != last && copy->target_strides[i] % 2 != 0) return false;
    if (copy->source_strides[i] != 1 && copy->source_strides[i] % 2 != 0) return false;
  }
  return takes_tiles(copy);
}

static uint64_t tile_count(const om_strided *copy, uint64_t tile) {
  const uint64_t across = (uint64_t)copy->extents[copy->rank - 1];
  const uint64_t down = (uint64_t)copy->extents[copy->rank - 2];
  return om_strided_elems(copy) / (across * down) * om_gpu_pieces(across, tile) *
         om_gpu_pieces(down, tile);
}

static om_copy_params describe(const om_strided *copy) {
  om_copy_params params = {
      .elems = (uint32_t)om_strided_elems(copy),
      .rank = copy->rank,
      .source_offset = (uint32_t)copy->source_offset,
      .target_offset = (uint32_t)copy->target_offset,
  };
  uint32_t axes[3][OM_COPY_MAX_RANK] = {{0}};
  for (uint32_t i = 0; i < copy->rank; ++i) { /* innermost first */
    const uint32_t axis = copy->rank - 1 - i;
    axes[0][i] = (uint32_t)copy->extents[axis];
    axes[1][i] = (uint32_t)copy->source_strides[axis];
    axes[2][i] = (uint32_t)copy->target_strides[axis];
  }
  memcpy(&params.extent_0, axes, sizeof axes);
  return params;
}

/* Small elements: a copy of words, or an order in which each word's bytes stand together. */
static const char *prepare_bytes(om_strided *copy, bool *out_is_bytes) {
  *out_is_bytes = !takes_quads(copy);
  if (!*out_is_bytes) {
    make_quads(copy);
    om_strided_simplify(copy);
    return NULL;
  }
  return sort_axes(copy) ? NULL : "its elements do not fill whole words";
}

const char *om_gpu_bind_copy(om_gpu_binder *b,
                             const om_strided *copy,
                             om_dtype dtype,
                             om_gpu_operand source,
                             om_gpu_operand target) {
  const bool takes_turns = om_gpu_binder_features(b)->in_turn;
  om_strided words = *copy;
  om_strided_simplify(&words);
  if (words.rank == OM_STRIDED_MAX_RANK) return "more axes move than the kernel has";
  const bool is_pairs = om_dtype_bits(dtype) == 16 && !takes_turns && takes_pairs(&words);
  if (!is_pairs) {
    split_words(&words, om_gpu_words(dtype));
    om_strided_simplify(&words);
  }
  if (words.rank > OM_COPY_MAX_RANK) return "more axes move than the kernel has";
  const char *reason = om_gpu_check_words(b, om_strided_elems(&words));
  if (reason) return reason;

  bool is_bytes = false;
  if (om_gpu_is_small(dtype) && !is_pairs) reason = prepare_bytes(&words, &is_bytes);
  if (reason) return reason;

  om_shader shader = OM_SHADER_COPY;
  uint64_t groups = 0;
  if (is_pairs) {
    shader = OM_SHADER_TRANSPOSE_PAIRS;
    groups = tile_count(&words, 2 * OM_TRANSPOSE_TILE);
  } else if (is_bytes) {
    shader = OM_SHADER_COPY_BYTES;
    groups = om_gpu_pieces(om_strided_elems(&words), 4 * OM_COPY_THREADS);
  } else if (takes_quads(&words)) {
    shader = OM_SHADER_COPY_VEC4;
    make_quads(&words);
  } else if (!takes_turns && takes_tiles(&words)) {
    shader = OM_SHADER_TRANSPOSE;
    groups = tile_count(&words, OM_TRANSPOSE_TILE);
  }
  if (groups == 0) groups = om_gpu_pieces(om_strided_elems(&words), OM_COPY_THREADS);

  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  const om_copy_params params = describe(&words);
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = source;
  d->operands[1] = target;
  d->operand_count = 2;
  om_gpu_spread_groups(b, groups, d->groups);
  return NULL;
}
