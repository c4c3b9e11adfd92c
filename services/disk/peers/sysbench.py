"""sysbench fileio: random reads, one at a time in each thread.

It requires its files in its own directory and under its own names, so a link there leads to ours.
It only runs beside reads: it writes zeros (its buffers are cleared once), which some disks and file
systems do not store, and which would stay in the file for later trials.
"""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey
from hostbench.programs.tools.pages import SMALL, Pages
from hostbench.programs.tools.placement import moving
from hostbench.programs.tools.reading import NUMBER, expect, number
from hostbench.programs.tools.sysbench import PACKAGE, TOOL, SysbenchTest
from services.disk.peers.case import (
    DIRECT,
    OPERATIONS,
    Case,
    beside_plain_reads,
    lacks_file,
    scratch_file,
)

__all__ = ["PACKAGE", "TOOL", "RandomRead", "peer"]

_FILE = "test_file.0"


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for disk.rand_read past the page cache, uniform, with one read in flight for
    each thread."""
    case = Case.of(workload, params)
    plain = case.rate is None and case.zipf_theta is None and not case.verify
    fits = case.depth == 1 and case.cache_mode == DIRECT and plain
    return RandomRead(case) if workload == "rand_read" and fits else None


class RandomRead(SysbenchTest):
    """Its mode rndrd."""

    title = "fileio rndrd"
    unit = "operation/s"
    metric = OPERATIONS
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.measures = (
            "reads per second, whole run, at random places of the file of our trial, with pread(2) "
            "and O_DIRECT, as many threads"
        )

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = super().survey(ask, beside)
        return Survey(
            version=found.version,
            unsupported=lacks_file(self._case, beside),
            differs=(*beside_plain_reads(self._case), *moving(beside.cpus)),
        )

    def command(self, beside: Beside) -> Command:
        arguments = self.timed(
            beside,
            "--file-num=1",
            f"--file-total-size={self._case.span_bytes}",
            f"--file-block-size={self._case.block_bytes}",
            "--file-test-mode=rndrd",
            "--file-io-mode=sync",
            "--file-extra-flags=direct",
            # By default, it draws some blocks far more often than others.
            "--rand-type=uniform",
        )
        return Command(Pages(SMALL).command(arguments), links={_FILE: scratch_file(beside)})

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        expect("random reads", "Doing random read test" in output, True)
        return number(rf"^\s+reads/s:\s+{NUMBER}$", output, "reads/s")
