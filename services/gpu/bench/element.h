/* Numbers in the formats that matrix units take. */
#ifndef GPU_BENCH_ELEMENT_H
#define GPU_BENCH_ELEMENT_H

enum element_type {
    ELEMENT_FP16,
    ELEMENT_BF16,
    ELEMENT_TF32, /* in four bytes; the lowest 13 bits are zero */
    ELEMENT_FP8,  /* e4m3 */
    ELEMENT_INT8,
    ELEMENT_FP32,
    ELEMENT_FP64,
};

unsigned element_bytes(enum element_type type);
/* An element as a number. */
double element_decode(enum element_type type, const void *element);
/* A number as the nearest element, ties to even. It must not be beyond the largest. */
void element_encode(enum element_type type, void *element, double number);

#endif
