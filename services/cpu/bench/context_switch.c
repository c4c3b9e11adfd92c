/* context_switch: the time in which one thread or process hands the CPU to another and work with
 * it, by a pipe or a futex. */
#define _GNU_SOURCE
#include "monotonic.h"
#include "partner.h"
#include "statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIPS_TIMED = 8, /* round trips in a row: reading the clock costs 1 % of one */
    HAND_OVERS = 2 * TRIPS_TIMED,
    CALLS_TIMED = 64,
    CALL_GROUPS = 101,
};

static const char *const between_words[] = {"processes", "threads", NULL};
static const char *const by_words[] = {"pipe", "futex", NULL};

/* In memory that both sides see. Odd: the turn is the partner's. */
struct turns {
    atomic_uint word;
    atomic_bool over;
};

struct pipe {
    int read_end, write_end;
};

struct switcher {
    bool by_pipe, by_process;
    struct turns *turns;
    struct pipe there, back;
    struct pipe own; /* for the calls alone */
    unsigned token;  /* the last one that came back */
    pid_t child;     /* 0: there is none */
    pthread_t partner;
    bool has_partner;
    uint64_t trips, switches;
};

/* ---- the partner: it answers each token with the next one ---------------------------------------- */

static bool receive(int fd, unsigned *token)
{
    return read(fd, token, sizeof *token) == sizeof *token;
}

static bool send_on(int fd, unsigned token)
{
    return write(fd, &token, sizeof token) == sizeof token;
}

static void answer_by_pipe(const struct switcher *switcher)
{
    unsigned token;
    while (receive(switcher->there.read_end, &token) &&
           send_on(switcher->back.write_end, token + 1))
        ;
}

static void answer_by_futex(struct turns *turns)
{
    while (!atomic_load(&turns->over)) {
        unsigned token = atomic_load(&turns->word);
        if (token % 2 == 0) {
            partner_sleep(&turns->word, token);
            continue;
        }
        atomic_store(&turns->word, token + 1);
        partner_wake(&turns->word);
    }
}

static void *answer(void *argument)
{
    struct switcher *switcher = argument;
    if (switcher->by_pipe)
        answer_by_pipe(switcher);
    else
        answer_by_futex(switcher->turns);
    return NULL;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipe(struct pipe *pipe)
{
    close_end(&pipe->read_end);
    close_end(&pipe->write_end);
}

static int open_pipe(struct run *run, struct pipe *pipe)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return partner_lacks(run, "pipe");
    *pipe = (struct pipe){fds[0], fds[1]};
    return EXIT_OK;
}

/* A process of its own, on the same CPU, that ends with the thread that started it. */
static int start_process(struct run *run, struct switcher *switcher)
{
    pid_t parent = getpid();
    switcher->child = fork();
    if (switcher->child < 0) {
        switcher->child = 0;
        return partner_lacks(run, "second process");
    }
    if (switcher->child > 0) {
        /* Only the child holds these ends then, so a read ends when the child does. */
        close_end(&switcher->there.read_end);
        close_end(&switcher->back.write_end);
        return EXIT_OK;
    }
    /* The parent may be gone already. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_end(&switcher->there.write_end);
    if (getppid() == parent)
        answer(switcher);
    _exit(0);
}

static int start_partner(struct run *run, struct switcher *switcher)
{
    if (switcher->by_process)
        return start_process(run, switcher);
    errno = pthread_create(&switcher->partner, NULL, answer, switcher);
    switcher->has_partner = errno == 0;
    return switcher->has_partner ? EXIT_OK : partner_lacks(run, "second thread");
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int setup(struct thread *thread)
{
    struct run *run = thread->run;
    struct switcher *switcher = calloc(1, sizeof *switcher);
    thread->state = switcher;
    if (!switcher)
        return partner_lacks(run, "memory");
    switcher->there = switcher->back = switcher->own = (struct pipe){-1, -1};
    switcher->by_pipe = !strcmp(run_choice(run, "by"), "pipe");
    switcher->by_process = !strcmp(run_choice(run, "between"), "processes");
    switcher->turns = mmap(NULL, sizeof *switcher->turns, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (switcher->turns == MAP_FAILED)
        return partner_lacks(run, "shared memory");
    run_set_unit(run, 1, 1);
    run_times_are_means(run);
    run_share_cpus(run);
    int failure = open_pipe(run, &switcher->there);
    if (!failure)
        failure = open_pipe(run, &switcher->back);
    if (!failure)
        failure = open_pipe(run, &switcher->own);
    return failure ? failure : start_partner(run, switcher);
}

static void teardown(struct thread *thread)
{
    struct switcher *switcher = thread->state;
    atomic_store(&switcher->turns->over, true);
    atomic_fetch_add(&switcher->turns->word, 2);
    partner_wake(&switcher->turns->word);
    close_end(&switcher->there.write_end); /* the partner's read gives 0 */
    if (switcher->has_partner)
        pthread_join(switcher->partner, NULL);
    if (switcher->child > 0)
        waitpid(switcher->child, NULL, 0);
    close_pipe(&switcher->there);
    close_pipe(&switcher->back);
    close_pipe(&switcher->own);
    munmap(switcher->turns, sizeof *switcher->turns);
    free(switcher);
}

/* ---- round trips --------------------------------------------------------------------------------- */

static bool trip_by_pipe(struct switcher *switcher, unsigned *token)
{
    return send_on(switcher->there.write_end, switcher->token) &&
           receive(switcher->back.read_end, token);
}

/* An error means that it has ended, too: where SIGCHLD is ignored, the kernel keeps no record. */
static bool child_has_ended(const struct switcher *switcher)
{
    siginfo_t ended = {.si_pid = 0};
    return switcher->child > 0 &&
           (waitid(P_PID, (id_t)switcher->child, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid != 0);
}

static bool trip_by_futex(const struct run *run, struct switcher *switcher, unsigned *token)
{
    struct turns *turns = switcher->turns;
    atomic_store(&turns->word, switcher->token + 1);
    partner_wake(&turns->word);
    while ((*token = atomic_load(&turns->word)) == switcher->token + 1) {
        if (run_stopping(run))
            return false;
        if (!partner_sleep(&turns->word, switcher->token + 1) && child_has_ended(switcher))
            return false;
    }
    return true;
}

static int trip(struct run *run, struct switcher *switcher)
{
    unsigned token, step = switcher->by_pipe ? 1 : 2;
    bool came_back =
        switcher->by_pipe ? trip_by_pipe(switcher, &token) : trip_by_futex(run, switcher, &token);
    if (!came_back && run_stopping(run))
        return EXIT_OK;
    if (!came_back) {
        run_reason(run, "the partner on the same CPU does not answer: has something ended it?");
        return EXIT_FAILED;
    }
    unsigned sent = switcher->token;
    switcher->token = token;
    if (token == sent + step)
        return EXIT_OK;
    run_reason(run, "token %u came back as %u, not as %u: what was handed over has changed", sent,
               token, sent + step);
    return EXIT_WRONG;
}

/* Some round trips in a row. */
static int take_trips(struct thread *thread, struct switcher *switcher)
{
    int failure = EXIT_OK;
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < TRIPS_TIMED && !failure; i++)
        failure = trip(thread->run, switcher);
    uint64_t mean_ns = (now_ns() - start_ns) / HAND_OVERS;
    for (unsigned i = 0; i < HAND_OVERS && !failure; i++)
        run_loop_done(thread, 0, mean_ns);
    switcher->trips += TRIPS_TIMED;
    return failure;
}

static int loop(struct thread *thread)
{
    struct switcher *switcher = thread->state;
    uint64_t before = partner_switches();
    int failure = EXIT_OK;
    switcher->trips = 0;
    while (!failure && !run_loop_over(thread, 2 * switcher->trips, now_s()))
        failure = take_trips(thread, switcher);
    switcher->switches = partner_switches() - before;
    return failure;
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct switcher *switcher = thread->state;
    (void)units;
    return partner_check_switches(thread->run, switcher->trips, switcher->switches);
}

/* ---- the calls alone ----------------------------------------------------------------------------- */

/* What one side calls for a hand-over, without anybody to hand over to. */
static void call_alone(const struct switcher *switcher, atomic_uint *word)
{
    unsigned token;
    if (switcher->by_pipe) {
        send_on(switcher->own.write_end, 0);
        receive(switcher->own.read_end, &token);
        return;
    }
    partner_wake(word);
    partner_sleep(word, 1); /* the word is 0: it does not sleep */
}

static double calls_time_s(const struct switcher *switcher)
{
    double times_s[CALL_GROUPS];
    atomic_uint word = 0;
    for (unsigned group = 0; group < CALL_GROUPS; group++) {
        uint64_t start_ns = now_ns();
        for (unsigned i = 0; i < CALLS_TIMED; i++)
            call_alone(switcher, &word);
        times_s[group] = (double)(now_ns() - start_ns) * 1e-9 / CALLS_TIMED;
    }
    return median(times_s, CALL_GROUPS);
}

static void finish(struct thread *thread)
{
    run_metric(thread->run, "calls_time_s", calls_time_s(thread->state));
}

/* ---- table --------------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "between",
     .type = PARAM_CHOICE,
     .initial = "processes",
     .choices = between_words,
     .roles = ROLE_TAG,
     .title = "sides",
     .help = "processes: two processes, each with its own address space; threads: two threads of "
             "one process."},
    {.name = "by",
     .type = PARAM_CHOICE,
     .initial = "pipe",
     .choices = by_words,
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "mechanism",
     .help = "How one side wakes the other. pipe: it writes four bytes to a pipe, which the other "
             "side reads; futex: the other side sleeps on a word in shared memory."},
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"calls_time_s", "s", LOWER_IS_BETTER,
     "Time of the same two system calls when one side makes them alone, without a switch: the "
     "overhead that lmbench's lat_ctx subtracts."},
    {.name = NULL},
};

static const char *const excludes[] = {"threads", NULL};

WORKLOAD(context_switch) = {
    .name = "context_switch",
    .description = "Two processes or threads on one CPU wake each other in turn.",
    .rate =
        {.name = "hand_over_time_s",
         .unit = "s",
         .description =
             "Time of one hand-over (half a round trip): one side writes and goes to sleep, the "
             "CPU switches, the other side reads. Median of means over 8 consecutive round trips.",
         .combine = COMBINE_MEDIAN,
         .time = true},
    .params = params,
    .excludes = excludes,
    .metrics = metrics,
    .threads = partner_one_thread,
    .setup = setup,
    .loop = loop,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
