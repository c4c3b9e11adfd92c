/* Whole trials of workloads with a loop of their own: what is recorded, what ends them, what they
 * report. */
#include "calls.h"
#include "monotonic.h"

#include <signal.h>
#include <time.h>

enum { BLOCK_BYTES = 4096 };

static int one_operation_a_unit(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, 1, 1);
    return EXIT_OK;
}

static void sleep_s(double seconds)
{
    const struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&time, NULL);
}

/* ---- latencies that are known: 1 to 1000 µs in turn, each fourth operation a write ----------- */

static const char *const read_and_write[] = {"read", "write", NULL};
static const struct metric known_metrics[] = {
    {"reads", "1", HIGHER_IS_BETTER, "d"}, {"took_s", "s", LOWER_IS_BETTER, "d"}, {.name = NULL}};
static atomic_uint prepared;

static int known_prepare(struct thread *thread)
{
    atomic_fetch_add(&prepared, 1);
    return run_meet(thread) ? EXIT_OK : EXIT_FAILED;
}

/* The ramp's operations take an hour each: one that was recorded would show. */
static int known_loop(struct thread *thread)
{
    bool timed = run_loop_timed(thread);
    if (timed != (atomic_load(&prepared) == run_threads(thread->run)) || !run_meet(thread)) {
        run_reason(thread->run, "prepare() is called between ramp and timed region");
        return EXIT_FAILED;
    }
    uint64_t done = 0;
    for (; !run_loop_over(thread, done, now_s()); done++) {
        uint64_t latency_ns = timed ? 1000 * (1 + done % 1000) : 3600000000000u;
        run_loop_done(thread, done % 4 == 3, latency_ns);
    }
    return EXIT_OK;
}

static void known_finish(struct thread *thread)
{
    run_metric(thread->run, "reads", (double)run_loop_operations(thread->run, 0));
    run_metric(thread->run, "took_s", run_loop_elapsed_s(thread->run));
}

static const struct workload known_workload = {
    .name = "known",
    .description = "d",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description = "d",
             .combine = COMBINE_SUM},
    .streams = read_and_write,
    .metrics = known_metrics,
    .setup = one_operation_a_unit,
    .prepare = known_prepare,
    .loop = known_loop,
    .finish = known_finish,
};

/* ---- blocks that take a millisecond ---------------------------------------------------------- */

static const struct param block_params[] = {{.name = "total_bytes",
                                             .type = PARAM_COUNT,
                                             .unit = "byte",
                                             .min = 1,
                                             .max = 1e15,
                                             .ends_trial = true,
                                             .help = "h"},
                                            {.name = NULL}};
static const char *const no_work[] = {"work", NULL};

static int block_check(struct run *run)
{
    if (run_param_set(run, "total_bytes"))
        run_set_count(run, "work", run_count(run, "total_bytes"));
    return EXIT_OK;
}

static int block_setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, BLOCK_BYTES, 1);
    return EXIT_OK;
}

static int waiting_loop(struct thread *thread)
{
    uint64_t done = 0;
    for (double begun_s = now_s(); !run_loop_over(thread, done, begun_s); done++) {
        sleep_s(1e-3);
        double now = now_s();
        run_loop_done(thread, 0, (uint64_t)((now - begun_s) * 1e9));
        begun_s = now;
    }
    return EXIT_OK;
}

static const struct workload block_workload = {
    .name = "blocks",
    .description = "d",
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description = "d",
             .combine = COMBINE_SUM,
             .work = "byte"},
    .params = block_params,
    .excludes = no_work,
    .check = block_check,
    .setup = block_setup,
    .loop = waiting_loop,
};

/* ---- a time ----------------------------------------------------------------------------------- */

static int time_setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_block_bytes(thread->run, BLOCK_BYTES);
    return one_operation_a_unit(thread);
}

static const struct workload time_workload = {
    .name = "time",
    .description = "d",
    .rate = {.name = "commit_time_s",
             .unit = "s",
             .description = "d",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .setup = time_setup,
    .loop = waiting_loop,
};

/* ---- work that moves in bulk, as another host tells of it: by its clock a block a millisecond --- */

#define BULK_RATE (BLOCK_BYTES / 1e-3)

static const struct param bulk_params[] = {
    {.name = "flows", .type = PARAM_COUNT, .initial = "2", .min = 1, .max = 8, .help = "h"},
    {.name = NULL}};
static const char *const no_threads[] = {"threads", NULL};
static _Atomic uint64_t bulk_moved[16];
static _Atomic double bulk_begun_s[16];

static unsigned two_a_flow(const struct run *run)
{
    return 2 * (unsigned)run_count(run, "flows");
}

static int bulk_setup(struct thread *thread)
{
    if (thread->index == 0) {
        run_fact(thread->run, "place", "elsewhere");
        run_fact(thread->run, "place", "a \"bench\"");
        run_fact(thread->run, "nothing", "");
        run_fact(thread->run, "place", "");
    }
    return block_setup(thread);
}

static uint64_t bulk_so_far(const struct thread *thread, double *at_s)
{
    uint64_t moved = atomic_load(&bulk_moved[thread->index]);
    *at_s = atomic_load(&bulk_begun_s[thread->index]) + (double)moved / BULK_RATE;
    return moved;
}

static int bulk_loop(struct thread *thread)
{
    uint64_t blocks = 0;
    atomic_store(&bulk_begun_s[thread->index], now_s());
    for (; !run_loop_over(thread, blocks, now_s()); blocks++) {
        sleep_s(1e-3);
        atomic_store(&bulk_moved[thread->index], blocks * BLOCK_BYTES);
    }
    if (run_loop_timed(thread))
        run_bulk_done(thread, blocks * BLOCK_BYTES, BULK_RATE);
    return EXIT_OK;
}

static void bulk_finish(struct thread *thread)
{
    run_bulk_rate(thread->run, 12345);
    run_rung(thread->run, 1, 0.5);
    run_rung(thread->run, 2, 1.25);
}

static const struct workload bulk_workload = {
    .name = "bulk",
    .description = "d",
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description = "d",
             .combine = COMBINE_SUM,
             .work = "byte"},
    .params = bulk_params,
    .excludes = no_threads,
    .threads = two_a_flow,
    .moved = bulk_so_far,
    .setup = bulk_setup,
    .loop = bulk_loop,
    .finish = bulk_finish,
};

/* ---- … with a time, and a temperature beside it; an operation takes a millisecond ---------------- */

static const struct param bulk_time_params[] = {
    {.name = "device", .type = PARAM_TEXT, .initial = "auto", .help = "h"}, {.name = NULL}};

static int bulk_time_setup(struct thread *thread)
{
    char stack[1 << 20]; /* more than a thread has by default */
    memset(stack, (int)thread->index, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory");
    return one_operation_a_unit(thread);
}

static _Atomic double bulk_time_at_s;

static uint64_t bulk_time_so_far(const struct thread *thread, double *at_s)
{
    *at_s = atomic_load(&bulk_time_at_s);
    return atomic_load(&bulk_moved[thread->index]);
}

static int bulk_time_loop(struct thread *thread)
{
    uint64_t done = 0;
    double begun_s = now_s();
    for (; !run_loop_over(thread, done, now_s()); done++) {
        sleep_s(1e-3);
        atomic_store(&bulk_moved[0], done + 1);
        atomic_store(&bulk_time_at_s, now_s());
    }
    if (run_loop_timed(thread))
        run_bulk_done(thread, done, (double)done / (now_s() - begun_s));
    return EXIT_OK;
}

static size_t bulk_time_observe(struct run *run, struct observed *figures, size_t most)
{
    CHECK(run && most >= 3);
    figures[0] = (struct observed){"temperature_celsius", 42};
    figures[1] = (struct observed){"power_watts", NAN};
    figures[2] = (struct observed){"access_time_s", 1}; /* the figure of the workload stands */
    return 3;
}

static void bulk_time_finish(struct thread *thread)
{
    run_bulk_rate(thread->run, 0.25);
}

static const struct workload bulk_time_workload = {
    .name = "bulk_time",
    .description = "d",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "d",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = bulk_time_params,
    .stack_bytes = 4 << 20,
    .moved = bulk_time_so_far,
    .observe = bulk_time_observe,
    .setup = bulk_time_setup,
    .loop = bulk_time_loop,
    .finish = bulk_time_finish,
};

/* ---- a loop that fails ------------------------------------------------------------------------ */

static int failing_loop(struct thread *thread)
{
    if (!run_loop_timed(thread) || thread->index > 0)
        return waiting_loop(thread);
    run_reason(thread->run, "input/output error at 4096");
    return EXIT_FAILED;
}

static const struct workload failing_workload = {
    .name = "failing",
    .description = "d",
    .rate = {.name = "r", .unit = "1/s", .description = "d"},
    .setup = one_operation_a_unit,
    .loop = failing_loop,
};

static const struct workload *const workloads[] = {&known_workload,
                                                   &block_workload,
                                                   &time_workload,
                                                   &bulk_workload,
                                                   &bulk_time_workload,
                                                   &failing_workload,
                                                   NULL};
static const struct program program = {"test-bench", "test", workloads};

static char output[OUTPUT_MAX];

static int call(const char *root, const char *arguments)
{
    return call_program(&program, root, arguments, output);
}

static bool is_near(double value, double expected, double tolerance)
{
    return fabs(value / expected - 1) <= tolerance;
}

/* ---- the tests -------------------------------------------------------------------------------- */

static void latencies_are_those_reported(const char *root)
{
    CHECK(call(root, "known --threads 3 --work 3000 --warmup-s 0.02") == EXIT_OK);
    CHECK(number(output, "work_operations") == 3000);
    CHECK(is_near(number(output, "latency_min_s"), 1e-6, 1e-9));
    CHECK(is_near(number(output, "latency_max_s"), 1e-3, 1e-9));
    CHECK(is_near(number(output, "latency_mean_s"), 500.5e-6, 1e-9));
    CHECK(is_near(number(output, "latency_p50_s"), 500e-6, 0.008));
    /* Upper bounds: the 2728th, 2871st and 2980th of them, each latency three times. */
    CHECK(is_near(number(output, "latency_p90_s"), 910e-6, 0.008));
    CHECK(is_near(number(output, "latency_p95_s"), 957e-6, 0.008));
    CHECK(is_near(number(output, "latency_p99_s"), 994e-6, 0.008));
    CHECK(isnan(number(output, "latency_p99_9_s")));
    CHECK(strstr(output, "\"metrics.latency_p99_9_s\":\"a 99.9th percentile needs at least 6643"));
}

static void streams_have_their_own_figures(const char *root)
{
    CHECK(call(root, "known --threads 3 --work 3000 --warmup-s 0") == EXIT_OK);
    double read = number(output, "read_operations_per_second");
    double write = number(output, "write_operations_per_second");
    CHECK(is_near(read / write, 3, 1e-9));
    CHECK(is_near(read + write, number(output, "operations_per_second"), 1e-9));
    CHECK(number(output, "reads") == 2250);
    CHECK(is_near(number(output, "took_s"), number(output, "elapsed_s"), 1e-9));
    /* Every fourth is a write: 4 µs is the shortest, 999 of the longest the last read. */
    CHECK(is_near(number(output, "write_latency_min_s"), 4e-6, 1e-9));
    CHECK(is_near(number(output, "write_latency_p50_s"), 500e-6, 0.008));
    CHECK(is_near(number(output, "write_latency_p99_s"), 1000e-6, 0.008)); /* the 748th of 750 */
    CHECK(is_near(number(output, "read_latency_max_s"), 999e-6, 1e-9));
}

static void figures_are_of_the_whole_run(const char *root)
{
    CHECK(call(root, "blocks --threads 2 --duration-s 0.3 --sample-interval-s 0.1") == EXIT_OK);
    double bytes = number(output, "work_bytes"), elapsed_s = number(output, "elapsed_s");
    CHECK(is_near(number(output, "bytes_per_second"), bytes / elapsed_s, 1e-9));
    CHECK(is_near(number(output, "operations_per_second"), bytes / BLOCK_BYTES / elapsed_s, 1e-9));
    CHECK(is_near(number(output, "bytes_per_second_sum"), bytes / elapsed_s, 0.05));
    CHECK(number(output, "latency_p50_s") >= 1e-3);
    CHECK(number(output, "cpu_seconds_per_million_operations") > 0);
    CHECK(strstr(output, "\"basis\":\"whole_run\""));
    CHECK(isnan(number(output, "clean_slice_ratio")) && isnan(number(output, "harness_ratio")));
    CHECK(strstr(output, "\"threads.1.clean_slices\":") && number(output, "slices") == 0);
}

/* What all samples say of the operations is what was done, but for those since the last one. */
static void samples_add_up(const char *root)
{
    CHECK(call(root, "blocks --threads 2 --duration-s 0.45 --sample-interval-s 0.1") == EXIT_OK);
    double operations = 0;
    unsigned samples = 0;
    const char *at = strstr(output, "{\"event\":\"sample\"");
    for (; at; at = strstr(at + 1, "{\"event\":\"sample\""), samples++) {
        operations += number_behind(at, "operations_per_second") * number_behind(at, "dt_s");
        CHECK(is_near(number_behind(at, "bytes_per_second"),
                      BLOCK_BYTES * number_behind(at, "operations_per_second"), 1e-9));
        CHECK(number_behind(at, "latency_p50_s") >= 1e-3);
        CHECK(isnan(number_behind(at, "latency_p99_s")));
    }
    CHECK(samples >= 3);
    CHECK(operations > 0 && operations <= number(output, "work_bytes") / BLOCK_BYTES * 1.1);
}

static void a_fixed_work_has_no_end_by_time(const char *root)
{
    CHECK(call(root, "blocks --threads 3 --total-bytes 40961") == EXIT_OK);
    CHECK(number(output, "work_bytes") == 11 * BLOCK_BYTES);
    CHECK(strstr(output, "\"total_bytes\":40961,") && strstr(output, "\"duration_s\":null"));
    CHECK(call(root, "blocks --work 40961") == EXIT_USAGE);
    CHECK(call(root, "known --work 2 --duration-s 1") == EXIT_USAGE);
    CHECK(strstr(output, "--work and --duration-s are both given"));
}

static void a_total_and_a_time_end_with_whichever_is_first(const char *root)
{
    CHECK(call(root, "blocks --threads 3 --total-bytes 40961 --duration-s 60") == EXIT_OK);
    CHECK(number(output, "work_bytes") == 11 * BLOCK_BYTES);
    CHECK(call(root, "blocks --threads 3 --total-bytes 1000000000 --duration-s 0.05") == EXIT_OK);
    CHECK(strstr(output, "\"total_bytes\":1000000000,"));
    CHECK(strstr(output, "\"duration_s\":0.05"));
    CHECK(number(output, "work_bytes") > 0 && number(output, "work_bytes") < 1e9);
}

static void a_thread_without_work_has_no_figure(const char *root)
{
    CHECK(call(root, "known --threads 4 --work 2 --warmup-s 0") == EXIT_OK);
    CHECK(number(output, "work_operations") == 2);
    CHECK(strstr(output, "\"threads.3.operations_per_second\":\"the fixed work left nothing"));
    CHECK(strstr(output, "\"metrics.write_latency_p50_s\":\"no operation was done\""));
    CHECK(strstr(output, "\"metrics.bytes_per_second\":\"an operation moves no fixed"));
}

static void a_time_is_the_median_latency(const char *root)
{
    CHECK(call(root, "time --threads 2 --work 20") == EXIT_OK);
    double time_s = number(output, "commit_time_s");
    CHECK(time_s >= 1e-3 && time_s == number(output, "latency_p50_s"));
    CHECK(time_s >= number(output, "latency_min_s") && time_s <= number(output, "latency_max_s"));
    CHECK(number(output, "operations_per_second") > 0);
    CHECK(is_near(number(output, "bytes_per_second"),
                  BLOCK_BYTES * number(output, "operations_per_second"), 1e-9));
    CHECK(!strstr(output, "commit_time_s_"));
}

static void workload_reports_bulk(const char *root)
{
    CHECK(call(root, "bulk --duration-s 0.4 --sample-interval-s 0.1") == EXIT_OK);
    const double four = 4 * BULK_RATE;
    CHECK(number(output, "bytes_per_second") == 12345);
    CHECK(is_near(number(output, "bytes_per_second_sum"), four, 1e-9));
    CHECK(!strstr(output, "latency") && !strstr(output, "operations_per_second"));
    /* Between two moments by the clock of the counter: a rate of that clock. The first also
     * holds what passed before the threads began. */
    const char *sample = strstr(output, "{\"event\":\"sample\"");
    sample = sample ? strstr(sample + 1, "{\"event\":\"sample\"") : NULL;
    CHECK(sample && is_near(number_behind(sample, "bytes_per_second"), four, 1e-6));
    CHECK(strstr(output, "\"facts\":{\"place\":\"a \\\"bench\\\"\"}"));
}

/* Each with the CPUs of so many threads. */
static void numbers_of_threads_have_their_figures(const char *root)
{
    CHECK(call(root, "bulk --duration-s 0.01") == EXIT_OK);
    const char *threads = strstr(output, "\"threads\":[{");
    int first = (int)number_behind(threads, "cpu");
    int second = (int)number_behind(strstr(threads, "},{"), "cpu");
    char expected[128];
    snprintf(expected, sizeof expected,
             "\"rungs\":[{\"cpus\":[%d],\"value\":0.5},{\"cpus\":[%d,%d],\"value\":1.25}]", first,
             first, second);
    CHECK(strstr(output, expected));
}

static void own_parameter_sets_the_threads(const char *root)
{
    CHECK(call(root, "bulk --flows 3 --work 40961 --warmup-s 0") == EXIT_OK);
    CHECK(number(output, "work_bytes") == 11 * BLOCK_BYTES);
    CHECK(strstr(output, "\"flows\":3") && !strstr(output, "\"threads\":6"));
    unsigned threads = 0;
    for (const char *at = output; (at = strstr(at, "\"clean_slices\":null")); at++)
        threads++;
    CHECK(threads == 6);
    CHECK(call(root, "bulk --threads 2") == EXIT_USAGE);
}

static void bulk_may_be_a_time(const char *root)
{
    CHECK(call(root, "bulk_time --threads 1 --duration-s 0.4 --sample-interval-s 0.1") == EXIT_OK);
    double done = number(output, "work_operations");
    CHECK(number(output, "access_time_s") == 0.25 && done > 0);
    CHECK(!strstr(output, "access_time_s_sum") && !strstr(output, "latency"));
    const char *thread = strstr(output, "\"threads\":[");
    CHECK(is_near(number_behind(thread, "access_time_s"), number(output, "elapsed_s") / done, 0.1));
    const char *sample = strstr(output, "{\"event\":\"sample\"");
    double reported_s = number_behind(sample, "access_time_s");
    CHECK(reported_s >= 1e-3 && reported_s < 0.1);
}

static void what_is_observed_stands_in_the_samples(const char *root)
{
    CHECK(call(root, "bulk_time --threads 1 --duration-s 0.4 --sample-interval-s 0.1") == EXIT_OK);
    unsigned samples = 0, observed = 0;
    for (const char *at = output; (at = strstr(at, "{\"event\":\"sample\"")); at++)
        samples++;
    for (const char *at = output;
         (at = strstr(at, ",\"temperature_celsius\":42,\"power_watts\":null}")); at++)
        observed++;
    CHECK(samples >= 3 && observed == samples);
}

static void a_text_is_a_name(const char *root)
{
    CHECK(call(root, "bulk_time --threads 1 --duration-s 0.01") == EXIT_OK);
    CHECK(strstr(output, "\"params\":{\"device\":\"auto\","));
    CHECK(call(root, "bulk_time --device GPU-0a:1.2_b --threads 1 --duration-s 0.01") == EXIT_OK);
    CHECK(strstr(output, "\"device\":\"GPU-0a:1.2_b\""));
    CHECK(call(root, "bulk_time --device a/b") == EXIT_USAGE);
    CHECK(strstr(output, "a name of 1 to 128 of A-Z a-z 0-9 : . _ -"));
    CHECK(call(root, "bulk_time --device=") == EXIT_USAGE);
    char arguments[256] = "bulk_time --device=";
    size_t length = strlen(arguments);
    memset(arguments + length, 'x', 129);
    CHECK(call(root, arguments) == EXIT_USAGE);
    arguments[length + 128] = '\0';
    CHECK(call(root, strcat(arguments, " --threads=1 --duration-s=0.01")) == EXIT_OK);
    CHECK(call(root, "--list") == EXIT_OK);
    CHECK(strstr(output, "\"name\":\"device\",\"type\":\"text\",\"unit\":null,"
                         "\"default\":\"auto\",\"min\":null"));
}

static void the_table_knows_loops(const char *root)
{
    CHECK(call(root, "--list") == EXIT_OK);
    CHECK(strstr(output, "\"kind\":\"loop\"") && !strstr(output, "slice_s\""));
    CHECK(strstr(output, "\"name\":\"write_latency_p99_9_s\""));
    CHECK(call(root, "known --slice-s 0.003") == EXIT_USAGE);
    CHECK(call(root, "known --help") == EXIT_OK);
    CHECK(strstr(output, "overlap_ratio (1)") && strstr(output, "read_latency_p50_s (s)"));
}

static void a_failure_ends_all(const char *root)
{
    double start_s = now_s();
    CHECK(call(root, "failing --threads 4 --duration-s 30 --warmup-s 0.01") == EXIT_FAILED);
    CHECK(strstr(output, "input/output error at 4096") && !strstr(output, "\"event\":\"end\""));
    CHECK(now_s() - start_s < 10);
}

static void a_signal_ends_it_within_a_second(void)
{
    char *words[] = {"test-bench", "blocks", "--threads", "2", "--duration-s", "30", NULL};
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(freopen("/dev/null", "w", stdout));
        exit(bench_main(&program, 6, words));
    }
    sleep_s(0.5);
    double sent_s = now_s();
    CHECK(kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILED);
    CHECK(now_s() - sent_s < 1);
}

int main(void)
{
    const char *root = fresh_root();
    latencies_are_those_reported(root);
    streams_have_their_own_figures(root);
    figures_are_of_the_whole_run(root);
    samples_add_up(root);
    a_fixed_work_has_no_end_by_time(root);
    a_total_and_a_time_end_with_whichever_is_first(root);
    a_thread_without_work_has_no_figure(root);
    a_time_is_the_median_latency(root);
    workload_reports_bulk(root);
    numbers_of_threads_have_their_figures(root);
    own_parameter_sets_the_threads(root);
    bulk_may_be_a_time(root);
    what_is_observed_stands_in_the_samples(root);
    a_text_is_a_name(root);
    the_table_knows_loops(root);
    a_failure_ends_all(root);
    a_signal_ends_it_within_a_second();
    return 0;
}
