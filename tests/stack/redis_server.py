"""A real Redis with an append-only file, on a port of its own: of the line that compose.yaml names,
or of the distribution."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import redis

from tests.stack.ports import free_port

REPOSITORY = Path(__file__).parents[2]
SERVERS = REPOSITORY / "build/servers"
DISTRIBUTION_PROGRAM = SERVERS / "usr/bin/redis-server"
# Where it is not there its wheel cannot be had here.
SHIPPED_PROGRAM = REPOSITORY / "build/redis/redis-server"
START_S = 60.0
STOP_S = 30.0


def program() -> Path:
    """The program, which is made sure to be there."""
    if not SHIPPED_PROGRAM.exists():
        subprocess.run([REPOSITORY / "scripts/servers.sh"], check=True)
    return SHIPPED_PROGRAM if SHIPPED_PROGRAM.exists() else DISTRIBUTION_PROGRAM


def library_path() -> str:
    """Where the distribution's Redis finds the libraries that came with it."""
    found = {str(path.parent) for path in SERVERS.rglob("*.so.*")}
    return ":".join([*sorted(found), os.environ.get("LD_LIBRARY_PATH", "")])


class RedisServer:
    """One redis-server below `root`. The same port and files at every start."""

    def __init__(self, root: Path, password: str | None = None, **environment: str) -> None:
        """`environment` adds to that of the tests."""
        self.root = root
        self.environment = environment
        self.port = free_port()
        self.password = password
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.resume()
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = program()
        self.root.mkdir(parents=True, exist_ok=True)
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.root),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        if self.password:
            options["requirepass"] = self.password
        arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "LD_LIBRARY_PATH": library_path(), **self.environment},
            )
        self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        until = time.monotonic() + START_S
        with self.client() as client:
            while time.monotonic() < until:
                assert self._process.poll() is None, (self.root / "log").read_text()
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    return
                time.sleep(0.02)
        raise TimeoutError(f"redis-server at {self.url} does not answer")

    def client(self) -> redis.Redis:
        """A client of it; answers are text."""
        return redis.Redis.from_url(self.url, password=self.password, decode_responses=True)

    def stop(self) -> None:
        """End it, if it runs; it keeps what it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(STOP_S)

    def restart(self) -> None:
        """End and start it."""
        self.stop()
        self.start()

    def wipe(self) -> None:
        """Start it anew without anything it had."""
        self.kill()
        shutil.rmtree(self.root)
        self.start()

    def pause(self) -> None:
        """It answers no client until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on where it was paused."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
