#include "opencl_list.h"

#include "opencl_icd.h"
#include "pocl_cache.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLATFORMS_MAX = 16 };

static cl_device_id found[GPU_DEVICES_MAX];
static int found_count;

cl_device_id opencl_device(int ordinal)
{
    return found[ordinal];
}

/* ---- the report of the search ----------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) say(char looked[GPU_LOOKED_MAX],
                                                      const char *format, ...)
{
    size_t used = strlen(looked);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(looked + used, GPU_LOOKED_MAX - used, format, arguments);
    va_end(arguments);
}

/* ---- the queries to a device ------------------------------------------------------------------- */

/* Zero where the device does not know it. */
static bool ask(const struct opencl *cl, cl_device_id device, cl_uint info, void *value,
                size_t size)
{
    memset(value, 0, size);
    return cl->clGetDeviceInfo(device, info, size, value, NULL) == CL_SUCCESS;
}

static cl_uint query_u32(const struct opencl *cl, cl_device_id device, cl_uint info)
{
    cl_uint value;
    return ask(cl, device, info, &value, sizeof value) ? value : 0;
}

static cl_ulong query_u64(const struct opencl *cl, cl_device_id device, cl_uint info)
{
    cl_ulong value;
    return ask(cl, device, info, &value, sizeof value) ? value : 0;
}

static size_t query_size(const struct opencl *cl, cl_device_id device, cl_uint info)
{
    size_t value;
    return ask(cl, device, info, &value, sizeof value) ? value : 0;
}

/* Without spaces at either end, some drivers fill up with them; what is too long is cut. */
static void copy_text(const char *from, char *text, size_t size)
{
    from += strspn(from, " ");
    snprintf(text, size, "%s", from);
    for (size_t length = strlen(text); length && isspace((unsigned char)text[length - 1]);)
        text[--length] = '\0';
}

static void query_text(const struct opencl *cl, cl_device_id device, cl_uint info, char *text,
                       size_t size)
{
    char full[512] = "";
    ask(cl, device, info, full, sizeof full);
    full[sizeof full - 1] = '\0';
    copy_text(full, text, size);
}

static bool extension(const struct opencl *cl, cl_device_id device, const char *name)
{
    static char all[16384];
    ask(cl, device, CL_DEVICE_EXTENSIONS, all, sizeof all);
    all[sizeof all - 1] = '\0';
    size_t length = strlen(name);
    for (const char *at = all; (at = strstr(at, name)); at += length)
        if ((at == all || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* ---- what names a device ----------------------------------------------------------------------- */

/* The struct of cl_amd_device_attribute_query; type 1 is PCIe. */
struct amd_topology {
    cl_uint type;
    char unused[17];
    unsigned char bus, device, function;
};

static void query_pci(const struct opencl *cl, cl_device_id device, char *text, size_t size)
{
    cl_uint bus[4];
    struct amd_topology amd;
    if (ask(cl, device, CL_DEVICE_PCI_BUS_INFO_KHR, bus, sizeof bus)) {
        snprintf(text, size, "%04x:%02x:%02x.%x", bus[0], bus[1], bus[2], bus[3]);
    } else if (ask(cl, device, CL_DEVICE_PCI_BUS_ID_NV, &bus[1], sizeof bus[1])) {
        cl_uint slot = query_u32(cl, device, CL_DEVICE_PCI_SLOT_ID_NV);
        snprintf(text, size, "%04x:%02x:%02x.%x", query_u32(cl, device, CL_DEVICE_PCI_DOMAIN_ID_NV),
                 bus[1], slot >> 3, slot & 7);
    } else if (ask(cl, device, CL_DEVICE_TOPOLOGY_AMD, &amd, sizeof amd) && amd.type == 1) {
        snprintf(text, size, "0000:%02x:%02x.%x", amd.bus, amd.device, amd.function);
    }
}

/* "portable-computing-language-0": what names the device again on this host, whatever the order of
 * the platforms. */
static void name_by_platform(const char *platform, unsigned index, char *text, size_t size)
{
    size_t length = 0;
    for (const char *at = platform; *at && length + 12 < size; at++) {
        if (isalnum((unsigned char)*at))
            text[length++] = (char)tolower((unsigned char)*at);
        else if (length && text[length - 1] != '-')
            text[length++] = '-';
    }
    if (length && text[length - 1] != '-')
        text[length++] = '-';
    snprintf(text + length, size - length, "%u", index);
}

/* NVML's form of Nvidia's: the same device is found again there and by CUDA. */
static void query_uuid(const struct opencl *cl, cl_device_id device, const char *platform,
                       unsigned index, struct gpu_device *into)
{
    unsigned char u[16];
    static const unsigned char none[16];
    if (!extension(cl, device, "cl_khr_device_uuid") ||
        !ask(cl, device, CL_DEVICE_UUID_KHR, u, sizeof u) || !memcmp(u, none, sizeof u)) {
        name_by_platform(platform, index, into->uuid, sizeof into->uuid);
        return;
    }
    snprintf(into->uuid, sizeof into->uuid,
             "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             strstr(into->vendor, "NVIDIA") ? "GPU-" : "", u[0], u[1], u[2], u[3], u[4], u[5], u[6],
             u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* ---- the list --------------------------------------------------------------------------------- */

static enum gpu_type type_of(cl_ulong type)
{
    if (type & CL_DEVICE_TYPE_GPU)
        return GPU_IS_GPU;
    return type & CL_DEVICE_TYPE_CPU ? GPU_IS_CPU : GPU_IS_OTHER;
}

static void describe(const struct opencl *cl, cl_device_id id, const char *platform, unsigned index,
                     struct gpu_device *device)
{
    char version[32];
    query_text(cl, id, CL_DEVICE_BOARD_NAME_AMD, device->name, sizeof device->name);
    if (!device->name[0])
        query_text(cl, id, CL_DEVICE_NAME, device->name, sizeof device->name);
    query_text(cl, id, CL_DEVICE_VENDOR, device->vendor, sizeof device->vendor);
    query_text(cl, id, CL_DRIVER_VERSION, version, sizeof version);
    snprintf(device->driver, sizeof device->driver, "%s (%.28s)", version, platform);
    query_pci(cl, id, device->pci, sizeof device->pci);
    query_uuid(cl, id, platform, index, device);
    device->type = type_of(query_u64(cl, id, CL_DEVICE_TYPE));
    device->compute_units = query_u32(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS);
    device->clock_hertz = 1e6 * query_u32(cl, id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    device->l2_bytes = query_u64(cl, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    device->memory_bytes = query_u64(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE);
    device->allocation_bytes = query_u64(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device->group_size_max = (unsigned)query_size(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    device->shared_bytes = (unsigned)query_u64(cl, id, CL_DEVICE_LOCAL_MEM_SIZE);
    device->ecc = query_u32(cl, id, CL_DEVICE_ERROR_CORRECTION_SUPPORT);
    device->unified =
        device->type == GPU_IS_CPU || query_u32(cl, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    device->fp64 = extension(cl, id, "cl_khr_fp64");
    device->fp16 = extension(cl, id, "cl_khr_fp16");
}

/* NULL, or why a device cannot be measured. */
static const char *unusable(const struct opencl *cl, cl_device_id id)
{
    if (!query_u32(cl, id, CL_DEVICE_AVAILABLE))
        return "is not available (CL_DEVICE_AVAILABLE: it may be lost, or another process may have "
               "it)";
    if (!query_u32(cl, id, CL_DEVICE_COMPILER_AVAILABLE))
        return "has no compiler (CL_DEVICE_COMPILER_AVAILABLE)";
    return NULL;
}

/* `number`: the platform's. */
static void list_device(const struct opencl *cl, cl_device_id id, const char *platform,
                        unsigned number, unsigned index, struct gpu_list *list,
                        char looked[GPU_LOOKED_MAX])
{
    const char *why = unusable(cl, id);
    if (why) {
        say(looked, ", device %u %s", index, why);
        return;
    }
    if (list->count == GPU_DEVICES_MAX || found_count == GPU_DEVICES_MAX) {
        say(looked, ", device %u is one too many", index);
        return;
    }
    struct gpu_device *device = &list->devices[list->count++];
    memset(device, 0, sizeof *device);
    device->ordinal = found_count;
    device->opencl_platform = number;
    device->opencl_device = index;
    found[found_count++] = id;
    describe(cl, id, platform, index, device);
}

static void list_platform(const struct opencl *cl, cl_platform_id platform, unsigned number,
                          struct gpu_list *list, char looked[GPU_LOOKED_MAX])
{
    char full[128] = "", name[64];
    cl_device_id devices[GPU_DEVICES_MAX];
    cl_uint count = 0;
    cl->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof full - 1, full, NULL);
    copy_text(full[0] ? full : "without a name", name, sizeof name);
    say(looked, "%splatform %s: ", looked[0] ? "; " : "", name);
    bool pocl = !strcmp(name, "Portable Computing Language");
    if (pocl && pocl_cache_missing()) {
        say(looked, "%s", pocl_cache_missing());
        return;
    }
    cl_int error =
        cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, GPU_DEVICES_MAX, devices, &count);
    if (error != CL_SUCCESS) {
        say(looked, "no device (clGetDeviceIDs: %s, %d)", opencl_error_name(error), error);
        return;
    }
    say(looked, "%u device%s", count, count == 1 ? "" : "s");
    for (unsigned i = 0; i < count && i < GPU_DEVICES_MAX; i++)
        list_device(cl, devices[i], name, number, i, list, looked);
}

/* Why a driver that is installed gave no platform. */
static void say_what_drivers_lack(bool none, char looked[GPU_LOOKED_MAX])
{
    char text[GPU_LOOKED_MAX];
    opencl_icd_describe(none, text, sizeof text);
    if (text[0])
        say(looked, "; %s", text);
}

void opencl_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX])
{
    const char *why_not;
    const struct opencl *cl = opencl_loaded(&why_not);
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0;
    looked[0] = '\0';
    found_count = 0;
    if (!cl) {
        say(looked, "%s", why_not);
        return;
    }
    cl_int error = cl->clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
    if (error != CL_SUCCESS)
        say(looked, "libOpenCL.so.1 has no platform (clGetPlatformIDs: %s, %d)",
            opencl_error_name(error), error);
    else if (count == 0)
        say(looked, "libOpenCL.so.1 has no platform");
    else
        for (unsigned i = 0; i < count && i < PLATFORMS_MAX; i++)
            list_platform(cl, platforms[i], i, list, looked);
    say_what_drivers_lack(error != CL_SUCCESS || count == 0, looked);
}
