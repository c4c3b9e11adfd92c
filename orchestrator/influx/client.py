"""A client of InfluxDB's v1 HTTP API, which 1.x, 2.x and 3 share: lines in, InfluxQL out, Basic
authentication.

In 2.x, a database and a retention policy are mapped to the bucket `database/policy`; in 3, to the
database of that name. A token is given as the password of any user. In 1.x, InfluxQL creates both.
2.x and 3 have no statements for that: there the image's own set-up or the operator creates them
(docs/influxdb.md).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

from hostbench.base.errors import HostbenchError
from orchestrator.influx.points import SAMPLES, SAMPLES_RETENTION_DAYS

CONNECT_S = 3.0
# A server that flushes its cache to a slow disk answers late.
ANSWER_S = 30.0
# Longer than the time between two hand-overs of a trial's samples.
KEEP_ALIVE_S = 60.0
ANSWER_CHARACTERS = 300
# The status codes of refused points: 400 in 1.x for bad points, 413 for too many at once, 422 in
# 2.x for bad points. After any other, another attempt may succeed.
_REJECTED = frozenset({400, 413, 422})
_NOT_ALLOWED = frozenset({401, 403})
_NOT_FOUND = 404
_MISSING = "retention policy not found"
# The messages of 1.x and 2.x.
_EXPIRED = ("beyond retention policy", "outside retention policy")
_FIRST_GENERATION = re.compile(r"v?1\.")


class InfluxError(HostbenchError):
    """InfluxDB refused or failed; the message has the reason."""


class Unreachable(InfluxError):
    """No answer, or one that says that the server cannot do it now. Another attempt may succeed."""


class Unauthorized(InfluxError):
    """User or password are wrong, or the user may not do this."""


class NoDatabase(InfluxError):
    """The database or its retention policy does not exist (1.x and 2.x)."""


class Rejected(InfluxError):
    """The server refuses what was sent, and will refuse it again. Some points of the same write may
    have been written."""

    @property
    def expired(self) -> bool:
        """Whether the points are only too old for their retention policy."""
        return any(text in self.message for text in _EXPIRED) and "conflict" not in self.message


@dataclass(frozen=True)
class RejectedLine:
    """A point that InfluxDB refuses, and the reason."""

    line: str
    reason: str
    expired: bool


@dataclass(frozen=True)
class Series:
    """One series of an answer. Times are milliseconds since 1970; all numbers are floats."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    values: Sequence[Sequence[Any]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as values by column, without missing values."""
        for values in self.values:
            pairs = zip(self.columns, values, strict=True)
            yield {name: value for name, value in pairs if value is not None}


class InfluxClient:
    """A client of one database of one server. Threads may share it."""

    def __init__(
        self,
        url: str,
        database: str,
        user: str | None = None,
        password: str | None = None,
        *,
        ca_file: str | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        """`ca_file`: the certificates to trust instead of the system's."""
        self.url = url.rstrip("/")
        self.database = database
        verify: Any = True
        if ca_file is not None:
            import ssl

            verify = ssl.create_default_context(cafile=ca_file)
        self._http = httpx.Client(
            auth=(user, password or "") if user else None,
            timeout=httpx.Timeout(answer_s, connect=CONNECT_S),
            limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_S),
            verify=verify,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def version(self) -> str:
        """Return the version that the server reports, such as `1.6.7` or `v2.7.12`. Raise
        InfluxError."""
        answer = self._ask("GET", "/ping")
        version = answer.headers.get("x-influxdb-version")
        if version is None and answer.content.startswith(b"{"):
            version = answer.json().get("version")
        return version or "unknown"

    def write(self, lines: Sequence[str], retention: str | None = None) -> None:
        """Write points. Raise Rejected when the server refuses some of them, or another InfluxError
        when it took none, or when that is unknown. Writing them again is harmless."""
        params = {"db": self.database, "precision": "ms"}
        if retention is not None:
            params["rp"] = retention
        answer = self._ask("POST", "/write", params=params, content="\n".join(lines).encode())
        if answer.status_code != httpx.codes.NO_CONTENT:
            raise Unreachable(f"{self.url} does not answer like InfluxDB: {_reason(answer)}")

    def write_each(self, lines: Sequence[str], retention: str | None = None) -> list[RejectedLine]:
        """Write all points that the server accepts, and return the refused ones.

        A refused batch is halved until each bad point is alone. Raise InfluxError other than
        Rejected.
        """
        try:
            if lines:
                self.write(lines, retention)
            return []
        except Rejected as error:
            if len(lines) == 1:
                return [RejectedLine(lines[0], error.message, error.expired)]
            middle = len(lines) // 2
            return [
                *self.write_each(lines[:middle], retention),
                *self.write_each(lines[middle:], retention),
            ]

    def query(self, text: str, retention: str | None = None) -> list[Series]:
        """Return the series of one InfluxQL statement. Raise InfluxError."""
        params = {"db": self.database, "epoch": "ms", "q": text}
        if retention is not None:
            params["rp"] = retention
        # 1.x requires POST for statements that change something; 2.x accepts no change at all.
        method = "GET" if text.upper().startswith(("SELECT", "SHOW")) else "POST"
        answer = self._ask(method, "/query", params=params)
        return [
            Series(one.get("name", ""), one.get("tags", {}), one["columns"], one.get("values", []))
            for one in self._result(answer).get("series", [])
        ]

    def _result(self, answer: httpx.Response) -> dict[str, Any]:
        """Return the result of the one statement. 2.x answers a deletion with an empty object."""
        try:
            # Go writes 4.5e16 as 45000000000000000, which may not be the nearest integer.
            content = json.loads(answer.text, parse_int=float)
            result: dict[str, Any] = content["results"][0] if content else {}
        except (ValueError, KeyError, IndexError, TypeError):
            raise Unreachable(
                f"{self.url} does not answer like InfluxDB: {_reason(answer)}"
            ) from None
        if "error" in result:
            raise _query_error(result["error"])
        return result

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, self.url + path, **request)
        except httpx.InvalidURL as error:
            raise Unreachable(f"{self.url} is not an address: {error}") from None
        except httpx.UnsupportedProtocol:
            raise Unreachable(
                f"{self.url} is not an address; it begins with http:// or https://"
            ) from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(f"InfluxDB does not answer at {self.url}: {reason}") from None
        if answer.is_success:
            return answer
        raise self._error(answer)

    def _error(self, answer: httpx.Response) -> InfluxError:
        status, reason = answer.status_code, _reason(answer)
        if status in _REJECTED:
            return Rejected(reason)
        if status in _NOT_ALLOWED:
            return Unauthorized(f"InfluxDB at {self.url} does not allow it: {reason}")
        # 1.x answers 500 when a retention policy does not exist.
        if status == _NOT_FOUND or _MISSING in reason:
            return NoDatabase(f"InfluxDB at {self.url} has no place for the points: {reason}")
        return Unreachable(f"InfluxDB at {self.url} cannot do it now ({status}): {reason}")


def _reason(answer: httpx.Response) -> str:
    """Return the reason in the server's answer, as one short line."""
    text = answer.text
    try:
        content = json.loads(text)
        if isinstance(content, dict):
            text = str(content.get("error") or content.get("message") or text)
    except ValueError:
        pass
    return " ".join(text.split())[:ANSWER_CHARACTERS] or f"status {answer.status_code}"


def _query_error(text: str) -> InfluxError:
    if "not found" in text:
        return NoDatabase(text)
    return Unauthorized(text) if "not authorized" in text else Rejected(text)


def is_first_generation(version: str) -> bool:
    """Whether the server is InfluxDB 1.x, which keeps databases and retention policies itself."""
    return _FIRST_GENERATION.match(version) is not None


def ensure_database(influx: InfluxClient) -> None:
    """Create the database and its retention policies where they are missing and the server allows
    it.

    Raise InfluxError; NoDatabase if something is missing and the user may not create it.
    """
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
    """Return the names of the database's retention policies. Raise InfluxError."""
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
