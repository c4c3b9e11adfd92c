/* Whether the host's end of a transfer is on the NUMA node that the device hangs at. */
#ifndef GPU_BENCH_NEARNESS_H
#define GPU_BENCH_NEARNESS_H

#include "gpu.h"

/* On the thread that copies: the facts device_numa_node and host_numa_node, and a warning where they
 * differ. Nothing where the kernel does not know. */
void nearness_report(struct gpu_job *job);
/* The node of the device at this PCI address; -1: the kernel does not know it, or has but one. `sys` is
 * "/sys" outside tests. */
int nearness_node(const char *sys, const char *pci);

#endif
