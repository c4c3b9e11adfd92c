-- Drops jobs that ended long ago, whose results stay, and hosts that have been gone for as long.
-- ARGV: microseconds an ended job is kept, most ended jobs, most to look at in one call, 1 where Redis
--       uses too much memory, and how many of the oldest to pass over. With too much memory in use the
--       oldest ended jobs are dropped, too, and the events of those that ended a moment ago.
-- Returns how many jobs were dropped, and how many looked at.
local kept_us, most, batch = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local pressed, from = ARGV[4] == '1', tonumber(ARGV[5])
local gone = redis.call('ZRANGEBYSCORE', P .. 'hosts', '-inf', digits(now_us() - kept_us),
    'LIMIT', 0, batch)
for _, host in ipairs(gone) do
    -- One that has been measuring all the time did not register meanwhile.
    if redis.call('EXISTS', P .. 'alive:' .. host, P .. 'lease:' .. host) == 0 then
        redis.call('ZREM', P .. 'hosts', host)
        redis.call('HDEL', P .. 'freed', host)
        redis.call('DEL', P .. 'host:' .. host)
    end
end
-- A client that waits for a job looks at it once it has ended.
local moment_us = math.min(kept_us, EVENTS_KEPT_S * 1000000)
local beyond = redis.call('ZCARD', P .. 'ended') - most
local oldest = redis.call('ZRANGE', P .. 'ended', from, from + batch - 1, 'WITHSCORES')
local dropped, seen = 0, 0
for i = 1, #oldest, 2 do
    local id, age_us = oldest[i], now_us() - tonumber(oldest[i + 1])
    if age_us >= kept_us or dropped < beyond or (pressed and age_us >= moment_us) then
        local state = redis.call('HGET', job_key(id), 'state')
        redis.call('ZREM', P .. 'ended', id)
        redis.call('ZREM', P .. 'jobs', id)
        if state then
            redis.call('ZREM', P .. 'state:' .. state, id)
        end
        redis.call('DEL', job_key(id), P .. 'events:' .. id)
        dropped = dropped + 1
    elseif pressed then
        redis.call('DEL', P .. 'events:' .. id)
    else
        break
    end
    seen = seen + 1
end
return { dropped, seen }
