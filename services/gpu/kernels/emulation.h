/* The shared kernels on the host, one work-item after the other: what stands in for a device in
   tests. */
#ifndef GPU_KERNELS_EMULATION_H
#define GPU_KERNELS_EMULATION_H

/* Parameters as cuLaunchKernel takes them: the address of each argument; a memory argument is an
   address of this process. −1: there is no such kernel. */
int kernel_emulate(const char *name, unsigned groups, unsigned group_size, void **parameters);

/* The number of the multiprocessor that all groups run on. */
extern unsigned kernel_emulated_multiprocessor;
/* The steps in which the clock of nanoseconds goes; 0: its finest. */
extern unsigned kernel_emulated_grain_ns;

#endif
