"""qperf: tcp_lat and udp_lat, the mean of round trips one after the other.

It prints half a round trip and calls it latency, so its figure is doubled. Its server listens at
every address of the host and accepts everybody. So it is never part of a session between two hosts,
and runs beside a suite only if a list names it.
"""

from hostbench.model.trial import Beside
from hostbench.plan.workloads import FAR_HOST
from hostbench.programs.peer import Ask, Command, Listens, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, match, number, version, whole_seconds
from services.net.peers.case import MEAN_ROUND_TRIP, Case
from services.net.peers.ends import far_end, with_server

PACKAGE = "qperf"
TOOL = "qperf"
MESSAGE_MOST = 65_507
OPEN_SERVER = "its server cannot be kept to one address and lets everybody in"


def peer(case: Case) -> Peer | None:
    """Return a peer for net.tcp_rr and net.udp_rr of one stream without load, blocking, on one
    host."""
    alone = case.one_at_a_time and not case.spins and case.target != FAR_HOST
    return Latency(case) if alone and case.block_bytes <= MESSAGE_MOST else None


class Latency(Peer):
    """tcp_lat or udp_lat."""

    tool = TOOL
    package = PACKAGE
    unit = "s"
    metric = MEAN_ROUND_TRIP
    light = False
    overhead_s = 1.0
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.title = "udp_lat" if case.udp else "tcp_lat"
        self.measures = (
            f"mean time of a round trip of {case.block_bytes} B over {case.protocol}, blocking: "
            "twice the latency that qperf says, which is half of one"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"qperf (\d[\d.]*)")
        return Survey(version=found, unsupported=OPEN_SERVER if beside.far else None)

    def command(self, beside: Beside) -> Command:
        address, port = far_end(self._case, beside)
        arguments = (
            TOOL, "--listen_port", str(port),
            address,
            "--time", str(whole_seconds(beside.elapsed_s)),
            "--msg_size", str(self._case.block_bytes),
            # Plain units, and the options in use.
            "-uu", "-vvu",
            self.title,
        )  # fmt: skip
        listening = Command((TOOL, "--listen_port", str(port)), listens=Listens("tcp", port))
        return with_server(Command(on_cpus(beside.cpus, *arguments)), listening, beside)

    def parse(self, output: str, beside: Beside) -> float:
        expect("test", match(r"^(\w+):$", output, "name of a test")[1], self.title)
        size = number(rf"^\s+msg_size +=\s+{NUMBER} bytes$", output, "msg_size")
        expect("bytes", int(size), self._case.block_bytes)
        return 2 * number(rf"^\s+latency +=\s+{NUMBER} ns$", output, "latency in ns") * 1e-9
