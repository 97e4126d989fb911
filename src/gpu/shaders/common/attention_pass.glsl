// Where exact attention's passes find their rows: the scores of a turn lie by blocks of 64 rows.
#ifndef OM_ATTENTION_PASS_GLSL
#define OM_ATTENTION_PASS_GLSL

struct pass_block {
  uint row_begin;         // in its element of the batch
  uint index_0, index_1;  // of the element
};

pass_block pass_locate(uint block_of_turn) {
  uint block = P.first_block + block_of_turn;
  uint element = block / P.row_blocks;
  pass_block b;
  b.row_begin = block % P.row_blocks * uint(OM_ATTENTION_BLOCK);
  b.index_0 = element / P.batch_1;
  b.index_1 = element % P.batch_1;
  return b;
}

float pass_scaled(float value, uint kind, float by) {
  OM_PRECISE float result = value;
  if (kind == 1u) result = value * by;
  if (kind == 2u) result = om_div(value, by);
  return result;
}

#endif
