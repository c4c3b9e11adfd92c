/* OpenCL as far as it is used here, declared by ourselves: no header of a vendor is needed to
 * build, and the loader (libOpenCL.so.1) is opened when it is first needed. Only functions of
 * OpenCL 1.2, which every driver still maintained has. Names and numbers are those of the OpenCL
 * API specification (Khronos, cl.h and cl_ext.h). */
#ifndef GPU_BENCH_OPENCL_API_H
#define GPU_BENCH_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef struct opencl_platform *cl_platform_id;
typedef struct opencl_device *cl_device_id;
typedef struct opencl_context *cl_context;
typedef struct opencl_queue *cl_command_queue;
typedef struct opencl_buffer *cl_mem;
typedef struct opencl_program *cl_program;
typedef struct opencl_kernel *cl_kernel;
typedef struct opencl_event *cl_event;

enum opencl_error {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_DEVICE_NOT_AVAILABLE = -2,
    CL_COMPILER_NOT_AVAILABLE = -3,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_PROFILING_INFO_NOT_AVAILABLE = -7,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_MAP_FAILURE = -12,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14,
    CL_INVALID_VALUE = -30,
    CL_INVALID_DEVICE = -33,
    CL_INVALID_CONTEXT = -34,
    CL_INVALID_QUEUE_PROPERTIES = -35,
    CL_INVALID_COMMAND_QUEUE = -36,
    CL_INVALID_MEM_OBJECT = -38,
    CL_INVALID_BUILD_OPTIONS = -43,
    CL_INVALID_PROGRAM_EXECUTABLE = -45,
    CL_INVALID_KERNEL_NAME = -46,
    CL_INVALID_ARG_INDEX = -49,
    CL_INVALID_ARG_SIZE = -51,
    CL_INVALID_KERNEL_ARGS = -52,
    CL_INVALID_WORK_GROUP_SIZE = -54,
    CL_INVALID_WORK_ITEM_SIZE = -55,
    CL_INVALID_EVENT = -58,
    CL_INVALID_OPERATION = -59,
    CL_INVALID_BUFFER_SIZE = -61,
    CL_INVALID_GLOBAL_WORK_SIZE = -63,
    CL_PLATFORM_NOT_FOUND_KHR = -1001,
};

enum opencl_info {
    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C, /* MHz */
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101E,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ERROR_CORRECTION_SUPPORT = 0x1024,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DEVICE_UUID_KHR = 0x106A,         /* 16 bytes */
    CL_DEVICE_PCI_BUS_INFO_KHR = 0x410F, /* domain, bus, device, function */
    CL_DEVICE_PCI_BUS_ID_NV = 0x4008,
    CL_DEVICE_PCI_SLOT_ID_NV = 0x4009, /* device × 8 + function */
    CL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
    CL_DEVICE_TOPOLOGY_AMD = 0x4037,
    CL_DEVICE_BOARD_NAME_AMD = 0x4038,
    CL_DEVICE_GLOBAL_FREE_MEMORY_AMD = 0x4039, /* two size_t, in KiB: all of it, largest block */
    CL_CONTEXT_PLATFORM = 0x1084,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
};

enum {
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE_GPU = 1 << 2,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MAP_READ = 1 << 0,
    CL_MAP_WRITE = 1 << 1,
    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED = 1 << 1,
    CL_COMPLETE = 0, /* of an event; negative: an error */
};
static const cl_bitfield CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;

/* Gets errors of this context's work while it runs; may be NULL. */
typedef void opencl_notify(const char *text, const void *bytes, size_t count, void *own);

/* FUNCTION(returns, name, arguments): all that is called. */
#define OPENCL_FUNCTIONS(FUNCTION)                                                                 \
    FUNCTION(cl_int, clGetPlatformIDs,                                                             \
             (cl_uint most, cl_platform_id * platforms, cl_uint * count))                          \
    FUNCTION(cl_int, clGetPlatformInfo,                                                            \
             (cl_platform_id platform, cl_uint info, size_t size, void *value, size_t *needed))    \
    FUNCTION(cl_int, clGetDeviceIDs,                                                               \
             (cl_platform_id platform, cl_bitfield type, cl_uint most, cl_device_id * devices,     \
              cl_uint * count))                                                                    \
    FUNCTION(cl_int, clGetDeviceInfo,                                                              \
             (cl_device_id device, cl_uint info, size_t size, void *value, size_t *needed))        \
    FUNCTION(cl_context, clCreateContext,                                                          \
             (const intptr_t *properties, cl_uint count, const cl_device_id *devices,              \
              opencl_notify *notify, void *own, cl_int *error))                                    \
    FUNCTION(cl_int, clReleaseContext, (cl_context context))                                       \
    FUNCTION(cl_command_queue, clCreateCommandQueue,                                               \
             (cl_context context, cl_device_id device, cl_bitfield properties, cl_int * error))    \
    FUNCTION(cl_int, clReleaseCommandQueue, (cl_command_queue queue))                              \
    FUNCTION(cl_mem, clCreateBuffer,                                                               \
             (cl_context context, cl_bitfield flags, size_t bytes, void *host, cl_int *error))     \
    FUNCTION(cl_int, clReleaseMemObject, (cl_mem buffer))                                          \
    FUNCTION(cl_program, clCreateProgramWithSource,                                                \
             (cl_context context, cl_uint count, const char *const *texts, const size_t *lengths,  \
              cl_int *error))                                                                      \
    FUNCTION(cl_int, clBuildProgram,                                                               \
             (cl_program program, cl_uint count, const cl_device_id *devices, const char *options, \
              void (*notify)(cl_program, void *), void *own))                                      \
    FUNCTION(cl_int, clGetProgramBuildInfo,                                                        \
             (cl_program program, cl_device_id device, cl_uint info, size_t size, void *value,     \
              size_t *needed))                                                                     \
    FUNCTION(cl_int, clReleaseProgram, (cl_program program))                                       \
    FUNCTION(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error))     \
    FUNCTION(cl_int, clReleaseKernel, (cl_kernel kernel))                                          \
    FUNCTION(cl_int, clSetKernelArg,                                                               \
             (cl_kernel kernel, cl_uint index, size_t size, const void *value))                    \
    FUNCTION(cl_int, clGetKernelWorkGroupInfo,                                                     \
             (cl_kernel kernel, cl_device_id device, cl_uint info, size_t size, void *value,       \
              size_t *needed))                                                                     \
    FUNCTION(cl_int, clEnqueueNDRangeKernel,                                                       \
             (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,  \
              const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait_for,  \
              cl_event *event))                                                                    \
    FUNCTION(cl_int, clEnqueueReadBuffer,                                                          \
             (cl_command_queue queue, cl_mem buffer, cl_uint blocking, size_t offset,              \
              size_t bytes, void *to, cl_uint waits, const cl_event *wait_for, cl_event *event))   \
    FUNCTION(cl_int, clEnqueueWriteBuffer,                                                         \
             (cl_command_queue queue, cl_mem buffer, cl_uint blocking, size_t offset,              \
              size_t bytes, const void *from, cl_uint waits, const cl_event *wait_for,             \
              cl_event *event))                                                                    \
    FUNCTION(cl_int, clEnqueueCopyBuffer,                                                          \
             (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,                  \
              size_t to_offset, size_t bytes, cl_uint waits, const cl_event *wait_for,             \
              cl_event *event))                                                                    \
    FUNCTION(void *, clEnqueueMapBuffer,                                                           \
             (cl_command_queue queue, cl_mem buffer, cl_uint blocking, cl_bitfield flags,          \
              size_t offset, size_t bytes, cl_uint waits, const cl_event *wait_for,                \
              cl_event *event, cl_int *error))                                                     \
    FUNCTION(cl_int, clEnqueueUnmapMemObject,                                                      \
             (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint waits,                  \
              const cl_event *wait_for, cl_event *event))                                          \
    FUNCTION(cl_int, clEnqueueMigrateMemObjects,                                                   \
             (cl_command_queue queue, cl_uint count, const cl_mem *buffers, cl_bitfield flags,     \
              cl_uint waits, const cl_event *wait_for, cl_event *event))                           \
    FUNCTION(cl_int, clEnqueueFillBuffer,                                                          \
             (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,    \
              size_t offset, size_t bytes, cl_uint waits, const cl_event *wait_for,                \
              cl_event *event))                                                                    \
    FUNCTION(cl_int, clEnqueueMarkerWithWaitList,                                                  \
             (cl_command_queue queue, cl_uint waits, const cl_event *wait_for, cl_event *event))   \
    FUNCTION(cl_int, clFlush, (cl_command_queue queue))                                            \
    FUNCTION(cl_int, clFinish, (cl_command_queue queue))                                           \
    FUNCTION(cl_int, clGetEventInfo,                                                               \
             (cl_event event, cl_uint info, size_t size, void *value, size_t *needed))             \
    FUNCTION(cl_int, clGetEventProfilingInfo,                                                      \
             (cl_event event, cl_uint info, size_t size, void *value, size_t *needed))             \
    FUNCTION(cl_int, clRetainEvent, (cl_event event))                                              \
    FUNCTION(cl_int, clReleaseEvent, (cl_event event))

struct opencl {
#define MEMBER(RETURNS, NAME, ARGUMENTS) RETURNS(*NAME) ARGUMENTS;
    OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Loads it if need be, in the main thread, after giving PoCL a directory for what it compiles
 * (pocl_cache.h). NULL where it cannot be used; `why_not` then says so in a line. */
const struct opencl *opencl_loaded(const char **why_not);

/* "CL_OUT_OF_RESOURCES"; "an error that OpenCL does not name" where the vendor made it up. */
const char *opencl_error_name(cl_int error);

#endif
