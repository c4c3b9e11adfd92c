#include "job.h"

#include "residency.h"

double disk_job_total(const struct disk_job *job)
{
    if (!run_param_set(job->run, "total_bytes"))
        return 0;
    return (double)(run_count(job->run, "total_bytes") / job->block_bytes);
}

void disk_job_report_sample(const struct disk_job *job, double done)
{
    double total = disk_job_total(job), block_bytes = (double)job->block_bytes;
    if (done < total)
        run_warning(job->run, "sampled",
                    "%.0f of %.0f bytes in the time: the figures are those of a sample",
                    done * block_bytes, total * block_bytes);
}

bool disk_job_leaves_dirty(const struct disk_job *job)
{
    return job->writes && !job->direct && !job->synced && !job->fsync_end && !job->commit;
}

double disk_job_cached_ratio(const struct disk_job *job)
{
    return residency(job->scratch.fd, disk_job_covered_bytes(job));
}

double disk_job_naive_blocks(const struct disk_job *job)
{
    double blocks = 0;
    for (unsigned i = 0; i < job->threads; i++)
        blocks += (double)job->own[i].region.blocks;
    return blocks;
}
