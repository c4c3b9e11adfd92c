#include "opencl_kernel.h"

#include "failure.h"
#include "kernel_set.h"
#include "opencl_error.h"
#include "opencl_gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the driver's compiler says ----------------------------------------------------------- */

/* The first line that tells of an error, else the first that is not empty; "" without any. Control
 * characters become spaces. */
static void first_error(const char *log, char *line, size_t size)
{
    const char *at = strstr(log, "error");
    if (!at)
        at = log + strspn(log, " \t\r\n");
    while (at > log && at[-1] != '\n')
        at--;
    snprintf(line, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    for (char *c = line; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
}

static void read_log(const struct opencl_gpu *own, cl_program program, char *line, size_t size)
{
    size_t needed = 0;
    line[0] = '\0';
    own->cl->clGetProgramBuildInfo(program, own->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &needed);
    char *log = needed ? calloc(1, needed + 1) : NULL;
    if (log && own->cl->clGetProgramBuildInfo(program, own->device, CL_PROGRAM_BUILD_LOG, needed,
                                              log, NULL) == CL_SUCCESS)
        first_error(log, line, size);
    free(log);
}

static int build_failed(struct gpu *gpu, cl_program program, const char *name, cl_int error)
{
    char line[300];
    if (error != CL_BUILD_PROGRAM_FAILURE)
        return opencl_fail(gpu, STAGE_BUILD, "clBuildProgram", error);
    read_log(opencl_of(gpu), program, line, sizeof line);
    return gpu_fail(gpu, EXIT_FAILED, "clBuildProgram", error, opencl_error_name(error),
                    "%s (%s) cannot compile the kernel %s: \"%s\": install a newer driver",
                    gpu->device.name, gpu->device.driver, name,
                    line[0] ? line : "it does not say why");
}

/* ---- building ---------------------------------------------------------------------------------- */

static int build_program(struct gpu *gpu, const char *name, cl_program *program)
{
    const struct opencl_gpu *own = opencl_of(gpu);
    char options[128];
    size_t bytes;
    cl_int error = CL_SUCCESS;
    const char *source = kernel_opencl_source(&bytes);
    *program = own->cl->clCreateProgramWithSource(own->context, 1, &source, &bytes, &error);
    if (!*program)
        return opencl_fail(gpu, STAGE_BUILD, "clCreateProgramWithSource", error);
    snprintf(options, sizeof options, "-cl-std=CL1.2 -D WANT_%s", name);
    error = own->cl->clBuildProgram(*program, 1, &own->device, options, NULL, NULL);
    return error ? build_failed(gpu, *program, name, error) : EXIT_OK;
}

static int unsupported_kernel(struct gpu *gpu, const char *name)
{
    run_reason(gpu->run,
               "%s cannot run %s in OpenCL: it lacks the type (cl_khr_fp64, cl_khr_fp16), or the "
               "kernel is CUDA's alone: choose another --dtype or device",
               gpu->device.name, name);
    return EXIT_UNSUPPORTED;
}

static int build(struct gpu *gpu, const char *name, struct opencl_built *built)
{
    const struct opencl_gpu *own = opencl_of(gpu);
    int code = build_program(gpu, name, &built->program);
    if (code)
        return code;
    cl_int error = CL_SUCCESS;
    built->kernel = own->cl->clCreateKernel(built->program, name, &error);
    if (built->kernel)
        return EXIT_OK;
    /* The source leaves out what the device has no type for. */
    return error == CL_INVALID_KERNEL_NAME ? unsupported_kernel(gpu, name)
                                           : opencl_fail(gpu, STAGE_BUILD, "clCreateKernel", error);
}

int opencl_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel)
{
    const struct opencl_gpu *own = opencl_of(gpu);
    *kernel = NULL;
    struct gpu_kernel *made = opencl_object(gpu, sizeof *made);
    struct opencl_built *built = opencl_object(gpu, sizeof *built);
    if (!made || !built) {
        free(made);
        free(built);
        return EXIT_RESOURCE;
    }
    made->gpu = gpu;
    made->own = built;
    snprintf(made->name, sizeof made->name, "%s", name);
    snprintf(made->build, sizeof made->build, "OpenCL C by the driver");
    int code = build(gpu, name, built);
    if (code) {
        opencl_release_kernel(made);
        return code;
    }
    size_t most = 0;
    if (own->cl->clGetKernelWorkGroupInfo(built->kernel, own->device, CL_KERNEL_WORK_GROUP_SIZE,
                                          sizeof most, &most, NULL) == CL_SUCCESS)
        made->group_size_max = (unsigned)most;
    *kernel = made;
    return EXIT_OK;
}

void opencl_release_kernel(struct gpu_kernel *kernel)
{
    if (!kernel)
        return;
    const struct opencl_gpu *own = opencl_of(kernel->gpu);
    struct opencl_built *built = kernel->own;
    if (built->kernel && !own->abandoned)
        own->cl->clReleaseKernel(built->kernel);
    if (built->program && !own->abandoned)
        own->cl->clReleaseProgram(built->program);
    free(built);
    free(kernel);
}
