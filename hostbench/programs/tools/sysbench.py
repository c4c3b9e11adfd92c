"""sysbench: the tool that many people try first."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, number, version, whole_seconds

PACKAGE = "sysbench"
TOOL = "sysbench"


class SysbenchTest(Peer):
    """One of its tests; the first word of the title is its name."""

    tool = TOOL
    package = PACKAGE

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + 0.1

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey(version=version(ask((TOOL, "--version")), r"sysbench ([\d.]+)"))

    def timed(self, beside: Beside, *options: str) -> tuple[str, ...]:
        """Return its command with these options, for about as long as our trial."""
        threads = f"--threads={beside.threads}"
        time = f"--time={whole_seconds(beside.elapsed_s)}"
        return on_cpus(beside.cpus, TOOL, self.title.split()[0], threads, time, *options, "run")

    def check(self, output: str, beside: Beside) -> None:
        """Raise BadOutput unless all threads ran."""
        threads = number(rf"^Number of threads: {NUMBER}$", output, "Number of threads")
        expect("threads", int(threads), beside.threads)
