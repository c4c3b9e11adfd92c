"""Points for InfluxDB: made from records and documents alike, handed over through an outbox."""
