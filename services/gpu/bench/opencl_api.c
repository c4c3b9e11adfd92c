#include "opencl_api.h"

#include "pocl_cache.h"
#include "shared_library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(RETURNS, NAME, ARGUMENTS) {#NAME, offsetof(struct opencl, NAME), false},
    OPENCL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

const struct opencl *opencl_loaded(const char **why_not)
{
    static struct shared_library library = {.file = "libOpenCL.so.1"};
    static struct opencl table;
    if (!library.tried)
        pocl_cache_prepare();
    *why_not = library.why;
    return shared_library_load(&library, symbols, sizeof symbols / sizeof *symbols, &table) ? &table
                                                                                            : NULL;
}

struct named {
    cl_int error;
    const char *name;
};

static const struct named names[] = {
#define NAMED(ERROR) {ERROR, #ERROR}
    NAMED(CL_DEVICE_NOT_FOUND),
    NAMED(CL_DEVICE_NOT_AVAILABLE),
    NAMED(CL_COMPILER_NOT_AVAILABLE),
    NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    NAMED(CL_OUT_OF_RESOURCES),
    NAMED(CL_OUT_OF_HOST_MEMORY),
    NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    NAMED(CL_BUILD_PROGRAM_FAILURE),
    NAMED(CL_MAP_FAILURE),
    NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    NAMED(CL_INVALID_VALUE),
    NAMED(CL_INVALID_DEVICE),
    NAMED(CL_INVALID_CONTEXT),
    NAMED(CL_INVALID_QUEUE_PROPERTIES),
    NAMED(CL_INVALID_COMMAND_QUEUE),
    NAMED(CL_INVALID_MEM_OBJECT),
    NAMED(CL_INVALID_BUILD_OPTIONS),
    NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
    NAMED(CL_INVALID_KERNEL_NAME),
    NAMED(CL_INVALID_ARG_INDEX),
    NAMED(CL_INVALID_ARG_SIZE),
    NAMED(CL_INVALID_KERNEL_ARGS),
    NAMED(CL_INVALID_WORK_GROUP_SIZE),
    NAMED(CL_INVALID_WORK_ITEM_SIZE),
    NAMED(CL_INVALID_EVENT),
    NAMED(CL_INVALID_OPERATION),
    NAMED(CL_INVALID_BUFFER_SIZE),
    NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
    NAMED(CL_PLATFORM_NOT_FOUND_KHR),
#undef NAMED
};

const char *opencl_error_name(cl_int error)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return "an error of the driver's own";
}
