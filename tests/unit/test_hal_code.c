/* Unpacking: every kernel of the build becomes a module of whole instructions again, or a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "gpu/hal/om_hal_code.h"
#include "om_shaders.h"
/* cmocka.h needs the above. */
#include <cmocka.h>

/* SPIR-V's opcodes of the first instruction and the last. */
enum { MAGIC = 0x07230203, OP_CAPABILITY = 17, OP_FUNCTION_END = 56 };

static void check_module(const uint32_t *words, size_t count) {
  uint32_t opcode = 0;
  size_t at = 5;
  assert_int_equal(words[0], MAGIC);
  assert_int_equal(words[at] & 0xffff, OP_CAPABILITY);
  while (at < count) {
    opcode = words[at] & 0xffff;
    assert_true(words[at] >> 16 > 0);
    at += words[at] >> 16;
  }
  assert_int_equal(at, count);
  assert_int_equal(opcode, OP_FUNCTION_END);
}

/* The text of the kernel's function, and no more. */
static void check_text(om_ctx *ctx, om_hal_unpacker *unpacker, const om_hal_shader *shader) {
  char head[128];
  char *text = NULL;
  if (!shader->block) return; /* a build without them */
  assert_int_equal(om_hal_code_unpack_text(ctx, unpacker, shader, &text), OM_OK);
  assert_int_equal(strlen(text), shader->code_bytes);
  assert_int_equal(strncmp(text, ".version", 8), 0);
  snprintf(head, sizeof head, ".entry %s(", shader->name);
  assert_non_null(strstr(text, head));
  assert_string_equal(text + shader->code_bytes - 2, "}\n");
  om_delete(ctx, text);
}

static void test_every_kernel_unpacks(void **state) {
  om_error error = {0};
  om_memory_use use = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .use = &use, .error = &error};
  om_hal_unpacker unpacker = {0};
  (void)state;
  for (int i = 0; i < OM_SHADER_COUNT; ++i) {
    const om_hal_shader *shader = om_shader_get((om_shader)i);
    uint32_t *words = NULL;
    assert_null(shader->code);
    if (shader->code_kind == OM_HAL_PTX) {
      check_text(&ctx, &unpacker, shader);
      continue;
    }
    assert_int_equal(om_hal_code_unpack(&ctx, &unpacker, shader, &words), OM_OK);
    check_module(words, shader->code_bytes / sizeof *words);
    om_delete(&ctx, words);
  }
  om_hal_unpacker_deinit(&ctx, &unpacker);
  assert_int_equal(use.live_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_kernel_unpacks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
