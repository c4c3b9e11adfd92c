-- Forgets a service that could not be reached, until it registers again.
-- ARGV: host, subsystem, instance.
local host, subsystem, instance = unpack(ARGV)
local alive = P .. 'alive:' .. host .. ':' .. subsystem
if redis.call('GET', alive) ~= instance then
    return 0
end
redis.call('DEL', alive)
redis.call('HDEL', P .. 'signs', 'alive:' .. host .. ':' .. subsystem)
redis.call('HDEL', P .. 'host:' .. host, 'service:' .. subsystem)
for _, field in ipairs(redis.call('HKEYS', P .. 'host:' .. host)) do
    if string.find(field, '^service:') then
        return 1
    end
end
redis.call('DEL', P .. 'alive:' .. host)
redis.call('HDEL', P .. 'signs', 'alive:' .. host)
return 1
