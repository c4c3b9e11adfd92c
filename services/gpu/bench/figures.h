/* The metrics that bulk workloads have beside the harness's and their own. */
#ifndef GPU_BENCH_FIGURES_H
#define GPU_BENCH_FIGURES_H

#include "job.h"

/* clang-format off */
/* For the tables. `unit`: of the rate. */
#define GPU_METRICS(unit_of_rate, better)                                                          \
    {"rate_best", unit_of_rate, better, "Figure of the best window."},                             \
    {"rate_cv", "1", LOWER_IS_BETTER,                                                              \
     "Standard deviation over the windows, divided by their mean."},                               \
    {"windows", "1", HIGHER_IS_BETTER,                                                             \
     "Number of windows whose median is the figure. Each lasts at least 100 ms on the device's "   \
     "clock; if all work together is shorter, it makes up one window."},                           \
    {"device_busy_ratio", "1", HIGHER_IS_BETTER,                                                   \
     "Time that the device was busy, on its own clock, divided by the time on the host's clock."}, \
    {"core_clock_hertz", "Hz", HIGHER_IS_BETTER,                                                   \
     "Core clock while the kernels ran. Each launch reads the device's cycle counter and "         \
     "nanosecond counter; the metric is the median over the launches. If they give no value (as "  \
     "with OpenCL), it is the clock that NVML reports."},                                          \
    GPU_SENSOR_METRICS

/* … and of those that count operations of the cores. */
#define GPU_CYCLE_METRICS                                                                          \
    {"operations_per_cycle", "operation/cycle", HIGHER_IS_BETTER,                                  \
     "The figure divided by core_clock_hertz, for the whole device."}

/* What the card itself says; of every workload. */
#define GPU_SENSOR_METRICS                                                                         \
    {"nvml_clock_hertz", "Hz", HIGHER_IS_BETTER,                                                   \
     "Clock of the multiprocessors as NVML reports it: median of readings every 20 ms."},          \
    {"nvml_clock_hertz_min", "Hz", HIGHER_IS_BETTER, "Lowest of these readings."},                 \
    {"memory_clock_hertz", "Hz", HIGHER_IS_BETTER,                                                 \
     "Memory clock as NVML reports it: median of the readings."},                                  \
    {"power_watts", "W", LOWER_IS_BETTER, "Power draw of the card: mean of the readings."},        \
    {"energy_joules", "J", LOWER_IS_BETTER,                                                        \
     "Energy that the card used in the timed region: from its own counter or, without one, power " \
     "x time."},                                                                                   \
    {"temperature_celsius", "°C", LOWER_IS_BETTER, "Temperature of the card: highest reading."},   \
    {"throttled_ratio", "1", LOWER_IS_BETTER,                                                      \
     "Share of the readings in which the card reported that something held its clock down."},      \
    {"pcie_generation", "1", HIGHER_IS_BETTER,                                                     \
     "PCI Express generation of the card's link at the end of the timed region, as NVML reports "  \
     "it; idle cards use a lower one."},                                                           \
    {"pcie_lanes", "1", HIGHER_IS_BETTER,                                                          \
     "Lanes of the card's PCI Express link at the end of the timed region."}
/* clang-format on */

/* All of them, from the windows, the clocks and the sensors. On thread 0, in finish(). */
void figures_report(struct gpu_job *job);
/* That of GPU_CYCLE_METRICS: for a kind's finish(). */
void figures_report_cycles(struct gpu_job *job);

#endif
