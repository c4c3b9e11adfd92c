-- Starts every job whose time has come: the first of all queues whose whole set of hosts is free
-- takes all their leases, or none. A job that must wait for a host reserves its hosts against all
-- that stand behind it, so none overtakes an earlier one that wants one of its hosts. One whose host
-- something outside the queue holds reserves nothing: for how long is unknown.
-- ARGV: owner, most jobs to start, the reason of those that could start but for results that find no
--       room, and whether that is so: nothing is started then.
-- Returns {id, fence, microseconds it waited since it could have started} for each.
local owner, most, no_room = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local is_full = ARGV[4] == '1'

local heads = {}
for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
    local head = redis.call('ZRANGE', P .. 'queue:' .. queue, 0, 0, 'WITHSCORES')
    if #head == 0 then
        redis.call('SREM', P .. 'queues', queue)
    else
        heads[#heads + 1] = { queue = queue, id = head[1], score = tonumber(head[2]) }
    end
end
table.sort(heads, function(a, b)
    return a.score < b.score or (a.score == b.score and a.id < b.id)
end)

local function registered(needs)
    for _, need in ipairs(split(needs, ',')) do
        if redis.call('EXISTS', P .. 'alive:' .. need) == 0 then
            return false
        end
    end
    return true
end

local promised = {}
local function free(hosts)
    for _, host in ipairs(hosts) do
        if promised[host] or redis.call('EXISTS', P .. 'lease:' .. host) == 1 then
            return false
        end
    end
    return true
end

-- Whether somebody outside the queue has one of its hosts; the job's reason names them.
local function held(head, hosts)
    for _, host in ipairs(hosts) do
        local by = redis.call('HGET', P .. 'host:' .. host, 'held')
        if by then
            local reason = host .. ' is held outside the queue by ' .. by
            if redis.call('HGET', job_key(head.id), 'reason') ~= reason then
                set_state(head.id, 'queued', reason)
            end
            return true
        end
    end
    return false
end

local function start(head, hosts)
    local now = now_us()
    local last = tonumber(redis.call('GET', P .. 'fence') or 0)
    local number = math.max(last + 1, math.floor(now / 1000))
    redis.call('SET', P .. 'fence', digits(number))
    -- Redis was wiped, or its clock set back, since a host had its last one.
    for _, host in ipairs(hosts) do
        local seen = redis.call('HGET', P .. 'host:' .. host, 'fence') or 0
        number = math.max(number, tonumber(seen) + 1)
    end
    local fence = digits(number)
    redis.call('ZREM', P .. 'queue:' .. head.queue, head.id)
    local job = { fence = fence, owner = owner }
    local ready = tonumber(redis.call('HGET', job_key(head.id), 'queued_us'))
    for _, host in ipairs(hosts) do
        redis.call('SET', P .. 'lease:' .. host, lease_value(head.id, job))
        redis.call('HSET', P .. 'host:' .. host, 'fence', fence)
        ready = math.max(ready, tonumber(redis.call('HGET', P .. 'freed', host) or 0))
    end
    sign('lease:' .. head.id)
    redis.call('SADD', P .. 'active', head.id)
    redis.call('HSET', job_key(head.id), 'fence', fence, 'owner', owner, 'started_us', digits(now))
    redis.call('HDEL', job_key(head.id), 'begun')
    set_state(head.id, 'waiting', '')
    return { head.id, fence, digits(math.max(0, now - ready)) }
end

for _, head in ipairs(heads) do
    local has_no_room = redis.call('HGET', job_key(head.id), 'reason') == no_room
    if is_full ~= has_no_room then
        set_state(head.id, 'queued', is_full and no_room or '')
    end
end

local started = {}
for _, head in ipairs(heads) do
    if is_full or #started >= most then
        break
    end
    local hosts, needs = unpack(split(head.queue, '|'))
    if registered(needs) then
        hosts = split(hosts, ',')
        if not held(head, hosts) then
            if free(hosts) then
                started[#started + 1] = start(head, hosts)
            end
            for _, host in ipairs(hosts) do
                promised[host] = true
            end
        end
    end
end
return started
