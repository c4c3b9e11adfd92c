/* Stands in for OpenCL's loader in tests: a libOpenCL.so.1 that hands every call on to the real one
 * and lets single ones fail. As these variables of the environment say:
 *
 * SHIM_REAL        the real loader, a path
 * SHIM_FAIL        "clCreateBuffer:2:-4": that call fails with this code from the second time on
 * SHIM_STATUS      "3:-5": from the third look on, commands have this status, an error
 * SHIM_HANG        a file: no command is done any more once it is there
 * SHIM_BUILD_LOG   what the compiler says
 * SHIM_TYPE        what the devices are: "4" a GPU, "8" an accelerator
 * SHIM_VENDOR      … and who made them
 * SHIM_BUS         the number of their bus, as NVIDIA's driver gives it
 * SHIM_UNAVAILABLE set: the devices are not available
 * SHIM_NO_COMPILER set: the devices have no compiler
 * SHIM_EXTENSIONS  what the devices can do beyond OpenCL 1.2
 * SHIM_ALLOCATION  the bytes of the largest buffer
 * SHIM_MEMORY      … and of all memory
 * SHIM_UNIFIED     whether that is the host's: "0" or "1"
 * SHIM_SECOND      set: there is a second platform of this name, with the same devices
 * SHIM_BALANCE     a file that takes a line for each kind of object: what was made and not released
 *                  when the process ended */
#define _GNU_SOURCE
#include "opencl_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_MAX = 64 };
enum { KINDS = 6, SUBMITTED = 2 };

static struct opencl_platform {
    int unused;
} second;
static struct opencl real;
static const char *const kinds[KINDS] = {"context", "queue",  "buffer",
                                         "program", "kernel", "event"};
static long balance[KINDS];

/* ---- what the environment says ----------------------------------------------------------------- */

/* The error of this call now; 0: it is handed on. */
static cl_int failure(const char *call)
{
    static struct {
        const char *call;
        int times;
    } counts[CALLS_MAX];
    const char *given = getenv("SHIM_FAIL");
    size_t length = strlen(call);
    int from = 0, error = 0, i = 0;
    if (!given || strncmp(given, call, length) != 0 || given[length] != ':' ||
        sscanf(given + length, ":%d:%d", &from, &error) != 2)
        return 0;
    while (counts[i].call && strcmp(counts[i].call, call) != 0)
        i++;
    counts[i].call = call;
    return ++counts[i].times >= from ? error : 0;
}

static void made(int kind, const void *object)
{
    balance[kind] += object != NULL;
}

static void __attribute__((constructor)) load(void)
{
    void *library = dlopen(getenv("SHIM_REAL"), RTLD_NOW | RTLD_LOCAL);
    void *address;
    if (!library)
        abort();
#define FIND(RETURNS, NAME, ARGUMENTS)                                                             \
    address = dlsym(library, #NAME);                                                               \
    memcpy(&real.NAME, &address, sizeof address);
    OPENCL_FUNCTIONS(FIND)
}

static void __attribute__((destructor)) print_balance(void)
{
    const char *name = getenv("SHIM_BALANCE");
    FILE *file = name ? fopen(name, "w") : NULL;
    for (int i = 0; file && i < KINDS; i++)
        fprintf(file, "%s %ld\n", kinds[i], balance[i]);
    if (file)
        fclose(file);
}

/* ---- platforms and devices --------------------------------------------------------------------- */

cl_int clGetPlatformIDs(cl_uint most, cl_platform_id *platforms, cl_uint *count)
{
    cl_int error = failure(__func__);
    if (!error)
        error = real.clGetPlatformIDs(most, platforms, count);
    if (!error && getenv("SHIM_SECOND") && *count < most)
        platforms[(*count)++] = &second;
    return error;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_uint info, size_t size, void *value,
                         size_t *needed)
{
    if (platform != &second)
        return real.clGetPlatformInfo(platform, info, size, value, needed);
    snprintf(value, size, "%s", getenv("SHIM_SECOND"));
    return CL_SUCCESS;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_bitfield type, cl_uint most,
                      cl_device_id *devices, cl_uint *count)
{
    cl_uint platforms;
    cl_int error = failure(__func__);
    if (error)
        return error;
    if (platform == &second)
        real.clGetPlatformIDs(1, &platform, &platforms);
    return real.clGetDeviceIDs(platform, type, most, devices, count);
}

struct answer {
    cl_uint info;
    const char *variable;
    const char *value; /* NULL: the variable's */
    enum { ANSWER_TEXT, ANSWER_U32, ANSWER_U64 } kind;
};

static const struct answer answers[] = {
    {CL_DEVICE_TYPE, "SHIM_TYPE", NULL, ANSWER_U64},
    {CL_DEVICE_VENDOR, "SHIM_VENDOR", NULL, ANSWER_TEXT},
    {CL_DEVICE_PCI_BUS_ID_NV, "SHIM_BUS", NULL, ANSWER_U32},
    {CL_DEVICE_AVAILABLE, "SHIM_UNAVAILABLE", "0", ANSWER_U32},
    {CL_DEVICE_COMPILER_AVAILABLE, "SHIM_NO_COMPILER", "0", ANSWER_U32},
    {CL_DEVICE_EXTENSIONS, "SHIM_EXTENSIONS", NULL, ANSWER_TEXT},
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, "SHIM_ALLOCATION", NULL, ANSWER_U64},
    {CL_DEVICE_GLOBAL_MEM_SIZE, "SHIM_MEMORY", NULL, ANSWER_U64},
    {CL_DEVICE_HOST_UNIFIED_MEMORY, "SHIM_UNIFIED", NULL, ANSWER_U32},
};

static void answer_with(const struct answer *answer, void *value, size_t size)
{
    const char *text = answer->value ? answer->value : getenv(answer->variable);
    cl_ulong number = strtoull(text, NULL, 10);
    if (answer->kind == ANSWER_TEXT)
        snprintf(value, size, "%s", text);
    else
        memcpy(value, &number, answer->kind == ANSWER_U32 ? 4 : 8);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_uint info, size_t size, void *value, size_t *needed)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].info == info && getenv(answers[i].variable)) {
            answer_with(&answers[i], value, size);
            return CL_SUCCESS;
        }
    return real.clGetDeviceInfo(device, info, size, value, needed);
}

/* ---- what is made and released ----------------------------------------------------------------- */

#define MAKE(KIND, RETURNS, NAME, PARAMETERS, ARGUMENTS)                                           \
    RETURNS NAME PARAMETERS                                                                        \
    {                                                                                              \
        *error = failure(#NAME);                                                                   \
        RETURNS object = *error ? NULL : real.NAME ARGUMENTS;                                      \
        made(KIND, object);                                                                        \
        return object;                                                                             \
    }

#define RELEASE(KIND, NAME, TYPE)                                                                  \
    cl_int NAME(TYPE object)                                                                       \
    {                                                                                              \
        balance[KIND]--;                                                                           \
        return real.NAME(object);                                                                  \
    }

MAKE(0, cl_context, clCreateContext,
     (const intptr_t *properties, cl_uint count, const cl_device_id *devices, opencl_notify *notify,
      void *own, cl_int *error),
     (properties, count, devices, notify, own, error))
MAKE(1, cl_command_queue, clCreateCommandQueue,
     (cl_context context, cl_device_id device, cl_bitfield properties, cl_int *error),
     (context, device, properties, error))
MAKE(2, cl_mem, clCreateBuffer,
     (cl_context context, cl_bitfield flags, size_t bytes, void *host, cl_int *error),
     (context, flags, bytes, host, error))
MAKE(3, cl_program, clCreateProgramWithSource,
     (cl_context context, cl_uint count, const char *const *texts, const size_t *lengths,
      cl_int *error),
     (context, count, texts, lengths, error))
MAKE(4, cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error),
     (program, name, error))
RELEASE(0, clReleaseContext, cl_context)
RELEASE(1, clReleaseCommandQueue, cl_command_queue)
RELEASE(2, clReleaseMemObject, cl_mem)
RELEASE(3, clReleaseProgram, cl_program)
RELEASE(4, clReleaseKernel, cl_kernel)
RELEASE(5, clReleaseEvent, cl_event)

cl_int clRetainEvent(cl_event event)
{
    made(5, event);
    return real.clRetainEvent(event);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_uint blocking, cl_bitfield flags,
                         size_t offset, size_t bytes, cl_uint waits, const cl_event *wait_for,
                         cl_event *event, cl_int *error)
{
    *error = failure(__func__);
    return *error ? NULL
                  : real.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, waits,
                                            wait_for, event, error);
}

/* ---- all others -------------------------------------------------------------------------------- */

#define CALL(NAME, PARAMETERS, ARGUMENTS)                                                          \
    cl_int NAME PARAMETERS                                                                         \
    {                                                                                              \
        cl_int error = failure(#NAME);                                                             \
        return error ? error : real.NAME ARGUMENTS;                                                \
    }

/* Calls that give an event when the caller wants one. */
#define ENQUEUE(NAME, PARAMETERS, ARGUMENTS)                                                       \
    cl_int NAME PARAMETERS                                                                         \
    {                                                                                              \
        cl_int error = failure(#NAME);                                                             \
        if (!error)                                                                                \
            error = real.NAME ARGUMENTS;                                                           \
        if (!error && event)                                                                       \
            made(5, *event);                                                                       \
        return error;                                                                              \
    }

CALL(clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
      void (*notify)(cl_program, void *), void *own),
     (program, count, devices, options, notify, own))
CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
     (kernel, index, size, value))
CALL(clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_uint info, size_t size, void *value,
      size_t *needed),
     (kernel, device, info, size, value, needed))
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait_for,
         cl_event *event),
        (queue, kernel, dimensions, offset, global, local, waits, wait_for, event))
ENQUEUE(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_uint blocking, size_t offset, size_t bytes,
         void *to, cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, buffer, blocking, offset, bytes, to, waits, wait_for, event))
ENQUEUE(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_uint blocking, size_t offset, size_t bytes,
         const void *from, cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, buffer, blocking, offset, bytes, from, waits, wait_for, event))
ENQUEUE(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t bytes, cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, from, to, from_offset, to_offset, bytes, waits, wait_for, event))
ENQUEUE(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint waits,
         const cl_event *wait_for, cl_event *event),
        (queue, buffer, mapped, waits, wait_for, event))
ENQUEUE(clEnqueueMigrateMemObjects,
        (cl_command_queue queue, cl_uint count, const cl_mem *buffers, cl_bitfield flags,
         cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, count, buffers, flags, waits, wait_for, event))
ENQUEUE(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
         size_t offset, size_t bytes, cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, buffer, pattern, pattern_bytes, offset, bytes, waits, wait_for, event))
ENQUEUE(clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint waits, const cl_event *wait_for, cl_event *event),
        (queue, waits, wait_for, event))
CALL(clFlush, (cl_command_queue queue), (queue))
CALL(clFinish, (cl_command_queue queue), (queue))
CALL(clGetEventProfilingInfo,
     (cl_event event, cl_uint info, size_t size, void *value, size_t *needed),
     (event, info, size, value, needed))

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_uint info, size_t size,
                             void *value, size_t *needed)
{
    const char *log = getenv("SHIM_BUILD_LOG");
    if (!log || info != CL_PROGRAM_BUILD_LOG)
        return real.clGetProgramBuildInfo(program, device, info, size, value, needed);
    if (needed)
        *needed = strlen(log) + 1;
    if (value)
        snprintf(value, size, "%s", log);
    return CL_SUCCESS;
}

cl_int clGetEventInfo(cl_event event, cl_uint info, size_t size, void *value, size_t *needed)
{
    static int looks;
    int from = 0, status = 0;
    const char *given = getenv("SHIM_STATUS");
    cl_int error = failure(__func__);
    if (error)
        return error;
    if (getenv("SHIM_HANG") && !access(getenv("SHIM_HANG"), F_OK))
        status = SUBMITTED;
    else if (!given || sscanf(given, "%d:%d", &from, &status) != 2 || ++looks < from)
        return real.clGetEventInfo(event, info, size, value, needed);
    memcpy(value, &status, sizeof status);
    return CL_SUCCESS;
}
