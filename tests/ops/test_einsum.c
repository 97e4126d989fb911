/* Einsum: every combination of all letters, one after the other. Ellipses are spelled out for the
 * reference: up to three axes named 1, 2, 3. */
#include "harness/om_test.h"

typedef struct term {
  char axes[20];
} term;

static size_t read_equation(const om_node *node,
                            const om_ref_tensor *inputs,
                            term *terms,
                            bool *has_result) {
  const om_attr *attr = om_node_attr(node, "equation");
  size_t count = 0;
  size_t used = 0;
  memset(terms, 0, 8 * sizeof *terms);
  *has_result = false;
  for (size_t i = 0; i < attr->s.bytes; ++i) {
    const char c = attr->s.data[i];
    if (c == ' ' || c == '>') continue;
    if (c == ',' || c == '-') {
      *has_result = c == '-';
      used = 0;
      ++count;
    } else if (c == '.') {
      size_t letters = 0;
      for (const char *p = attr->s.data; p < attr->s.data + attr->s.bytes; ++p) {
        if (*p == ',' || *p == '-') break;
        letters += *p != '.' && *p != ' ';
      }
      for (size_t d = 0; d < inputs[0].rank - letters; ++d)
        terms[count].axes[used++] = (char)('1' + d);
      i += 2;
    } else {
      terms[count].axes[used++] = c;
    }
  }
  return count + 1;
}

/* The letters that occur once, sorted; the ellipsis's digits come first by themselves. */
static void imply_result(term *terms, size_t count) {
  size_t used = 0;
  for (char c = '1'; c <= 'z'; ++c) {
    size_t uses = 0;
    for (size_t t = 0; t < count; ++t) {
      for (const char *p = terms[t].axes; *p; ++p) uses += *p == c;
    }
    if (uses == 1 || (uses > 0 && c < '9')) terms[count].axes[used++] = c;
  }
}

static size_t place(const term *t, const om_ref_tensor *tensor, const int64_t *index_of) {
  size_t at = 0;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    const int64_t index = tensor->dims[d] == 1 ? 0 : index_of[(unsigned char)t->axes[d]];
    at = at * (size_t)tensor->dims[d] + (size_t)index;
  }
  return at;
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  term terms[8];
  bool has_result = false;
  int64_t extents[128] = {0};
  int64_t index[128] = {0};
  const size_t count = read_equation(node, inputs, terms, &has_result);
  (void)output_count;
  if (!has_result) imply_result(terms, count);
  for (size_t t = 0; t < input_count; ++t) {
    for (uint32_t d = 0; d < inputs[t].rank; ++d) {
      const unsigned char c = (unsigned char)terms[t].axes[d];
      if (inputs[t].dims[d] > extents[c] || extents[c] == 1) extents[c] = inputs[t].dims[d];
    }
  }
  size_t total = 1;
  for (size_t c = 0; c < 128; ++c) {
    if (extents[c]) total *= (size_t)extents[c];
  }
  memset(outputs[0].values, 0, outputs[0].elems * sizeof(double));
  for (size_t i = 0; i < total; ++i) {
    size_t rest = i;
    double product = 1.0;
    for (size_t c = 0; c < 128; ++c) {
      if (!extents[c]) continue;
      index[c] = (int64_t)(rest % (size_t)extents[c]);
      rest /= (size_t)extents[c];
    }
    for (size_t t = 0; t < input_count; ++t) {
      product *= inputs[t].values[place(&terms[t], &inputs[t], index)];
    }
    outputs[0].values[place(&terms[input_count], &outputs[0], index)] += product;
  }
}

/* One product, or a Transpose: the device takes it. */
static const om_op_case product_cases[] = {
    {.name = "product", .inputs = {"f32 5x7", "f32 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "implicit", .inputs = {"f32 5x7", "f32 7x9"}, .attrs = "equation=\"ij,jk\""},
    {.name = "implicit_sorted",
     .inputs = {"f32 5x7"},
     .attrs = "equation=\"zA\"",
     .shapes = {"7x5"}},
    {.name = "turned", .inputs = {"f32 7x5", "f32 9x7"}, .attrs = "equation=\"ji,kj->ki\""},
    {.name = "batch",
     .inputs = {"f32 2x3x5x7", "f32 2x3x9x7"},
     .attrs = "equation=\"bhqd,bhkd->bhqk\""},
    {.name = "batch_last",
     .inputs = {"f32 5x7x3", "f32 7x9x3"},
     .attrs = "equation=\"ijb,jkb->ikb\""},
    {.name = "attention",
     .inputs = {"f32 2x3x4x5", "f32 2x6x4x5"},
     .attrs = "equation=\"bchw,bkhw->bck\""},
    {.name = "inner", .inputs = {"f32 300", "f32 300"}, .attrs = "equation=\"i,i->\""},
    {.name = "transpose",
     .inputs = {"f32 3x4x5"},
     .attrs = "equation=\"ijk->kij\"",
     .bit_exact = true},
    {.name = "ellipsis",
     .inputs = {"f32 2x3x5x7", "f32 2x3x7x4"},
     .attrs = "equation=\"...ij,...jk->...ik\""},
    {.name = "ellipsis_moved",
     .inputs = {"f32 2x3x5"},
     .attrs = "equation=\"...i->i...\"",
     .bit_exact = true},
    {.name = "ellipsis_implicit",
     .inputs = {"f32 2x3x5", "f32 2x5x3"},
     .attrs = "equation=\"...ij,...jk\""},
    {.name = "ellipsis_broadcast",
     .inputs = {"f32 1x3x5", "f32 2x3x5"},
     .attrs = "equation=\"...j,...j->...\""},
    {.name = "spaces", .inputs = {"f32 2x3", "f32 3x4"}, .attrs = "equation=\" i j , jk -> i k \""},
    {.name = "rank_8",
     .inputs = {"f32 2x1x2x3x1x2x1x2", "f32 2x3"},
     .attrs = "equation=\"abcdefgh,cd->hgfebad\""},
    {.name = "f16", .inputs = {"f16 5x7", "f16 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "several_of_each",
     .inputs = {"f32 2x3x4x5", "f32 4x2x5x3x2"},
     .attrs = "equation=\"xaij,ixjbc->bxac\""},
    {.name = "scores",
     .inputs = {"f32 2x5x3x8", "f32 2x6x3x8"},
     .attrs = "equation=\"bqhd,bkhd->bhqk\""},
    {.name = "values",
     .inputs = {"f32 2x3x5x6", "f32 2x6x3x8"},
     .attrs = "equation=\"bhqk,bkhd->bqhd\""},
    {.name = "weights",
     .inputs = {"f32 2x5x12", "f32 12x3x4 const"},
     .attrs = "equation=\"bsd,dhk->bhsk\""},
};

/* Sums over one side, products without a sum, diagonals, and more than two operands. */
static const om_op_case joined_cases[] = {
    {.name = "outer", .inputs = {"f32 3", "f32 4"}, .attrs = "equation=\"i,j->ij\""},
    {.name = "elementwise", .inputs = {"f32 3x4", "f32 3x4"}, .attrs = "equation=\"ij,ij->ij\""},
    {.name = "sum", .inputs = {"f32 3x4x50"}, .attrs = "equation=\"ijk->j\""},
    {.name = "sum_all",
     .inputs = {"f32 3x4x5"},
     .attrs = "equation=\"ijk->\"",
     .shapes = {"scalar"}},
    {.name = "diagonal", .inputs = {"f32 4x4"}, .attrs = "equation=\"ii->i\"", .bit_exact = true},
    {.name = "trace", .inputs = {"f32 4x4"}, .attrs = "equation=\"ii\""},
    {.name = "diagonals", .inputs = {"f32 3x4x3", "f32 4x4"}, .attrs = "equation=\"iji,jj->ij\""},
    {.name = "sum_on_one_side", .inputs = {"f32 3x4", "f32 3x5"}, .attrs = "equation=\"ij,ik->i\""},
    {.name = "three",
     .inputs = {"f32 3x4", "f32 4x5", "f32 5x6"},
     .attrs = "equation=\"ij,jk,kl->il\""},
    {.name = "four",
     .inputs = {"f32 3x4", "f32 4", "f32 3", "f32 5x4"},
     .attrs = "equation=\"ij,j,i,kj->ki\""},
    {.name = "scalar", .inputs = {"f32 scalar", "f32 3x4"}, .attrs = "equation=\",ij->ij\""},
    {.name = "scalars", .inputs = {"f32 scalar", "f32 scalar"}, .attrs = "equation=\",->\""},
    {.name = "outer_of_halves", .inputs = {"f16 3", "f16 40"}, .attrs = "equation=\"i,j->ij\""},
    {.name = "outer_turned", .inputs = {"f32 3x2", "f32 4x5"}, .attrs = "equation=\"ab,cd->dbca\""},
    {.name = "scaled_rows",
     .inputs = {"f32 2x3x5", "f32 2x3x5x4"},
     .attrs = "equation=\"bhn,bhnd->bhnd\""},
    {.name = "elementwise_halves",
     .inputs = {"f16 3x4", "f16 4x3"},
     .attrs = "equation=\"ij,ji->ij\""},
    {.name = "elementwise_ellipsis",
     .inputs = {"f32 2x1x4", "f32 1x3x4"},
     .attrs = "equation=\"...i,...i->...i\""},
    {.name = "diagonal_of_unequal",
     .inputs = {"f32 4x5 const"},
     .attrs = "equation=\"ii->i\"",
     .error = "'i' has an extent of 5"},
    {.name = "zeros", .inputs = {"f32 3 = -0 1 0", "f32 1 = -1"}, .attrs = "equation=\"i,j->ij\""},
    {.name = "sum_of_long_rows", .inputs = {"f32 3x1003"}, .attrs = "equation=\"ij->i\""},
    {.name = "sum_of_halves", .inputs = {"f16 3x40x5"}, .attrs = "equation=\"ijk->k\""},
    {.name = "sum_behind_ellipsis", .inputs = {"f32 2x3x40"}, .attrs = "equation=\"...i->...\""},
    {.name = "sum_on_both_sides",
     .inputs = {"f32 3x4x2", "f32 2x5x3"},
     .attrs = "equation=\"ija,aki->i\""},
    {.name = "diagonal_of_batches",
     .inputs = {"f32 2x5x3x5"},
     .attrs = "equation=\"bidi->bdi\"",
     .bit_exact = true},
    {.name = "diagonal_of_three",
     .inputs = {"f32 4x4x4"},
     .attrs = "equation=\"iii->i\"",
     .bit_exact = true},
    {.name = "diagonal_of_integers",
     .inputs = {"i64 3x3"},
     .attrs = "equation=\"ii->i\"",
     .bit_exact = true},
    {.name = "three_halves",
     .inputs = {"f16 3x4", "f16 4x5", "f16 5x6"},
     .attrs = "equation=\"ij,jk,kl->il\""},
    {.name = "integer_outer",
     .inputs = {"i32 3", "i32 4"},
     .attrs = "equation=\"i,j->ij\"",
     .bit_exact = true},
};

static const om_op_case cases[] = {
    {.name = "one_repeats",
     .inputs = {"f32 3x1 const", "f32 4x2"},
     .attrs = "equation=\"ij,jk->ik\""},
    {.name = "empty_sum",
     .inputs = {"f32 3x0", "f32 0x2"},
     .attrs = "equation=\"ij,jk->ik\"",
     .expected = {"0"}},
    {.name = "empty",
     .inputs = {"f32 0x3", "f32 3x2"},
     .attrs = "equation=\"ij,jk->ik\"",
     .declined = "empty"},
    {.name = "f64", .inputs = {"f64 5x7", "f64 7x9"}, .attrs = "equation=\"ij,jk->ki\""},
    {.name = "bf16", .inputs = {"bf16 5x7", "bf16 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "i8",
     .inputs = {"i8 5x7 range -3 3", "i8 7x9 range -3 3"},
     .attrs = "equation=\"ij,jk->ik\""},
    {.name = "u16", .inputs = {"u16 5x7", "u16 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "i32", .inputs = {"i32 5x7", "i32 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "i64", .inputs = {"i64 5x7", "i64 7x9"}, .attrs = "equation=\"ij,jk->ik\""},
    {.name = "u64", .inputs = {"u64 5", "u64 5"}, .attrs = "equation=\"i,i\""},
    {.name = "types",
     .inputs = {"f32 5", "f64 5"},
     .attrs = "equation=\"i,i\"",
     .error = "Input 1 is float64"},
    {.name = "terms",
     .inputs = {"f32 5", "f32 5"},
     .attrs = "equation=\"i,i,i\"",
     .error = "3 terms"},
    {.name = "extents",
     .inputs = {"f32 5 const", "f32 6 const"},
     .attrs = "equation=\"i,i\"",
     .error = "'i' has an extent of 6"},
    {.name = "rank", .inputs = {"f32 5x2"}, .attrs = "equation=\"i\"", .error = "names 1 axes"},
    {.name = "ellipsis_ranks",
     .inputs = {"f32 5x2", "f32 2"},
     .attrs = "equation=\"...,...\"",
     .error = "ellipsis stands for 1"},
    {.name = "no_letter",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"i1\"",
     .error = "neither a letter"},
    {.name = "two_ellipses",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"...i...\"",
     .error = "two ellipses"},
    {.name = "result_alone",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"ij->z\"",
     .error = "'z' in its result alone"},
    {.name = "result_twice",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"ij->ii\"",
     .error = "twice in its result"},
    {.name = "result_lacks",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"...j->j\"",
     .error = "ellipsis that its result lacks"},
    {.name = "minus", .inputs = {"f32 5x2"}, .attrs = "equation=\"ij-ji\"", .error = "'-' alone"},
    {.name = "goes_on", .inputs = {"f32 5x2"}, .attrs = "equation=\"ij->ji,\"", .error = "goes on"},
    {.name = "too_long",
     .inputs = {"f32 5x2"},
     .attrs = "equation=\"abcdefghij\"",
     .error = "more letters"},
    {.name = "result_too_long",
     .inputs = {"f32 2x1x1x1x1x1", "f32 2x1x1x1x1x1"},
     .attrs = "equation=\"abcdef,ghijkl\"",
     .error = "more axes"},
    {.name = "too_many",
     .inputs = {"f32 1x1x1x1x1x1x1x1", "f32 1x1x1x1x1x1x1x1", "f32 1"},
     .attrs = "equation=\"abcdefgh,ijklmnop,q->a\"",
     .error = "17 axes"},
    {.name = "many_terms",
     .inputs = {"f32 1"},
     .attrs = "equation=\",,,,,,,,,,,,,,,,,\"",
     .error = "more than 16 terms"},
    {.name = "too_large",
     .inputs = {"i8 9000x1", "i8 9000x1", "i8 9000x1"},
     .attrs = "equation=\"ia,ja,ka->ijk\"",
     .error = "too large"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Einsum", product_cases, reference),
    OM_OP_SUITE("Einsum", joined_cases, reference),
    {.op_type = "Einsum",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .declined = "no kernel for"},
};

OM_OP_TESTS(suites)
