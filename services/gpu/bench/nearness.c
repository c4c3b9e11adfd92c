#define _GNU_SOURCE
#include "nearness.h"

#include "textfile.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int device_node(const struct gpu_device *device)
{
    char path[128], pci[sizeof device->pci], text[32];
    size_t length = strlen(device->pci);
    for (size_t i = 0; i <= length; i++)
        pci[i] = (char)tolower((unsigned char)device->pci[i]);
    if (!length)
        return -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
    return textfile_read(path, text, sizeof text) ? atoi(text) : -1;
}

void nearness_tell(struct gpu_job *job)
{
    unsigned cpu, host;
    char text[16];
    int device = device_node(&job->gpu.device);
    if (device < 0 || getcpu(&cpu, &host))
        return;
    snprintf(text, sizeof text, "%d", device);
    run_fact(job->run, "device_numa_node", text);
    snprintf(text, sizeof text, "%u", host);
    run_fact(job->run, "host_numa_node", text);
    if ((unsigned)device == host)
        return;
    run_warning(job->run, "far_numa_node",
                "%s hangs at NUMA node %d, and the thread on CPU %u and its memory are at node %u: "
                "give --cpus of node %d for the nearer way",
                job->gpu.device.name, device, cpu, host, device);
}
