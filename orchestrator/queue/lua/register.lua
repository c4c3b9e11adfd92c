-- Notes that a service of a host is there.
-- ARGV: host, subsystem, url, instance, the highest fence in the host's lock file, who has the host
--       and is no job or '', then for a new instance the inventory that its facts were made from,
--       and the facts: fields and values of the host's hash.
-- Returns known and what stands for the service, which changes with its facts; or new: the caller
-- then reads the facts and calls again with them; or changed: there is another inventory meanwhile,
-- and the facts are to be made from that; or taken and an address: a service of this name is alive
-- there, such as that of the machine this one was copied from. One that comes back at its own
-- address is the same, and so is one that has moved, once the old one is gone.
local host, subsystem, url, instance, fence, held_by = unpack(ARGV, 1, 6)
local key = P .. 'host:' .. host
local at = 'service:' .. subsystem
local identity = instance .. ' ' .. url .. ' '
local known = redis.call('HGET', key, at) or ''
local its_instance, its_url = string.match(known, '^(%S+) (%S+) ')
if
    its_instance
    and its_instance ~= instance
    and its_url ~= url
    and redis.call('EXISTS', P .. 'alive:' .. host .. ':' .. subsystem) == 1
then
    return 'taken ' .. its_url
end
if #ARGV > 6 then
    if (redis.call('HGET', key, 'inventory') or '') ~= ARGV[7] then
        return 'changed'
    end
    for i = 8, #ARGV, 2 do
        redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    end
    -- With the time: the facts are those of now, also when the instance is the same.
    known = identity .. digits(now_us())
    redis.call('HSET', key, at, known)
elseif string.sub(known, 1, #identity) ~= identity then
    return 'new'
end
redis.call('HSET', key, 'renewed:' .. subsystem, digits(now_us()))
redis.call('ZADD', P .. 'hosts', digits(now_us()), host)
if tonumber(fence) > tonumber(redis.call('HGET', key, 'fence') or 0) then
    redis.call('HSET', key, 'fence', fence)
end
local was_held = redis.call('HDEL', key, 'held') == 1
if held_by ~= '' then
    redis.call('HSET', key, 'held', held_by)
end
local fresh = redis.call('EXISTS', P .. 'alive:' .. host .. ':' .. subsystem) == 0
for _, alive in ipairs({ 'alive:' .. host, 'alive:' .. host .. ':' .. subsystem }) do
    redis.call('SET', P .. alive, instance)
    sign(alive)
end
if fresh or (was_held and held_by == '') then
    redis.call('HSET', P .. 'freed', host, digits(now_us()))
    wake()
end
return 'known ' .. known
