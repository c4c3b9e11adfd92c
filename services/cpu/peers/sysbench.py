"""sysbench cpu: it counts how often a second it can test all numbers up to 10,000 for primality by
trial division. That is almost only integer division, so it appears beside the clock as context."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Command, Params, Peer
from hostbench.programs.tools.reading import NUMBER, number
from hostbench.programs.tools.sysbench import SysbenchTest


def peer(workload: str, _params: Params) -> Peer | None:
    """Return a peer for cpu.clock."""
    return Sysbench() if workload == "clock" else None


class Sysbench(SysbenchTest):
    """sysbench cpu with its default limit for primes."""

    title = "cpu"
    measures = (
        "events per second, one event being a search for all primes up to 10,000 by trial "
        "division: the rate of 64-bit integer divisions"
    )
    unit = "event/s"

    def command(self, beside: Beside) -> Command:
        return Command(self.timed(beside, "--cpu-max-prime=10000"))

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        return number(rf"^ *events per second: +{NUMBER}$", output, "events per second")
