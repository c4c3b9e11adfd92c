"""Queue, leases and state of jobs and hosts in Redis."""
