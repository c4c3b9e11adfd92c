#define _GNU_SOURCE
#include "cuda_error.h"

#include "failure.h"

#include <stdio.h>

struct cause {
    int code;
    int exit_code;
    const char *text; /* what it means, and the remedy */
};

/* Meanings: CUDA Driver API reference, CUresult. */
static const struct cause causes[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, EXIT_RESOURCE,
     "there is not enough memory left: use a smaller size, or stop what else uses the card "
     "(nvidia-smi shows it)"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, EXIT_RESOURCE,
     "the kernel needs more registers or shared memory than the device has"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, EXIT_RESOURCE,
     "the device is taken or lost: another process has it for itself, or its compute mode forbids "
     "it (nvidia-smi -q -d COMPUTE)"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, EXIT_RESOURCE,
     "the MPS daemon does not answer: start it, or unset CUDA_MPS_PIPE_DIRECTORY"},

    {CUDA_ERROR_NO_DEVICE, EXIT_UNSUPPORTED,
     "the driver finds no device: is one in this host (lspci), given to this container (--gpus), "
     "and named by CUDA_VISIBLE_DEVICES if that is set?"},
    {CUDA_ERROR_STUB_LIBRARY, EXIT_UNSUPPORTED,
     "this libcuda.so.1 is the toolkit's for linking and no driver: take its directory (stubs) out "
     "of LD_LIBRARY_PATH"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, EXIT_UNSUPPORTED,
     "libcuda.so.1 and the kernel module are of different drivers: restart the host after an "
     "update, or rebuild the container"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, EXIT_UNSUPPORTED,
     "this libcuda.so.1 is of a compatibility package that does not serve this card: take it out "
     "of LD_LIBRARY_PATH"},
    {CUDA_ERROR_SYSTEM_NOT_READY, EXIT_UNSUPPORTED,
     "the system is not ready: on a host with NVSwitch start the fabric manager "
     "(nvidia-fabricmanager)"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, EXIT_UNSUPPORTED,
     "the program carries no machine code for this device"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, EXIT_UNSUPPORTED,
     "the driver is too old for the program's PTX: install driver 575 (CUDA 12.9) or newer"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, EXIT_UNSUPPORTED,
     "the driver's compiler (libnvidia-ptxjitcompiler.so.1) is not installed, and the program "
     "carries no machine code for this device"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, EXIT_UNSUPPORTED,
     "compiling is switched off (CUDA_DISABLE_PTX_JIT), and the program carries no machine code "
     "for this device"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, EXIT_UNSUPPORTED,
     "these two devices cannot reach each other's memory"},
    {CUDA_ERROR_NOT_SUPPORTED, EXIT_UNSUPPORTED, "this device or driver does not do that"},

    {CUDA_ERROR_ECC_UNCORRECTABLE, EXIT_FAILED,
     "the card's memory had an ECC error that could not be corrected: check the kernel's log "
     "(dmesg, Xid 48, 94 or 95) and nvidia-smi -q -d ECC, and reset the card"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, EXIT_FAILED,
     "NVLink had an error that could not be corrected: check the kernel's log (dmesg, Xid 74)"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, EXIT_FAILED,
     "a kernel took longer than the driver allows on a card with a display: use one without"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, EXIT_FAILED,
     "a kernel reached beyond its memory: an error of this program or a defect of the card; check "
     "the kernel's log (dmesg, Xid 31)"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, EXIT_FAILED,
     "the device got an instruction that it does not know: an error of this program or a defect of "
     "the card; check the kernel's log (dmesg, Xid 13)"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, EXIT_FAILED,
     "the device's call stack is broken: check the kernel's log (dmesg, Xid 13)"},
    {CUDA_ERROR_LAUNCH_FAILED, EXIT_FAILED,
     "a kernel failed on the device, or the card was lost: check the kernel's log (dmesg, Xid 13, "
     "31 or 79) and nvidia-smi"},
    {CUDA_ERROR_DEINITIALIZED, EXIT_FAILED,
     "the driver has shut down, as it does when a card is lost: check the kernel's log (dmesg)"},
    {CUDA_ERROR_OPERATING_SYSTEM, EXIT_FAILED,
     "a call of the system failed in the driver: check the kernel's log (dmesg) and the limits of "
     "this process (ulimit -a)"},
    {CUDA_ERROR_NOT_PERMITTED, EXIT_FAILED,
     "that is not permitted: may this user or container use the card's device files?"},
    {CUDA_ERROR_UNKNOWN, EXIT_FAILED,
     "the driver does not know why: the card may be lost or need a reset, or its device files be "
     "out of reach; check the kernel's log (dmesg, Xid 79) and nvidia-smi"},
};

/* Where nothing more is known than the code. */
static const struct cause other = {0, EXIT_FAILED, "check the kernel's log (dmesg) and nvidia-smi"};

static const struct cause *cause_of(int code)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].code == code)
            return &causes[i];
    return &other;
}

const char *cuda_error_name(const struct cuda_api *api, int code)
{
    const char *name = NULL;
    return api->cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : NULL;
}

const char *cuda_error_text(int code)
{
    return cause_of(code)->text;
}

int cuda_error(struct gpu *gpu, const struct cuda_api *api, const char *call, int code)
{
    const struct cause *cause = cause_of(code);
    return gpu_fail(gpu, cause->exit_code, call, code, cuda_error_name(api, code), "%s",
                    cause->text);
}

void cuda_error_line(const struct cuda_api *api, const char *call, int code, char *line,
                     size_t size)
{
    const char *name = cuda_error_name(api, code);
    snprintf(line, size, "%s: %s (%d): %s", call, name ? name : "error", code,
             cuda_error_text(code));
}
