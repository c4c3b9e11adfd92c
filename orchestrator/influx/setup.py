"""Database and retention policies. In 1.x they are made by InfluxQL, which 2.x and 3 have no
statements for: there the image's own set-up or the operator makes them (docs/influxdb.md)."""

import re

from orchestrator.influx.client import InfluxClient, NoDatabase, Unauthorized
from orchestrator.influx.points import SAMPLES, SAMPLES_RETENTION_DAYS

_FIRST_GENERATION = re.compile(r"v?1\.")


def is_first_generation(version: str) -> bool:
    """Whether the server is InfluxDB 1.x, which keeps databases and retention policies itself."""
    return _FIRST_GENERATION.match(version) is not None


def ensure_database(influx: InfluxClient) -> None:
    """Makes what is missing, where that can be done. Raises InfluxError, NoDatabase when the user
    may not make what is missing."""
    if not is_first_generation(influx.version()):
        return
    try:
        policies = retention_policies(influx)
    except NoDatabase:
        _make(influx, f'CREATE DATABASE "{influx.database}"')
        policies = retention_policies(influx)
    if SAMPLES not in policies:
        _make(
            influx,
            f'CREATE RETENTION POLICY "{SAMPLES}" ON "{influx.database}" '
            f"DURATION {SAMPLES_RETENTION_DAYS}d REPLICATION 1",
        )


def retention_policies(influx: InfluxClient) -> set[str]:
    """The names of the database's retention policies. Raises InfluxError."""
    found = influx.query(f'SHOW RETENTION POLICIES ON "{influx.database}"')
    return {row["name"] for series in found for row in series.rows()}


def _make(influx: InfluxClient, statement: str) -> None:
    try:
        influx.query(statement)
    except Unauthorized as error:
        raise NoDatabase(
            f"InfluxDB at {influx.url}: {error.message}; "
            f"as an administrator of InfluxDB, run: {statement}"
        ) from None
