-- Bounds what an older version kept of jobs that have ended.
-- ARGV: ids.
for _, id in ipairs(ARGV) do
    local state = redis.call('HGET', job_key(id), 'state')
    if redis.call('ZSCORE', P .. 'ended', id) then
        bound_ended(id, state)
    end
end
