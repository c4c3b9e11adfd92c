"""ping: the round trip that everybody knows. On the far end, only the kernel takes part: it answers
where the packet arrives. So its time is the path's and no program's: context."""

from hostbench.model.trial import Beside
from hostbench.plan.workloads import FAR_HOST
from hostbench.programs.peer import Ask, Command, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, match, number, version, whole_seconds
from services.net.peers.case import Case
from services.net.peers.ends import lacks_far_end

PACKAGE = "iputils-ping"
TOOL = "ping"
# It writes the time into its packets.
BLOCK_LEAST = 16
BLOCK_MOST = 65_507
MAY_NOT = "it may not send here (cap_net_raw, or net.ipv4.ping_group_range)"


def peer(case: Case) -> Peer | None:
    """Return a peer for net.tcp_rr and net.udp_rr between two hosts; on the loopback, its
    microseconds mean nothing."""
    fits = case.one_at_a_time and case.target == FAR_HOST and case.block_bytes <= BLOCK_MOST
    return Ping(case) if fits else None


class Ping(Peer):
    """Echo after echo: the next one is sent when the last has returned; without privileges, at most
    one every 2 ms."""

    tool = TOOL
    package = PACKAGE
    title = "-A"
    unit = "s"
    overhead_s = 0.5
    kernel_works = True
    far_address_only = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self._block_bytes = max(BLOCK_LEAST, case.block_bytes)
        self.measures = (
            f"mean round trip of an ICMP echo of {self._block_bytes} B, which the far host's "
            "kernel answers: no program and no socket takes part there"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "-V")), r"iputils (\S+)")
        unsupported = lacks_far_end(self._case, beside)
        if unsupported is None and not ask((TOOL, "-c", "1", "-w", "1", "127.0.0.1")):
            unsupported = MAY_NOT
        return Survey(version=found, unsupported=unsupported)

    def command(self, beside: Beside) -> Command:
        assert beside.far is not None, "the survey found a far host"
        seconds = str(whole_seconds(beside.elapsed_s))
        options = ("-A", "-q", "-n", "-w", seconds, "-s", str(self._block_bytes))
        return Command(on_cpus(beside.cpus, TOOL, *options, beside.far.address))

    def parse(self, output: str, beside: Beside) -> float:
        size = match(r"^PING .* (\d+)(?:\(\d+\))? (?:data )?bytes", output, "size")
        expect("bytes", int(size[1]), self._block_bytes)
        pattern = rf"^rtt min/avg/max/mdev = [\d.]+/{NUMBER}/[\d.]+/[\d.]+ ms"
        return number(pattern, output, "mean round trip") * 1e-3
