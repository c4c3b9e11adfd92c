#define _GNU_SOURCE
#include "child.h"

#include "monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const double START_S = 3;
static const double END_S = 1;

/* A file that only its descriptor leads to: a command line is everybody's to read. -1 without one. */
static int write_grant(const struct grant *grant)
{
    char address[ENDPOINT_TEXT], text[GRANT_MOST], token[2 * TOKEN_MOST + 1];
    const struct caps *caps = &grant->caps;
    endpoint_format(&grant->address, address);
    for (size_t i = 0; i < grant->token.count; i++)
        snprintf(token + 2 * i, 3, "%02x", grant->token.bytes[i]);
    int length = snprintf(text, sizeof text,
                          "bind=%s\nallowed=%s\ntoken=%s\nduration_s=%.9g\nstreams=%u\n"
                          "bytes=%llu\nrate=%.17g\nexpiry_s=%.9g\n",
                          address, address, token, caps->duration_s, caps->streams,
                          (unsigned long long)caps->bytes, caps->rate, grant->expiry_s);
    int fd = memfd_create("session", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, text, (size_t)length) != length) {
        close(fd);
        fd = -1;
    }
    explicit_bzero(text, sizeof text);
    explicit_bzero(token, sizeof token);
    return fd;
}

/* An address at the descriptor itself clears its close-on-exec. */
static int spawn(struct child *child, int grant_fd, int lifeline_fd, int output_fd)
{
    char session[40], lifeline[40];
    char *argv[] = {"net-bench", "far-end", session, lifeline, NULL};
    posix_spawn_file_actions_t actions;
    snprintf(session, sizeof session, "--session-fd=%d", grant_fd);
    snprintf(lifeline, sizeof lifeline, "--lifeline-fd=%d", lifeline_fd);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return -error;
    error = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, grant_fd, grant_fd);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, lifeline_fd, lifeline_fd);
    if (!error)
        error = posix_spawn(&child->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        child->pid = 0;
    return -error;
}

static int start(struct child *child, int grant_fd)
{
    int lifeline[2], output[2];
    if (pipe2(lifeline, O_CLOEXEC))
        return -errno;
    if (pipe2(output, O_CLOEXEC)) {
        int error = errno;
        close(lifeline[0]);
        close(lifeline[1]);
        return -error;
    }
    int error = spawn(child, grant_fd, lifeline[0], output[1]);
    close(lifeline[0]);
    close(output[1]);
    child->lifeline_fd = lifeline[1];
    child->output_fd = output[0];
    return error;
}

/* Its first line, without the newline; false when none comes in time. */
static bool first_line(const struct child *child, char *line, size_t size)
{
    const double until_s = now_s() + START_S;
    for (size_t used = 0; used < size - 1;) {
        struct pollfd fd = {.fd = child->output_fd, .events = POLLIN};
        double left_s = until_s - now_s();
        if (left_s <= 0)
            return false;
        if (poll(&fd, 1, (int)(left_s * 1e3) + 1) <= 0)
            continue;
        ssize_t count = read(child->output_fd, line + used, 1); /* no more: the rest is for later */
        if (count == 0 || (count < 0 && errno != EINTR))
            return false;
        if (count > 0 && line[used++] == '\n') {
            line[used - 1] = '\0';
            return true;
        }
    }
    return false;
}

static int learn_port(const struct child *child, struct grant *grant, char *why, size_t size)
{
    char line[1024];
    const char *port = NULL;
    if (first_line(child, line, sizeof line))
        port = strstr(line, "\"port\":");
    if (!port) {
        snprintf(why, size,
                 "the far end on this host did not begin to listen within %g s: see its "
                 "message above",
                 START_S);
        return -EPROTO;
    }
    endpoint_set_port(&grant->address, (uint16_t)strtoul(port + strlen("\"port\":"), NULL, 10));
    return 0;
}

int child_start(struct child *child, struct grant *grant, char *why, size_t size)
{
    *child = (struct child){.lifeline_fd = -1, .output_fd = -1};
    grant->token.count = TOKEN_MOST;
    int grant_fd = token_random(grant->token.bytes, TOKEN_MOST) ? write_grant(grant) : -1;
    int error = grant_fd < 0 ? -ENOMEM : start(child, grant_fd);
    if (grant_fd >= 0)
        close(grant_fd);
    if (error) {
        snprintf(why, size, "the far end on this host cannot be started: %s", strerror(-error));
        return error;
    }
    error = learn_port(child, grant, why, size);
    if (error)
        child_end(child);
    return error;
}

static bool gone_within(pid_t pid, double wait_s)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    const double until_s = now_s() + wait_s;
    for (;;) {
        pid_t ended = waitpid(pid, NULL, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return true;
        if (now_s() >= until_s)
            return false;
        nanosleep(&nap, NULL);
    }
}

void child_end(struct child *child)
{
    if (child->lifeline_fd >= 0)
        close(child->lifeline_fd);
    if (child->pid > 0 && !gone_within(child->pid, END_S)) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
    }
    if (child->output_fd >= 0)
        close(child->output_fd);
    *child = (struct child){.lifeline_fd = -1, .output_fd = -1};
}
