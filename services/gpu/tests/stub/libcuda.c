/* Stands in for libcuda.so.1; stub.h describes what it does. Kernels are the shared source, compiled for
 * this host, so what a trial verifies has really been computed. As in a driver, work is queued and done
 * by somebody else, and what is wrong with a handle or an address is an error and no crash. */
#define _GNU_SOURCE
#include "cuda_api.h"
#include "emulation.h"
#include "stub.h"
#include "tensor_emulation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(name, parameters) EXPORT int name parameters;
CUDA_ENTRY_POINTS(DECLARE)
CUDA_OPTIONAL_ENTRY_POINTS(DECLARE)

enum {
    CARDS_MAX = 16,
    OBJECTS_MAX = 256,
    ARGUMENTS_MAX = 16,
    MULTIPROCESSORS = 2,
    GROUP_MAX = 1024,
    SHARED_MAX = 227 << 10,
};

static const double KERNEL_LATENCY_S = 2e-6;

/* ---- errors --------------------------------------------------------------------------------- */

static atomic_int sticky; /* the code that all calls give from now on */

/* Those after which a context is of no more use: CUDA Driver API reference, CUresult. */
static bool is_sticky(int code)
{
    return code == 214 || code == 220 || (code >= 700 && code <= 702) ||
           (code >= 710 && code <= 720) || code == 999;
}

static int begin(const char *name)
{
    int code = stub_call(name);
    if (is_sticky(code))
        atomic_store(&sticky, code);
    return code ? code : atomic_load(&sticky);
}

#define ENTER                                                                                      \
    do {                                                                                           \
        int code_ = begin(__func__);                                                               \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)
#define ENTER_CONTEXT                                                                              \
    do {                                                                                           \
        ENTER;                                                                                     \
        if (!here)                                                                                 \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
    } while (0)

int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                 {100, "CUDA_ERROR_NO_DEVICE"},
                 {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                 {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                 {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"},
                 {999, "CUDA_ERROR_UNKNOWN"}};
    int failure = stub_call(__func__);
    *name = NULL;
    if (failure)
        return failure;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            *name = names[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- objects -------------------------------------------------------------------------------- */

enum kind { CONTEXT, MEMORY, HOST_MEMORY, MODULE, FUNCTION, STREAM, EVENT };

static const char *const kind_names[] = {"context",  "memory", "host memory", "module",
                                         "function", "stream", "event"};

struct object {
    enum kind kind;
    bool alive;
    int card;
    size_t bytes;
    void *at;
    char name[64];
    unsigned shared_bytes;
    unsigned retained;
    /* of an event */
    unsigned pending;
    bool recorded;
    double at_s;
    /* of a stream */
    pthread_t thread;
    struct work *first, *last;
    unsigned queued;
    bool ending;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all objects */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct object objects[OBJECTS_MAX];
static _Thread_local struct object *here; /* this thread's context */

static struct object *make(enum kind kind)
{
    struct object *made = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < OBJECTS_MAX && !made; i++)
        if (!objects[i].alive)
            made = &objects[i];
    if (!made)
        abort();
    *made = (struct object){.kind = kind, .alive = true, .card = here ? here->card : 0};
    pthread_mutex_unlock(&lock);
    if (kind != FUNCTION)
        stub_keep(kind_names[kind], 1);
    return made;
}

static void drop(struct object *object)
{
    pthread_mutex_lock(&lock);
    object->alive = false;
    pthread_mutex_unlock(&lock);
    stub_keep(kind_names[object->kind], -1);
}

static struct object *valid(const void *handle, enum kind kind)
{
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (&objects[i] == handle && objects[i].alive && objects[i].kind == kind)
            return &objects[i];
    return NULL;
}

/* What starts there, or holds these bytes. */
static struct object *memory_at(cuda_pointer at, size_t bytes, bool start)
{
    struct object *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < OBJECTS_MAX; i++) {
        struct object *object = &objects[i];
        cuda_pointer from = (uintptr_t)object->at;
        if (object->alive && object->kind == MEMORY && at >= from &&
            at + bytes <= from + object->bytes && (!start || at == from))
            found = object;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- cards ---------------------------------------------------------------------------------- */

static int cards(void)
{
    return (int)stub_number("STUB_CARDS", 1);
}

static void card_uuid(int card, bool part, struct cuda_uuid *uuid)
{
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[3] = (unsigned char)card;
    uuid->bytes[15] = part ? 0xee : 0x0c;
}

/* Which card a word of CUDA_VISIBLE_DEVICES names; -1: none. */
static int named_card(const char *word)
{
    unsigned number;
    if (sscanf(word, "GPU-000000%02x", &number) != 1 && sscanf(word, "%u", &number) != 1)
        return -1;
    return (int)number < cards() ? (int)number : -1;
}

/* In the order of CUDA; the first word that names no card hides the rest. */
static int visible(int order[CARDS_MAX])
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (!at) {
        for (; count < cards(); count++)
            order[count] = count;
        return count;
    }
    for (; at && *at && count < CARDS_MAX; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        order[count] = named_card(at);
        if (order[count] < 0)
            break;
        count++;
    }
    return count;
}

int cuInit(unsigned flags)
{
    int order[CARDS_MAX];
    ENTER;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return visible(order) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    ENTER;
    *version = (int)stub_number("STUB_CUDA", 12040);
    return CUDA_SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    int order[CARDS_MAX];
    ENTER;
    *count = visible(order);
    return CUDA_SUCCESS;
}

/* A CUdevice is the card's own number here, so that no caller can take an ordinal for it. */
int cuDeviceGet(cuda_device *device, int ordinal)
{
    int order[CARDS_MAX];
    ENTER;
    if (ordinal < 0 || ordinal >= visible(order))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 100 + order[ordinal];
    return CUDA_SUCCESS;
}

#define ENTER_DEVICE(device)                                                                       \
    do {                                                                                           \
        ENTER;                                                                                     \
        if ((device) < 100 || (device) >= 100 + cards())                                           \
            return CUDA_ERROR_INVALID_DEVICE;                                                      \
    } while (0)

int cuDeviceGetName(char *name, int size, cuda_device device)
{
    ENTER_DEVICE(device);
    snprintf(name, (size_t)size, "Stand-in %d", device - 100);
    return CUDA_SUCCESS;
}

int cuDeviceGetUuid(struct cuda_uuid *uuid, cuda_device device)
{
    ENTER_DEVICE(device);
    card_uuid(device - 100, false, uuid);
    return CUDA_SUCCESS;
}

int cuDeviceGetUuid_v2(struct cuda_uuid *uuid, cuda_device device)
{
    ENTER_DEVICE(device);
    card_uuid(device - 100, stub_number("STUB_MIG", 0), uuid);
    return CUDA_SUCCESS;
}

int cuDeviceGetPCIBusId(char *text, int size, cuda_device device)
{
    ENTER_DEVICE(device);
    stub_pci(device - 100, text, size);
    return CUDA_SUCCESS;
}

static size_t memory_bytes(void)
{
    return (size_t)stub_number("STUB_MEMORY", 256 << 20);
}

int cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
    ENTER_DEVICE(device);
    *bytes = memory_bytes();
    return CUDA_SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, cuda_device device)
{
    int major = 9, minor = 0;
    const char *capability = getenv("STUB_CC");
    ENTER_DEVICE(device);
    if (capability)
        sscanf(capability, "%d.%d", &major, &minor);
    const int known[][2] = {{1, GROUP_MAX},
                            {13, 1000000},
                            {16, MULTIPROCESSORS},
                            {18, (int)stub_number("STUB_INTEGRATED", 0)},
                            {32, 1},
                            {36, 2000000},
                            {37, 512},
                            {38, (int)stub_number("STUB_L2", 1 << 20)},
                            {75, major},
                            {76, minor},
                            {97, SHARED_MAX}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute) {
            *value = known[i][1];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- contexts ------------------------------------------------------------------------------- */

static struct object *context_of(int card)
{
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].alive && objects[i].kind == CONTEXT && objects[i].card == card)
            return &objects[i];
    return NULL;
}

int cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    ENTER_DEVICE(device);
    struct object *object = context_of(device - 100);
    if (!object) {
        object = make(CONTEXT);
        object->card = device - 100;
    }
    object->retained++;
    *context = (cuda_context)object;
    return CUDA_SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
    ENTER_DEVICE(device);
    struct object *object = context_of(device - 100);
    if (!object)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--object->retained == 0)
        drop(object);
    return CUDA_SUCCESS;
}

int cuCtxSetCurrent(cuda_context context)
{
    ENTER;
    if (context && !valid(context, CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    here = (struct object *)context;
    return CUDA_SUCCESS;
}

int cuDeviceCanAccessPeer(int *can, cuda_device device, cuda_device peer)
{
    ENTER_DEVICE(device);
    *can = device != peer && !stub_number("STUB_NO_PEERS", 0);
    return CUDA_SUCCESS;
}

int cuCtxEnablePeerAccess(cuda_context peer, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags || !valid(peer, CONTEXT) || (struct object *)peer == here)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- what the device does ------------------------------------------------------------------- */

enum work_kind { LAUNCH, COPY, FILL, RECORD };

struct work {
    struct work *next;
    enum work_kind kind;
    struct object *object; /* a function, or an event */
    unsigned groups, group_size, count;
    uint64_t values[ARGUMENTS_MAX];
    bool is_memory[ARGUMENTS_MAX];
    void *to;
    const void *from;
    size_t bytes;
    unsigned word;
};

static void hang(void)
{
    for (;;)
        pause();
}

/* −1: there is no such kernel. Without groups nothing is done. */
static int emulate(const char *name, unsigned groups, unsigned group_size, void **parameters)
{
    return !strncmp(name, "tensor_", strlen("tensor_"))
               ? tensor_emulate(name, groups, parameters)
               : kernel_emulate(name, groups, group_size, parameters);
}

static void run_kernel(const struct work *work)
{
    static long of_wrong, of_lazy;
    void *parameters[ARGUMENTS_MAX];
    long argument = 0, nth = 0;
    const char *name = work->object->name;
    for (unsigned i = 0; i < work->count; i++)
        parameters[i] = (void *)&work->values[i];
    if (stub_named("STUB_LAZY", name, &argument, &nth) && ++of_lazy >= nth)
        return;
    kernel_emulated_multiprocessor = (unsigned)stub_number("STUB_SM", 0);
    kernel_emulated_grain_ns = (unsigned)stub_number("STUB_GRAIN", 0);
    emulate(name, work->groups, work->group_size, parameters);
    if (stub_named("STUB_WRONG", name, &argument, &nth) && ++of_wrong >= nth &&
        work->is_memory[argument])
        *(unsigned char *)(uintptr_t)work->values[argument] ^= 1;
}

/* Of the copies of one size, so that those that only look at what is there are not meant. */
static bool is_spoilt_copy(const char *variable, atomic_long *seen, size_t bytes)
{
    long size = 0, nth = 0;
    return stub_named(variable, "memcpy", &size, &nth) && (size_t)size == bytes &&
           atomic_fetch_add(seen, 1) + 1 >= nth;
}

static void copy_bytes(const struct work *work)
{
    static atomic_long of_wrong, of_lazy;
    if (is_spoilt_copy("STUB_LAZY", &of_lazy, work->bytes))
        return;
    memmove(work->to, work->from, work->bytes);
    if (is_spoilt_copy("STUB_WRONG", &of_wrong, work->bytes))
        ((unsigned char *)work->to)[work->bytes - 1] ^= 1;
}

static void fill_words(const struct work *work)
{
    for (size_t i = 0; i < work->bytes / sizeof work->word; i++)
        ((unsigned *)work->to)[i] = work->word;
}

static void do_work(const struct work *work)
{
    static atomic_long done;
    long nth = atomic_fetch_add(&done, work->kind != RECORD) + 1, from = 0;
    int code = 0;
    const char *failing = getenv("STUB_DEVICE_FAIL");
    if (work->kind != RECORD && stub_number("STUB_HANG", 0) == nth)
        hang();
    if (failing && sscanf(failing, "%ld:%d", &from, &code) == 2 && nth == from)
        atomic_store(&sticky, code);
    if (atomic_load(&sticky))
        return;
    if (work->kind == LAUNCH)
        run_kernel(work);
    else if (work->kind == COPY)
        copy_bytes(work);
    else if (work->kind == FILL)
        fill_words(work);
}

static void *serve(void *argument)
{
    struct object *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->ending)
            pthread_cond_wait(&changed, &lock);
        struct work *work = stream->first;
        if (!work)
            break;
        pthread_mutex_unlock(&lock);
        do_work(work);
        pthread_mutex_lock(&lock);
        if (work->kind == RECORD) {
            work->object->at_s = seconds();
            work->object->pending--;
        }
        stream->first = work->next;
        stream->queued--;
        free(work);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int enqueue(cuda_stream handle, const struct work *work)
{
    struct object *stream = valid(handle, STREAM);
    struct work *copy = malloc(sizeof *copy);
    if (!stream)
        abort(); /* the NULL stream would wait for all others */
    *copy = *work;
    copy->next = NULL;
    pthread_mutex_lock(&lock);
    if (stream->first)
        stream->last->next = copy;
    else
        stream->first = copy;
    stream->last = copy;
    stream->queued++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void wait_idle(struct object *only)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < OBJECTS_MAX; i++)
        while (objects[i].alive && objects[i].kind == STREAM && (!only || only == &objects[i]) &&
               objects[i].queued)
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t used_bytes(int card)
{
    size_t sum = 0;
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].alive && objects[i].kind == MEMORY && objects[i].card == card)
            sum += objects[i].bytes;
    return sum;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    ENTER_CONTEXT;
    *total_bytes = memory_bytes();
    *free_bytes = memory_bytes() - used_bytes(here->card) - (size_t)stub_number("STUB_TAKEN", 0);
    return CUDA_SUCCESS;
}

int cuMemAlloc_v2(cuda_pointer *memory, size_t bytes)
{
    stub_most("memory", (long)bytes);
    ENTER_CONTEXT;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > memory_bytes() - used_bytes(here->card))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct object *object = make(MEMORY);
    object->at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(object->at, 0xa5, bytes < 1 << 20 ? bytes : 1 << 20); /* not zero, as on a card */
    object->bytes = bytes;
    *memory = (uintptr_t)object->at;
    return CUDA_SUCCESS;
}

int cuMemFree_v2(cuda_pointer memory)
{
    ENTER_CONTEXT;
    struct object *object = memory_at(memory, 1, true);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    wait_idle(NULL);
    free(object->at);
    drop(object);
    return CUDA_SUCCESS;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    ENTER_CONTEXT;
    (void)flags;
    struct object *object = make(HOST_MEMORY);
    object->at = *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return CUDA_SUCCESS;
}

int cuMemFreeHost(void *memory)
{
    ENTER_CONTEXT;
    wait_idle(NULL);
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].alive && objects[i].kind == HOST_MEMORY && objects[i].at == memory) {
            free(memory);
            drop(&objects[i]);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static int copy_work(cuda_stream stream, void *to, const void *from, size_t bytes)
{
    return enqueue(stream, &(struct work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

int cuMemcpyHtoDAsync_v2(cuda_pointer to, const void *from, size_t bytes, cuda_stream stream)
{
    ENTER_CONTEXT;
    if (!memory_at(to, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_work(stream, (void *)(uintptr_t)to, from, bytes);
}

int cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t bytes, cuda_stream stream)
{
    ENTER_CONTEXT;
    if (!memory_at(from, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_work(stream, to, (void *)(uintptr_t)from, bytes);
}

int cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t bytes, cuda_stream stream)
{
    ENTER_CONTEXT;
    if (!memory_at(from, bytes, false) || !memory_at(to, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_work(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
}

int cuMemcpyPeerAsync(cuda_pointer to, cuda_context to_context, cuda_pointer from,
                      cuda_context from_context, size_t bytes, cuda_stream stream)
{
    ENTER_CONTEXT;
    struct object *source = memory_at(from, bytes, false), *target = memory_at(to, bytes, false);
    if (!source || !target || !valid(to_context, CONTEXT) || !valid(from_context, CONTEXT) ||
        source->card != ((struct object *)from_context)->card ||
        target->card != ((struct object *)to_context)->card)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_work(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
}

int cuMemsetD32Async(cuda_pointer to, unsigned word, size_t count, cuda_stream stream)
{
    ENTER_CONTEXT;
    if (to % sizeof word || !memory_at(to, count * sizeof word, false))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, &(struct work){.kind = FILL,
                                          .to = (void *)(uintptr_t)to,
                                          .bytes = count * sizeof word,
                                          .word = word});
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* What kernels/README.md says of their arguments: m memory, u a 32-bit number. */
static const struct {
    const char *prefix, *arguments;
} signatures[] = {
    {"fma_", "mmumu"}, {"int_", "mmumu"},      {"dp4a_", "mmumu"},
    {"fill", "mu"},    {"read", "mmmu"},       {"write", "mumu"},
    {"copy", "mmmu"},  {"triad", "mmmumu"},    {"check_triad", "muuum"},
    {"check", "mum"},  {"chase_link", "mmuu"}, {"pointer_chase_", "mmumu"},
    {"empty", ""},     {"tensor_", "mmmuumu"},
};

static const char *arguments_of(const char *name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (!strncmp(name, signatures[i].prefix, strlen(signatures[i].prefix)))
            return signatures[i].arguments;
    return NULL;
}

int cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count, int *options,
                       void **values)
{
    bool machine_code = !memcmp(image, "\177ELF", 4);
    const char *refused = getenv("STUB_REFUSE");
    ENTER_CONTEXT;
    if (refused && strstr(refused, machine_code ? "cubin" : "ptx")) {
        for (unsigned i = 0; i < count && !machine_code; i++)
            if (options[i] == CUDA_JIT_ERROR_LOG_BUFFER)
                snprintf(values[i], 64, "\nptxas fatal : Unsupported .version\nmore of it");
        return machine_code ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    *module = (cuda_module)make(MODULE);
    return CUDA_SUCCESS;
}

int cuModuleUnload(cuda_module module)
{
    ENTER_CONTEXT;
    struct object *object = valid(module, MODULE);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].kind == FUNCTION && objects[i].at == object)
            objects[i].alive = false;
    drop(object);
    return CUDA_SUCCESS;
}

int cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    ENTER_CONTEXT;
    if (!valid(module, MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!arguments_of(name) || emulate(name, 0, 1, NULL) < 0)
        return CUDA_ERROR_NOT_FOUND;
    struct object *object = make(FUNCTION);
    object->at = module;
    snprintf(object->name, sizeof object->name, "%s", name);
    *function = (cuda_function)object;
    return CUDA_SUCCESS;
}

int cuFuncGetAttribute(int *value, int attribute, cuda_function function)
{
    ENTER_CONTEXT;
    if (!valid(function, FUNCTION) || attribute != CUDA_FUNCTION_GROUP_SIZE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = GROUP_MAX;
    return CUDA_SUCCESS;
}

int cuFuncSetAttribute(cuda_function function, int attribute, int value)
{
    ENTER_CONTEXT;
    struct object *object = valid(function, FUNCTION);
    if (object && attribute == CUDA_FUNCTION_SHARED_PERCENT_PREFERRED && value == 100)
        return CUDA_SUCCESS;
    if (!object || attribute != CUDA_FUNCTION_DYNAMIC_SHARED_BYTES_MAX || value > SHARED_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    object->shared_bytes = (unsigned)value;
    return CUDA_SUCCESS;
}

static int launch(cuda_function handle, unsigned groups, unsigned group_size, unsigned shared_bytes,
                  cuda_stream stream, void **arguments)
{
    struct object *function = valid(handle, FUNCTION);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    unsigned most = function->shared_bytes > 48 << 10 ? function->shared_bytes : 48 << 10;
    if (!groups || !group_size || group_size > GROUP_MAX || shared_bytes > most)
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {
        .kind = LAUNCH, .object = function, .groups = groups, .group_size = group_size};
    for (const char *at = arguments_of(function->name); *at; at++) {
        bool memory = *at == 'm';
        memcpy(&work.values[work.count], arguments[work.count], memory ? 8 : 4);
        work.is_memory[work.count] = memory;
        if (memory && !memory_at(work.values[work.count], 1, false)) {
            atomic_store(&sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
            return CUDA_SUCCESS; /* the next call tells */
        }
        work.count++;
    }
    stub_most(function->name, shared_bytes);
    return enqueue(stream, &work);
}

int cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   cuda_stream stream, void **arguments, void **extra)
{
    ENTER_CONTEXT;
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || extra)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(function, grid_x, block_x, shared_bytes, stream, arguments);
}

/* ---- streams and events --------------------------------------------------------------------- */

int cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    ENTER_CONTEXT;
    (void)flags;
    struct object *object = make(STREAM);
    if (pthread_create(&object->thread, NULL, serve, object))
        abort();
    *stream = (cuda_stream)object;
    return CUDA_SUCCESS;
}

/* Fails when the work is over, one way or the other, and not before. */
int cuStreamSynchronize(cuda_stream stream)
{
    if (valid(stream, STREAM))
        wait_idle((struct object *)stream);
    ENTER_CONTEXT;
    if (!valid(stream, STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    return atomic_load(&sticky);
}

int cuStreamDestroy_v2(cuda_stream stream)
{
    ENTER_CONTEXT;
    struct object *object = valid(stream, STREAM);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    wait_idle(object);
    pthread_mutex_lock(&lock);
    object->ending = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(object->thread, NULL);
    drop(object);
    return CUDA_SUCCESS;
}

int cuEventCreate(cuda_event *event, unsigned flags)
{
    ENTER_CONTEXT;
    (void)flags;
    *event = (cuda_event)make(EVENT);
    return CUDA_SUCCESS;
}

int cuEventRecord(cuda_event event, cuda_stream stream)
{
    ENTER_CONTEXT;
    struct object *object = valid(event, EVENT);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    object->pending++;
    object->recorded = true;
    pthread_mutex_unlock(&lock);
    return enqueue(stream, &(struct work){.kind = RECORD, .object = object});
}

int cuEventQuery(cuda_event event)
{
    ENTER_CONTEXT;
    struct object *object = valid(event, EVENT);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    bool ready = object->pending == 0;
    pthread_mutex_unlock(&lock);
    return ready ? atomic_load(&sticky) : CUDA_ERROR_NOT_READY;
}

int cuEventElapsedTime(float *milliseconds, cuda_event from, cuda_event to)
{
    ENTER_CONTEXT;
    struct object *first = valid(from, EVENT), *last = valid(to, EVENT);
    if (!first || !last || !first->recorded || !last->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    bool ready = first->pending == 0 && last->pending == 0;
    double passed_s = last->at_s - first->at_s + KERNEL_LATENCY_S;
    *milliseconds = (float)(passed_s * 1e3 / (double)stub_number("STUB_FAST", 1));
    pthread_mutex_unlock(&lock);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int cuEventDestroy_v2(cuda_event event)
{
    ENTER_CONTEXT;
    struct object *object = valid(event, EVENT);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    drop(object);
    return CUDA_SUCCESS;
}
