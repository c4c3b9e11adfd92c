-- Ends the jobs whose leases are gone: their orchestrator is dead or was cut off. One that had not
-- begun to measure is queued again, unless that is what kills them.
-- Returns {id, state} for each.
local FALSE_STARTS_MOST = 3

local reaped = {}
for _, id in ipairs(redis.call('SMEMBERS', P .. 'active')) do
    local job = read_job(id, 'hosts', 'queue', 'score', 'fence', 'owner', 'cancel', 'begun')
    if not job.hosts then
        redis.call('SREM', P .. 'active', id)
    elseif not holds_leases(id, job) then
        release(id, job)
        if job.cancel then
            end_job(id, 'cancelled', 'cancelled by request')
        elseif job.begun then
            end_job(id, 'lost', 'its orchestrator ended or lost its connection to Redis; '
                .. 'what was measured is kept, resume the job to go on')
        elseif redis.call('HINCRBY', job_key(id), 'false_starts', 1) >= FALSE_STARTS_MOST then
            end_job(id, 'failed', 'its orchestrator ended ' .. FALSE_STARTS_MOST
                .. ' times before it had begun to measure')
        else
            put_back(id, job, '')
        end
        reaped[#reaped + 1] = { id, redis.call('HGET', job_key(id), 'state') }
    end
end
return reaped
