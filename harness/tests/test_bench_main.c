/* Whole trials of workloads made up for it: rates in bytes, times, background threads, what comes
 * before the start event. */
#include "calls.h"

enum { UNIT_BYTES = 1000, UNIT_TURNS = 200 };

static int no_setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, 1, 1 << 20);
    return EXIT_OK;
}

static void spin(uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++)
        __asm__ volatile("" : "+r"(i));
}

static int spin_step(struct thread *thread, uint64_t batch)
{
    (void)thread;
    spin(batch * UNIT_TURNS);
    return EXIT_OK;
}

/* ---- a rate in bytes ------------------------------------------------------------------------ */

static const char *const stores[] = {"best", "plain", "nt", NULL};
static const char *const automatic[] = {"auto", NULL};
static const char *const without_nt[] = {"nt", "plain", "libc", "plain", NULL};
static const struct param byte_params[] = {
    {.name = "store",
     .type = PARAM_CHOICE,
     .choices = stores,
     .initial = "best",
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "way of storing",
     .noun = "store",
     .named = true,
     .resolved = "best",
     .resolved_once = true,
     .fallbacks = without_nt,
     .facts = {"unit", "bus"},
     .help = "h"},
    {.name = "size_bytes",
     .type = PARAM_COUNT,
     .min = 1,
     .max = 1e9,
     .choices = automatic,
     .initial = "auto",
     .help = "h"},
    {.name = "share",
     .type = PARAM_NUMBER,
     .min = 0,
     .max = 1,
     .excludes = "size_bytes",
     .help = "h"},
    {.name = "duration_s",
     .type = PARAM_NUMBER,
     .min = 0.01,
     .max = 1,
     .initial = "0.05",
     .help = "its own"},
    {.name = NULL},
};
static const struct metric byte_metrics[] = {{"plain", "byte/s", HIGHER_IS_BETTER, "d"},
                                             {"block", "s", LOWER_IS_BETTER, "d"},
                                             {.name = NULL}};
static const char *const excluded[] = {"sample_interval_s", NULL};

static int byte_check(struct run *run)
{
    if (run_param_set(run, "share") && run_number(run, "share") > 0.9) {
        run_reason(run, "share %g: 0.9 at most", run_number(run, "share"));
        return EXIT_USAGE;
    }
    if (run_choice(run, "size_bytes"))
        run_set_count(run, "size_bytes", 4096 * run_threads(run));
    run_warning(run, "early", "from check()");
    return EXIT_OK;
}

static int byte_setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, UNIT_BYTES, 1 << 20);
    return EXIT_OK;
}

static int byte_calibrate(struct thread *thread)
{
    if (!run_meet(thread))
        return EXIT_OK;
    if (thread->index == 0 && !strcmp(run_choice(thread->run, "store"), "best"))
        run_set_choice(thread->run, "store", "nt");
    return EXIT_OK;
}

static void byte_finish(struct thread *thread)
{
    run_metric(thread->run, "plain", run_rate(thread->run));
    run_no_metric(thread->run, "block", "no blocks were requested");
}

static const struct workload bytes_workload = {
    .name = "bytes",
    .description = "d",
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description = "d",
             .combine = COMBINE_SUM,
             .work = "byte"},
    .params = byte_params,
    .excludes = excluded,
    .metrics = byte_metrics,
    .check = byte_check,
    .setup = byte_setup,
    .calibrate = byte_calibrate,
    .step = spin_step,
    .finish = byte_finish,
};

/* ---- a time, with load in the background ---------------------------------------------------- */

static const struct metric time_metrics[] = {{"load", "1/s", HIGHER_IS_BETTER, "d"},
                                             {"per_second", "1/s", HIGHER_IS_BETTER, "d"},
                                             {.name = NULL}};

static void time_empty_loop(struct thread *thread, uint64_t batch)
{
    (void)thread;
    spin(batch * UNIT_TURNS / 2);
}

static bool time_background(const struct thread *thread)
{
    return thread->index > 0;
}

static void time_finish(struct thread *thread)
{
    run_metric(thread->run, "load", run_background_rate(thread->run));
    run_metric(thread->run, "per_second", run_rate(thread->run));
}

#define TIME_WORKLOAD                                                                              \
    .description = "d",                                                                            \
    .rate = {.name = "access_time_s",                                                              \
             .unit = "s",                                                                          \
             .description = "d",                                                                   \
             .combine = COMBINE_MEDIAN,                                                            \
             .time = true},                                                                        \
    .setup = no_setup

static const struct workload time_workload = {
    .name = "time",
    TIME_WORKLOAD,
    .step = spin_step,
    .metrics = time_metrics,
    .empty_loop = time_empty_loop,
    .background = time_background,
    .finish = time_finish,
};

/* ---- what goes wrong before the start event -------------------------------------------------- */

static int setup_without_pool(struct thread *thread)
{
    if (thread->index == 0)
        return no_setup(thread);
    run_reason(thread->run, "no pages in the pool");
    return EXIT_UNSUPPORTED;
}

static int calibrate_without_memory(struct thread *thread)
{
    if (thread->index == 0)
        return run_meet(thread) ? EXIT_OK : EXIT_OK; /* … until the other one has failed */
    run_warning(thread->run, "late", "given before it failed");
    run_reason(thread->run, "memory ran short");
    return EXIT_RESOURCE;
}

static const struct workload no_pool_workload = {
    .name = "no_pool",
    .description = "d",
    .rate = {.name = "r", .unit = "1/s", .description = "d"},
    .setup = setup_without_pool,
    .step = spin_step,
};
static const struct workload no_memory_workload = {
    .name = "no_memory",
    .description = "d",
    .rate = {.name = "r", .unit = "1/s", .description = "d"},
    .setup = no_setup,
    .calibrate = calibrate_without_memory,
    .step = spin_step,
};

/* ---- what was requested ---------------------------------------------------------------------- */

static uint64_t units_done[8];

static int counting_step(struct thread *thread, uint64_t batch)
{
    units_done[thread->index] += batch;
    return spin_step(thread, batch);
}

static int counting_verify(struct thread *thread, uint64_t units)
{
    return run_check_units(thread, units_done[thread->index], units);
}

static int short_step(struct thread *thread, uint64_t batch)
{
    return counting_step(thread, thread->index > 0 ? (batch + 1) / 2 : batch);
}

static const struct workload counted_workload = {
    .name = "counted",
    TIME_WORKLOAD,
    .step = counting_step,
    .background = time_background,
    .verify = counting_verify,
};
static const struct workload short_workload = {
    .name = "short",
    TIME_WORKLOAD,
    .step = short_step,
    .verify = counting_verify,
};
static const struct workload short_load_workload = {
    .name = "short_load",
    TIME_WORKLOAD,
    .step = short_step,
    .background = time_background,
    .verify = counting_verify,
};

/* ---- the clock of a team --------------------------------------------------------------------- */

/* What the chains of a reading say, in GHz, again and again. */
static const double two_agree[] = {2.0, 3.7, 3.69}, none_agree[] = {2.0, 3.7, 2.9};

static double next_clock_hertz(const double *readings)
{
    static unsigned taken;
    return 1e9 * readings[taken++ % 3];
}

static double confirmed_clock_hertz(struct thread *thread)
{
    (void)thread;
    return next_clock_hertz(two_agree);
}

static double unconfirmed_clock_hertz(struct thread *thread)
{
    (void)thread;
    return next_clock_hertz(none_agree);
}

#define TEAM_WORKLOAD                                                                              \
    .description = "d",                                                                            \
    .rate = {.name = "r", .unit = "1/s", .description = "d", .combine = COMBINE_SUM},              \
    .team = true, .setup = no_setup, .step = spin_step

static const struct workload confirmed_workload = {
    .name = "confirmed", TEAM_WORKLOAD, .clock_hertz = confirmed_clock_hertz};
static const struct workload unconfirmed_workload = {
    .name = "unconfirmed", TEAM_WORKLOAD, .clock_hertz = unconfirmed_clock_hertz};

static const struct workload *const workloads[] = {&bytes_workload,       &time_workload,
                                                   &no_pool_workload,     &no_memory_workload,
                                                   &counted_workload,     &short_workload,
                                                   &short_load_workload,  &confirmed_workload,
                                                   &unconfirmed_workload, NULL};
static const struct program program = {"test-bench", "test", workloads};

static int call(const char *root, const char *arguments, char *output)
{
    return call_program(&program, root, arguments, output);
}

static unsigned lines_of(const char *output)
{
    unsigned lines = 0;
    for (; *output; output++)
        lines += *output == '\n';
    return lines;
}

static char output[OUTPUT_MAX];

static void rate_in_bytes_has_metric_in_bytes(const char *root)
{
    CHECK(call(root, "bytes --threads 2", output) == EXIT_OK);
    CHECK(strstr(output, "{\"event\":\"start\"") == output);
    CHECK(
        strstr(output, "\"store\":\"nt\",\"size_bytes\":8192,\"share\":null,\"duration_s\":0.05"));
    CHECK(!strstr(output, "sample_interval_s"));
    const char *warning = strstr(output, "\n{\"event\":\"warning\",\"code\":\"early\"");
    CHECK(warning && warning < strstr(output, "\"event\":\"end\""));
    CHECK(fmod(number(output, "work_bytes"), UNIT_BYTES) == 0);
    CHECK(number(output, "bytes_per_second") == number(output, "plain"));
    CHECK(number(output, "bytes_per_second") > 0);
    CHECK(strstr(output, "\"metrics.block\":\"no blocks were requested\""));
    CHECK(!strstr(output, "work_operations"));
}

static void a_fixed_work_is_rounded_up_to_units(const char *root)
{
    CHECK(call(root, "bytes --threads 3 --work 9500500", output) == EXIT_OK);
    CHECK(number(output, "work_bytes") == 9501000);
}

static void what_is_excluded_is_unknown(const char *root)
{
    CHECK(call(root, "bytes --sample-interval-s 1", output) == EXIT_USAGE);
    CHECK(lines_of(output) == 1 && strstr(output, "unknown parameter"));
}

static void two_that_exclude_one_another_are_refused(const char *root)
{
    CHECK(call(root, "bytes --size-bytes 4096 --share 0.5", output) == EXIT_USAGE);
    CHECK(lines_of(output) == 1 && strstr(output, "--share and --size-bytes are both given"));
    CHECK(call(root, "bytes --share 0.5 --work 1000", output) == EXIT_OK);
    CHECK(strstr(output, "\"duration_s\":null"));
}

static void the_list_says_what_parameters_mean(const char *root)
{
    CHECK(call(root, "--list", output) == EXIT_OK);
    CHECK(strstr(output, "\"help\":\"h\",\"roles\":[\"axis\",\"tag\"],"
                         "\"title\":\"way of storing\",\"noun\":\"store\",\"named\":true,"
                         "\"resolved\":[\"best\"],\"resolved_once\":true,"
                         /* No fallback of a choice that it does not have. */
                         "\"fallbacks\":{\"nt\":\"plain\"},\"facts\":[\"unit\",\"bus\"]}"));
    CHECK(strstr(output, "\"help\":\"h\",\"resolved\":[\"auto\"]}"));
    CHECK(strstr(output, "\"help\":\"h\",\"excludes\":\"size_bytes\"}"));
    CHECK(strstr(output, "\"excludes\":\"duration_s\",\"ends_trial\":true}"));
    CHECK(strstr(output, "\"help\":\"its own\"}"));
}

static void check_refuses_before_anything_starts(const char *root)
{
    CHECK(call(root, "bytes --share 0.95", output) == EXIT_USAGE);
    CHECK(lines_of(output) == 1 && strstr(output, "share 0.95: 0.9 at most"));
}

/* Half the turns are the empty loop's. How long they take is the host's affair, so only bounds that
 * a busy one keeps are requested. */
static void a_time_is_that_of_one_operation(const char *root)
{
    CHECK(call(root, "time --threads 1 --duration-s 0.2", output) == EXIT_OK);
    double time_s = number(output, "access_time_s"),
           empty_s = number(output, "access_time_s_empty");
    CHECK(time_s > 0 && empty_s > 0);
    CHECK(!(number(output, "access_time_s_best") > time_s));
    CHECK(fabs(number(output, "access_time_s_net") - (time_s - empty_s)) < 1e-12);
    double ratio = number(output, "empty_loop_ratio");
    CHECK(isnan(ratio) || ratio > 0);
    CHECK((strstr(output, "\"code\":\"empty_loop\"") != NULL) == (ratio > 0.2));
    CHECK(fabs(number(output, "access_time_s_mean") * number(output, "work_operations") -
               number(output, "stop_s")) < 0.01);
    CHECK(number(output, "load") == 0);
}

static void background_threads_are_no_part_of_the_figures(const char *root)
{
    CHECK(call(root, "time --threads 3 --work 2000000", output) == EXIT_OK);
    CHECK(number(output, "work_operations") == 2000000);
    CHECK(number(output, "load") > 0);
    CHECK(number(output, "overlap_ratio") == 1);
    CHECK(strstr(output, "\"threads.1.access_time_s\":\"this thread makes load"));
    CHECK(strstr(output, "\"threads.2.access_time_s\":\"this thread makes load"));
    CHECK(!strstr(output, "\"threads.0.access_time_s\""));
}

static void a_failure_before_the_start_is_all_there_is(const char *root)
{
    CHECK(call(root, "no_pool --threads 2", output) == EXIT_UNSUPPORTED);
    CHECK(!strcmp(output, "{\"event\":\"skip\",\"reason\":\"no pages in the pool\"}\n"));
    CHECK(call(root, "no_memory --threads 2", output) == EXIT_RESOURCE);
    CHECK(lines_of(output) == 1 && strstr(output, "memory ran short"));
}

static void verify_gets_all_requested_units(const char *root)
{
    CHECK(call(root, "counted --threads 2 --duration-s 0.05 --warmup-s 0.02", output) == EXIT_OK);
    CHECK(call(root, "counted --threads 2 --work 1000001 --warmup-s 0", output) == EXIT_OK);
    CHECK(call(root, "short --threads 2 --duration-s 0.05", output) == EXIT_WRONG);
    CHECK(strstr(output, "thread 1, CPU") && strstr(output, "units of work"));
    CHECK(!strstr(output, "\"event\":\"end\""));
    CHECK(call(root, "short_load --threads 2 --duration-s 0.05", output) == EXIT_WRONG);
}

/* A chain that was interrupted reads too slow a clock. */
static void one_slow_chain_is_no_clock(const char *root)
{
    CHECK(call(root, "confirmed --threads 1 --duration-s 0.05", output) == EXIT_OK);
    /* The clock that belongs to the rate differs from the reading as the steps' rates do. */
    double clock_hertz = number(output, "clock_hertz");
    CHECK(fabs(clock_hertz / 3.7e9 - 1) < 0.3 || number(output, "clean_slice_ratio") == 0);
    CHECK(call(root, "unconfirmed --threads 1 --duration-s 0.05", output) == EXIT_OK);
    CHECK(isnan(number(output, "clock_hertz")));
    CHECK(strstr(output, "\"metrics.clock_hertz\":\"no two clock chains in a row agreed"));
    CHECK(strstr(output, "\"threads.0.clock_hertz\":\"no two clock chains in a row agreed"));
}

int main(void)
{
    const char *root = fresh_root();
    rate_in_bytes_has_metric_in_bytes(root);
    a_fixed_work_is_rounded_up_to_units(root);
    what_is_excluded_is_unknown(root);
    two_that_exclude_one_another_are_refused(root);
    the_list_says_what_parameters_mean(root);
    check_refuses_before_anything_starts(root);
    a_time_is_that_of_one_operation(root);
    background_threads_are_no_part_of_the_figures(root);
    a_failure_before_the_start_is_all_there_is(root);
    verify_gets_all_requested_units(root);
    one_slow_chain_is_no_clock(root);
    return 0;
}
