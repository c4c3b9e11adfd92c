"""iperf3: what people measure a network's throughput with.

It counts payload at the receiver by the receiver's clock, as we do. One stream a connection, and
from 3.16 on one thread a stream.
"""

import shlex

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Listens, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.placement import moving
from hostbench.programs.tools.reading import version, whole_seconds
from services.net.peers.case import RATE, STREAMS, SYSTEM, UDP_BUFFER_BYTES, Case
from services.net.peers.ends import far_end, floats, lacks_far_end, with_server
from services.net.peers.iperf3_output import read_report

PACKAGE = "iperf3"
TOOL = "iperf3"
THREADS_SINCE, TRUNCATE_SINCE, GSO_SINCE = (3, 16), (3, 19), (3, 21)
STREAMS_MOST = 128
# Its datagrams begin with a time and a number.
UDP_BLOCK_LEAST = 16
CONNECT_MS = 5000
# The largest buffer to request: iperf3 ends if it gets less, and does not use CAP_NET_ADMIN.
LIMITS = tuple(f"/proc/sys/net/core/{name}_max" for name in ("rmem", "wmem"))
_UDP_PATHS = {"mmsg": "many", "gso": "many, by GSO and GRO"}
_DIRECTIONS = {"send": (), "receive": ("--reverse",), "both": ("--bidir",)}


def peer(case: Case) -> Peer | None:
    """Return a peer for net.tcp_stream and net.udp_stream, if it can do the same."""
    return Iperf3(case) if _has_equal(case) else None


def server(case: Case, address: str, port: int) -> Command:
    """Return its server, which ends after one client."""
    del case  # the client sends it all options
    arguments = (TOOL, "--server", "--one-off", "--bind", address, "--port", str(port))
    return Command(arguments, listens=Listens("tcp", port))


def iperf3_command(workload: str, params: Params) -> str | None:
    """Return the command line of iperf3 for the same measurement against the user's own SERVER,
    shown beside a case; None if iperf3 has no equivalent."""
    case = Case.of(workload, params)
    if not _has_equal(case):
        return None
    return shlex.join((TOOL, "--client", "SERVER", *options(case), *_until(case, case.duration_s)))


def options(case: Case) -> tuple[str, ...]:
    """Return what it does, without the server and the duration."""
    found = ["--parallel", str(case.streams), "--length", str(case.block_bytes)]
    found += _DIRECTIONS[case.direction]
    if case.udp:
        rate = 0 if case.rate is None else max(1, round(case.rate * 8 / case.streams))
        found += ["--udp", "--bitrate", str(rate)]
    elif case.rate is not None:
        found += ["--bitrate", str(max(1, round(case.rate * 8 / case.streams)))]
    if case.send_path == "sendfile" and not case.udp:
        found.append("--zerocopy")
    if case.congestion != SYSTEM and not case.udp:
        found += ["--congestion", case.congestion]
    if case.send_buffer_bytes and not _is_default_of_udp(case):
        found += ["--window", str(case.send_buffer_bytes)]
    return tuple(found)


def _is_default_of_udp(case: Case) -> bool:
    """Whether its buffers are our default for UDP, which no suite requests and few hosts allow."""
    return case.udp and case.send_buffer_bytes == UDP_BUFFER_BYTES


def _allowed_bytes(ask: Ask) -> int | None:
    """Return how large this host lets both buffers be, or None if it does not report it."""
    found = ask(("cat", *LIMITS)).split()
    numbers = [int(word) for word in found if word.isascii() and word.isdigit()]
    return min(numbers) if len(numbers) == len(LIMITS) else None


def _until(case: Case, elapsed_s: float) -> tuple[str, ...]:
    omit = round(case.warmup_s)
    return ("--time", str(whole_seconds(elapsed_s)), *(("--omit", str(omit)) if omit else ()))


def _has_equal(case: Case) -> bool:
    """Whether iperf3 can do it: it has no MSG_ZEROCOPY, one size for both buffers, and datagrams
    that contain its own header."""
    return (
        case.workload in STREAMS
        and case.direction in _DIRECTIONS
        and case.streams <= STREAMS_MOST
        and (case.udp or case.send_path != "zerocopy")
        and not (case.udp and case.block_bytes < UDP_BLOCK_LEAST)
        and case.send_buffer_bytes == case.receive_buffer_bytes
    )


class Iperf3(Peer):
    """One client with all streams."""

    tool = TOOL
    package = PACKAGE
    unit = "byte/s"
    overhead_s = 1.0
    kernel_works = True
    server = TOOL

    def __init__(self, case: Case) -> None:
        self._case = case
        # The options that only newer versions have.
        self._newer: tuple[str, ...] = ()
        # The option for the size of buffers, which the host must allow.
        self._window: tuple[str, ...] = ()
        self.title = case.protocol
        # The amount sent is given.
        self.metric = RATE if case.rate is None else None
        self.measures = (
            f"payload of {case.protocol} in bytes per second at the receiver, whole run, in blocks "
            f"of {case.block_bytes} B over as many streams"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + round(self._case.warmup_s) + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"iperf (\d+\.\d+)")
        self._newer = self._understood(found)
        differs = [*self._other_buffers(ask), *self._other_path(), *floats(beside)]
        if beside.threads > 1:
            differs += _threads(found, beside)
        return Survey(
            version=found,
            unsupported=lacks_far_end(self._case, beside),
            conditions=self._path(),
            differs=tuple(differs),
        )

    def _other_buffers(self, ask: Ask) -> tuple[str, ...]:
        """Give it buffers of our size, or return why it has smaller ones: they determine the loss
        in the receiver's buffer, and so the rate. Of two hosts, the near one counts."""
        self._window = ()
        if not _is_default_of_udp(self._case):
            return ()
        allowed = _allowed_bytes(ask)
        if allowed is not None and allowed >= UDP_BUFFER_BYTES:
            self._window = ("--window", str(UDP_BUFFER_BYTES))
            return ()
        limit = "of unknown size" if allowed is None else f"of {allowed} B at most"
        return (
            f"the kernel's own buffers, {limit}; ours of {UDP_BUFFER_BYTES} B, which "
            "net.core.rmem_max and net.core.wmem_max must allow it",
        )

    def _other_path(self) -> tuple[str, ...]:
        """Return how its handling of blocks differs if this version lacks our way."""
        case = self._case
        if case.udp:
            ours = _UDP_PATHS.get(case.udp_path)
            return () if self._newer or ours is None else (f"one datagram a call; ours {ours}",)
        if case.receive_path == "truncate" and not self._newer:
            return ("copies of what it receives; ours are dropped by the kernel",)
        return ()

    def _understood(self, found: str | None) -> tuple[str, ...]:
        """Return the options for our case that this version has."""
        case = self._case
        if case.udp:
            return ("--gsro",) if case.udp_path == "gso" and _since(found, GSO_SINCE) else ()
        truncates = case.receive_path == "truncate" and _since(found, TRUNCATE_SINCE)
        return ("--skip-rx-copy",) if truncates else ()

    def _path(self) -> str:
        if self._case.udp:
            return "with GSO and GRO" if self._newer else "one datagram a call"
        return "dropped by the kernel" if self._newer else "received with copies"

    def command(self, beside: Beside) -> Command:
        address, port = far_end(self._case, beside)
        arguments = (
            TOOL,
            "--client", address,
            "--port", str(port),
            "--connect-timeout", str(CONNECT_MS),
            *options(self._case),
            *self._newer,
            *self._window,
            *_until(self._case, beside.elapsed_s),
            # Only sums: a line for each second and stream would exceed the output that is kept.
            "--interval", "0",
            "--json",
        )  # fmt: skip
        client = Command(on_cpus(beside.cpus, *arguments))
        return with_server(client, server(self._case, address, port), beside)

    def parse(self, output: str, beside: Beside) -> float:
        report = read_report(output)
        case = self._case
        report.check(
            protocol=case.protocol,
            num_streams=case.streams,
            blksize=case.block_bytes,
            reverse=int(case.direction == "receive"),
        )
        if case.congestion != SYSTEM and not case.udp:
            report.check_congestion(case.congestion)
        found = [report.received]
        if case.direction == "both":
            if report.received_back is None:
                raise BadOutput("it sent in one direction only")
            found.append(report.received_back)
        return sum(one.bytes_per_second for one in found)


def _threads(found: str | None, beside: Beside) -> tuple[str, ...]:
    """Return how its threads differ from several of ours."""
    if not _since(found, THREADS_SINCE):
        return ("all streams in one thread; ours in one each",)
    return moving(beside.cpus) or moving(beside.far_cpus[: beside.threads])


def _since(found: str | None, least: tuple[int, int]) -> bool:
    """Whether the installed version is at least this one."""
    if found is None:
        return False
    major, minor = found.split(".")[:2]
    return (int(major), int(minor)) >= least
