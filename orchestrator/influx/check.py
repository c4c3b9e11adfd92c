"""Says whether an InfluxDB serves hostbench: writes, reads back, and tries what boards ask.

Usable on 1.x, 2.x and 3, on a server in use too: all it writes is in measurement
`hostbench_check`, which it deletes where that can be done.
"""

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from hostbench.base.errors import HostbenchError
from hostbench.base.exitcode import ExitCode
from orchestrator.influx.client import (
    InfluxClient,
    InfluxError,
    NoDatabase,
    Rejected,
    Unauthorized,
    ensure_database,
)
from orchestrator.influx.options import add_options, options_of
from orchestrator.influx.points import SAMPLES, SAMPLES_RETENTION_DAYS, Point, line

MEASUREMENT = "hostbench_check"
TEXT = 'quoted "text" with \\ and, commas'
LABEL = "a label, with=signs"
# A value that a server which rounds numbers would change.
VALUE = 101234567890.12345
DAY_MS = 86_400_000
# InfluxDB 3 makes written points readable within about a second.
READABLE_S = 5.0
COVERED = (
    "1.6.7 and 2.9.1 in tests; 2.7.12 by hand; 3 Core by its documentation only: "
    "this check is what tells"
)


@dataclass(frozen=True)
class Finding:
    """What one check found. `text`: why it failed. `last`: skip the remaining checks, which would
    fail alike."""

    name: str
    passed: bool
    text: str = ""
    last: bool = False


class _NotWell(Exception):
    """A check did not find what it expected."""


class Check:
    """The checks of one run, on a series of their own."""

    def __init__(self, influx: InfluxClient, reader: InfluxClient | None = None) -> None:
        """`reader` is the boards' user, who may read but must not write."""
        self._influx = influx
        self._reader = reader
        self._run = uuid.uuid4().hex[:12]
        self._now_ms = int(time.time() * 1000)
        self.version = "unknown"

    def findings(self) -> Iterator[Finding]:
        """Yield one finding after the other. Stop after the first if the server cannot be
        reached."""
        found = self._found("reaches the server", self._reach)
        yield replace(found, text=f"InfluxDB {self.version}") if found.passed else found
        if found.last:
            return
        steps: list[tuple[str, Callable[[], None]]] = [
            ("database and both retention policies exist", self._exists),
            ("writes results and reads them back", lambda: self._round_trip(None)),
            ("writes samples and reads them back", lambda: self._round_trip(SAMPLES)),
            ("results are kept for years", self._keeps_results),
            (f"samples are dropped after {SAMPLES_RETENTION_DAYS} days", self._drops_samples),
            ("writing a point twice changes nothing", self._twice),
            ("a point of the wrong type is refused, with the reason", self._refuses),
            ("answers what boards ask", self._boards),
        ]
        if self._reader is not None:
            steps.append(("the boards' user reads and cannot write", self._reads_only))
        for name, step in steps:
            yield (found := self._found(name, step))
            if found.last:
                return

    def tidy_up(self) -> str:
        """Delete what was written, where the server allows it; return what is left."""
        try:
            self._influx.query(f'DELETE FROM "{MEASUREMENT}"')
            left = self._rows(None) + self._rows(SAMPLES)
        except InfluxError:
            left = 1
        if left:
            return (
                f"points of measurement {MEASUREMENT} are left behind: they are few, "
                "no board shows them, and those of the short retention vanish by themselves"
            )
        return "what was written is deleted again"

    def _found(self, name: str, step: Callable[[], None]) -> Finding:
        try:
            step()
        except _NotWell as finding:
            return Finding(name, passed=False, text=str(finding))
        except InfluxError as error:
            last = step in (self._reach, self._exists)
            return Finding(name, passed=False, text=error.message, last=last)
        return Finding(name, passed=True)

    def _reach(self) -> None:
        try:
            self.version = self._influx.version()
        except Unauthorized:
            # InfluxDB 3 reports its version to authorised users only.
            self.version = "of unknown version"

    def _exists(self) -> None:
        ensure_database(self._influx)
        for retention in (None, SAMPLES):
            try:
                self._influx.query(f'SELECT * FROM "{MEASUREMENT}" LIMIT 1', retention)
            except NoDatabase as error:
                raise NoDatabase(
                    f"{error.message}; 2.x wants the buckets {self._influx.database} and "
                    f"{self._influx.database}/{SAMPLES}: docs/influxdb.md"
                ) from None

    def _point(self, kind: str, time_ms: int, value: float = VALUE, text: str = TEXT) -> Point:
        tags = {"run": self._run, "kind": kind, "label": LABEL}
        return Point(MEASUREMENT, tags, {"value": value, "text": text}, time_ms)

    def _write(self, point: Point, retention: str | None) -> None:
        self._influx.write([line(point)], retention)

    def _select(self, kind: str, retention: str | None, client: InfluxClient | None = None) -> str:
        """Return the rows of one kind of this run as text, as soon as there are any, or after a
        while."""
        question = (
            f'SELECT last("value") AS "value", "text" FROM "{MEASUREMENT}" '
            f"""WHERE "run" = '{self._run}' AND "kind" = '{kind}' GROUP BY "label" """
        ).strip()
        until = time.monotonic() + READABLE_S
        while True:
            found = (client or self._influx).query(question, retention)
            rows = [(one.tags.get("label"), row) for one in found for row in one.rows()]
            if rows or time.monotonic() > until:
                return repr(rows)
            time.sleep(0.1)

    def _expected(self, time_ms: int, value: float = VALUE) -> str:
        return repr([(LABEL, {"time": float(time_ms), "value": value, "text": TEXT})])

    def _round_trip(self, retention: str | None) -> None:
        point = self._point("round_trip", self._now_ms)
        self._write(point, retention)
        self._compare(
            self._select("round_trip", retention), self._expected(self._now_ms), "read back"
        )

    @staticmethod
    def _compare(found: str, expected: str, what: str) -> None:
        if found != expected:
            raise _NotWell(f"{what}: {found} and not {expected}")

    def _keeps_results(self) -> None:
        old_ms = self._now_ms - 400 * DAY_MS
        self._write(self._point("old", old_ms), None)
        self._compare(self._select("old", None), self._expected(old_ms), "400 days old")

    def _drops_samples(self) -> None:
        old_ms = self._now_ms - (SAMPLES_RETENTION_DAYS + 1) * DAY_MS
        try:
            self._write(self._point("old", old_ms), SAMPLES)
        except Rejected as error:
            if error.expired:
                return
            raise
        raise _NotWell(
            f"a sample of {SAMPLES_RETENTION_DAYS + 1} days ago was taken: samples are kept "
            "longer than they need be, which costs space and nothing else"
        )

    def _twice(self) -> None:
        for value in (1.0, 2.0):
            self._write(self._point("twice", self._now_ms, value), None)
        self._compare(self._select("twice", None), self._expected(self._now_ms, 2.0), "the last")
        found = self._influx.query(
            f'SELECT count("value") AS "count" FROM "{MEASUREMENT}" '
            f"""WHERE "run" = '{self._run}' AND "kind" = 'twice'"""
        )
        counts = [row.get("count") for one in found for row in one.rows()]
        if counts != [1.0]:
            raise _NotWell(f"one point written twice is counted {counts}")

    def _refuses(self) -> None:
        text = line(self._point("round_trip", self._now_ms + 1)).replace("value=", 'value="x",x=')
        try:
            self._influx.write([text])
        except Rejected:
            return
        raise _NotWell("a string was taken for the field value, which is a number")

    def _boards(self) -> None:
        questions = [
            f'SHOW TAG VALUES FROM "{MEASUREMENT}" WITH KEY = "kind"',
            # SHOW TAG VALUES of 2.x only reads the default retention policy.
            f'SELECT "kind", "last" FROM (SELECT last("value") FROM "{SAMPLES}"."{MEASUREMENT}" '
            f'WHERE time > {self._now_ms - DAY_MS}ms GROUP BY "kind")',
            f'SELECT mean("value") FROM "{SAMPLES}"."{MEASUREMENT}" '
            f'WHERE time > {self._now_ms - DAY_MS}ms AND "run" =~ /^({self._run}|b)$/ '
            'GROUP BY time(12h), "kind" fill(none)',
            f'SELECT max("value"), min("value") FROM "{MEASUREMENT}" '
            f"WHERE \"run\" = '{self._run}' GROUP BY *",
        ]
        for question in questions:
            if not self._influx.query(question):
                raise _NotWell(f"no answer to {question}")

    def _reads_only(self) -> None:
        assert self._reader is not None
        for retention in (None, SAMPLES):
            found = self._select("round_trip", retention, self._reader)
            self._compare(found, self._expected(self._now_ms), "read by that user")
        try:
            self._reader.write([line(self._point("reader", self._now_ms))])
        except Unauthorized:
            return
        raise _NotWell("it may write: give it a user or a token that only reads")

    def _rows(self, retention: str | None) -> int:
        found = self._influx.query(f'SELECT * FROM "{MEASUREMENT}" LIMIT 1', retention)
        return sum(1 for _ in found)


def report(check: Check, url: str) -> ExitCode:
    """Print the findings of `check`, one line each; return the exit code of the command."""
    found = []
    for finding in check.findings():
        found.append(finding)
        mark = "ok" if finding.passed else "FAILED"
        _print(f"{mark:<9} {finding.name}" + (f": {finding.text}" if finding.text else ""))
    bad = sum(not finding.passed for finding in found)
    if found[-1].last:
        _print(f"{'':<9} nothing else was tried")
    else:
        _print(f"{'':<9} {check.tidy_up()}")
    if bad:
        _print(f"{url} does not serve hostbench as it should")
        return ExitCode.CASE_FAILED
    _print(f"{url} serves hostbench")
    return ExitCode.OK


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator.influx.check",
        description=(__doc__ or "").replace("`", ""),
        epilog=f"Versions covered: {COVERED}.",
    )
    parser.add_argument("url", nargs="?", help="default: HOSTBENCH_INFLUXDB_URL")
    add_options(parser)
    parser.add_argument("--read-user", help="the user of the boards, checked too when given")
    parser.add_argument("--read-password-file", type=Path, help="its password or token")
    given = parser.parse_args(arguments)
    options = options_of(given, given.url)
    try:
        with ExitStack() as stack:
            influx = stack.enter_context(options.client())
            reader = None
            if given.read_user:
                password_file = given.read_password_file
                reading = replace(options, user=given.read_user, password_file=password_file)
                reader = stack.enter_context(reading.client())
            return report(Check(influx, reader), influx.url)
    except HostbenchError as error:
        sys.stderr.write(f"hostbench: {error.message}\n")
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
