#include "element.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A binary floating-point format; its bits are the upper ones of `bytes`. */
struct format {
    unsigned bytes, exponent_bits, fraction_bits;
};

static struct format format_of(enum element_type type)
{
    switch (type) {
    case ELEMENT_FP16:
        return (struct format){2, 5, 10};
    case ELEMENT_BF16:
        return (struct format){2, 8, 7};
    case ELEMENT_TF32:
        return (struct format){4, 8, 10};
    case ELEMENT_FP8:
        return (struct format){1, 4, 3};
    case ELEMENT_INT8:
        return (struct format){1, 0, 0};
    case ELEMENT_FP32:
        return (struct format){4, 8, 23};
    case ELEMENT_FP64:
        return (struct format){8, 11, 52};
    }
    return (struct format){0, 0, 0};
}

static unsigned unused_bits(struct format format)
{
    return 8 * format.bytes - 1 - format.exponent_bits - format.fraction_bits;
}

unsigned element_bytes(enum element_type type)
{
    return format_of(type).bytes;
}

double element_decode(enum element_type type, const void *element)
{
    if (type == ELEMENT_INT8)
        return *(const int8_t *)element;
    if (type == ELEMENT_FP64) {
        double number;
        memcpy(&number, element, sizeof number);
        return number;
    }
    struct format format = format_of(type);
    uint32_t bits = 0;
    memcpy(&bits, element, format.bytes);
    bits >>= unused_bits(format);
    uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
    uint32_t exponent = bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1);
    int bias = (1 << (format.exponent_bits - 1)) - 1 + (int)format.fraction_bits;
    double size = exponent ? ldexp(fraction | 1u << format.fraction_bits, (int)exponent - bias)
                           : ldexp(fraction, 1 - bias);
    if (type != ELEMENT_FP8 && exponent == (1u << format.exponent_bits) - 1)
        size = fraction ? NAN : INFINITY;
    if (type == ELEMENT_FP8 && (bits & 0x7f) == 0x7f)
        size = NAN; /* e4m3 has no infinity and one pattern of NaN */
    return bits >> (format.exponent_bits + format.fraction_bits) ? -size : size;
}

void element_encode(enum element_type type, void *element, double number)
{
    if (type == ELEMENT_INT8) {
        assert(fabs(number) <= 127);
        *(int8_t *)element = (int8_t)nearbyint(number);
        return;
    }
    if (type == ELEMENT_FP64) {
        memcpy(element, &number, sizeof number);
        return;
    }
    struct format format = format_of(type);
    int least = 2 - (1 << (format.exponent_bits - 1)); /* of the normal numbers */
    int exponent = number == 0 ? least : ilogb(number);
    if (exponent < least)
        exponent = least;
    uint32_t rounded =
        (uint32_t)nearbyint(ldexp(fabs(number), (int)format.fraction_bits - exponent));
    /* The leading bit of a normal number adds one to the exponent's field, and so does a fraction
     * that is rounded up to the next power of two. */
    uint32_t bits = rounded + ((uint32_t)(exponent - least) << format.fraction_bits);
    assert(bits >> (format.exponent_bits + format.fraction_bits) == 0);
    if (signbit(number))
        bits |= 1u << (format.exponent_bits + format.fraction_bits);
    bits <<= unused_bits(format);
    memcpy(element, &bits, format.bytes);
}
