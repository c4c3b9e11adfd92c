"""cyclictest: how late a timer wakes a thread, as people measure the latency of real-time kernels.
Here without real-time priority, as ours."""

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import expect, match, version

PACKAGE = "rt-tests"
TOOL = "cyclictest"
INTERVAL_US = 1000
TIMERS_LEAST = 10
# Like ours; otherwise the kernel may put the timers of a usual thread off by 50 µs.
_EXACT_TIMERS = 'echo 1 >/proc/self/timerslack_ns && exec "$@"'


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for cpu.wakeup by a timer."""
    return Cyclictest() if workload == "wakeup" and params.get("by") == "timer" else None


class Cyclictest(Peer):
    """A thread of ordinary priority, and a timer every millisecond."""

    tool = TOOL
    package = PACKAGE
    title = "policy other"
    measures = (
        "how late a thread wakes up, mean of all timers: clock_nanosleep(2) with absolute times "
        "every millisecond, a timer slack of 1 ns, no real-time priority"
    )
    unit = "s"
    metric = "latency_mean_s"

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey(version=version(ask((TOOL, "--help")), r"cyclictest V ([\d.]+)"))

    def command(self, beside: Beside) -> Command:
        options = (
            "--policy=other",
            "--threads=1",
            "--quiet",
            "--nsecs",
            # As root, it would forbid all CPUs to sleep, which ours does not.
            "--default-system",
            f"--interval={INTERVAL_US}",
            f"--loops={_timers(beside)}",
        )
        exact = ("sh", "-c", _EXACT_TIMERS, "sh")
        return Command(on_cpus(beside.cpus, *exact, TOOL, *options))

    def parse(self, output: str, beside: Beside) -> float:
        summary = rf"^T: 0 .* I:{INTERVAL_US} C: *(\d+) .* Avg: *(\d+) "
        found = match(summary, output, "line of thread 0")
        expect("timers", int(found[1]), _timers(beside))
        return int(found[2]) * 1e-9


def _timers(beside: Beside) -> int:
    return max(TIMERS_LEAST, round(beside.elapsed_s * 1e6 / INTERVAL_US))
