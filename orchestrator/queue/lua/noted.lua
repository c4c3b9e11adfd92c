-- Forgets that the states of these jobs are to be noted. One that has changed meanwhile is kept.
-- ARGV: ids, and since when each was in the state that was noted, in turn.
for i = 1, #ARGV, 2 do
    if redis.call('HGET', P .. 'changed', ARGV[i]) == ARGV[i + 1] then
        redis.call('HDEL', P .. 'changed', ARGV[i])
    end
end
