"""What the orchestrator is told by its environment: docs/operations.md lists it."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hostbench.errors import ResourceError, UsageError, shown
from hostbench.results import results_directory
from hostbench.secret import secret
from hostbench.web.exposure import Tls, check_exposure, readable_file, server_tls
from hostbench.web.keys import required_key
from hostbench.web.listen import Listen, parse_listen
from orchestrator.influx.options import DATABASE, USER, refuse_credentials

DEFAULT_LISTEN = "127.0.0.1:8000"
DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"
REDIS_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True)
class InfluxSettings:
    """The InfluxDB that points are written to."""

    url: str
    database: str
    user: str
    password: str


@dataclass(frozen=True)
class Settings:
    """Everything the orchestrator is told. `ca`: who signed the services' certificates."""

    api_key: str
    service_key: str
    redis_url: str
    redis_password: str | None
    influx: InfluxSettings | None
    results: Path
    listen: Listen
    tls: Tls | None
    ca: Path | None

    @classmethod
    def from_environment(cls) -> "Settings":
        """Raises HostbenchError: one line about the first variable that is wrong."""
        listen = parse_listen(os.environ.get("HOSTBENCH_LISTEN") or DEFAULT_LISTEN)
        tls = server_tls()
        check_exposure(listen, tls, os.environ.get("HOSTBENCH_BIND"))
        return cls(
            api_key=required_key("HOSTBENCH_API_KEY"),
            service_key=required_key("HOSTBENCH_SERVICE_KEY"),
            redis_url=_url("HOSTBENCH_REDIS_URL", REDIS_SCHEMES) or DEFAULT_REDIS_URL,
            redis_password=secret("HOSTBENCH_REDIS_PASSWORD"),
            influx=_influx(),
            results=_results(),
            listen=listen,
            tls=tls,
            ca=readable_file("HOSTBENCH_CA_FILE"),
        )


def _influx() -> InfluxSettings | None:
    refuse_credentials(os.environ.get("HOSTBENCH_INFLUXDB_URL") or "", "HOSTBENCH_INFLUXDB_URL")
    url = _url("HOSTBENCH_INFLUXDB_URL", ("http", "https"))
    if url is None:
        return None
    return InfluxSettings(
        url=url,
        database=os.environ.get("HOSTBENCH_INFLUXDB_DATABASE") or DATABASE,
        user=os.environ.get("HOSTBENCH_INFLUXDB_USER") or USER,
        password=secret("HOSTBENCH_INFLUXDB_PASSWORD") or "",
    )


def _results() -> Path:
    """The directory, made and found writable now rather than when the first job has measured."""
    path = results_directory(None).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK | os.X_OK)
    except OSError as error:
        raise ResourceError(
            f"HOSTBENCH_RESULTS {path} cannot be made: {error.strerror}; name another directory"
        ) from None
    if not writable:
        raise ResourceError(
            f"HOSTBENCH_RESULTS {path} may not be written by user {os.getuid()}; give it the right "
            "or name another directory"
        )
    return path


def _url(name: str, schemes: tuple[str, ...]) -> str | None:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        _port = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in schemes or not (parts.hostname or parts.path):
        # Not one that may hold a password.
        said = "" if "@" in text else f" {shown(text)}"
        raise UsageError(f"{name}{said} is not a URL of it; write it like {schemes[0]}://name:port")
    return text
