-- Drops jobs that ended long ago, whose results stay, and hosts that have been gone for as long.
-- ARGV: microseconds an ended job is kept, most ended jobs, most to drop in one call.
-- Returns how many jobs were dropped.
local kept_us, most, batch = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
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
local old = redis.call('ZRANGEBYSCORE', P .. 'ended', '-inf', digits(now_us() - kept_us),
    'LIMIT', 0, batch)
local beyond = math.min(redis.call('ZCARD', P .. 'ended') - most, batch)
if #old < beyond then
    old = redis.call('ZRANGE', P .. 'ended', 0, beyond - 1)
end
for _, id in ipairs(old) do
    local state = redis.call('HGET', job_key(id), 'state')
    redis.call('ZREM', P .. 'ended', id)
    redis.call('ZREM', P .. 'jobs', id)
    if state then
        redis.call('ZREM', P .. 'state:' .. state, id)
    end
    redis.call('DEL', job_key(id), P .. 'events:' .. id)
end
return #old
