-- Accepts a job, once for each idempotency key.
-- ARGV: id, idempotency key or '', hash of the body, seconds the key is kept, most queued jobs,
--       queue, microseconds the priority is worth, then the job's fields and values.
-- Returns {word, id}: known (same key, same body); other (same key, other body); taken (the id is);
--         full; or queued, and then also when, in microseconds, and its place among those that want
--         one of its hosts.
local id, idempotency, body, kept_s, most, queue, worth_us = unpack(ARGV, 1, 7)
local remembered = P .. 'idempotency:' .. idempotency

if idempotency ~= '' then
    local known = redis.call('HMGET', remembered, 'body', 'id')
    if known[1] then
        return { known[1] == body and 'known' or 'other', known[2] }
    end
end
if redis.call('EXISTS', job_key(id)) == 1 then
    return { 'taken', id }
end
if redis.call('ZCARD', P .. 'state:queued') >= tonumber(most) then
    return { 'full', id }
end

-- No two of them in one millisecond: the points of a job in InfluxDB are known by that time. A
-- microsecond more, as half a millisecond is rounded to the even one.
local now = now_us()
local last = redis.call('ZREVRANGE', P .. 'jobs', 0, 0, 'WITHSCORES')[2]
if last and math.abs(now - last) < 1000000 then
    now = math.max(now, last + 1001)
end
local score = digits(now - worth_us)
for i = 8, #ARGV, 2 do
    redis.call('HSET', job_key(id), ARGV[i], ARGV[i + 1])
end
redis.call('HSET', job_key(id), 'id', id, 'queue', queue, 'score', score,
    'submitted_us', digits(now), 'queued_us', digits(now))
redis.call('ZADD', P .. 'jobs', digits(now), id)
enter_queue(id, queue, score)
set_state(id, 'queued', '')
if idempotency ~= '' then
    redis.call('HSET', remembered, 'body', body, 'id', id)
    redis.call('EXPIRE', remembered, kept_s)
end
-- Behind another one of its queue it cannot start before that.
if redis.call('ZRANK', P .. 'queue:' .. queue, id) == 0 then
    wake()
end

local wanted = {}
for _, host in ipairs(split(split(queue, '|')[1], ',')) do
    wanted[host] = true
end
local function wants_one_of_them(other)
    for _, host in ipairs(split(split(other, '|')[1], ',')) do
        if wanted[host] then
            return true
        end
    end
    return false
end
local place = 1
for _, other in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
    if wants_one_of_them(other) then
        place = place + redis.call('ZCOUNT', P .. 'queue:' .. other, '-inf', '(' .. score)
    end
end
return { 'queued', id, digits(now), tostring(place) }
