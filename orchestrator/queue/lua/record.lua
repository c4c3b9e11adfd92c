-- Writes down state, fields and events of a running job, for the orchestrator that holds it.
-- ARGV: id, fence, its number among all of this fence, new state or '', how many fields and values
--       follow, how many live events follow these, then all of them, then the events that are kept.
-- Returns 1, also when this number was written before: the answer to that may have been lost. 0
--         when the job is no longer this fence's: then nothing was written.
local id, fence, number, state = unpack(ARGV, 1, 4)
local live_at = 7 + tonumber(ARGV[5])
local kept_at = live_at + tonumber(ARGV[6])
local job = read_job(id, 'fence', 'state', 'recorded')
if job.fence ~= fence or redis.call('SISMEMBER', P .. 'active', id) == 0 then
    return 0
end
local call = fence .. ':' .. number
if job.recorded == call then
    return 1
end
redis.call('HSET', job_key(id), 'recorded', call)
for i = 7, live_at - 1, 2 do
    redis.call('HSET', job_key(id), ARGV[i], ARGV[i + 1])
end
for i = live_at, kept_at - 1 do
    redis.call('PUBLISH', P .. 'live:' .. id, ' ' .. ARGV[i])
end
if state ~= '' and state ~= job.state then
    set_state(id, state, '')
end
for i = kept_at, #ARGV do
    event(id, ARGV[i])
end
return 1
