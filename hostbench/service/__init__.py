"""The service of a subsystem on one host: a small HTTP API around its benchmark program."""
