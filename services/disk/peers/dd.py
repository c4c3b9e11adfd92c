"""dd: what people try first. It reads the file once from its beginning, one read at a time.

It only runs beside reads. At the speed of a disk it could only write zeros, which some disks and
file systems do not store, and which would stay in the file for later trials.
"""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.pages import SMALL, Pages
from hostbench.programs.tools.reading import NUMBER, expect, number, version
from services.disk.peers.case import RATE, Case, beside_plain_reads, lacks_file, scratch_file

PACKAGE = "coreutils"
TOOL = "dd"


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for disk.seq_read of one thread, depth 1, past the page cache."""
    case = Case.of(workload, params)
    return Dd(case) if workload == "seq_read" and case.one_at_a_time else None


class Dd(Peer):
    """One run, at most once through the file."""

    tool = TOOL
    package = PACKAGE
    title = "iflag=direct"
    unit = "byte/s"
    metric = RATE
    overhead_s = 0.1
    kernel_works = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.measures = (
            "bytes per second of one pass from the beginning of the file, with read(2) and O_DIRECT"
        )

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"coreutils\) ([\d.]+)")
        unsupported, differs = lacks_file(self._case, beside), beside_plain_reads(self._case)
        return Survey(version=found, unsupported=unsupported, differs=differs)

    def command(self, beside: Beside) -> Command:
        operands = (
            f"if={scratch_file(beside)}",
            "of=/dev/null",
            "iflag=direct",
            f"bs={self._case.block_bytes}",
            f"count={self._blocks(beside)}",
        )
        return Command(Pages(SMALL).command(on_cpus(beside.cpus, TOOL, *operands)))

    def parse(self, output: str, beside: Beside) -> float:
        line = rf"^{NUMBER} bytes .*copied, {NUMBER} s, "
        copied = number(line, output, "bytes copied")
        expect("bytes", int(copied), self._blocks(beside) * self._case.block_bytes)
        return copied / number(r"^\d+ bytes .*copied, " + NUMBER + " s, ", output, "seconds")

    def _blocks(self, beside: Beside) -> int:
        """Return as many blocks as we would read in its time if it is as fast, but not more than
        there are."""
        wanted = round(beside.rate * beside.elapsed_s / self._case.block_bytes)
        return max(1, min(wanted, self._case.span_bytes // self._case.block_bytes))
