-- Keeps a job's leases, and with them the registrations of its hosts: a service does not renew
-- while it runs a trial.
-- ARGV: id, fence, owner.
-- Returns gone (another job has the leases, or none), cancel (the job is to stop), or held.
local id, fence, owner = unpack(ARGV)
local job = read_job(id, 'hosts', 'queue', 'fence', 'owner', 'cancel')
if not job.hosts or job.fence ~= fence or job.owner ~= owner or not holds_leases(id, job) then
    return 'gone'
end
sign('lease:' .. id)
for _, need in ipairs(split(string.gsub(job.queue, '|', ','), ',')) do
    if redis.call('EXISTS', P .. 'alive:' .. need) == 1 then
        sign('alive:' .. need)
    end
end
return job.cancel and 'cancel' or 'held'
