"""What the orchestrators share: jobs, queues, leases and hosts in Redis."""
