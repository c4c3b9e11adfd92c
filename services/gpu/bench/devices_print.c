/* --list-devices: what the inventory of a host is made from. */
#include "devices.h"
#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void text_or_null(struct json *json, const char *key, const char *text)
{
    json_string(json, key, text[0] ? text : NULL);
}

static void count_or_null(struct json *json, const char *key, uint64_t count)
{
    if (count)
        json_count(json, key, count);
    else
        json_null(json, key);
}

static void number_or_null(struct json *json, const char *key, double number)
{
    json_number(json, key, number > 0 ? number : NAN);
}

static const char *type_name(enum gpu_type type)
{
    static const char *const names[] = {
        [GPU_IS_GPU] = "gpu", [GPU_IS_CPU] = "cpu", [GPU_IS_OTHER] = "other"};
    return names[type];
}

/* By what numbers other tools of OpenCL choose it. */
static void opencl_or_null(struct json *json, const struct device_entry *entry)
{
    for (unsigned i = 0; i < entry->count; i++) {
        const struct gpu_device *device = &entry->by[i];
        if (device->backend != &opencl_backend)
            continue;
        json_open_object(json, "opencl");
        json_count(json, "platform", device->opencl_platform);
        json_count(json, "device", device->opencl_device);
        json_close_object(json);
        return;
    }
    json_null(json, "opencl");
}

static void device_object(struct json *json, size_t index, const struct device_entry *entry)
{
    const struct gpu_device *device = &entry->by[0];
    char capability[24] = "";
    if (device->cc_major)
        snprintf(capability, sizeof capability, "%d.%d", device->cc_major, device->cc_minor);
    json_open_object(json, NULL);
    json_count(json, "index", index);
    json_string(json, "backend", device->backend->name);
    json_open_array(json, "backends");
    for (unsigned i = 0; i < entry->count; i++)
        json_string(json, NULL, entry->by[i].backend->name);
    json_close_array(json);
    opencl_or_null(json, entry);
    json_string(json, "name", device->name);
    json_string(json, "type", type_name(device->type));
    text_or_null(json, "uuid", device->uuid);
    text_or_null(json, "pci", device->pci);
    text_or_null(json, "driver", device->driver);
    text_or_null(json, "vendor", device->vendor);
    text_or_null(json, "compute_capability", capability);
    count_or_null(json, "compute_units", device->compute_units);
    number_or_null(json, "clock_hertz", device->clock_hertz);
    number_or_null(json, "memory_clock_hertz", device->memory_clock_hertz);
    count_or_null(json, "bus_width_bits", device->bus_width_bits);
    count_or_null(json, "l2_bytes", device->l2_bytes);
    count_or_null(json, "memory_bytes", device->memory_bytes);
    json_bool(json, "ecc", device->ecc);
    json_bool(json, "fp64", device->fp64);
    json_bool(json, "fp16", device->fp16);
    json_close_object(json);
}

int devices_print(void)
{
    const struct device_list *list = devices_here();
    struct json json = {.stream = stdout};
    json_open_object(&json, NULL);
    json_count(&json, "schema", 1);
    json_string(&json, "program", "gpu-bench");
    json_string(&json, "version", HOSTBENCH_VERSION);
    json_open_array(&json, "devices");
    for (size_t i = 0; i < list->count; i++)
        device_object(&json, i, &list->entries[i]);
    json_close_array(&json);
    json_open_array(&json, "looked");
    for (size_t b = 0; b < GPU_BACKENDS; b++)
        json_string(&json, NULL, list->looked[b]);
    json_close_array(&json);
    json_close_object(&json);
    putchar('\n');
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    fprintf(stderr,
            "gpu-bench: the output cannot be written (%s): connect stdout to a reader or to a file "
            "with free space\n",
            strerror(errno));
    return EXIT_FAILED;
}
