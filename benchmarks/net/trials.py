"""Run net-bench, and iperf3 and sockperf for comparison, between the two ends of a path: the
loopback, or two network namespaces joined by a veth pair."""

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.programs import Events, program, trial
from services.net.tests import namespaces
from services.net.tests.namespaces import Namespace

PORT = 5201
# How long the server of another tool may take to listen, in seconds.
READY_S = 5.0
# The seconds that iperf3 leaves out at the start; its threads are pinned in this time.
RAMP_S = 1.0
# Longer than any run here takes.
TIMEOUT_S = 60.0
GRANT = "duration_s=60 streams=64 bytes=0 rate=0 expiry_s=10"


@dataclass(frozen=True)
class Way:
    """A path from the near end to the far end. A namespace of None is the one of this process."""

    name: str
    address: str
    source: str
    near: Namespace | None = None
    far: Namespace | None = None

    def at_near(self, *command: str) -> list[str]:
        """Return the command as it runs on the near end's side."""
        return _inside(self.near, command)

    def at_far(self, *command: str) -> list[str]:
        """Return the command as it runs on the far end's side."""
        return _inside(self.far, command)

    def net_bench(self, command: str) -> Events:
        """Run one trial, such as "tcp_rr --block-bytes 14"."""
        if self.far is None:
            return trial("net", command)
        with self._session() as session:
            handed = f"{command} --target far_host --session-fd {session}"
            return trial("net", handed, session, prefix=self.at_near())

    @contextmanager
    def _session(self) -> Iterator[int]:
        """Start a far end on the other side, and yield a file that tells the near end how to reach
        it."""
        token = secrets.token_hex(32)
        grant = f"bind={self.address} allowed={self.source} token={token} {GRANT}"
        granted = _file_of(grant)
        far_end = self.at_far(str(program("net")), "far-end", "--session-fd", str(granted))
        try:
            with subprocess.Popen(far_end, stdout=subprocess.PIPE, pass_fds=[granted]) as process:
                assert process.stdout is not None
                listening = json.loads(process.stdout.readline() or "{}")
                if "port" not in listening:
                    raise SystemExit(f"the far end does not listen: {listening}")
                where = f"address={self.address} port={listening['port']} token={token}"
                session = _file_of(where)
                try:
                    yield session
                finally:
                    os.close(session)
        finally:
            os.close(granted)


def _inside(namespace: Namespace | None, command: Sequence[str]) -> list[str]:
    enter = [] if namespace is None else ["nsenter", f"--net={namespace.path}"]
    return [*enter, *command]


def _file_of(text: str) -> int:
    descriptor = os.memfd_create("session")
    os.write(descriptor, text.encode())
    return descriptor


LOOPBACK = Way("loopback", "127.0.0.1", "127.0.0.1")


@contextmanager
def ways() -> Iterator[tuple[Way, ...]]:
    """Yield the loopback and, as root, a veth pair with MTU 1500."""
    missing = namespaces.why_not()
    if missing:
        print(f"loopback only: {missing}", flush=True)
        yield (LOOPBACK,)
        return
    with namespaces.pair(lifetime_s=3600) as (near, far):
        yield LOOPBACK, Way("veth", "10.9.0.2", "10.9.0.1", near, far)


@dataclass(frozen=True)
class Placement:
    """The CPUs of the two ends, the same for every tool."""

    near: str
    far: str

    @property
    def options(self) -> str:
        """Return the placement as options of net-bench."""
        return f"--cpus {self.near} --far-cpus {self.far}"


def apart(streams: int = 1) -> Placement:
    """Give each stream of each end a CPU of its own, or both ends all CPUs where there are too
    few."""
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    if 2 * streams > len(cpus):
        return Placement(",".join(cpus), ",".join(cpus))
    return Placement(",".join(cpus[:streams]), ",".join(cpus[streams : 2 * streams]))


def together() -> Placement:
    """Put both ends on one CPU."""
    first = str(min(os.sched_getaffinity(0)))
    return Placement(first, first)


def tool(name: str, variable: str) -> str:
    """Return the path of another tool: from the environment variable, else the installed one."""
    found = os.environ.get(variable) or shutil.which(name)
    if not found:
        raise SystemExit(f"no {name}: install it, or set {variable} to its file")
    return found


@contextmanager
def server(
    way: Way, cpus: str, *command: str, port: int, udp: bool = False
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start another tool's server on the far end's side, and yield its process once it listens."""
    pinned = way.at_far("taskset", "-c", cpus, *command)
    with subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            _wait_for(way, port, process, udp=udp)
            yield process
        finally:
            process.terminate()


def _wait_for(way: Way, port: int, process: "subprocess.Popen[bytes]", *, udp: bool) -> None:
    """Wait until the server listens, according to the kernel's list of sockets. A test connection
    would be taken for the client's."""
    sockets = way.at_far("ss", "--no-header", "-uan" if udp else "-ltn", f"sport = :{port}")
    end_s = time.monotonic() + READY_S
    while not subprocess.check_output(sockets):
        if process.poll() is not None or time.monotonic() > end_s:
            process.kill()
            output = process.communicate()[0].decode().strip()
            raise SystemExit(f"{process.args!r} does not listen on port {port}: {output}")
        time.sleep(0.02)


# ---- iperf3 -------------------------------------------------------------------------------------

IPERF3_LEAST = (3, 18)


def iperf3(way: Way, placement: Placement, *options: str, seconds: float) -> dict[str, Any]:
    """Return the `end` object of iperf3's JSON output. The ramp is left out, as in our runs."""
    file = tool("iperf3", "IPERF3")
    client = way.at_near("taskset", "-c", placement.near, file, "-c", way.address, "-p", str(PORT))
    listening = (file, "-s", "-1", "-B", way.address, "-p", str(PORT))
    command = [*client, "-J", "-O", f"{RAMP_S:g}", "-t", f"{seconds:g}", *options]
    # Standard error is apart: iperf3 warns there of datagrams above the MSS.
    with (
        server(way, placement.far, *listening, port=PORT) as far,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as near,
    ):
        time.sleep(RAMP_S / 2)
        _pin_threads(near.pid, placement.near)
        _pin_threads(far.pid, placement.far)
        output = near.communicate(timeout=TIMEOUT_S)[0]
    report: dict[str, Any] = json.loads(output or "{}")
    if near.returncode or "error" in report:
        raise SystemExit(f"iperf3: exit {near.returncode}: {report.get('error', output.decode())}")
    end: dict[str, Any] = report["end"]
    return end


def _pin_threads(process: int, cpus: str) -> None:
    """Pin the threads of iperf3, one for each stream, to one CPU each in turn, as ours are. The
    first thread handles the control connection and is left alone."""
    choice = [int(cpu) for cpu in cpus.split(",")]
    threads = sorted(int(task.name) for task in Path("/proc", str(process), "task").iterdir())
    for index, thread in enumerate(threads[1:]):
        os.sched_setaffinity(thread, {choice[index % len(choice)]})


def iperf3_version() -> str:
    """Return the version as iperf3 prints it: "iperf 3.21 (cJSON 1.7.15)". Refuse one that has no
    thread a stream (3.16) or no --gsro (3.18)."""
    file = tool("iperf3", "IPERF3")
    version = subprocess.check_output([file, "--version"], text=True).splitlines()[0]
    number = re.match(r"iperf (\d+)\.(\d+)", version)
    if not number or (int(number[1]), int(number[2])) < IPERF3_LEAST:
        least = ".".join(map(str, IPERF3_LEAST))
        raise SystemExit(f"{file} is {version}: set IPERF3 to the file of {least} or newer")
    return version


# ---- sockperf -----------------------------------------------------------------------------------

SOCKPERF_PORT = 11111
SOCKPERF_LEAST_BYTES = 14


def sockperf(
    way: Way, placement: Placement, *, tcp: bool, seconds: int, options: Sequence[str] = ()
) -> float:
    """Return the median round trip of sockperf's ping-pong, in seconds.

    The option --full-rtt makes it report whole round trips instead of halves.
    """
    file = tool("sockperf", "SOCKPERF")
    where = ["-i", way.address, "-p", str(SOCKPERF_PORT), *(["--tcp"] if tcp else []), *options]
    client = way.at_near("taskset", "-c", placement.near, file, "pp", *where, "--full-rtt")
    listening = (file, "sr", *where)
    with server(way, placement.far, *listening, port=SOCKPERF_PORT, udp=not tcp):
        run = subprocess.run(
            [*client, "-t", str(seconds), "-m", str(SOCKPERF_LEAST_BYTES)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    found = re.search(r"percentile 50\.000 =\s*([0-9.]+)", run.stdout)
    if run.returncode or not found:
        raise SystemExit(f"sockperf: exit {run.returncode}: {run.stderr.strip() or run.stdout}")
    return float(found[1]) * 1e-6


def sockperf_version() -> str:
    """Return the version as sockperf prints it."""
    output = subprocess.check_output([tool("sockperf", "SOCKPERF"), "--version"], text=True)
    return output.splitlines()[0]
