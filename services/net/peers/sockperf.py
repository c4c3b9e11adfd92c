"""sockperf: ping-pong of small messages, one at a time, with every time kept.

By default, it prints half a round trip and calls it latency; an option makes it print whole ones.
"""

import math

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Listens, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, match, number, version
from services.net.peers.case import ROUND_TRIP, Case
from services.net.peers.ends import far_end, floats, lacks_far_end, with_server

PACKAGE = "sockperf"
TOOL = "sockperf"
# Its messages contain a number.
MESSAGE_LEAST = 14
MESSAGE_MOST = 65_507
# The first round trips, which are included in its time but do not count.
WARMUP_S = 0.4
IPV6_SINCE = (3, 8)


def peer(case: Case) -> Peer | None:
    """Return a peer for net.tcp_rr and net.udp_rr of one stream without load."""
    fits = case.one_at_a_time and case.block_bytes <= MESSAGE_MOST
    return PingPong(case) if fits else None


def server(case: Case, address: str, port: int) -> Command:
    """Return its server, which runs until it is ended."""
    arguments = (TOOL, "server", *_ways(case), "-i", address, "-p", str(port))
    return Command(arguments, listens=Listens("udp" if case.udp else "tcp", port))


def _ways(case: Case) -> tuple[str, ...]:
    """Return the options of both ends. A socket that does not block is polled."""
    tcp = () if case.udp else ("--tcp",)
    return (*tcp, "--nonblocked") if case.spins else tcp


class PingPong(Peer):
    """Its mode ping-pong."""

    tool = TOOL
    package = PACKAGE
    title = "ping-pong"
    unit = "s"
    metric = ROUND_TRIP
    # It first determines the rate of the time-stamp counter.
    overhead_s = 2.5
    kernel_works = True
    server = TOOL

    def __init__(self, case: Case) -> None:
        self._case = case
        self._message_bytes = max(MESSAGE_LEAST, case.block_bytes)
        more = ", its smallest" if case.block_bytes < MESSAGE_LEAST else ""
        waits = "asking for it again and again" if case.spins else "blocking"
        self.measures = (
            f"median time of a whole round trip (--full-rtt; without it sockperf says half of one) "
            f"of {self._message_bytes} B{more}, over {case.protocol}, {waits}"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        return self._seconds(elapsed_s) + self.overhead_s

    @staticmethod
    def _seconds(elapsed_s: float) -> int:
        return math.ceil(elapsed_s + WARMUP_S)

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"version (\d+\.\d+)")
        unsupported = lacks_far_end(self._case, beside)
        if unsupported is None and self._case.version == 6 and not _knows_ipv6(found):
            unsupported = f"{TOOL} {found or ''} knows no IPv6"
        size, ours = self._message_bytes, self._case.block_bytes
        smallest = () if size == ours else (f"messages of {size} B, its smallest; ours {ours} B",)
        return Survey(found, unsupported=unsupported, differs=(*smallest, *floats(beside)))

    def command(self, beside: Beside) -> Command:
        address, port = far_end(self._case, beside)
        arguments = (
            TOOL, "ping-pong", *_ways(self._case),
            "-i", address,
            "-p", str(port),
            "-m", str(self._message_bytes),
            "-t", str(self._seconds(beside.elapsed_s)),
            "--full-rtt",
        )  # fmt: skip
        client = Command(on_cpus(beside.cpus, *arguments))
        return with_server(client, server(self._case, address, port), beside)

    def parse(self, output: str, beside: Beside) -> float:
        expect("whole round trips", "Summary: Round trip is" in output, True)
        found = match(r"PORT = +\d+ # (TCP|UDP)", output, "protocol")
        expect("protocol", found[1], self._case.protocol)
        pattern = rf"percentile 50\.000 = +{NUMBER}"
        return number(pattern, output, "median") * 1e-6


def _knows_ipv6(found: str | None) -> bool:
    if found is None:
        return False
    major, minor = found.split(".")[:2]
    return (int(major), int(minor)) >= IPV6_SINCE
