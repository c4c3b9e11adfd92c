#include "cgroup.h"

#include "textfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One controller's directory: the mount point and the group's own path below it. */
struct hierarchy {
    char mount[512];
    char directory[CGROUP_PATH_MAX];
};

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length) {
        bool begins = at == list || at[-1] == ',';
        bool ends = at[length] == '\0' || at[length] == ',';
        if (begins && ends)
            return true;
    }
    return false;
}

/* /proc/self/cgroup: "4:cpu,cpuacct:/path" for v1, "0::/path" for v2 (`controller` empty). */
static bool group_path(const char *proc_self, const char *controller, char *path, size_t size)
{
    char file[600], line[2048];
    snprintf(file, sizeof file, "%s/cgroup", proc_self);
    FILE *stream = fopen(file, "re");
    bool found = false;
    while (stream && !found && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *own = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!own)
            continue;
        *own++ = '\0';
        controllers++;
        found = *controller ? has_word(controllers, controller) : *controllers == '\0';
        if (found)
            snprintf(path, size, "%s", own);
    }
    if (stream)
        fclose(stream);
    return found;
}

/* A line of /proc/self/mountinfo: "36 35 98:0 /root /mount options … - type source superoptions". */
static bool is_mount_of(char *line, const char *controller, char **root, char **mount)
{
    char *separator = strstr(line, " - "), *save;
    if (!separator)
        return false;
    *separator = '\0';
    const char *type = strtok_r(separator + 3, " \n", &save);
    strtok_r(NULL, " \n", &save);
    const char *options = strtok_r(NULL, " \n", &save);
    bool wanted =
        type && (*controller ? !strcmp(type, "cgroup") && options && has_word(options, controller)
                             : !strcmp(type, "cgroup2"));
    strtok_r(line, " ", &save);
    strtok_r(NULL, " ", &save);
    strtok_r(NULL, " ", &save);
    *root = strtok_r(NULL, " ", &save);
    *mount = strtok_r(NULL, " ", &save);
    return wanted && *mount;
}

static bool find_hierarchy(const char *proc_self, const char *controller, struct hierarchy *found)
{
    char file[600], line[4096], path[1024];
    if (!group_path(proc_self, controller, path, sizeof path))
        return false;
    snprintf(file, sizeof file, "%s/mountinfo", proc_self);
    FILE *stream = fopen(file, "re");
    char *root, *mount;
    bool mounted = false;
    while (stream && !mounted && fgets(line, sizeof line, stream))
        mounted = is_mount_of(line, controller, &root, &mount);
    if (stream)
        fclose(stream);
    if (!mounted)
        return false;
    /* A container sees its own group as the mount's root: cut the common part off the path. */
    size_t common = strcmp(root, "/") ? strlen(root) : 0;
    bool within = !strncmp(path, root, common) && (!path[common] || path[common] == '/');
    const char *below = within ? path + common : "";
    snprintf(found->mount, sizeof found->mount, "%s", mount);
    snprintf(found->directory, sizeof found->directory, "%s%s", found->mount,
             strcmp(below, "/") ? below : "");
    return true;
}

static bool group_file(const char *directory, const char *name, char *text, size_t size)
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return textfile_read(path, text, size);
}

/* Cuts the last component off; false when `directory` was the mount point. */
static bool ascend(char *directory, const char *mount)
{
    if (strlen(directory) <= strlen(mount))
        return false;
    char *slash = strrchr(directory, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static double quota_of(const char *directory, int version)
{
    char quota[64], period[64];
    if (version == 2) {
        if (!group_file(directory, "cpu.max", quota, sizeof quota))
            return -1;
        char *space = strchr(quota, ' ');
        snprintf(period, sizeof period, "%s", space ? space + 1 : "");
    } else if (!group_file(directory, "cpu.cfs_quota_us", quota, sizeof quota) ||
               !group_file(directory, "cpu.cfs_period_us", period, sizeof period)) {
        return -1;
    }
    double allowed = strtod(quota, NULL), every = strtod(period, NULL); /* "max" reads as 0 */
    return allowed > 0 && every > 0 ? allowed / every : -1;
}

static void read_quota(struct cgroup *cgroup)
{
    char directory[sizeof cgroup->path];
    snprintf(directory, sizeof directory, "%s", cgroup->path);
    do {
        double quota = quota_of(directory, cgroup->version);
        if (quota > 0 && (cgroup->quota_cpus < 0 || quota < cgroup->quota_cpus))
            cgroup->quota_cpus = quota;
    } while (ascend(directory, cgroup->root));
}

static void read_cpuset(struct cgroup *cgroup, const char *proc_self)
{
    static const char *const names[] = {"cpuset.cpus.effective", "cpuset.effective_cpus",
                                        "cpuset.cpus"};
    struct hierarchy hierarchy;
    if (!find_hierarchy(proc_self, "cpuset", &hierarchy) &&
        !find_hierarchy(proc_self, "", &hierarchy))
        return;
    do {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (group_file(hierarchy.directory, names[i], cgroup->cpuset, sizeof cgroup->cpuset) &&
                cgroup->cpuset[0])
                return;
    } while (ascend(hierarchy.directory, hierarchy.mount));
    cgroup->cpuset[0] = '\0';
}

void cgroup_read(struct cgroup *cgroup, const char *proc_self)
{
    struct hierarchy hierarchy;
    *cgroup = (struct cgroup){.quota_cpus = -1};
    if (find_hierarchy(proc_self, "cpu", &hierarchy))
        cgroup->version = 1;
    else if (find_hierarchy(proc_self, "", &hierarchy))
        cgroup->version = 2;
    if (cgroup->version) {
        snprintf(cgroup->path, sizeof cgroup->path, "%s", hierarchy.directory);
        snprintf(cgroup->root, sizeof cgroup->root, "%s", hierarchy.mount);
        read_quota(cgroup);
    }
    read_cpuset(cgroup, proc_self);
}

bool cgroup_throttled_s(const struct cgroup *cgroup, double *seconds)
{
    char directory[sizeof cgroup->path], text[2048];
    const char *key = cgroup->version == 2 ? "throttled_usec " : "throttled_time ";
    double unit_s = cgroup->version == 2 ? 1e-6 : 1e-9;
    bool known = false;
    if (!cgroup->version)
        return false;
    *seconds = 0;
    snprintf(directory, sizeof directory, "%s", cgroup->path);
    do {
        const char *at =
            group_file(directory, "cpu.stat", text, sizeof text) ? strstr(text, key) : NULL;
        if (!at)
            continue;
        known = true;
        *seconds += strtod(at + strlen(key), NULL) * unit_s;
    } while (ascend(directory, cgroup->root));
    return known;
}

/* ---- memory --------------------------------------------------------------------------------- */

struct memory_files {
    const char *limits[2]; /* what kills, and what only throttles: no figure is worth either */
    const char *usage;
    /* Of memory.stat: page cache that gives way at once. v1 has the sum over the groups below too,
     * and the smallest limit above, which a container does not see. */
    const char *cache, *limit_above;
};

static const struct memory_files memory_files[] = {
    [1] = {{"memory.limit_in_bytes", NULL},
           "memory.usage_in_bytes",
           "total_inactive_file ",
           "hierarchical_memory_limit "},
    [2] = {{"memory.max", "memory.high"}, "memory.current", "inactive_file ", NULL},
};

/* The value of a "key value" line; `absent` without one. */
static double line_value(const char *text, const char *key, double absent)
{
    for (const char *at = text; (at = strstr(at, key)); at += strlen(key))
        if (at == text || at[-1] == '\n')
            return strtod(at + strlen(key), NULL);
    return absent;
}

/* The smallest limit of one group and its file, INFINITY: none. v2 writes "max" where there is
 * none, v1 a number beyond all memory. */
static double limit_in(const char *directory, const struct memory_files *files, const char *stat,
                       const char **file)
{
    const double no_limit = 0x1p62;
    double least = INFINITY;
    for (size_t i = 0; i < 2 && files->limits[i]; i++) {
        char text[64], *end;
        if (!group_file(directory, files->limits[i], text, sizeof text))
            continue;
        double limit = strtod(text, &end);
        if (end == text || limit >= fmin(no_limit, least))
            continue;
        least = limit;
        *file = files->limits[i];
    }
    double above = files->limit_above ? line_value(stat, files->limit_above, INFINITY) : INFINITY;
    if (above >= fmin(no_limit, least))
        return least;
    *file = "memory.stat";
    return above;
}

/* false where there is no limit. */
static bool memory_left_in(const char *directory, const struct memory_files *files, double *bytes,
                           const char **file)
{
    char usage[64], stat[8192];
    if (!group_file(directory, files->usage, usage, sizeof usage))
        return false;
    if (!group_file(directory, "memory.stat", stat, sizeof stat))
        stat[0] = '\0';
    double limit = limit_in(directory, files, stat, file);
    double left = limit - strtod(usage, NULL) + line_value(stat, files->cache, 0);
    *bytes = fmax(left, 0);
    return isfinite(limit);
}

bool cgroup_memory_left(const char *proc_self, double *bytes, char *source, size_t size)
{
    struct hierarchy hierarchy;
    int version = find_hierarchy(proc_self, "memory", &hierarchy) ? 1 : 2;
    bool limited = false;
    if (version == 2 && !find_hierarchy(proc_self, "", &hierarchy))
        return false;
    const struct memory_files *files = &memory_files[version];
    do {
        double left;
        const char *file = files->usage;
        if (!memory_left_in(hierarchy.directory, files, &left, &file) ||
            (limited && left >= *bytes))
            continue;
        *bytes = left;
        limited = true;
        snprintf(source, size, "%s/%s", hierarchy.directory, file);
    } while (ascend(hierarchy.directory, hierarchy.mount));
    return limited;
}
