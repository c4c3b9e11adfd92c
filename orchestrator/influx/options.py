"""The InfluxDB that a command uses: options first, then the orchestrator's own environment."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from hostbench.base.config import EnvironmentSettings, Option, UsedWith, read_secret, url_of
from hostbench.base.errors import UsageError
from orchestrator.influx.client import InfluxClient


def _without_credentials(url: str) -> str:
    # The address is shown in logs, and in the health of InfluxDB.
    if "@" in url:
        raise ValueError(
            "has a user or password in it; give those by HOSTBENCH_INFLUXDB_USER and "
            "HOSTBENCH_INFLUXDB_PASSWORD_FILE, and the address without them"
        )
    return url


class InfluxSettings(EnvironmentSettings):
    """The InfluxDB that points are written to; `influxdb_url` None: there is none."""

    influxdb_url: (
        Annotated[str, AfterValidator(_without_credentials), url_of("http", "https")] | None
    ) = None
    influxdb_database: str = "hostbench"
    influxdb_user: str = "hostbench"
    influxdb_password: Annotated[SecretStr, UsedWith("influxdb_url")] = SecretStr("")

    def influx_client(self, ca_file: Path | None) -> InfluxClient:
        """Return a client. `ca_file`: the certificates to trust instead of the system's. Raise
        UsageError without an address."""
        if self.influxdb_url is None:
            raise UsageError(
                "the address of InfluxDB is missing; give it, such as http://localhost:8086, "
                "or set HOSTBENCH_INFLUXDB_URL"
            )
        encrypted = self.influxdb_url.startswith("https:")
        return InfluxClient(
            self.influxdb_url,
            self.influxdb_database,
            self.influxdb_user,
            self.influxdb_password.get_secret_value(),
            ca_file=str(ca_file) if ca_file and encrypted else None,
        )


@dataclass(frozen=True)
class InfluxOptions:
    """The options of a command; None: as in the environment, see InfluxSettings. `ca_file`: the
    certificates to trust instead of the system's."""

    url: str | None = None
    database: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None

    def client(self) -> InfluxClient:
        """Return a client. Raise UsageError or ResourceError for what is wrong or missing."""
        if self.ca_file is not None and not self.ca_file.is_file():
            raise UsageError(f"there is no file {self.ca_file}; give one with certificates")
        file = self.password_file
        password = file and SecretStr(read_secret(file, "the password file") or "")
        settings = InfluxSettings.from_environment(
            influxdb_url=Option("the address of InfluxDB", self.url),
            influxdb_database=Option("--database", self.database),
            influxdb_user=Option("--user", self.user),
            influxdb_password=Option("--password-file", password),
        )
        return settings.influx_client(self.ca_file)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that runs with python -m."""
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
    """Return the options given on the command line."""
    return InfluxOptions(
        url, arguments.database, arguments.user, arguments.password_file, arguments.ca_file
    )
