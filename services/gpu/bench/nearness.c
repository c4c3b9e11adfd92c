#define _GNU_SOURCE
#include "nearness.h"

#include "textfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Addresses are in small letters there. */
int nearness_node(const char *sys, const char *pci)
{
    char path[256], text[32];
    int length = snprintf(path, sizeof path, "%s/bus/pci/devices/", sys);
    if (!pci[0] || length + strlen(pci) + sizeof "/numa_node" > sizeof path)
        return -1;
    for (; *pci; pci++)
        path[length++] = (char)tolower((unsigned char)*pci);
    strcpy(path + length, "/numa_node");
    return textfile_read(path, text, sizeof text) ? atoi(text) : -1;
}

void nearness_report(struct gpu_job *job)
{
    unsigned cpu, host;
    char text[16];
    int device = nearness_node("/sys", job->gpu.device.pci);
    if (device < 0 || syscall(SYS_getcpu, &cpu, &host, NULL)) /* getcpu(): since glibc 2.29 */
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
