#define _GNU_SOURCE
#include "telemetry.h"

#include "monotonic.h"
#include "nvml.h"
#include "statistics.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLOCKS_KEPT = 8192,          /* readings that a median is made of */
    XIDS_MAX = 8,                /* kinds that are counted separately */
    READ_EVERY_NS = 20000000,    /* 20 ms */
    CLOSE_WITHIN_NS = 500000000, /* a driver that has lost its card may keep a call for ever */
};

/* What holds the clock below what the card would run at. A clock that its owner has set does not
 * (applications clocks), nor does idling. */
static const uint64_t THROTTLES = NVML_REASON_SW_POWER_CAP | NVML_REASON_HW_SLOWDOWN |
                                  NVML_REASON_SYNC_BOOST | NVML_REASON_SW_THERMAL |
                                  NVML_REASON_HW_THERMAL | NVML_REASON_HW_POWER_BRAKE;

/* What one stretch of readings gives. */
struct record {
    struct reservoir clocks, memory_clocks;
    double clock_min, temperature_max;
    double power_sum;
    unsigned powers, readings, reasons_known, throttled;
    uint64_t reasons;
    double begun_s, ended_s;          /* of the stretch */
    double first_s, last_s;           /* of the counter of energy */
    double first_joules, last_joules; /* NaN: none */
};

struct xid {
    unsigned long long number;
    unsigned times;
};

struct telemetry {
    struct run *run;
    struct nvml nvml;
    bool usable, threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    bool closing, finished, measuring;
    bool lost;
    struct record phase, interval;
    struct xid xids[XIDS_MAX];
    unsigned xid_kinds;
    int64_t ecc_before, ecc_after;
    struct nvml_link link; /* at the end of the timed phase; 0: not known */
    char why[256], sensor_why[256], trouble[256];
};

/* ---- records -------------------------------------------------------------------------------- */

static int record_init(struct record *record)
{
    *record = (struct record){0};
    return reservoir_init(&record->clocks, CLOCKS_KEPT) |
           reservoir_init(&record->memory_clocks, CLOCKS_KEPT);
}

static void record_free(struct record *record)
{
    reservoir_free(&record->clocks);
    reservoir_free(&record->memory_clocks);
}

static void forget(struct reservoir *reservoir)
{
    reservoir->kept = 0;
    reservoir->seen = 0;
}

static void record_clear(struct record *record, double at_s)
{
    struct reservoir clocks = record->clocks, memory_clocks = record->memory_clocks;
    forget(&clocks);
    forget(&memory_clocks);
    *record = (struct record){.clocks = clocks,
                              .memory_clocks = memory_clocks,
                              .clock_min = INFINITY,
                              .temperature_max = -INFINITY,
                              .begun_s = at_s,
                              .ended_s = at_s,
                              .first_joules = NAN,
                              .last_joules = NAN};
}

static void record_add(struct record *record, const struct nvml_reading *reading, double at_s)
{
    record->readings++;
    if (isfinite(reading->clock_hertz)) {
        reservoir_add(&record->clocks, reading->clock_hertz);
        record->clock_min = fmin(record->clock_min, reading->clock_hertz);
    }
    if (isfinite(reading->memory_clock_hertz))
        reservoir_add(&record->memory_clocks, reading->memory_clock_hertz);
    if (isfinite(reading->power_watts)) {
        record->power_sum += reading->power_watts;
        record->powers++;
    }
    if (isfinite(reading->temperature_celsius))
        record->temperature_max = fmax(record->temperature_max, reading->temperature_celsius);
    if (reading->reasons_known) {
        record->reasons_known++;
        record->reasons |= reading->reasons & ~(uint64_t)NVML_REASON_IDLE;
        record->throttled += (reading->reasons & THROTTLES) != 0;
    }
    if (!isfinite(reading->energy_joules))
        return;
    if (!isfinite(record->first_joules)) {
        record->first_s = at_s;
        record->first_joules = reading->energy_joules;
    }
    record->last_s = at_s;
    record->last_joules = reading->energy_joules;
}

/* Sorts what the reservoir keeps, which it does not mind. */
static double median_of(const struct reservoir *reservoir)
{
    return reservoir->kept ? median(reservoir->values, reservoir->kept) : NAN;
}

/* The counter's two ends lie within the stretch, up to 20 ms from its own: the power between them
 * holds for all of it. A counter that has not moved tells nothing: it is renewed now and then only. */
static double energy_joules(const struct record *record, double power_watts)
{
    double wall_s = record->ended_s - record->begun_s;
    double counted_s = record->last_s - record->first_s;
    double joules = record->last_joules - record->first_joules;
    if (isfinite(joules) && joules > 0 && counted_s > 0.5 * wall_s)
        return joules / counted_s * wall_s;
    return power_watts * wall_s;
}

static struct telemetry_figures figures_of(const struct record *record)
{
    double power_watts = record->powers ? record->power_sum / record->powers : NAN;
    return (struct telemetry_figures){
        .clock_hertz = median_of(&record->clocks),
        .clock_hertz_min = isfinite(record->clock_min) ? record->clock_min : NAN,
        .memory_clock_hertz = median_of(&record->memory_clocks),
        .power_watts = power_watts,
        .energy_joules = energy_joules(record, power_watts),
        .temperature_celsius = isfinite(record->temperature_max) ? record->temperature_max : NAN,
        .throttled_ratio =
            record->reasons_known ? (double)record->throttled / record->reasons_known : NAN,
        .reasons = record->reasons,
        .readings = record->readings,
    };
}

static struct telemetry_figures no_figures(void)
{
    return (struct telemetry_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0};
}

/* ---- what happens to the card --------------------------------------------------------------- */

static const char LOST[] =
    "NVML says that the card is lost: it has fallen off the bus or needs a reset";

/* From NVIDIA's list of Xid errors (docs.nvidia.com, deploy/xid-errors). */
static const struct {
    unsigned number;
    const char *meaning;
} meanings[] = {
    {13, "an exception of the graphics engine"},
    {31, "a fault of the memory management unit"},
    {43, "a process's channel was stopped"},
    {48, "a double-bit ECC error"},
    {62, "the card's microcontroller halted"},
    {63, "a row of memory was remapped"},
    {64, "a row of memory could not be remapped"},
    {74, "an NVLink error"},
    {79, "the card has fallen off the bus"},
    {92, "a high rate of single-bit ECC errors"},
    {94, "a contained ECC error"},
    {95, "an uncontained ECC error"},
    {119, "the card's system processor does not answer"},
};

static const char *meaning_of(unsigned long long xid)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].number == xid)
            return meanings[i].meaning;
    return "see NVIDIA's list of Xid errors";
}

/* The first is what the others follow from, and a reader may hold it. */
static void note_trouble(struct telemetry *telemetry, const char *text)
{
    if (!telemetry->trouble[0])
        snprintf(telemetry->trouble, sizeof telemetry->trouble, "%s", text);
}

/* Reports each kind when it is first seen: the trial may end before a later report. */
static void note_xid(struct telemetry *telemetry, unsigned long long number)
{
    char text[160];
    for (unsigned i = 0; i < telemetry->xid_kinds; i++)
        if (telemetry->xids[i].number == number) {
            telemetry->xids[i].times++;
            return;
        }
    if (telemetry->xid_kinds == XIDS_MAX)
        return;
    telemetry->xids[telemetry->xid_kinds++] = (struct xid){number, 1};
    snprintf(text, sizeof text, "the driver reported Xid %llu (%s)", number, meaning_of(number));
    note_trouble(telemetry, text);
    run_warning(
        telemetry->run, "xid",
        "the driver reported Xid %llu during the trial (%s): check the kernel's log (dmesg) and do "
        "not trust the figures; another program on the card may have caused it",
        number, meaning_of(number));
}

static void note_events(struct telemetry *telemetry)
{
    struct nvml_event event;
    for (unsigned i = 0; i < XIDS_MAX && nvml_next_event(&telemetry->nvml, &event); i++) {
        pthread_mutex_lock(&telemetry->lock);
        if (event.type == NVML_EVENT_XID)
            note_xid(telemetry, event.data);
        else if (event.type == NVML_EVENT_DOUBLE_BIT_ECC)
            note_trouble(telemetry, "the driver reported an ECC error that could not be corrected");
        pthread_mutex_unlock(&telemetry->lock);
    }
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void note(struct telemetry *telemetry, const struct nvml_reading *reading, double at_s)
{
    /* A reading that began before the phase did is not of it. */
    if (telemetry->measuring && at_s >= telemetry->phase.begun_s)
        record_add(&telemetry->phase, reading, at_s);
    if (telemetry->measuring && at_s >= telemetry->interval.begun_s)
        record_add(&telemetry->interval, reading, at_s);
    if (telemetry->nvml.why[0] && !telemetry->sensor_why[0])
        snprintf(telemetry->sensor_why, sizeof telemetry->sensor_why, "%s", telemetry->nvml.why);
    if (!telemetry->nvml.lost || telemetry->lost)
        return;
    telemetry->lost = true;
    note_trouble(telemetry, LOST);
    run_warning(telemetry->run, "xid", "%s; check the kernel's log (dmesg)", LOST);
}

static struct timespec from_now(long nanoseconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += nanoseconds;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void pause_until_next(struct telemetry *telemetry)
{
    struct timespec until = from_now(READ_EVERY_NS);
    pthread_cond_timedwait(&telemetry->wake, &telemetry->lock, &until);
}

static void *poll_sensors(void *argument)
{
    struct telemetry *telemetry = argument;
    pthread_mutex_lock(&telemetry->lock);
    while (!telemetry->closing && !telemetry->lost) {
        pthread_mutex_unlock(&telemetry->lock);
        double at_s = now_s();
        struct nvml_reading reading = nvml_read(&telemetry->nvml);
        note_events(telemetry);
        pthread_mutex_lock(&telemetry->lock);
        note(telemetry, &reading, at_s);
        if (!telemetry->closing)
            pause_until_next(telemetry);
    }
    telemetry->finished = true;
    pthread_cond_broadcast(&telemetry->wake);
    pthread_mutex_unlock(&telemetry->lock);
    return NULL;
}

static void start_thread(struct telemetry *telemetry)
{
    int error = pthread_create(&telemetry->thread, NULL, poll_sensors, telemetry);
    telemetry->threaded = error == 0;
    if (error)
        snprintf(telemetry->why, sizeof telemetry->why, "no thread to read the sensors with (%s)",
                 strerror(error));
}

/* ---- a trial's ------------------------------------------------------------------------------ */

static void report_facts(struct telemetry *telemetry)
{
    struct run *run = telemetry->run;
    struct nvml *nvml = &telemetry->nvml;
    char text[128];
    struct nvml_link link = nvml_link(nvml);
    snprintf(text, sizeof text, "NVML%s", nvml->part ? ", of the whole card" : "");
    run_fact(run, "sensors", text);
    if (!link.generation || !link.lanes)
        return;
    int length = snprintf(text, sizeof text, "generation %u x%u", link.generation, link.lanes);
    if (link.generation_max && link.lanes_max)
        snprintf(text + length, sizeof text - (size_t)length, " when idle, at most %u x%u",
                 link.generation_max, link.lanes_max);
    run_fact(run, "pcie", text);
}

static bool find_sensors(struct telemetry *telemetry, const struct gpu_device *device)
{
    char why[200];
    if (strcasestr(device->vendor, "nvidia") == NULL) {
        snprintf(telemetry->why, sizeof telemetry->why,
                 "only the sensors of NVIDIA's cards are read, this device is of %s",
                 device->vendor[0] ? device->vendor : "an unknown vendor");
        return false;
    }
    if (nvml_open(&telemetry->nvml, device, why, sizeof why))
        return true;
    snprintf(telemetry->why, sizeof telemetry->why, "no sensors: %s", why);
    return false;
}

struct telemetry *telemetry_open(struct run *run, const struct gpu_device *device)
{
    struct telemetry *telemetry = calloc(1, sizeof *telemetry);
    pthread_condattr_t attributes;
    if (!telemetry)
        return NULL;
    telemetry->run = run;
    pthread_mutex_init(&telemetry->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&telemetry->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (record_init(&telemetry->phase) | record_init(&telemetry->interval)) {
        telemetry_close(telemetry);
        return NULL;
    }
    record_clear(&telemetry->phase, 0);
    record_clear(&telemetry->interval, 0);
    telemetry->ecc_before = telemetry->ecc_after = -1;
    telemetry->usable = find_sensors(telemetry, device);
    if (!telemetry->usable) {
        run_fact(run, "sensors", telemetry->why);
        return telemetry;
    }
    telemetry->ecc_before = nvml_ecc_errors(&telemetry->nvml);
    report_facts(telemetry);
    start_thread(telemetry);
    return telemetry;
}

void telemetry_begin(struct telemetry *telemetry)
{
    if (!telemetry || !telemetry->threaded)
        return;
    pthread_mutex_lock(&telemetry->lock);
    double at_s = now_s();
    record_clear(&telemetry->phase, at_s);
    record_clear(&telemetry->interval, at_s);
    telemetry->measuring = true;
    pthread_cond_signal(&telemetry->wake); /* the first reading is of the phase's beginning */
    pthread_mutex_unlock(&telemetry->lock);
}

void telemetry_end(struct telemetry *telemetry)
{
    if (!telemetry || !telemetry->threaded)
        return;
    pthread_mutex_lock(&telemetry->lock);
    telemetry->phase.ended_s = now_s();
    telemetry->measuring = false;
    bool lost = telemetry->lost;
    pthread_mutex_unlock(&telemetry->lock);
    /* At once: a card that idles slows its link down. */
    if (!lost)
        telemetry->link = nvml_link(&telemetry->nvml);
}

struct telemetry_figures telemetry_since(struct telemetry *telemetry)
{
    if (!telemetry || !telemetry->threaded)
        return no_figures();
    pthread_mutex_lock(&telemetry->lock);
    double at_s = now_s();
    telemetry->interval.ended_s = at_s;
    struct telemetry_figures figures = figures_of(&telemetry->interval);
    record_clear(&telemetry->interval, at_s);
    pthread_mutex_unlock(&telemetry->lock);
    return figures;
}

struct telemetry_figures telemetry_figures(struct telemetry *telemetry)
{
    if (!telemetry || !telemetry->threaded)
        return no_figures();
    pthread_mutex_lock(&telemetry->lock);
    struct telemetry_figures figures = figures_of(&telemetry->phase);
    pthread_mutex_unlock(&telemetry->lock);
    return figures;
}

const char *telemetry_trouble(struct telemetry *telemetry)
{
    if (!telemetry || !telemetry->threaded)
        return NULL;
    pthread_mutex_lock(&telemetry->lock);
    const char *trouble = telemetry->trouble[0] ? telemetry->trouble : NULL;
    pthread_mutex_unlock(&telemetry->lock);
    return trouble;
}

/* ---- what is reported of them ------------------------------------------------------------------- */

const char *telemetry_why(struct telemetry *telemetry)
{
    if (!telemetry)
        return "not enough memory to read the sensors with";
    if (telemetry->why[0])
        return telemetry->why;
    pthread_mutex_lock(&telemetry->lock);
    if (telemetry->phase.readings == 0)
        snprintf(telemetry->why, sizeof telemetry->why,
                 "the timed phase was over before the sensors were read (every 20 ms)");
    else
        snprintf(telemetry->why, sizeof telemetry->why, "%s",
                 telemetry->sensor_why[0] ? telemetry->sensor_why : "the card has no such sensor");
    pthread_mutex_unlock(&telemetry->lock);
    return telemetry->why;
}

static const struct {
    uint64_t bit;
    const char *name;
} reason_names[] = {
    {NVML_REASON_SW_POWER_CAP, "its power limit"},
    {NVML_REASON_HW_SLOWDOWN, "a hardware slowdown"},
    {NVML_REASON_SYNC_BOOST, "another card of its group (sync boost)"},
    {NVML_REASON_SW_THERMAL, "its temperature (by the driver)"},
    {NVML_REASON_HW_THERMAL, "its temperature (by the hardware)"},
    {NVML_REASON_HW_POWER_BRAKE, "the power supply (power brake)"},
};

static void warn_of_throttling(struct telemetry *telemetry, const struct telemetry_figures *figures)
{
    char names[256] = "";
    if (!(figures->throttled_ratio > 0))
        return;
    for (size_t i = 0; i < sizeof reason_names / sizeof *reason_names; i++) {
        size_t length = strlen(names);
        if (figures->reasons & reason_names[i].bit)
            snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "",
                     reason_names[i].name);
    }
    run_warning(telemetry->run, "clock_throttled",
                "in %.3g %% of %u readings the card's clock was held down by %s: the figures are "
                "those of this clock, compare them with the limit at the observed clock",
                figures->throttled_ratio * 100, figures->readings, names);
}

static void warn_of_ecc(struct telemetry *telemetry)
{
    telemetry->ecc_after = nvml_ecc_errors(&telemetry->nvml);
    if (telemetry->ecc_before < 0 || telemetry->ecc_after <= telemetry->ecc_before)
        return;
    run_warning(telemetry->run, "ecc",
                "%lld ECC errors that could not be corrected since the trial began: do not trust "
                "the figures, and check the card's health (nvidia-smi -q -d ECC)",
                (long long)(telemetry->ecc_after - telemetry->ecc_before));
}

static double or_nan(unsigned number)
{
    return number ? number : NAN;
}

void telemetry_report(struct telemetry *telemetry, struct run *run)
{
    struct telemetry_figures figures = telemetry_figures(telemetry);
    struct nvml_link link = telemetry ? telemetry->link : (struct nvml_link){0};
    const struct {
        const char *name;
        double value;
    } metrics[] = {
        {"nvml_clock_hertz", figures.clock_hertz},
        {"nvml_clock_hertz_min", figures.clock_hertz_min},
        {"memory_clock_hertz", figures.memory_clock_hertz},
        {"power_watts", figures.power_watts},
        {"energy_joules", figures.energy_joules},
        {"temperature_celsius", figures.temperature_celsius},
        {"throttled_ratio", figures.throttled_ratio},
        {"pcie_generation", or_nan(link.generation)},
        {"pcie_lanes", or_nan(link.lanes)},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        if (isfinite(metrics[i].value))
            run_metric(run, metrics[i].name, metrics[i].value);
        else
            run_no_metric(run, metrics[i].name, telemetry_why(telemetry));
    }
    if (!telemetry || !telemetry->usable)
        return;
    warn_of_throttling(telemetry, &figures);
    warn_of_ecc(telemetry);
}

/* Of a thread that a call of the driver keeps, nothing may be freed: it ends with the process. */
static bool join(struct telemetry *telemetry)
{
    int failure = 0;
    struct timespec until = from_now(CLOSE_WITHIN_NS);
    pthread_mutex_lock(&telemetry->lock);
    telemetry->closing = true;
    pthread_cond_broadcast(&telemetry->wake);
    while (!telemetry->finished && !failure)
        failure = pthread_cond_timedwait(&telemetry->wake, &telemetry->lock, &until);
    bool finished = telemetry->finished;
    pthread_mutex_unlock(&telemetry->lock);
    return finished && pthread_join(telemetry->thread, NULL) == 0;
}

void telemetry_close(struct telemetry *telemetry)
{
    if (!telemetry || (telemetry->threaded && !join(telemetry)))
        return;
    if (telemetry->usable)
        nvml_close(&telemetry->nvml);
    record_free(&telemetry->phase);
    record_free(&telemetry->interval);
    pthread_cond_destroy(&telemetry->wake);
    pthread_mutex_destroy(&telemetry->lock);
    free(telemetry);
}
