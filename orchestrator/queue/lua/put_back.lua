-- Queues a job again that holds its hosts and has measured nothing yet: where it stood.
-- ARGV: id, fence, reason, and where somebody outside the queue has a host: the host, and who. Its
--       jobs wait until one of its services registers without that.
-- Returns queued, cancelled (it was cancelled meanwhile), or gone.
local id, fence, reason, host, held_by = unpack(ARGV)
local job = read_job(id, 'hosts', 'fence', 'owner', 'queue', 'score', 'cancel', 'begun')
if job.fence ~= fence or job.begun or redis.call('SISMEMBER', P .. 'active', id) == 0 then
    return 'gone'
end
release(id, job)
if host then
    redis.call('HSET', P .. 'host:' .. host, 'held', held_by)
end
if job.cancel then
    end_job(id, 'cancelled', 'cancelled by request')
    return 'cancelled'
end
put_back(id, job, reason)
return 'queued'
