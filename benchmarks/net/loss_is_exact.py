"""Does udp_stream report the exact share that was lost? Behind a filter that drops every k-th
datagram, and behind a token bucket on the path. Needs root.

usage: python -m benchmarks.net.loss_is_exact [RUNS] (default: 5 of each)

The filter is attached to the far end's socket from outside during the ramp and drops every datagram
of the timed region whose number is a multiple of k, so the loss is known beforehand. The token
bucket, of 100 Mbit/s, is a queue on the middle one of three hosts (network namespaces), and the
kernel counts what it drops. Runs in which other packets were dropped as well, by the receiver's
full buffer or from the control connection in the bucket, are not counted.
"""

import ctypes
import json
import os
import shlex
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save
from benchmarks.net.trials import Way
from benchmarks.pairs import print_header, print_row
from benchmarks.programs import program
from services.net.tests import namespaces
from services.net.tests.namespaces import Namespace

DATAGRAM_BYTES = 1472
EVERY = (2, 7, 50, 1000)
OFFERED_MBIT = (200, 300)
FILTERED_BYTES_PER_S = 30e6
BUCKET = ("rate", "100mbit", "burst", "20kb", "limit", "100kb")
RAMP_S, SECONDS = 1.0, 1.0
# How long the far end may take to open its socket, in seconds; well before the ramp is over.
FOUND_S = 0.8
ATTEMPTS = 20

SO_ATTACH_FILTER, PIDFD_GETFD = 26, 438
# Offsets in the datagram, and classic BPF codes. After the 8 bytes of the UDP header come the
# number (64 bits), the phase and the mark.
NUMBER_LOW, PHASE, TIMED = 8 + 4, 8 + 8, 1
LOAD_LENGTH, LOAD_WORD, LOAD_BYTE, MODULO = 0x80, 0x20, 0x30, 0x94
JUMP_EQUAL, RETURN = 0x15, 0x06


def drops_every(k: int) -> bytes:
    """Return a classic BPF program that drops each datagram of the timed region whose number is a
    multiple of k."""
    code = (
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_EQUAL, 0, 6, 8 + DATAGRAM_BYTES),
        (LOAD_BYTE, 0, 0, PHASE),
        (JUMP_EQUAL, 0, 4, TIMED),
        (LOAD_WORD, 0, 0, NUMBER_LOW),
        (MODULO, 0, 0, k),
        (JUMP_EQUAL, 0, 1, 0),
        (RETURN, 0, 0, 0),
        (RETURN, 0, 0, 0xFFFFFFFF),
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def attach(connection: socket.socket, code: bytes) -> None:
    """Attach the program to a socket."""
    buffer = ctypes.create_string_buffer(code, len(code))
    fprog = struct.pack("HL", len(code) // 8, ctypes.addressof(buffer))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)


def leads_to_socket(file: Path) -> bool:
    """Return whether the descriptor of another process is a socket. That process may close it
    meanwhile."""
    try:
        return str(file.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False


def sockets_of(pid: int) -> Iterator[socket.socket]:
    """Yield copies of the sockets of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    try:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            if not leads_to_socket(file):
                continue
            descriptor = libc.syscall(PIDFD_GETFD, process, int(file.name), 0)
            if descriptor >= 0:
                yield socket.socket(fileno=descriptor)
    finally:
        os.close(process)


def data_socket(near_end: int) -> socket.socket:
    """Return the data socket of the far end, which is a child of the near end's process."""
    end_s = time.monotonic() + FOUND_S
    children = Path(f"/proc/{near_end}/task/{near_end}/children")
    while time.monotonic() < end_s:
        for child in children.read_text().split():
            for found in sockets_of(int(child)):
                if found.type == socket.SOCK_DGRAM and connected(found):
                    return found
                found.close()
        time.sleep(0.01)
    raise SystemExit(f"process {near_end} has no far end with a UDP socket")


def connected(found: socket.socket) -> bool:
    """Return whether the socket is connected to one peer."""
    try:
        found.getpeername()
    except OSError:
        return False
    return True


def metrics_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return the metrics of a trial. Raise SystemExit when it fails."""
    output, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"{process.args!r}: exit {process.returncode}: {errors.strip()}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])["metrics"]
    return found


def filtered_once(path: str, every: int, alone: Namespace) -> dict[str, int]:
    """Run once behind the filter. Return what was really lost and what was reported."""
    command = (
        f"nsenter --net={alone.path} {program('net')} udp_stream --udp-path {path} "
        f"--block-bytes {DATAGRAM_BYTES} --rate {FILTERED_BYTES_PER_S:.0f} "
        f"--duration-s {SECONDS} --warmup-s {RAMP_S}"
    )
    with subprocess.Popen(
        shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with closing(data_socket(process.pid)) as found:
            attach(found, drops_every(every))
        metrics = metrics_of(process)
    return result(metrics, real=-(-metrics["sent_datagrams"] // every))


def filtered(path: str, every: int) -> dict[str, int]:
    """Repeat `filtered_once` until nothing else was lost."""
    for _ in range(ATTEMPTS):
        with namespaces.namespace() as alone:
            found = filtered_once(path, every, alone)
            if not counter(alone, "Udp", "RcvbufErrors"):
                return found
    raise SystemExit(f"the receiver's buffer overflowed in each of {ATTEMPTS} runs")


def result(metrics: dict[str, Any], real: int) -> dict[str, int]:
    """Return the part of a run that is saved."""
    names = ("sent_datagrams", "received_datagrams", "lost_datagrams", "receiver_dropped_datagrams")
    return {**{name: metrics[name] for name in names}, "really_lost": real}


def counter(namespace: Namespace, protocol: str, name: str) -> int:
    """Return a counter of /proc/net/snmp in the namespace."""
    lines = [line.split() for line in namespace.call("cat", "/proc/net/snmp").splitlines()]
    names, values = (line for line in lines if line[0] == f"{protocol}:")
    return int(values[names.index(name)])


def queued(path: str, offered_mbit: int) -> dict[str, int]:
    """Run once through the token bucket."""
    for _ in range(ATTEMPTS):
        with namespaces.chain() as (near, middle, far):
            middle.call("tc", "qdisc", "add", "dev", "out0", "root", "tbf", *BUCKET)
            way = Way("bucket", "10.9.2.1", "10.9.1.1", near, far)
            rate = offered_mbit * 1e6 / 8
            events = way.net_bench(
                f"udp_stream --udp-path {path} --block-bytes {DATAGRAM_BYTES} --rate {rate:.0f} "
                f"--duration-s {SECONDS} --warmup-s 0"
            )
            again = sum(counter(end, "Tcp", "RetransSegs") for end in (near, far))
            words = middle.call("tc", "-s", "qdisc", "show", "dev", "out0").replace(",", " ")
        if not again:
            dropped = words.split()[words.split().index("(dropped") + 1]
            return result(events["end"]["metrics"], real=int(dropped))
    raise SystemExit(f"the control connection lost packets in each of {ATTEMPTS} runs")


def rows(runs: int) -> Iterator[tuple[str, str, list[dict[str, int]]]]:
    """Yield what drops datagrams, what is sent, and the runs."""
    for path in ("single", "mmsg"):
        for every in EVERY:
            found = [filtered(path, every) for _ in range(runs)]
            yield f"filter, 1 in {every}", path, found
    for path in ("single", "mmsg", "gso"):
        for offered in OFFERED_MBIT:
            found = [queued(path, offered) for _ in range(runs)]
            yield f"token bucket, {offered} Mbit/s offered", path, found


def main() -> None:
    runs = given_number(5)
    missing = namespaces.why_not()
    if missing:
        raise SystemExit(missing)
    print_header(
        ["what drops", "udp_path", "runs", "sent", "really lost", "reported", "ratio", "exact"]
    )
    figures = []
    for name, path, found in rows(runs):
        exact = sum(run["lost_datagrams"] == run["really_lost"] for run in found)
        columns = {key: [run[key] for run in found] for key in found[0]}
        total = {key: sum(column) for key, column in columns.items()}
        print_row(
            [
                name,
                path,
                f"{runs}",
                f"{total['sent_datagrams']:,}",
                f"{total['really_lost']:,}",
                f"{total['lost_datagrams']:,}",
                f"{total['lost_datagrams'] / total['sent_datagrams']:.2%}",
                f"{exact} of {runs}" if exact == runs else f"**{exact} of {runs}**",
            ]
        )
        figures.append(Entry({"drops": name, "udp_path": path}, columns))
        save("net/loss_is_exact", figures)


if __name__ == "__main__":
    main()
