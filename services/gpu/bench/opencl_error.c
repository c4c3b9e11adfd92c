#include "opencl_error.h"

#include "failure.h"
#include "opencl_gpu.h"

#include <stdlib.h>

struct meaning {
    enum opencl_stage stage;
    cl_int error; /* CL_SUCCESS: all others of this stage */
    int exit_code;
    const char *text; /* what it means, and the remedy */
};

static const char MEMORY_TAKEN[] = "the device's memory is too small or taken by others: use a "
                                   "smaller --size-bytes, or stop what else uses it";
static const char HOST_TAKEN[] = "the host does not have enough memory for it: use a smaller "
                                 "--size-bytes, or stop what else uses its memory";
static const char LOST[] = "the device was lost or taken away in mid-run: check the kernel's log "
                           "(dmesg), and list the devices again";
static const char BROKE_OFF[] =
    "the device broke off what it was doing, after a fault, a time limit of the driver or for want "
    "of memory: check the kernel's log (dmesg)";

/* Nvidia's and AMD's drivers report a lack of memory as CL_OUT_OF_RESOURCES too, and at any later
 * use of a buffer; behind a queue it is what a fault of the device looks like. */
static const struct meaning meanings[] = {
    {STAGE_OPEN, CL_DEVICE_NOT_AVAILABLE, EXIT_RESOURCE,
     "another process has the device for itself, or it was lost: wait for that one to end, check "
     "the kernel's log (dmesg)"},
    {STAGE_OPEN, CL_OUT_OF_RESOURCES, EXIT_RESOURCE,
     "the device is taken by others: stop what else uses it"},
    {STAGE_OPEN, CL_MEM_OBJECT_ALLOCATION_FAILURE, EXIT_RESOURCE, MEMORY_TAKEN},
    {STAGE_OPEN, CL_OUT_OF_HOST_MEMORY, EXIT_RESOURCE, HOST_TAKEN},
    {STAGE_OPEN, CL_INVALID_QUEUE_PROPERTIES, EXIT_UNSUPPORTED,
     "the driver cannot time what the device does: install a newer one"},
    {STAGE_OPEN, CL_SUCCESS, EXIT_FAILED,
     "the driver cannot use the device: try it with clinfo, install the driver anew"},
    {STAGE_MEMORY, CL_OUT_OF_RESOURCES, EXIT_RESOURCE, MEMORY_TAKEN},
    {STAGE_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE, EXIT_RESOURCE, MEMORY_TAKEN},
    {STAGE_MEMORY, CL_INVALID_BUFFER_SIZE, EXIT_RESOURCE, MEMORY_TAKEN},
    {STAGE_MEMORY, CL_OUT_OF_HOST_MEMORY, EXIT_RESOURCE, HOST_TAKEN},
    {STAGE_MEMORY, CL_MAP_FAILURE, EXIT_RESOURCE,
     "the driver cannot pin so much of the host's memory: use a smaller --size-bytes, or "
     "--host-memory pageable"},
    {STAGE_MEMORY, CL_DEVICE_NOT_AVAILABLE, EXIT_FAILED, LOST},
    {STAGE_BUILD, CL_COMPILER_NOT_AVAILABLE, EXIT_UNSUPPORTED,
     "this driver has no compiler, which OpenCL kernels need: install the driver's compiler"},
    {STAGE_BUILD, CL_OUT_OF_HOST_MEMORY, EXIT_RESOURCE, HOST_TAKEN},
    {STAGE_BUILD, CL_OUT_OF_RESOURCES, EXIT_RESOURCE,
     "the driver lacks memory for its compiler: stop what else uses the device"},
    {STAGE_BUILD, CL_DEVICE_NOT_AVAILABLE, EXIT_FAILED, LOST},
    {STAGE_BUILD, CL_SUCCESS, EXIT_FAILED,
     "the driver cannot compile the kernel: install a newer driver"},
    {STAGE_WORK, CL_OUT_OF_RESOURCES, EXIT_FAILED, BROKE_OFF},
    {STAGE_WORK, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, EXIT_FAILED, BROKE_OFF},
    {STAGE_WORK, CL_MEM_OBJECT_ALLOCATION_FAILURE, EXIT_RESOURCE, MEMORY_TAKEN},
    {STAGE_WORK, CL_OUT_OF_HOST_MEMORY, EXIT_RESOURCE, HOST_TAKEN},
    {STAGE_WORK, CL_DEVICE_NOT_AVAILABLE, EXIT_FAILED, LOST},
    {STAGE_WORK, CL_INVALID_WORK_GROUP_SIZE, EXIT_UNSUPPORTED,
     "the device cannot run groups of this size: choose another device"},
    {STAGE_WORK, CL_PROFILING_INFO_NOT_AVAILABLE, EXIT_FAILED,
     "the driver does not report when the device was at work: install a newer one"},
};

static const struct meaning other = {STAGE_WORK, CL_SUCCESS, EXIT_FAILED,
                                     "the driver refused it or the device failed: check the "
                                     "kernel's log (dmesg), install a newer driver"};

static const struct meaning *meaning_of(enum opencl_stage stage, cl_int error)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].stage == stage &&
            (meanings[i].error == error || meanings[i].error == CL_SUCCESS))
            return &meanings[i];
    return &other;
}

int opencl_fail(struct gpu *gpu, enum opencl_stage stage, const char *call, cl_int error)
{
    const struct meaning *meaning = meaning_of(stage, error);
    if (stage == STAGE_WORK)
        opencl_of(gpu)->abandoned = true;
    return gpu_fail(gpu, meaning->exit_code, call, error, opencl_error_name(error), "%s",
                    meaning->text);
}

void *opencl_object(struct gpu *gpu, size_t size)
{
    void *object = calloc(1, size);
    if (!object)
        run_reason(gpu->run,
                   "the host does not have enough memory for %zu bytes: stop what else uses it",
                   size);
    return object;
}
