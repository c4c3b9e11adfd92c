"""Which InfluxDB a command talks to: options first, then the orchestrator's own environment."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from hostbench.errors import UsageError
from hostbench.secret import read_secret, secret
from orchestrator.influx.client import InfluxClient

DATABASE = "hostbench"
USER = "hostbench"
_VARIABLE = "HOSTBENCH_INFLUXDB_{}"


@dataclass(frozen=True)
class InfluxOptions:
    """As given; None: as HOSTBENCH_INFLUXDB_URL, _DATABASE, _USER, _PASSWORD_FILE or _PASSWORD
    say. `ca_file`: the certificates to trust instead of the system's."""

    url: str | None = None
    database: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None

    def client(self) -> InfluxClient:
        """A client of it. Raises UsageError or ResourceError for what is wrong or missing."""
        url = self.url or _environment("URL")
        if not url:
            raise UsageError(
                "nobody says where InfluxDB is; give its address, such as http://localhost:8086, "
                f"or set {_VARIABLE.format('URL')}"
            )
        refuse_credentials(url, "the address of InfluxDB")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise UsageError(f"there is no file {self.ca_file}; give one with certificates")
        return InfluxClient(
            url,
            self.database or _environment("DATABASE") or DATABASE,
            self.user or _environment("USER") or USER,
            self._password(),
            ca_file=str(self.ca_file) if self.ca_file else None,
        )

    def _password(self) -> str:
        if self.password_file is not None:
            return read_secret(self.password_file, "the password file") or ""
        return secret(_VARIABLE.format("PASSWORD")) or ""


def refuse_credentials(url: str, name: str) -> None:
    """An address is shown in logs, and to whoever asks how InfluxDB is: no password belongs there.
    Raises UsageError, without the address."""
    if "@" in url:
        raise UsageError(
            f"{name} has a user or password in it; give those by {_VARIABLE.format('USER')} and "
            f"{_VARIABLE.format('PASSWORD_FILE')}, and the address without them"
        )


def _environment(name: str) -> str | None:
    return os.environ.get(_VARIABLE.format(name)) or None


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that is run with python -m."""
    parser.add_argument("--database", help="default: HOSTBENCH_INFLUXDB_DATABASE, else hostbench")
    parser.add_argument("--user", help="default: HOSTBENCH_INFLUXDB_USER, else hostbench")
    parser.add_argument(
        "--password-file",
        type=Path,
        help="file with the password, or with a token; "
        "default: HOSTBENCH_INFLUXDB_PASSWORD_FILE, else HOSTBENCH_INFLUXDB_PASSWORD",
    )
    parser.add_argument("--ca-file", type=Path, help="certificates to trust, for https")


def options_of(arguments: argparse.Namespace, url: str | None) -> InfluxOptions:
    """What was given on the command line."""
    return InfluxOptions(
        url, arguments.database, arguments.user, arguments.password_file, arguments.ca_file
    )
