"""mbw: memcpy of one large array to another, in one thread. It counts a copied byte once; STREAM,
and so we, count it twice, as read and as written."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, number
from services.mem.params import PATTERN, RANDOM, THREADS
from services.mem.peers.case import LIBC, MAKESPAN, Case

PACKAGE = "mbw"
TOOL = "mbw"
RUNS_LEAST = 3
MIB = 1 << 20
# The time to fill its two arrays word by word.
_FILL_S_A_BYTE = 1e-9


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for mem.copy, or for mem.read_write, which is also memcpy, block by block."""
    case = Case.of(params)
    if params.get(THREADS) not in (1, None) or params.get(PATTERN) == RANDOM:
        return None
    if workload == "copy" and case.plain_passes:
        return Mbw(case)
    return Mbw(case) if workload == "read_write" else None


class Mbw(Peer):
    """Its test 0."""

    tool = TOOL
    package = PACKAGE
    title = "memcpy"
    unit = "byte/s"

    def __init__(self, case: Case) -> None:
        self._case = case
        # Two arrays, each in whole MiB.
        self._mebibytes = max(1, round(case.size_bytes / 2 / MIB))
        self.measures = (
            "bytes read and written per second by memcpy of the C library, mean of its runs, each "
            f"one call for {self._mebibytes} MiB"
        )
        # For small blocks, memcpy is another function: it chooses by size.
        self.metric = MAKESPAN if case.plain_passes else None

    def trial_time_s(self, elapsed_s: float) -> float:
        return elapsed_s + self._case.size_bytes * _FILL_S_A_BYTE + self.overhead_s

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        # It does not report its version.
        package_version = ask(("dpkg-query", "--show", "--showformat", "${Version}", TOOL)).strip()
        unsupported = None
        if beside.threads > 1:
            unsupported = f"{TOOL} has one thread; this case has {beside.threads}"
        differs = (
            *self._case.other_store(LIBC),
            *self._case.other_size(2 * self._mebibytes * MIB),
        )
        found = Survey(package_version or None, None, unsupported, differs=differs)
        return self._case.pages.with_conditions(found, ask)

    def command(self, beside: Beside) -> Command:
        counted = 2 * self._mebibytes * MIB
        runs = max(RUNS_LEAST, round(beside.rate * beside.elapsed_s / counted))
        arguments = on_cpus(beside.cpus, TOOL, "-t0", "-n", str(runs), str(self._mebibytes))
        return Command(self._case.pages.command(arguments))

    def parse(self, output: str, beside: Beside) -> float:
        mean = rf"^AVG\tMethod: MEMCPY\tElapsed: [\d.]+\tMiB: {NUMBER}\tCopy: "
        expect("MiB", int(number(mean, output, "AVG of MEMCPY")), self._mebibytes)
        copied = rf"^AVG\tMethod: MEMCPY\t.*\tCopy: {NUMBER} MiB/s$"
        return 2 * MIB * number(copied, output, "AVG of MEMCPY")
