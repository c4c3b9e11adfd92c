-- Keeps a job's leases, and with them the registrations of its hosts: a service does not renew
-- while it runs a trial.
-- ARGV: id, fence, owner, time to live of a lease and of a registration in milliseconds.
-- Returns gone (another job has the leases, or none), cancel (the job is to stop), or held.
local id, fence, owner, ttl_ms, alive_ms = unpack(ARGV)
local job = read_job(id, 'hosts', 'queue', 'fence', 'owner', 'cancel')
if not job.hosts or job.fence ~= fence or job.owner ~= owner or not holds_leases(id, job) then
    return 'gone'
end
for _, host in ipairs(split(job.hosts, ',')) do
    redis.call('PEXPIRE', P .. 'lease:' .. host, ttl_ms)
    redis.call('PEXPIRE', P .. 'alive:' .. host, alive_ms)
end
for _, need in ipairs(split(split(job.queue, '|')[2], ',')) do
    redis.call('PEXPIRE', P .. 'alive:' .. need, alive_ms)
end
return job.cancel and 'cancel' or 'held'
