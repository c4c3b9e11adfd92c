/* The part of the CUDA driver API that this program calls, found in libcuda.so.1 at run time: the
 * program builds and starts where there is no CUDA.
 *
 * Types, values and entry points are those of the CUDA Driver API reference (docs.nvidia.com,
 * cuda-driver-api) and were compared with the declarations of CUDA 12.3 and 12.4's cuda.h. Where an
 * entry point has versions, the one that cuda.h's plain name stands for is named here. */
#ifndef GPU_BENCH_CUDA_API_H
#define GPU_BENCH_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int cuda_device; /* CUdevice */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef unsigned long long cuda_pointer; /* CUdeviceptr */

struct cuda_uuid {
    unsigned char bytes[16];
};

/* CUresult: what this program tells apart. */
enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
    CUDA_ERROR_UNKNOWN = 999,
};

/* CUdevice_attribute */
enum cuda_device_attribute {
    CUDA_DEVICE_GROUP_SIZE_MAX = 1,
    CUDA_DEVICE_CLOCK_KILOHERTZ = 13,
    CUDA_DEVICE_MULTIPROCESSORS = 16,
    CUDA_DEVICE_INTEGRATED = 18,
    CUDA_DEVICE_ECC_ENABLED = 32,
    CUDA_DEVICE_MEMORY_CLOCK_KILOHERTZ = 36,
    CUDA_DEVICE_MEMORY_BUS_BITS = 37,
    CUDA_DEVICE_L2_BYTES = 38,
    CUDA_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
    CUDA_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
    CUDA_DEVICE_SHARED_BYTES_MAX = 97, /* of a group that requests it */
};

/* CUfunction_attribute */
enum cuda_function_attribute {
    CUDA_FUNCTION_GROUP_SIZE_MAX = 0,
    CUDA_FUNCTION_DYNAMIC_SHARED_BYTES_MAX = 8,
    CUDA_FUNCTION_SHARED_PERCENT_PREFERRED = 9, /* of what L1 and shared memory have together */
};

enum {
    CUDA_SHARED_BYTES_WITHOUT_ASKING = 48 << 10, /* more must be requested: programming guide */
    CUDA_SHARED_PERCENT_MOST = 100,              /* CU_SHAREDMEM_CARVEOUT_MAX_SHARED */
    CUDA_STREAM_NON_BLOCKING = 1,                /* CUstream_flags */
    CUDA_EVENT_DEFAULT = 0,                      /* CUevent_flags */
    CUDA_HOST_PORTABLE = 1,                      /* CU_MEMHOSTALLOC_PORTABLE */
    CUDA_JIT_ERROR_LOG_BUFFER = 5,               /* CUjit_option */
    CUDA_JIT_ERROR_LOG_BUFFER_BYTES = 6,
};

/* Each entry point with its parameters; all return a CUresult. */
#define CUDA_ENTRY_POINTS(ENTRY)                                                                   \
    ENTRY(cuInit, (unsigned flags))                                                                \
    ENTRY(cuDriverGetVersion, (int *version))                                                      \
    ENTRY(cuGetErrorName, (int code, const char **name))                                           \
    ENTRY(cuDeviceGetCount, (int *count))                                                          \
    ENTRY(cuDeviceGet, (cuda_device * device, int ordinal))                                        \
    ENTRY(cuDeviceGetName, (char *name, int size, cuda_device device))                             \
    ENTRY(cuDeviceGetPCIBusId, (char *text, int size, cuda_device device))                         \
    ENTRY(cuDeviceTotalMem_v2, (size_t *bytes, cuda_device device))                                \
    ENTRY(cuDeviceGetAttribute, (int *value, int attribute, cuda_device device))                   \
    ENTRY(cuDevicePrimaryCtxRetain, (cuda_context * context, cuda_device device))                  \
    ENTRY(cuDevicePrimaryCtxRelease_v2, (cuda_device device))                                      \
    ENTRY(cuCtxSetCurrent, (cuda_context context))                                                 \
    ENTRY(cuDeviceCanAccessPeer, (int *can, cuda_device device, cuda_device peer))                 \
    ENTRY(cuCtxEnablePeerAccess, (cuda_context peer, unsigned flags))                              \
    ENTRY(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))                              \
    ENTRY(cuMemAlloc_v2, (cuda_pointer * memory, size_t bytes))                                    \
    ENTRY(cuMemFree_v2, (cuda_pointer memory))                                                     \
    ENTRY(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                           \
    ENTRY(cuMemFreeHost, (void *memory))                                                           \
    ENTRY(cuModuleLoadDataEx,                                                                      \
          (cuda_module * module, const void *image, unsigned count, int *options, void **values))  \
    ENTRY(cuModuleUnload, (cuda_module module))                                                    \
    ENTRY(cuModuleGetFunction, (cuda_function * function, cuda_module module, const char *name))   \
    ENTRY(cuFuncGetAttribute, (int *value, int attribute, cuda_function function))                 \
    ENTRY(cuFuncSetAttribute, (cuda_function function, int attribute, int value))                  \
    ENTRY(cuStreamCreate, (cuda_stream * stream, unsigned flags))                                  \
    ENTRY(cuStreamSynchronize, (cuda_stream stream))                                               \
    ENTRY(cuStreamDestroy_v2, (cuda_stream stream))                                                \
    ENTRY(cuEventCreate, (cuda_event * event, unsigned flags))                                     \
    ENTRY(cuEventRecord, (cuda_event event, cuda_stream stream))                                   \
    ENTRY(cuEventQuery, (cuda_event event))                                                        \
    ENTRY(cuEventElapsedTime, (float *milliseconds, cuda_event from, cuda_event to))               \
    ENTRY(cuEventDestroy_v2, (cuda_event event))                                                   \
    ENTRY(cuLaunchKernel,                                                                          \
          (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,              \
           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,            \
           cuda_stream stream, void **arguments, void **extra))                                    \
    ENTRY(cuMemcpyHtoDAsync_v2,                                                                    \
          (cuda_pointer to, const void *from, size_t bytes, cuda_stream stream))                   \
    ENTRY(cuMemcpyDtoHAsync_v2, (void *to, cuda_pointer from, size_t bytes, cuda_stream stream))   \
    ENTRY(cuMemcpyDtoDAsync_v2,                                                                    \
          (cuda_pointer to, cuda_pointer from, size_t bytes, cuda_stream stream))                  \
    ENTRY(cuMemsetD32Async, (cuda_pointer to, unsigned word, size_t count, cuda_stream stream))    \
    ENTRY(cuMemcpyPeerAsync, (cuda_pointer to, cuda_context to_context, cuda_pointer from,         \
                              cuda_context from_context, size_t bytes, cuda_stream stream))

/* Those a driver may lack: NULL then. The second, of CUDA 11.4, supersedes the first. */
#define CUDA_OPTIONAL_ENTRY_POINTS(ENTRY)                                                          \
    ENTRY(cuDeviceGetUuid, (struct cuda_uuid * uuid, cuda_device device))                          \
    ENTRY(cuDeviceGetUuid_v2, (struct cuda_uuid * uuid, cuda_device device))

struct cuda_api {
#define CUDA_MEMBER(name, parameters) int(*name) parameters;
    CUDA_ENTRY_POINTS(CUDA_MEMBER)
    CUDA_OPTIONAL_ENTRY_POINTS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* NULL, and in *why what is missing: the library, or the entry point it lacks. Loaded once and kept.
 * The text lasts. */
const struct cuda_api *cuda_api_load(const char **why);

#endif
