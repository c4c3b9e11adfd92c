-- What the other scripts begin with. KEYS[1] is the prefix of every key: one hash tag, so that all
-- keys lie in one slot.
--
-- job:ID            hash: everything about a job (orchestrator/queue/record.py)
-- jobs              zset: all jobs by the time they were submitted
-- state:STATE       zset: those of a state, by the same
-- ended             zset: those that have ended, by when
-- changed           hash: since when the jobs whose state is still to be noted elsewhere are in it
-- active            set: those that hold leases
-- queues, queue:Q   set of queues; zset of queued jobs. Q is "HOSTS|NEEDS": the sorted host set, and
--                   what must be registered: a host, or host:subsystem
-- lease:HOST        "ID:FENCE:OWNER"
-- hosts             zset: hosts by when one of their services last registered; host:HOST, a hash,
--                   also with its last fence, and who has it outside the queue (held)
-- alive:NEED        the instance that registered
-- signs, sign       hash: the last sign of life of each lease:ID and alive:NEED; the last of all.
--                   Nothing here has a time to live, which Redis counts by the wall clock: the
--                   orchestrators watch how long a sign stays the same (orchestrator/queue/signs.py)
-- freed             hash: since when a host could take a job, in microseconds
-- fence             the last fence
-- events:ID         stream of the job's durable events, with a time to live once the job has ended;
--                   live:ID is the channel of all its events
-- wake              channel: something may start. cancel: channel, a job that is to stop
local P = KEYS[1]
-- As long as a client tries to connect again (hostbench/client/events.py).
local EVENTS_KEPT_S = 600

local function now_us()
    local now = redis.call('TIME')
    return now[1] * 1000000 + now[2]
end

-- Lua's own conversion keeps 14 digits, microseconds since 1970 have 16.
local function digits(number)
    return string.format('%.0f', number)
end

local function job_key(id)
    return P .. 'job:' .. id
end

local function split(text, separator)
    local parts = {}
    for part in string.gmatch(text, '[^' .. separator .. ']+') do
        parts[#parts + 1] = part
    end
    return parts
end

local function event(id, text)
    local position = redis.call('XADD', P .. 'events:' .. id, '*', 'event', text)
    redis.call('PUBLISH', P .. 'live:' .. id, position .. ' ' .. text)
end

-- The new state in the job, in the index, as an event, and among those to be noted. `since_us` is the
-- time, and later than that of the state before, whatever the clock does: it tells which is the last.
local function set_state(id, state, reason)
    local key = job_key(id)
    local before = redis.call('HMGET', key, 'state', 'submitted_us', 'since_us')
    if before[1] then
        redis.call('ZREM', P .. 'state:' .. before[1], id)
    end
    redis.call('ZADD', P .. 'state:' .. state, before[2], id)
    local since = digits(math.max(now_us(), tonumber(before[3] or 0) + 1000))
    redis.call('HSET', key, 'state', state, 'reason', reason, 'since_us', since)
    redis.call('HSET', P .. 'changed', id, since)
    local changed = { event = 'state', job = id, state = state, time_unix_s = now_us() / 1e6 }
    changed.reason = reason ~= '' and reason or cjson.null
    event(id, cjson.encode(changed))
end

local function wake()
    redis.call('PUBLISH', P .. 'wake', '')
end

local function enter_queue(id, queue, score)
    redis.call('ZADD', P .. 'queue:' .. queue, score, id)
    redis.call('SADD', P .. 'queues', queue)
end

local function sign(name)
    redis.call('HSET', P .. 'signs', name, redis.call('INCR', P .. 'sign'))
end

local function lease_value(id, job)
    return id .. ':' .. job.fence .. ':' .. job.owner
end

-- A job's fields by name.
local function read_job(id, ...)
    local values = redis.call('HMGET', job_key(id), ...)
    local job = {}
    for i, name in ipairs({ ... }) do
        job[name] = values[i]
    end
    return job
end

local function holds_leases(id, job)
    for _, host in ipairs(split(job.hosts, ',')) do
        if redis.call('GET', P .. 'lease:' .. host) ~= lease_value(id, job) then
            return false
        end
    end
    return true
end

-- Gives back what leases the job still has.
local function release(id, job)
    for _, host in ipairs(split(job.hosts, ',')) do
        if redis.call('GET', P .. 'lease:' .. host) == lease_value(id, job) then
            redis.call('DEL', P .. 'lease:' .. host)
        end
        redis.call('HSET', P .. 'freed', host, digits(now_us()))
    end
    redis.call('HDEL', P .. 'signs', 'lease:' .. id)
    redis.call('SREM', P .. 'active', id)
    wake()
end

-- What is kept of a job that has ended: a summary, and for a while its events. The suite is kept
-- where the job can be resumed.
local function bound_ended(id, state)
    redis.call('EXPIRE', P .. 'events:' .. id, EVENTS_KEPT_S, 'NX')
    if state == 'succeeded' then
        redis.call('HDEL', job_key(id), 'suite')
    end
end

local function end_job(id, state, reason)
    local now = digits(now_us())
    redis.call('HSET', job_key(id), 'ended_us', now)
    redis.call('ZADD', P .. 'ended', now, id)
    set_state(id, state, reason)
    bound_ended(id, state)
end

-- Into the queue again, where it stood: nothing of it was measured.
local function put_back(id, job, reason)
    redis.call('HDEL', job_key(id), 'fence', 'owner', 'started_us')
    enter_queue(id, job.queue, job.score)
    set_state(id, 'queued', reason)
end
