/* The tensor kernels on the host: what stands in for a device in tests. */
#ifndef GPU_STUB_TENSOR_EMULATION_H
#define GPU_STUB_TENSOR_EMULATION_H

/* Like kernel_emulate(): the address of each argument; -1: there is no such kernel. Without groups
 * nothing is done. */
int tensor_emulate(const char *name, unsigned groups, void **parameters);

#endif
