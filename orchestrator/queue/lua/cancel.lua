-- ARGV: id.
-- Returns {outcome, state before}: unknown; ended (nothing to cancel); cancelled (it was queued);
--         stopping (its orchestrator will stop it).
local id = ARGV[1]
local job = read_job(id, 'state', 'queue')
if not job.state then
    return { 'unknown', '' }
end
if job.state == 'queued' then
    redis.call('ZREM', P .. 'queue:' .. job.queue, id)
    end_job(id, 'cancelled', 'cancelled by request')
    -- Behind a job that reserved its hosts others may have waited.
    wake()
    return { 'cancelled', job.state }
end
if redis.call('SISMEMBER', P .. 'active', id) == 0 then
    return { 'ended', job.state }
end
redis.call('HSET', job_key(id), 'cancel', '1')
redis.call('PUBLISH', P .. 'cancel', id)
return { 'stopping', job.state }
