"""A real InfluxDB with users and passwords, on a port of its own: the version that compose.yaml
names, built from its Go module, or 1.x of the distribution."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import yaml

from orchestrator.influx.client import InfluxClient
from tests.stack.ports import free_port

REPOSITORY = Path(__file__).parents[2]
PROGRAM = REPOSITORY / "build/servers/usr/bin/influxd"
# Where it is not there it cannot be built here; scripts/influxdb.sh says why.
SHIPPED_PROGRAM = REPOSITORY / "build/influxdb/influxd"
START_S = 60.0
STOP_S = 30.0
DATABASE = "hostbench"
ADMIN, ADMIN_PASSWORD = "admin", "admin-password"
WRITER, WRITER_PASSWORD = "hostbench", "writer-password"
READER, READER_PASSWORD = "grafana", "reader-password"
ORGANISATION = "hostbench"
SAMPLES_S = 30 * 24 * 3600

CONFIGURATION = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
dir = "{root}/meta"
logging-enabled = false
[data]
dir = "{root}/data"
wal-dir = "{root}/wal"
query-log-enabled = false
[monitor]
store-enabled = false
[subscriber]
enabled = false
[continuous_queries]
enabled = false
[retention]
check-interval = "24h"
[http]
bind-address = "127.0.0.1:{port}"
auth-enabled = true
log-enabled = false
[logging]
level = "error"
suppress-logo = true
"""


def shipped_version() -> str:
    """The version that compose.yaml names."""
    found = re.search(r"influxdb:\S*?(\d+\.\d+\.\d+)-", (REPOSITORY / "compose.yaml").read_text())
    assert found is not None
    return found[1]


def shipped_settings() -> dict[str, str]:
    """What compose.yaml sets of InfluxDB itself."""
    service = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]["influxdb"]
    return {
        name: value for name, value in service["environment"].items() if name.startswith("INFLUXD_")
    }


def unpack() -> None:
    """Make sure that the program is there."""
    if not PROGRAM.exists():
        subprocess.run([REPOSITORY / "scripts/servers.sh"], check=True)


class InfluxServer:
    """One influxd below `root`. Its users: an administrator, one that writes, one that reads;
    `set_up` makes the two latter and the database, as an operator of 1.x does."""

    admin_password = ADMIN_PASSWORD
    version = "1.6.7~rc0"

    def __init__(self, root: Path, port: int | None = None) -> None:
        self.root = root
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._configuration = root / "influxdb.conf"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers; its files are those of the last time."""
        self.root.mkdir(parents=True, exist_ok=True)
        command, environment = self._command()
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"HOME": str(self.root), "PATH": os.environ["PATH"], **environment},
            )
        self._wait_until_it_answers()

    def _command(self) -> tuple[list[str | Path], dict[str, str]]:
        """What to run, and its environment."""
        unpack()
        self._configuration.write_text(
            CONFIGURATION.format(root=self.root, port=self.port, rpc_port=free_port())
        )
        return [PROGRAM, "run", "-config", self._configuration], {}

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            assert self._process.poll() is None, (self.root / "log").read_text()
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/ping").is_success:
                    return
            time.sleep(0.05)
        raise TimeoutError(f"influxd at {self.url} does not answer")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, if it runs."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        """End and start it."""
        self.stop()
        self.start()

    def set_up(self, *, make_database: bool = True) -> None:
        """Users, and the database with its two retention policies."""
        make_admin = f"CREATE USER {ADMIN} WITH PASSWORD '{ADMIN_PASSWORD}' WITH ALL PRIVILEGES"
        httpx.post(f"{self.url}/query", params={"q": make_admin}).raise_for_status()
        with self.admin() as admin:
            admin.query(f"CREATE USER {WRITER} WITH PASSWORD '{WRITER_PASSWORD}'")
            admin.query(f"CREATE USER {READER} WITH PASSWORD '{READER_PASSWORD}'")
        if make_database:
            self.make_database(DATABASE)

    def make_database(self, name: str) -> None:
        """A database, with the rights of the two users."""
        with self.admin(name) as admin:
            admin.query(f'CREATE DATABASE "{name}"')
            admin.query(f'CREATE RETENTION POLICY "samples" ON "{name}" DURATION 30d REPLICATION 1')
            admin.query(f'GRANT ALL ON "{name}" TO {WRITER}')
            admin.query(f'GRANT READ ON "{name}" TO {READER}')

    @property
    def settings(self) -> dict[str, str]:
        """The settings of an orchestrator that writes to it."""
        return {
            "HOSTBENCH_INFLUXDB_URL": self.url,
            "HOSTBENCH_INFLUXDB_USER": WRITER,
            "HOSTBENCH_INFLUXDB_PASSWORD": WRITER_PASSWORD,
        }

    def admin(self, database: str = DATABASE) -> InfluxClient:
        """A client that may do everything."""
        return self.client(ADMIN, self.admin_password, database)

    def client(
        self, user: str = WRITER, password: str = WRITER_PASSWORD, database: str = DATABASE
    ) -> InfluxClient:
        """A client of it."""
        return InfluxClient(self.url, database, user, password)


class ShippedInflux(InfluxServer):
    """One of the version that compose.yaml names: 2.x, by its v1 API."""

    # By the v1 API a token is a password.
    admin_password = "the-token-of-the-administrator"
    version = f"v{shipped_version()}"

    def _command(self) -> tuple[list[str | Path], dict[str, str]]:
        return [SHIPPED_PROGRAM], {
            "INFLUXD_BOLT_PATH": str(self.root / "influxd.bolt"),
            "INFLUXD_SQLITE_PATH": str(self.root / "influxd.sqlite"),
            "INFLUXD_ENGINE_PATH": str(self.root / "engine"),
            "INFLUXD_HTTP_BIND_ADDRESS": f"127.0.0.1:{self.port}",
            **shipped_settings(),
        }

    def set_up(self, *, make_database: bool = True) -> None:
        """Users, and the database with its two retentions, each a bucket."""
        organisation, _ = self.onboard()
        every = [
            {"action": action, "resource": {"type": "buckets", "orgID": organisation}}
            for action in ("read", "write")
        ]
        self.add_user(organisation, WRITER, WRITER_PASSWORD, every)
        self.add_user(organisation, READER, READER_PASSWORD, every[:1])
        if make_database:
            self.make_database(DATABASE)

    def onboard(self, bucket: str = "first") -> tuple[str, str]:
        """What the image's own initialisation does; the ids of organisation and bucket."""
        made = self.post(
            "/api/v2/setup",
            username=ADMIN,
            password=ADMIN_PASSWORD,
            token=self.admin_password,
            org=ORGANISATION,
            bucket=bucket,
        )
        return made["org"]["id"], made["bucket"]["id"]

    def add_user(
        self, organisation: str, name: str, password: str, permissions: list[dict[str, Any]]
    ) -> None:
        """A user of the v1 API."""
        made = self.post(
            "/private/legacy/authorizations",
            orgID=organisation,
            token=name,
            permissions=permissions,
        )
        self.post(f"/private/legacy/authorizations/{made['id']}/password", password=password)

    def make_database(self, name: str) -> None:
        """Its two buckets, which the v1 API finds by these names."""
        found = httpx.get(f"{self.url}/api/v2/orgs", headers=self._headers).raise_for_status()
        (organisation,) = [one["id"] for one in found.json()["orgs"]]
        self.post("/api/v2/buckets", orgID=organisation, name=name)
        rules = [{"type": "expire", "everySeconds": SAMPLES_S}]
        self.post(
            "/api/v2/buckets", orgID=organisation, name=f"{name}/samples", retentionRules=rules
        )

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """What it answers to the administrator."""
        answer = httpx.post(f"{self.url}{path}", headers=self._headers, json=body, timeout=30)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Token {self.admin_password}"}


def newest_influx(root: Path) -> InfluxServer:
    """One of the version that compose.yaml names where that is built, else of 1.x."""
    return ShippedInflux(root) if SHIPPED_PROGRAM.exists() else InfluxServer(root)


# What a fixture starts, one after another, for tests that hold with either; `make test` has the one
# that need not be built first.
EITHER = [
    pytest.param(InfluxServer, id="1.x"),
    pytest.param(ShippedInflux, id="shipped", marks=pytest.mark.exhaustive),
]
