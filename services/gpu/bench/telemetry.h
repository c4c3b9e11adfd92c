/* What the card's own sensors say while a trial runs: one thread that asks them every 20 ms. The
 * sensors are NVML's; other cards have none yet, and each figure is null with the reason then. */
#ifndef GPU_BENCH_TELEMETRY_H
#define GPU_BENCH_TELEMETRY_H

#include "device.h"

struct telemetry;

/* NaN: not known. */
struct telemetry_figures {
    double clock_hertz;         /* of the multiprocessors, median */
    double clock_hertz_min;     /* … least */
    double memory_clock_hertz;  /* median */
    double power_watts;         /* mean */
    double energy_joules;       /* the card's own counter, else power x time */
    double temperature_celsius; /* highest */
    double throttled_ratio;     /* of the readings, those in which something held the clock down */
    uint64_t reasons;           /* NVML's bits that were seen, idle left out */
    unsigned readings;
};

/* In the trial's open(), on the main thread, once the device is open. Finds the device's sensors by its
 * PCI id or UUID, tells by run_fact() what they are (sensors, pcie), and starts to read. Never fails the trial; NULL without memory, which all functions here take. */
struct telemetry *telemetry_open(struct run *run, const struct gpu_device *device);
/* The timed phase begins and is over: figures are of what lies between. By one thread. */
void telemetry_begin(struct telemetry *telemetry);
void telemetry_end(struct telemetry *telemetry);
/* Since the last call, or since the timed phase began. For samples, by one other thread. */
struct telemetry_figures telemetry_since(struct telemetry *telemetry);
/* Of the timed phase, after telemetry_end(). */
struct telemetry_figures telemetry_figures(struct telemetry *telemetry);
/* Why a figure is NaN: no NVML, or the card has no such sensor. The text lasts until the close. */
const char *telemetry_why(struct telemetry *telemetry);
/* In finish(), after telemetry_end(): the metrics nvml_clock_hertz, nvml_clock_hertz_min,
 * memory_clock_hertz, power_watts, energy_joules, temperature_celsius, throttled_ratio,
 * pcie_generation and pcie_lanes (each by run_metric() or run_no_metric()) and the warnings throttled
 * and ecc. The warning xid is printed as soon as it is seen. */
void telemetry_report(struct telemetry *telemetry, struct run *run);
/* A line about an Xid or ECC error that was seen so far, for the message of a failure that it may
 * explain; NULL: none. The text lasts until the close. */
const char *telemetry_trouble(struct telemetry *telemetry);
void telemetry_close(struct telemetry *telemetry);

#endif
