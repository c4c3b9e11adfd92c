"""The orchestrator: jobs in Redis, one at a time on a host, points to InfluxDB."""
