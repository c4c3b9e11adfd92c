-- Ends a job that its own orchestrator ran, and gives back its hosts.
-- ARGV: id, fence, state, reason or '', then fields and values.
-- Returns 1, also when it has ended so before: the answer to that may have been lost. 0 when the
--         job is no longer this fence's: then nothing was written.
local id, fence, state, reason = unpack(ARGV, 1, 4)
local job = read_job(id, 'hosts', 'fence', 'owner', 'state')
if job.fence ~= fence then
    return 0
end
if redis.call('SISMEMBER', P .. 'active', id) == 0 then
    return job.state == state and 1 or 0
end
for i = 5, #ARGV, 2 do
    redis.call('HSET', job_key(id), ARGV[i], ARGV[i + 1])
end
release(id, job)
end_job(id, state, reason)
return 1
