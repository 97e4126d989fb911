// Rows that are sums of one to three rows of tables, for layernorm_subgroup.comp.
//
// A term repeats after its period of rows. Where INDEX_WORDS is not 0, an index of so many words
// says which row of its table is meant; one outside the table is somebody else's finding
// (demand.comp), and is clamped. The second and the third term have one binding for indices: only
// one of the two is looked up. Sums are as the additions by themselves would make them.
#ifndef OM_LOOKUP_GLSL
#define OM_LOOKUP_GLSL

OM_CONSTANT(4, TERMS, 1)
OM_CONSTANT(5, INDEX_WORDS_0, 0)
OM_CONSTANT(6, INDEX_WORDS_1, 0)
OM_CONSTANT(7, INDEX_WORDS_2, 0)

layout(set = 0, binding = 0, std430) readonly buffer Table0 { ELEMENT4 table_0[]; };
layout(set = 0, binding = 1, std430) readonly buffer Table1 { ELEMENT4 table_1[]; };
layout(set = 0, binding = 2, std430) readonly buffer Table2 { ELEMENT4 table_2[]; };
layout(set = 0, binding = 3, std430) readonly buffer Indices0 { uint indices_0[]; };
layout(set = 0, binding = 4, std430) readonly buffer Indices1 { uint indices_1[]; };

vec4 terms_1[FETCHED];
vec4 terms_2[FETCHED];

// Where a table's row begins.
uint begin_at(uint index, uint extent) {
  if ((index & OM_SIGN_BIT) != 0u) index = index + extent;
  return min(index, extent - 1u) * (P.row_elems / 4u);
}

void read_row(uint row) {
  uint terms = TERMS;
  uvec3 words = uvec3(INDEX_WORDS_0, INDEX_WORDS_1, INDEX_WORDS_2);
  uvec3 at = uvec3(row % P.period_0, row % P.period_1, row % P.period_2);
  if (words.x != 0u) at.x = indices_0[at.x * words.x];
  if (words.y != 0u) at.y = indices_1[at.y * words.y];
  if (words.z != 0u) at.z = indices_1[at.z * words.z];
  at = uvec3(begin_at(at.x, P.extent_0), begin_at(at.y, P.extent_1), begin_at(at.z, P.extent_2));
  [[unroll]] for (uint first = 0u; first < uint(QUADS); first += uint(FETCHED)) {
    EACH_FETCHED(k) values[first + k] = LOAD4(table_0[at.x + place_of(first + k)]);
    if (terms > 1u) EACH_FETCHED(k) terms_1[k] = LOAD4(table_1[at.y + place_of(first + k)]);
    if (terms > 2u) EACH_FETCHED(k) terms_2[k] = LOAD4(table_2[at.z + place_of(first + k)]);
    if (first == 0u) fetch_places(0u);
    if (terms > 1u) {
      EACH_FETCHED(k) values[first + k] = residual_add(values[first + k], terms_1[k]);
    }
    if (terms > 2u) {
      EACH_FETCHED(k) values[first + k] = residual_add(values[first + k], terms_2[k]);
    }
  }
}

#endif
