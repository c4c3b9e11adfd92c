"""ioping: the time of small reads, one after the other, like ping(8) for hosts."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.pages import SMALL, Pages
from hostbench.programs.tools.reading import NUMBER, expect_about, match, version
from services.disk.peers.case import (
    MEAN_LATENCY,
    Case,
    beside_plain_reads,
    lacks_file,
    scratch_file,
)

PACKAGE = "ioping"
TOOL = "ioping"


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for disk.rand_read of one thread, depth 1, past the page cache, uniform."""
    case = Case.of(workload, params)
    fits = workload == "rand_read" and case.one_at_a_time and case.zipf_theta is None
    return Ioping(case) if fits else None


class Ioping(Peer):
    """Direct reads without a pause."""

    tool = TOOL
    package = PACKAGE
    title = "-D"
    unit = "s"
    metric = MEAN_LATENCY
    overhead_s = 0.1
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.measures = (
            "mean time of a read at a random place of the file of our trial, with pread(2) and "
            "O_DIRECT, one after the other"
        )

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "-v")), r"ioping ([\d.]+)")
        unsupported, differs = lacks_file(self._case, beside), beside_plain_reads(self._case)
        return Survey(version=found, unsupported=unsupported, differs=differs)

    def command(self, beside: Beside) -> Command:
        options = (
            "-D",
            # Only figures, on one line.
            "-B",
            "-i", "0",
            "-w", f"{max(1, round(beside.elapsed_s * 1000))}ms",
            "-s", str(self._case.block_bytes),
            "-S", str(self._case.span_bytes),
            scratch_file(beside),
        )  # fmt: skip
        return Command(Pages(SMALL).command(on_cpus(beside.cpus, TOOL, *options)))

    def parse(self, output: str, beside: Beside) -> float:
        # Requests, their time in ns, requests per second, bytes per second, and the least, mean and
        # longest time in ns.
        line = rf"^(\d+) (\d+) (\d+) {NUMBER} (\d+) (\d+) (\d+) "
        found = match(line, output, "statistics")
        requests, time_ns, bytes_per_second = int(found[1]), int(found[2]), float(found[4])
        block = bytes_per_second * time_ns * 1e-9 / max(1, requests)
        expect_about("blocks in bytes of", block, self._case.block_bytes)
        return int(found[6]) * 1e-9
