#include "devices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In the order of preference. */
static const struct gpu_backend *const device_backends[GPU_BACKENDS] = {&cuda_backend,
                                                                        &opencl_backend};

/* ---- one list of them ------------------------------------------------------------------------ */

static bool same_text(const char *one, const char *other)
{
    return one[0] && !strcasecmp(one, other);
}

static bool is_same(const struct gpu_device *one, const struct gpu_device *other)
{
    return same_text(one->pci, other->pci) || same_text(one->uuid, other->uuid);
}

/* The entry of the same device that this backend has not added to yet. A device may have the address
 * of another of the same backend: parts of one card (MIG) are devices of their own. */
static struct device_entry *entry_of(struct device_list *list, const struct gpu_device *device)
{
    for (size_t i = 0; i < list->count; i++) {
        struct device_entry *entry = &list->entries[i];
        if (entry->by[entry->count - 1].backend != device->backend &&
            is_same(&entry->by[0], device))
            return entry;
    }
    return NULL;
}

static void add(struct device_list *list, const struct gpu_device *device)
{
    struct device_entry *entry = entry_of(list, device);
    if (!entry && list->count == GPU_DEVICES_MAX)
        return;
    if (!entry)
        entry = &list->entries[list->count++];
    entry->by[entry->count++] = *device;
}

/* From what the backends have found: GPUs before others, CPUs last; one device once. */
static void arrange(const struct gpu_list found[GPU_BACKENDS], struct device_list *list)
{
    static const enum gpu_type order[] = {GPU_IS_GPU, GPU_IS_OTHER, GPU_IS_CPU};
    memset(list, 0, sizeof *list);
    for (size_t turn = 0; turn < sizeof order / sizeof *order; turn++)
        for (size_t b = 0; b < GPU_BACKENDS; b++)
            for (size_t i = 0; i < found[b].count; i++)
                if (found[b].devices[i].type == order[turn])
                    add(list, &found[b].devices[i]);
    for (size_t b = 0; b < GPU_BACKENDS; b++)
        memcpy(list->looked[b], found[b].looked, sizeof list->looked[b]);
}

static struct device_list lists[GPU_BACKENDS]; /* [n]: by the first n + 1 backends */

/* Devices have the same index in all lists: those of a later backend alone come behind, since the
 * first one's are all GPUs. */
static const struct device_list *list_by(size_t backends)
{
    static struct gpu_list found[GPU_BACKENDS];
    static size_t listed;
    for (; listed < backends; listed++) {
        device_backends[listed]->list(&found[listed], found[listed].looked);
        for (size_t i = 0; i < found[listed].count; i++)
            found[listed].devices[i].backend = device_backends[listed];
        arrange(found, &lists[listed]);
    }
    return &lists[backends - 1];
}

const struct device_list *devices_here(void)
{
    return list_by(GPU_BACKENDS);
}

const struct device_list *devices_of(const struct gpu_backend *backend)
{
    size_t b = 0;
    while (device_backends[b] != backend)
        b++;
    return list_by(b + 1);
}

static size_t place_in(const struct device_list *list, const struct gpu_device *device)
{
    size_t i = 0;
    while (i < list->count &&
           (device < list->entries[i].by || device >= list->entries[i].by + GPU_BACKENDS))
        i++;
    return i;
}

static const struct device_list *list_of(const struct gpu_device *device)
{
    size_t b = 0;
    while (b < GPU_BACKENDS - 1 && place_in(&lists[b], device) == lists[b].count)
        b++;
    return &lists[b];
}

size_t devices_index(const struct gpu_device *device)
{
    return place_in(list_of(device), device);
}

bool devices_has_capability(const struct gpu_device *device, int major, int minor)
{
    const struct gpu_device *first = list_of(device)->entries[devices_index(device)].by;
    return first->cc_major == major && first->cc_minor == minor;
}

/* ---- the one that is meant ------------------------------------------------------------------- */

static const struct gpu_device *with_backend(const struct device_entry *entry, const char *backend)
{
    for (unsigned i = 0; i < entry->count; i++)
        if (!strcmp(backend, "auto") || !strcmp(backend, entry->by[i].backend->name))
            return &entry->by[i];
    return NULL;
}

static bool is_named(const struct device_entry *entry, const char *name)
{
    for (unsigned i = 0; i < entry->count; i++)
        if (same_text(entry->by[i].uuid, name) || same_text(entry->by[i].pci, name))
            return true;
    return false;
}

static const struct device_entry *named(const struct device_list *list, const char *name)
{
    if (name[strspn(name, "0123456789")] == '\0') {
        unsigned long index = strlen(name) < 9 ? strtoul(name, NULL, 10) : GPU_DEVICES_MAX;
        return index < list->count ? &list->entries[index] : NULL;
    }
    for (size_t i = 0; i < list->count; i++)
        if (is_named(&list->entries[i], name))
            return &list->entries[i];
    return NULL;
}

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* "0 (NVIDIA H200), 1 (…)" */
static void name_all(const struct device_list *list, char *text, size_t size)
{
    char one[160];
    for (size_t i = 0; i < list->count; i++) {
        snprintf(one, sizeof one, "%s%zu (%.100s)", i ? ", " : "", i, list->entries[i].by[0].name);
        append(text, size, one);
    }
}

/* Names only the requested backends. */
static void say_what_was_found(const struct device_list *list, const char *backend, char *why,
                               size_t size)
{
    const char *between = "";
    for (size_t b = 0; b < GPU_BACKENDS; b++) {
        if (strcmp(backend, "auto") != 0 && strcmp(backend, device_backends[b]->name) != 0)
            continue;
        append(why, size, between);
        append(why, size, list->looked[b]);
        between = "; ";
    }
}

static void say_none(const struct device_list *list, const char *backend, char *why, size_t size)
{
    snprintf(why, size, "no GPU: ");
    say_what_was_found(list, backend, why, size);
    for (size_t i = 0; i < list->count; i++) {
        char more[256];
        const struct gpu_device *device = with_backend(&list->entries[i], backend);
        if (!device || device->type == GPU_IS_GPU)
            continue;
        snprintf(more, sizeof more, "; device %zu (%.100s) is not a GPU and runs only by name", i,
                 device->name);
        append(why, size, more);
    }
}

static enum device_answer choose(const struct device_list *list, const char *device,
                                 const char *backend, const struct gpu_device **chosen, char *why,
                                 size_t size)
{
    bool any = !strcmp(device, "auto");
    *chosen = NULL;
    for (size_t i = 0; any && i < list->count && !*chosen; i++)
        if (list->entries[i].by[0].type == GPU_IS_GPU)
            *chosen = with_backend(&list->entries[i], backend);
    if (*chosen)
        return DEVICE_FOUND;
    if (any || list->count == 0) {
        say_none(list, backend, why, size);
        return DEVICE_UNSUPPORTED;
    }
    const struct device_entry *entry = named(list, device);
    if (!entry) {
        snprintf(why, size,
                 "there is no device %.128s here: allowed is auto, or an index or UUID "
                 "of gpu-bench --list-devices: ",
                 device);
        name_all(list, why, size);
        return DEVICE_UNKNOWN;
    }
    *chosen = with_backend(entry, backend);
    if (*chosen)
        return DEVICE_FOUND;
    snprintf(why, size, "device %.128s (%.100s) is not known to %s: ", device, entry->by[0].name,
             backend);
    say_what_was_found(list, backend, why, size);
    return DEVICE_UNSUPPORTED;
}

enum device_answer devices_choose(const char *device, const char *backend,
                                  const struct gpu_device **chosen, char *why, size_t size)
{
    enum device_answer answer = DEVICE_UNSUPPORTED;
    for (size_t n = 1; n <= GPU_BACKENDS && answer != DEVICE_FOUND; n++)
        answer = choose(list_by(n), device, backend, chosen, why, size);
    return answer;
}
