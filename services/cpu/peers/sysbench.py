"""sysbench cpu: what many people run first. It counts how often a second it can test all numbers
up to 10,000 for primality by trial division, which is integer division and little else, so it
stands beside the clock as context."""

from hostbench.peers import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.trial import Beside
from services.cpu.peers.reading import NUMBER, expect, number, version, whole_seconds

PACKAGE = "sysbench"
TOOL = "sysbench"


def peer(workload: str, _params: Params) -> Peer | None:
    """Beside cpu.clock."""
    return Sysbench() if workload == "clock" else None


class Sysbench(Peer):
    """sysbench cpu with its default limit for primes."""

    tool = TOOL
    package = PACKAGE
    title = "cpu"
    measures = (
        "events per second, one event being a search for all primes up to 10,000 by trial "
        "division: the rate of 64-bit integer divisions"
    )
    unit = "event/s"

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + 0.1

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey(version=version(ask((TOOL, "--version")), r"sysbench ([\d.]+)"))

    def command(self, beside: Beside) -> Command:
        options = (
            f"--threads={beside.threads}",
            f"--time={whole_seconds(beside.elapsed_s)}",
            "--cpu-max-prime=10000",
        )
        return Command(on_cpus(beside.cpus, TOOL, "cpu", *options, "run"))

    def parse(self, output: str, beside: Beside) -> float:
        threads = number(rf"^Number of threads: {NUMBER}$", output, "Number of threads")
        expect("threads", int(threads), beside.threads)
        return number(rf"^ *events per second: +{NUMBER}$", output, "events per second")
