/* AMX: tiles of 16 rows of 64 bytes. Four accumulators are the latency of a tile instruction over
 * its throughput (52 cycles, 16 cycles). Tile 4 and 5 hold constants 0 and 1, tile 6 constant 2. */
#ifndef CPU_BENCH_TILES_H
#define CPU_BENCH_TILES_H

#include "loops.h"

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */

#define TILE_LOAD(a) "tileloadd 1024*" a "(%[state],%[stride],1), %%tmm" a "\n\t"
#define TILE_STORE(a) "tilestored %%tmm" a ", 1024*" a "(%[state],%[stride],1)\n\t"
#define TILES_4(M) M("0") M("1") M("2") M("3")
#define DO_TILE(a, op, k) op " %%tmm" k ", %%tmm6, %%tmm" a "\n\t"
/* TDPFP16PS of tile 6 and tile k, which older assemblers do not know: VEX.128.F2.0F38.W0 5C. */
#define DO_TILE_FP16(a, op, k) ".byte 0xc4, 0xe2, 0x7b - 8*" k ", 0x5c, 0xc6 + 8*" a "\n\t"

#define TILES(name, M, op)                                                                         \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("ldtilecfg %[config]\n\t"                                                 \
                         TILES_4(TILE_LOAD)                                                        \
                         "tileloadd (%[constants],%[stride],1), %%tmm4\n\t"                        \
                         "tileloadd 1024(%[constants],%[stride],1), %%tmm5\n\t"                    \
                         "tileloadd 2048(%[constants],%[stride],1), %%tmm6\n\t"                    \
                         LOOP_BEGIN                                                                \
                         TIMES_8(EACH_4(M, op, "4") EACH_4(M, op, "5"))                            \
                         LOOP_END                                                                  \
                         TILES_4(TILE_STORE)                                                       \
                         "tilerelease\n\t"                                                         \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants), [stride] "r"(64ul),     \
                           [config] "m"(tile_config)                                               \
                         : "cc", "memory");                                                        \
    }                                                                                              \
    static void name##_chain(uint64_t iterations)                                                  \
    {                                                                                              \
        uint64_t x = 0;                                                                            \
        __asm__ volatile("ldtilecfg %[config]\n\t"                                                 \
                         LOOP_BEGIN                                                                \
                         ADD_16 ADD_16 ADD_16 ADD_16 ADD_16 M("0", op, "4")                        \
                         LOOP_END                                                                  \
                         "tilerelease\n\t"                                                         \
                         : [n] "+&r"(iterations), [x] "+&r"(x)                                     \
                         : [y] "r"((uint64_t)3), [config] "m"(tile_config)                         \
                         : "cc");                                                                  \
    }
/* clang-format on */

/* The operand of LDTILECFG: palette 1, all tiles of full size. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config __attribute__((aligned(64))) = {
    .palette = 1,
    .bytes_per_row = {64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16},
};

#endif
