"""perf bench, which comes with the kernel: what a system call costs, and a switch between two
processes or threads. It prints the mean of its whole run."""

from abc import abstractmethod

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, match, number, version

PACKAGE = "linux-perf"
TOOL = "perf"
# It keeps the number as an int.
LOOPS_LEAST, LOOPS_MOST = 100, 2**31 - 1


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for getppid on one CPU, or for context switches by pipe."""
    if workload == "syscall" and params.get("call") == "getppid":
        return Getppid() if params.get("threads") == 1 else None
    if workload == "context_switch" and params.get("by") == "pipe":
        return Pipe(str(params.get("between")))
    return None


class PerfBench(Peer):
    """One of its benchmarks.

    `benchmark`: its words on the command line. `operations`: how many of ours are in one of its
    loops.
    """

    tool = TOOL
    package = PACKAGE
    unit = "s"
    benchmark: tuple[str, ...]
    operations: int

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "version")), r"perf version (\S+)")
        # Ubuntu's perf is a script that looks for the one of the running kernel.
        unsupported = None if found else "perf is installed, but does not work with this kernel"
        return Survey(version=found, unsupported=unsupported)

    def command(self, beside: Beside) -> Command:
        loops = str(self._loops(beside))
        return Command(on_cpus(beside.cpus, TOOL, "bench", *self.benchmark, "-l", loops))

    def _loops(self, beside: Beside) -> int:
        # The rate of these cases is the time of one operation.
        loop_s = max(self.operations * beside.rate, beside.elapsed_s / LOOPS_MOST)
        return max(LOOPS_LEAST, round(beside.elapsed_s / loop_s)) if loop_s else LOOPS_LEAST

    def parse(self, output: str, beside: Beside) -> float:
        executed = match(rf"^# Executed ([\d,]+) {self.executed()}$", output, "Executed")[1]
        expect("loops", int(executed.replace(",", "")), self._loops(beside))
        loop_us = number(rf"^ +{NUMBER} usecs/op$", output, "usecs/op")
        return loop_us * 1e-6 / self.operations

    @abstractmethod
    def executed(self) -> str:
        """Return what it prints after the number of its loops, as a regular expression."""


class Getppid(PerfBench):
    """syscall basic."""

    title = "syscall basic"
    measures = "time of a call of getppid(2) through the C library, mean of the whole run"
    metric = "call_time_s_mean"
    benchmark = ("syscall", "basic")
    operations = 1

    def executed(self) -> str:
        return r"getppid\(\) calls"


class Pipe(PerfBench):
    """sched pipe: a round trip of four bytes through two pipes, which is two hand-overs."""

    metric = "latency_mean_s"
    operations = 2

    def __init__(self, between: str) -> None:
        self._between = between
        self.benchmark = ("sched", "pipe", *(("-T",) if between == "threads" else ()))
        self.title = " ".join(self.benchmark)
        self.measures = (
            f"time of a hand-over between two {between}, half of a round trip of four bytes "
            "through two pipes, mean of the whole run"
        )

    def executed(self) -> str:
        return f"pipe operations between two {self._between}"
