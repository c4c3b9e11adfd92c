"""A real InfluxDB 1.x of the distribution, with users and passwords, on a port of its own."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import httpx

from orchestrator.influx.client import InfluxClient
from tests.stack.ports import free_port

REPOSITORY = Path(__file__).parents[2]
PROGRAM = REPOSITORY / "build/servers/usr/bin/influxd"
START_S = 60.0
STOP_S = 30.0
DATABASE = "hostbench"
ADMIN, ADMIN_PASSWORD = "admin", "admin-password"
WRITER, WRITER_PASSWORD = "hostbench", "writer-password"
READER, READER_PASSWORD = "grafana", "reader-password"

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


def unpack() -> None:
    """Makes sure that the program is there."""
    if not PROGRAM.exists():
        subprocess.run([REPOSITORY / "scripts/servers.sh"], check=True)


class InfluxServer:
    """One influxd below `root`. Its users: an administrator, one that writes, one that reads;
    `set_up` makes the two latter and the database, as an operator of 1.x does."""

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
        """Starts it and waits until it answers; its files are those of the last time."""
        unpack()
        self.root.mkdir(parents=True, exist_ok=True)
        self._configuration.write_text(
            CONFIGURATION.format(root=self.root, port=self.port, rpc_port=free_port())
        )
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "run", "-config", self._configuration],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"HOME": str(self.root), "PATH": os.environ["PATH"]},
            )
        self._wait_until_it_answers()

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
        """Ends it, if it runs."""
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
        """Ends and starts it."""
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

    def admin(self, database: str = DATABASE) -> InfluxClient:
        """A client that may do everything."""
        return self.client(ADMIN, ADMIN_PASSWORD, database)

    def client(
        self, user: str = WRITER, password: str = WRITER_PASSWORD, database: str = DATABASE
    ) -> InfluxClient:
        """A client of it."""
        return InfluxClient(self.url, database, user, password)
