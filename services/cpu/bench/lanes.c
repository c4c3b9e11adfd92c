#include "lanes.h"

#include <assert.h>
#include <string.h>

enum { FP16_EXACT = 1 << 11, FP32_EXACT = 1 << 24 };

#define DEFINE_INTEGER(name, type)                                                                 \
    static void put_##name(void *lanes, unsigned index, double value)                              \
    {                                                                                              \
        ((type *)lanes)[index] = (type)(int64_t)value;                                             \
    }                                                                                              \
    static void sequence_##name(void *lanes, unsigned count, uint64_t multiplier, uint64_t addend) \
    {                                                                                              \
        uint64_t value = addend;                                                                   \
        for (unsigned i = 0; i < count; i++)                                                       \
            ((type *)lanes)[i] = (type)(value += multiplier);                                      \
    }

#define DEFINE_FLOAT(name, type)                                                                   \
    static void put_##name(void *lanes, unsigned index, double value)                              \
    {                                                                                              \
        ((type *)lanes)[index] = (type)value;                                                      \
    }                                                                                              \
    static void sequence_##name(void *lanes, unsigned count, uint64_t multiplier, uint64_t addend) \
    {                                                                                              \
        assert(multiplier == 1);                                                                   \
        (void)multiplier;                                                                          \
        for (unsigned i = 0; i < count; i++)                                                       \
            ((type *)lanes)[i] = (type)(int64_t)(addend + i + 1);                                  \
    }

DEFINE_INTEGER(int8, uint8_t)
DEFINE_INTEGER(int16, uint16_t)
DEFINE_INTEGER(int32, uint32_t)
DEFINE_INTEGER(int64, uint64_t)
DEFINE_FLOAT(fp32, float)
DEFINE_FLOAT(fp64, double)

/* The upper half of a float; exact for the small numbers it is used for. */
static void put_bf16(void *lanes, unsigned index, double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    ((uint16_t *)lanes)[index] = (uint16_t)(bits >> 16);
}

/* IEEE 754 binary16, of values that it holds exactly and that are no denormals. */
static uint16_t fp16_of(double value)
{
    float exact = (float)value;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if (!(bits & 0x7fffffff))
        return 0;
    uint32_t exponent = ((bits >> 23) & 0xff) - 127 + 15;
    return (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

static void put_fp16(void *lanes, unsigned index, double value)
{
    ((uint16_t *)lanes)[index] = fp16_of(value);
}

/* Copied from a table: passes are short, since fp16 is exact for so few numbers. */
static void sequence_fp16(void *lanes, unsigned count, uint64_t multiplier, uint64_t addend)
{
    static _Thread_local uint16_t table[FP16_EXACT + 1];
    assert(multiplier == 1 && addend + count <= FP16_EXACT);
    (void)multiplier;
    for (unsigned i = table[1] ? FP16_EXACT + 1 : 1; i <= FP16_EXACT; i++)
        table[i] = fp16_of(i);
    memcpy(lanes, table + addend + 1, count * sizeof *table);
}

static const struct lane_type types[] = {
    {"int8", 1, 0, put_int8, sequence_int8},
    {"int16", 2, 0, put_int16, sequence_int16},
    {"int32", 4, 0, put_int32, sequence_int32},
    {"int64", 8, 0, put_int64, sequence_int64},
    {"bf16", 2, 0, put_bf16, NULL},
    {"fp16", 2, FP16_EXACT, put_fp16, sequence_fp16},
    {"fp32", 4, FP32_EXACT, put_fp32, sequence_fp32},
    {"fp64", 8, 1ull << 53, put_fp64, sequence_fp64},
};

const struct lane_type *lane_type(const char *name)
{
    const struct lane_type *type = types;
    while (strcmp(type->name, name))
        type++;
    return type;
}
