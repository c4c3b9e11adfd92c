"""Prometheus' own programs: promtool, and node_exporter over a directory of text files."""

import contextlib
import functools
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.stack.ports import free_port
from tests.stack.redis_server import REPOSITORY

PROGRAMS = REPOSITORY / "build/prometheus"
START_S = 30.0


@functools.cache
def program(name: str) -> str:
    """The path of one of them; the test is skipped where it cannot be had."""
    if (installed := shutil.which(name)) is not None:
        return installed
    if not (PROGRAMS / name).exists():
        script = REPOSITORY / "scripts/prometheus.sh"
        got = subprocess.run([script], capture_output=True, text=True)
        if got.returncode != 0:
            pytest.skip(f"Debian's packages of Prometheus cannot be had here: {got.stderr[-200:]}")
    return str(PROGRAMS / name)


@contextlib.contextmanager
def node_exporter(folder: Path) -> Iterator[str]:
    """One that runs, with the textfile collector alone; the address of its metrics."""
    address = f"127.0.0.1:{free_port()}"
    command = [
        program("prometheus-node-exporter"),
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        f"--web.listen-address={address}",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://{address}/")
                break
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        yield f"http://{address}/metrics"
    finally:
        process.terminate()
        process.wait()
