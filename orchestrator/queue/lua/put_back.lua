-- Queues a job again that holds its hosts and has measured nothing yet: where it stood.
-- ARGV: id, fence, reason.
-- Returns queued, cancelled (it was cancelled meanwhile), or gone.
local id, fence, reason = unpack(ARGV)
local job = read_job(id, 'hosts', 'fence', 'owner', 'queue', 'score', 'cancel', 'begun')
if job.fence ~= fence or job.begun or redis.call('SISMEMBER', P .. 'active', id) == 0 then
    return 'gone'
end
release(id, job)
if job.cancel then
    end_job(id, 'cancelled', 'cancelled by request')
    return 'cancelled'
end
put_back(id, job, reason)
return 'queued'
