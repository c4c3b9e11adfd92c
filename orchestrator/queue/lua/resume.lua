-- Queues an ended job again, as if it were submitted now. Its events begin anew.
-- ARGV: id, the microseconds its priority is worth, most queued jobs, then the fields and values of
--       a job that is no longer known here.
-- Returns {word, state before}: queued; full; refused (it has not ended, or ended well).
local id, worth_us, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local key = job_key(id)
local state = redis.call('HGET', key, 'state')
if state and state ~= 'lost' and state ~= 'failed' and state ~= 'cancelled' then
    return { 'refused', state }
end
if redis.call('ZCARD', P .. 'state:queued') >= most then
    return { 'full', state or '' }
end
local now = digits(now_us())
if not state then
    for i = 4, #ARGV, 2 do
        redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    end
end
local score = digits(now - worth_us)
redis.call('HSET', key, 'queued_us', now, 'score', score)
redis.call('HDEL', key, 'cancel', 'begun', 'fence', 'owner', 'started_us', 'ended_us', 'exit_code',
    'current', 'false_starts')
redis.call('ZREM', P .. 'ended', id)
redis.call('ZADD', P .. 'jobs', redis.call('HGET', key, 'submitted_us'), id)
redis.call('DEL', P .. 'events:' .. id)
enter_queue(id, redis.call('HGET', key, 'queue'), score)
set_state(id, 'queued', '')
wake()
return { 'queued', state or '' }
