/* Kernels that take turns: launches of all sizes, each of which reads what other workgroups of the
 * launch before wrote, are ordered as a barrier orders them, and beside what takes no turns.
 *
 * On the device they wait for each other, which only ends if workgroups are handed out in the order
 * of the launches (om_vk_turns.h): hence many launches of more workgroups than fit at once, with
 * all amounts of shared memory. Run two of these programs at once to see them share a device. */
#include "om_hal_fixture.h"

enum { THREADS = 128, MOST_GROUPS = 700, MOST_LAUNCHES = 200 };

typedef struct pass_params {
  uint32_t in_groups; /* of what is read */
  float scalar;
} pass_params;

/* y[g][t] = x[(7 g + 37) % in_groups][t ^ 64] + scalar */
static const char pass_text[] =
    ".version 8.3\n"
    ".target sm_90a\n"
    ".address_size 64\n"
    ".visible .entry pass(.param .align 8 .b8 args[48])\n"
    ".reqntid 128, 1, 1\n"
    "{\n"
    ".reg .pred %p<5>;\n"
    ".reg .b32 %r<14>;\n"
    ".reg .f32 %f<4>;\n"
    ".reg .b64 %d<10>;\n"
    "mov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, %ctaid.x;\n"
    /* One thread waits. */
    "ld.param.u64 %d1, [args+24];\n"
    "setp.eq.u64 %p1, %d1, 0;\n"
    "setp.ne.or.u32 %p1, %r1, 0, %p1;\n"
    "@%p1 bra READY;\n"
    "ld.param.u32 %r3, [args+40];\n"
    "mov.u32 %r4, 0;\n"
    "WAIT:\n"
    "add.u32 %r4, %r4, 1;\n"
    "setp.gt.u32 %p2, %r4, 4000000;\n" /* seconds */
    "@%p2 trap;\n"
    "ld.acquire.gpu.global.u32 %r5, [%d1];\n"
    "setp.lt.u32 %p3, %r5, %r3;\n"
    "@%p3 bra WAIT;\n"
    "READY:\n"
    "bar.sync 0;\n"
    "ld.param.u64 %d2, [args];\n"
    "ld.param.u64 %d3, [args+8];\n"
    "ld.param.u32 %r6, [args+16];\n"
    "ld.param.f32 %f1, [args+20];\n"
    "mad.lo.u32 %r7, %r2, 7, 37;\n"
    "rem.u32 %r7, %r7, %r6;\n"
    "xor.b32 %r8, %r1, 64;\n"
    "mad.lo.u32 %r9, %r7, 128, %r8;\n"
    "mul.wide.u32 %d4, %r9, 4;\n"
    "add.u64 %d4, %d2, %d4;\n"
    "ld.global.f32 %f2, [%d4];\n"
    "add.f32 %f3, %f2, %f1;\n"
    "mad.lo.u32 %r10, %r2, 128, %r1;\n"
    "mul.wide.u32 %d5, %r10, 4;\n"
    "add.u64 %d5, %d3, %d5;\n"
    "st.global.f32 [%d5], %f3;\n"
    /* One thread says that the workgroup is done. */
    "ld.param.u64 %d6, [args+32];\n"
    "setp.eq.u64 %p4, %d6, 0;\n"
    "@%p4 bra DONE;\n"
    "bar.sync 0;\n"
    "setp.ne.u32 %p4, %r1, 0;\n"
    "@%p4 bra DONE;\n"
    "red.release.gpu.global.add.u32 [%d6], 1;\n"
    "DONE:\n"
    "ret;\n"
    "}\n";

/* One text, of which kernels differ in what they ask of a core. */
#define PASS(shared, at_once)           \
  {.name = "pass",                      \
   .code_kind = OM_HAL_PTX,             \
   .code = pass_text,                   \
   .code_bytes = sizeof pass_text - 1,  \
   .binding_count = 2,                  \
   .write_mask = 2,                     \
   .params_bytes = sizeof(pass_params), \
   .workgroup_size = {THREADS, 1, 1},   \
   .shared_bytes = (shared),            \
   .takes_turns = true,                 \
   .per_core = (at_once)}
static const om_hal_shader shaders[] = {
    PASS(0, 1),
    PASS(0, 8),
    PASS(40000, 2),
    PASS(65536, 1),
    PASS(200000, 1),
    PASS(OM_HAL_SM90_SHARED_BYTES, 1),
};

typedef struct pass_rig {
  om_hal_kernel *kernels[OM_COUNT_OF(shaders)];
  om_hal_kernel *spirv;
  om_hal_buffer *sides[2];
  uint32_t seed;
} pass_rig;

static uint32_t draw(pass_rig *rig, uint32_t below) {
  rig->seed = rig->seed * 1664525U + 1013904223U;
  return (rig->seed >> 8) % below;
}

static bool has_sm90(void) {
  return hf.target.hal->features(hf.device)->sm90;
}

static void make_rig(pass_rig *rig) {
  om_hal_kernel_desc descs[OM_COUNT_OF(shaders)] = {{0}};
  for (size_t i = 0; i < OM_COUNT_OF(shaders); ++i) descs[i].shader = &shaders[i];
  *rig = (pass_rig){.seed = 7};
  HF_OK(
      hf.target.hal->kernels_create(&hf.ctx, hf.device, descs, OM_COUNT_OF(shaders), rig->kernels));
  rig->spirv = hf_kernel(HF_ADD_SCALAR);
  for (int i = 0; i < 2; ++i) rig->sides[i] = hf_ramp((size_t)MOST_GROUPS * THREADS, 0, 0);
}

static void free_rig(pass_rig *rig) {
  for (size_t i = 0; i < OM_COUNT_OF(shaders); ++i) hf_free_kernel(rig->kernels[i]);
  for (int i = 0; i < 2; ++i) hf_free(rig->sides[i]);
  hf_free_kernel(rig->spirv);
}

static void record_pass(pass_rig *rig,
                        om_hal_recording *recording,
                        om_hal_kernel *kernel,
                        uint32_t number,
                        uint32_t in_groups,
                        uint32_t groups) {
  const pass_params params = {in_groups, 1};
  const om_hal_dispatch dispatch = {
      .kernel = kernel,
      .bindings = {hf_bind(rig->sides[number % 2], 0, (uint64_t)in_groups * THREADS * 4),
                   hf_bind(rig->sides[(number + 1) % 2], 0, (uint64_t)groups * THREADS * 4)},
      .params = &params,
      .groups = {groups, 1, 1}};
  if (number > 0) hf_barrier(recording);
  HF_OK(hf.target.hal->record_dispatch(&hf.ctx, recording, &dispatch));
}

/* All elements of the last launch are `first` plus the number of launches. */
static void check_chain(pass_rig *rig, uint32_t count, uint32_t groups, float first) {
  hf_expect(rig->sides[count % 2], (size_t)groups * THREADS, first + (float)count, 0);
}

/* Chains of one size: as many workgroups as cores, fewer, and more than fit at once. */
static void chains_of_one_size(void **state) {
  static const uint32_t sizes[] = {1, 8, 132, 133, MOST_GROUPS};
  pass_rig rig;
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  make_rig(&rig);
  for (size_t k = 0; k < OM_COUNT_OF(shaders) * OM_COUNT_OF(sizes); ++k) {
    const uint32_t groups = sizes[k % OM_COUNT_OF(sizes)];
    om_hal_recording *recording = hf_begin(MOST_LAUNCHES, 0);
    for (uint32_t i = 0; i < MOST_LAUNCHES; ++i) {
      record_pass(&rig, recording, rig.kernels[k / OM_COUNT_OF(sizes)], i, groups, groups);
    }
    hf_end(recording);
    /* Submitted again, it finds its counters cleared. */
    for (int run = 1; run <= 3; ++run) {
      hf_run(recording);
      check_chain(&rig, MOST_LAUNCHES, groups, (float)((run - 1) * MOST_LAUNCHES));
    }
    hf_free_recording(recording);
    for (int i = 0; i < 2; ++i) hf_free(rig.sides[i]);
    for (int i = 0; i < 2; ++i) rig.sides[i] = hf_ramp((size_t)MOST_GROUPS * THREADS, 0, 0);
  }
  free_rig(&rig);
}

/* Random sizes and kernels, with kernels in SPIR-V and copies between them. */
static void chains_of_all_sizes(void **state) {
  enum { ROUNDS = 60 };
  static const uint32_t below[] = {8, 132, 300, MOST_GROUPS};
  static const float zeros[16 * THREADS];
  pass_rig rig;
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  make_rig(&rig);
  for (int round = 0; round < ROUNDS; ++round) {
    const uint32_t count = 2 + draw(&rig, MOST_LAUNCHES - 2);
    const uint32_t one_in = 2 + draw(&rig, 30); /* takes no turns */
    uint32_t before = 16;
    hf_upload(rig.sides[0], 0, zeros, sizeof zeros);
    om_hal_recording *recording = hf_begin(count, 0);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t groups = 1 + draw(&rig, below[draw(&rig, OM_COUNT_OF(below))]);
      if (draw(&rig, one_in) > 0) {
        record_pass(
            &rig, recording, rig.kernels[draw(&rig, OM_COUNT_OF(shaders))], i, before, groups);
      } else {
        const uint64_t bytes = (uint64_t)before * THREADS * 4;
        if (i > 0) hf_barrier(recording);
        hf_record_add(recording,
                      rig.spirv,
                      hf_bind(rig.sides[i % 2], 0, bytes),
                      hf_bind(rig.sides[(i + 1) % 2], 0, bytes),
                      1);
        groups = before;
      }
      before = groups;
    }
    hf_end(recording);
    hf_run(recording);
    check_chain(&rig, count, before, 0);
    hf_free_recording(recording);
  }
  free_rig(&rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(chains_of_one_size),
    cmocka_unit_test(chains_of_all_sizes),
};

HF_MAIN(tests, hf_setup, hf_teardown)
