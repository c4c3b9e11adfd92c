/* What build.py compiled and the program carries: kernels/README.md lists them with their arguments.
 */
#ifndef GPU_KERNEL_SET_H
#define GPU_KERNEL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Work-items of a group in every vector and memory kernel. */
enum { KERNEL_GROUP_SIZE = 256 };

/* Bytes of one array that a group of a memory kernel works on: 8 accesses of 16 bytes a work-item. */
enum { KERNEL_TILE_BYTES = KERNEL_GROUP_SIZE * 8 * 16 };

/* Steps of pointer_chase are counted in units of so many. */
enum { KERNEL_CHASE_UNROLL = 64 };

struct kernel_image {
    const char *file; /* what it is called in messages: "sm_90.cubin", "compute_120.ptx" */
    int cc_major;     /* compute capability it was compiled for */
    int cc_minor;
    bool ptx;          /* the driver compiles it */
    bool one_only;     /* architecture-specific ("sm_90a"): that compute capability and no other */
    const void *bytes; /* PTX ends in a zero byte, which `size` counts */
    size_t size;
    const char *const *kernels; /* names, sorted, then NULL */
};

/* The image to load for a kernel on a device: that of its compute capability, else of an older minor
   of the same major, else PTX of at most its capability; among equals the one whose machine code is
   architecture-specific. NULL: none has this kernel for this device. */
const struct kernel_image *kernel_image(const char *kernel, int cc_major, int cc_minor);

/* The same without machine code: PTX alone. For a driver that refused the CUBIN. */
const struct kernel_image *kernel_ptx(const char *kernel, int cc_major, int cc_minor);

/* True where some image, of any architecture, has the kernel. */
bool kernel_exists(const char *kernel);

/* Source for OpenCL, all kernels; it is built with -D WANT_<kernel>, which compiles that one alone. */
const char *kernel_opencl_source(size_t *bytes);

/* What a kernel leaves of clocks in its record (CUDA; elsewhere the words stay zero): begin and end
   on one multiprocessor. The words of the begin are complemented, so that zeroed memory is a valid
   start for the maximum that several groups make. */
struct kernel_record {
    uint64_t not_cycles_begin;
    uint64_t not_ns_begin;
    uint64_t cycles_end;
    uint64_t ns_end;
};

/* Core clocks and nanoseconds between begin and end; false: nothing was recorded. */
static inline bool kernel_record_read(const struct kernel_record *record, uint64_t *cycles,
                                      uint64_t *ns)
{
    if (record->not_cycles_begin == 0 || record->ns_end == 0)
        return false;
    *cycles = record->cycles_end - ~record->not_cycles_begin;
    *ns = record->ns_end - ~record->not_ns_begin;
    return *ns != 0;
}

#endif
