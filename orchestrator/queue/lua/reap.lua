-- Ends the jobs whose leases are gone: their orchestrator is dead or was cut off. One that had not
-- begun to measure is queued again, unless that is what kills them.
-- ARGV: names and signs of life that the caller has seen unchanged for too long. One that has
--       changed meanwhile counts.
-- Returns {id, state} for each job; all signs of life, and the jobs whose states are to be noted with
--         since when they are in them, each as names and values in turn.
local FALSE_STARTS_MOST = 3

for i = 1, #ARGV, 2 do
    local name = ARGV[i]
    if redis.call('HGET', P .. 'signs', name) == ARGV[i + 1] then
        redis.call('HDEL', P .. 'signs', name)
        if string.find(name, '^alive:') then
            redis.call('DEL', P .. name)
        end
    end
end

local reaped = {}
for _, id in ipairs(redis.call('SMEMBERS', P .. 'active')) do
    local job = read_job(id, 'hosts', 'queue', 'score', 'fence', 'owner', 'cancel', 'begun')
    if not job.hosts then
        redis.call('SREM', P .. 'active', id)
    elseif redis.call('HEXISTS', P .. 'signs', 'lease:' .. id) == 0 or not holds_leases(id, job) then
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
return { reaped, redis.call('HGETALL', P .. 'signs'), redis.call('HGETALL', P .. 'changed') }
