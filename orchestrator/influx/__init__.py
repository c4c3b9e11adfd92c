"""Points for InfluxDB, made from records and documents alike, and handed over through an outbox."""
