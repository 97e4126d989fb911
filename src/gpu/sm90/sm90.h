/* Hopper's own instructions (compute capability 9.0, target sm_90a), as inline functions for
 * kernels in C that clang turns into PTX.
 *
 * A warpgroup is four warps whose first is a multiple of four; all of it calls what begins with
 * wgmma. Shared memory is named by 32-bit addresses in its own window (shared_address).
 *
 * Operands of wgmma in shared memory are blocks of 64 halves (128 bytes, "a row") by 8 rows, 1024
 * bytes each and aligned so: piece p (16 bytes) of row r lies at place p ^ (r & 7), which is what
 * the 128-byte swizzle means. Rows run along m for a and along n for b; the halves along k. Blocks
 * lie behind each other, at a distance that the descriptor names. The next 16 terms of k are 32
 * bytes further, 2 in the descriptor.
 *
 * Sums of m64nNk16: thread t of the warpgroup holds of row t / 32 * 16 + t % 32 / 4 the columns
 * 8 j + t % 4 * 2 and the one beside it in sums[4 j] and [4 j + 1], and of 8 rows below the same in
 * [4 j + 2] and [4 j + 3]. A as registers: four words of two halves: rows as above, k = t % 4 * 2
 * (+1) in words 0 (row) and 1 (row + 8), 8 further in words 2 and 3.
 */
#ifndef SM90_H
#define SM90_H

#include <stdbool.h>
#include <stdint.h>

#define SM90_KERNEL __attribute__((nvptx_kernel))
#define SM90_INLINE static inline __attribute__((always_inline, unused))
#define SM90_UNROLL _Pragma("clang loop unroll(full)")
#define SM90_LOOP   _Pragma("clang loop unroll(disable)")

typedef _Float16 half;
/* 16 bytes, aligned: a load or store of one is one instruction, which it is not of a struct. */
typedef uint32_t word4 __attribute__((ext_vector_type(4)));

/* The workgroup's dynamic shared memory; its size is the launch's. */
extern __attribute__((address_space(3), aligned(1024))) char sm90_shared[];

/* ---- Places ---- */

SM90_INLINE uint32_t thread_index(void) {
  return __nvvm_read_ptx_sreg_tid_x();
}

/* The workgroup's number in a grid that om_gpu_spread_groups made. */
SM90_INLINE uint32_t group_index(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() +
         __nvvm_read_ptx_sreg_nctaid_x() *
             (__nvvm_read_ptx_sreg_ctaid_y() +
              __nvvm_read_ptx_sreg_nctaid_y() * __nvvm_read_ptx_sreg_ctaid_z());
}

/* How many workgroups there are in it. */
SM90_INLINE uint32_t group_count(void) {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_nctaid_y() *
         __nvvm_read_ptx_sreg_nctaid_z();
}

/* The warp's number, the same in all its threads for the compiler, too. */
SM90_INLINE uint32_t warp_index(void) {
  return __nvvm_shfl_sync_idx_i32(0xffffffffu, thread_index() / 32, 0, 31);
}

SM90_INLINE uint32_t shared_address(uint32_t offset_bytes) {
  return (uint32_t)(uintptr_t)(__attribute__((address_space(3))) void *)sm90_shared + offset_bytes;
}

/* 16 bytes of global memory, aligned. A plain load of them is split by clang where the words go
 * ways of their own. */
SM90_INLINE word4 global_load4(const void *from) {
  uint32_t w[4];
  __asm__ volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "l"(from));
  return (word4){w[0], w[1], w[2], w[3]};
}

/* ---- Barriers ---- */

SM90_INLINE void barrier_all(void) {
  __nvvm_bar_sync(0);
}

/* Barrier `id` (1 to 15) of `threads` threads. */
SM90_INLINE void barrier_some(uint32_t id, uint32_t threads) {
  __asm__ volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Counts this thread at such a barrier, and does not wait there. */
SM90_INLINE void barrier_arrive(uint32_t id, uint32_t threads) {
  __asm__ volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

SM90_INLINE void warp_sync(void) {
  __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* An mbarrier: 8 bytes of shared memory; its phase ends when `count` have arrived and all bytes
 * that were expected are there. */
SM90_INLINE void mbarrier_init(uint32_t at, uint32_t count) {
  __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

/* Behind all mbarrier_init, before the barrier that shows them to others. */
SM90_INLINE void mbarrier_fence(void) {
  __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

SM90_INLINE void mbarrier_arrive(uint32_t at) {
  __asm__ volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

/* Arrives, and says how many bytes bulk copies bring in this phase. */
SM90_INLINE void mbarrier_expect(uint32_t at, uint32_t bytes) {
  __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                   : "memory");
}

/* Waits for the end of the phase with this parity: 0 first, then 1, 0, ... */
SM90_INLINE void mbarrier_wait(uint32_t at, uint32_t parity) {
  uint32_t is_done;
  do {
    __asm__ volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(is_done)
        : "r"(at), "r"(parity)
        : "memory");
  } while (!is_done);
}

/* ---- Turns ---- */

/* What a kernel with `turns=1` in its head has at the end of its parameter (om_hal_turn). It may be
 * launched while the launches before it still run. Until turn_wait is behind it, it reads nothing
 * but constants, and writes nothing. */
typedef struct sm90_turn {
  uint64_t awaited, own;
  uint32_t awaited_count, unused;
} sm90_turn;

enum { SM90_MOST_POLLS = 1 << 24 }; /* ten seconds; a submission takes milliseconds */

/* By one thread, which then sees, by whatever kind of load or copy, all that the launches before
 * have written: what reads the counter empties the core's first-level cache. A barrier or mbarrier
 * shows it to the others. */
SM90_INLINE void turn_wait(const sm90_turn *turn) {
  uint32_t polls = 0;
  uint32_t count;
  if (turn->awaited == 0) return;
  do {
    __asm__ volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(count)
                     : "l"(turn->awaited)
                     : "memory");
    if (++polls == SM90_MOST_POLLS) __asm__ volatile("trap;");
  } while (count < turn->awaited_count);
  /* Of global memory alone: the fence of all kinds waits half a microsecond for what is under way.
   */
  __asm__ volatile("fence.proxy.async.global;" ::: "memory");
}

/* By one thread, when a barrier has shown it all that its workgroup stored. */
SM90_INLINE void turn_give(const sm90_turn *turn) {
  if (turn->own == 0) return;
  __asm__ volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn->own) : "memory");
}

/* By the whole workgroup, behind its last store, once. */
SM90_INLINE void turn_end(const sm90_turn *turn) {
  if (turn->own == 0) return;
  barrier_all();
  if (thread_index() == 0) turn_give(turn);
}

/* ---- Copies from memory to shared memory ---- */

/* 16 bytes, both aligned; of the source only `bytes` (0 to 16), zeros behind them. */
SM90_INLINE void copy16(uint32_t target, const void *source, uint32_t bytes) {
  __asm__ volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes)
      : "memory");
}

/* 4 bytes, by way of the core's first cache, which then has what lies around them. */
SM90_INLINE void copy4(uint32_t target, const void *source) {
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(source)
                   : "memory");
}

/* This thread arrives at the mbarrier when its copies so far have; its count has one for it. */
SM90_INLINE void copies_arrive(uint32_t mbarrier) {
  __asm__ volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbarrier)
                   : "memory");
}

SM90_INLINE void copies_commit(void) {
  __asm__ volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` of this thread's groups are under way. */
#define copies_wait(pending) __asm__ volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

/* One thread brings `bytes` (of 16, both ends aligned); they arrive at the mbarrier. */
SM90_INLINE void bulk_copy(uint32_t target, const void *source, uint32_t bytes, uint32_t mbarrier) {
  __asm__ volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target),
      "l"(source),
      "r"(bytes),
      "r"(mbarrier)
      : "memory");
}

/* What other copies and stores have put into shared memory, wgmma may read behind this. */
SM90_INLINE void shared_fence(void) {
  __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- Shared memory by its addresses ---- */

SM90_INLINE void shared_store1(uint32_t at, uint32_t word) {
  __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
}

SM90_INLINE uint32_t shared_load1(uint32_t at) {
  uint32_t word;
  __asm__ volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
  return word;
}

SM90_INLINE void shared_store2(uint32_t at, float a, float b) {
  __asm__ volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}

SM90_INLINE void shared_load4(uint32_t at, float out[4]) {
  __asm__ volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
                   : "r"(at)
                   : "memory");
}

/* ---- Conversions ---- */

/* Two halves in a word, the first in the low bits. */
SM90_INLINE uint32_t pack_halves(float low, float high) {
  uint32_t word;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

SM90_INLINE void unpack_halves(uint32_t word, float *low, float *high) {
  __asm__(
      "{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %2;\n\tcvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, h;\n\t}"
      : "=f"(*low), "=f"(*high)
      : "r"(word));
}

/* ---- Registers ---- */

/* A warpgroup's share of the registers from here on, a multiple of 8; all its warps call it. The
 * shares add up to at most what the workgroup was given. */
#define registers_take(count)  __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count))
#define registers_leave(count) __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count))

/* ---- wgmma ---- */

/* The descriptor of an operand at this shared address; `block_stride`: bytes from block to block
 * (8 rows further). */
SM90_INLINE uint64_t wgmma_operand(uint32_t at, uint32_t block_stride) {
  return (uint64_t)((at & 0x3ffffu) >> 4) | (uint64_t)1 << 16 |
         (uint64_t)(block_stride >> 4) << 32 | (uint64_t)1 << 62;
}

/* Before the first wgmma, and where registers that one reads or sums into were written. */
SM90_INLINE void wgmma_fence(void) {
  __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

SM90_INLINE void wgmma_commit(void) {
  __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most `pending` groups are under way. */
#define wgmma_wait(pending) \
  __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")

#define SM90_SUMS4(d)  "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])
#define SM90_SUMS16(d) SM90_SUMS4(d), SM90_SUMS4((d) + 4), SM90_SUMS4((d) + 8), SM90_SUMS4((d) + 12)
#define SM90_SUMS32(d) SM90_SUMS16(d), SM90_SUMS16((d) + 16)
#define SM90_SUMS48(d) SM90_SUMS32(d), SM90_SUMS16((d) + 32)
#define SM90_SUMS64(d) SM90_SUMS32(d), SM90_SUMS32((d) + 32)
#define SM90_SUMS80(d) SM90_SUMS64(d), SM90_SUMS16((d) + 64)
#define SM90_SUMS96(d) SM90_SUMS64(d), SM90_SUMS32((d) + 64)
#define SM90_LIST16    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define SM90_LIST32                                        \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define SM90_LIST64                                                  \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define SM90_LIST48                                                  \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define SM90_LIST96                                                  \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
  "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define SM90_LIST80                                                  \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"

/* sums[N / 2] += a[64, 16] * b[16, N]: wgmma_<N> with a in shared memory, wgmma_<N>_registers. */
#define SM90_WGMMA(N, COUNT)                                                                      \
  SM90_INLINE void wgmma_##N(float sums[COUNT], uint64_t a, uint64_t b) {                         \
    __asm__ volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" SM90_LIST##COUNT  \
                     "}, %[a], %[b], 1, 1, 1, 0, 0;"                                              \
                     : SM90_SUMS##COUNT(sums)                                                     \
                     : [a] "l"(a), [b] "l"(b)                                                     \
                     : "memory");                                                                 \
  }                                                                                               \
  SM90_INLINE void wgmma_##N##_registers(float sums[COUNT], const uint32_t a[4], uint64_t b) {    \
    __asm__ volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" SM90_LIST##COUNT  \
                     "}, {%[a0], %[a1], %[a2], %[a3]}, %[b], 1, 1, 1, 0;"                         \
                     : SM90_SUMS##COUNT(sums)                                                     \
                     : [a0] "r"(a[0]), [a1] "r"(a[1]), [a2] "r"(a[2]), [a3] "r"(a[3]), [b] "l"(b) \
                     : "memory");                                                                 \
  }
SM90_WGMMA(32, 16)
SM90_WGMMA(64, 32)
SM90_WGMMA(96, 48)
SM90_WGMMA(128, 64)
SM90_WGMMA(160, 80)
SM90_WGMMA(192, 96)

#endif
