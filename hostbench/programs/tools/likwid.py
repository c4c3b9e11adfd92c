"""likwid-bench (RRZE-HPC/likwid): hand-written assembly kernels, pinned threads.

It reports the mean of its whole run, so it is compared with our whole-run mean. Kernels:
bench/x86-64/*.ptt and bench/armv8/*.ptt of versions 5.2.2 and 5.4.1.
"""

import re

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Peer, Survey, on_cpus
from hostbench.programs.tools.placement import crowded
from hostbench.programs.tools.reading import expect, match, version

PACKAGE = "likwid"
TOOL = "likwid-bench"
# The fewest repetitions that it accepts.
ITERATIONS_LEAST = 10


class LikwidBench(Peer):
    """One kernel of likwid-bench, whose name is the title."""

    tool = TOOL
    package = PACKAGE
    # It sleeps for a second to calibrate its clock.
    overhead_s = 1.2

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "-v")), r"Version ([\d.]+)")
        unsupported = None
        kernels = re.findall(r"^(\w+) - ", ask((TOOL, "-a")), re.MULTILINE)
        if kernels and self.title not in kernels:
            unsupported = f"{TOOL} {found or ''} has no kernel {self.title}"
        return Survey(version=found, unsupported=crowded(TOOL, beside) or unsupported)

    def repeated(self, kilobytes: int, units_a_pass: float, beside: Beside) -> tuple[str, ...]:
        """Return its command over `kilobytes` of all threads together. `units_a_pass`: what one
        pass over them does, in the unit of our rate."""
        # With a time (-s), it takes whole seconds, and up to twice as long again to find the number
        # of repetitions. With a number, it measures as long as we did if it is as fast.
        wanted = beside.rate * beside.elapsed_s / units_a_pass
        iterations = max(ITERATIONS_LEAST, round(wanted))
        # The domain N has all CPUs of the affinity mask; -W: each thread touches its part first.
        domain = f"N:{kilobytes}kB:{beside.threads}"
        return on_cpus(beside.cpus, TOOL, "-t", self.title, "-i", str(iterations), "-W", domain)

    def check(self, output: str, beside: Beside) -> None:
        """Raise BadOutput unless it ran this kernel on these CPUs."""
        expect("kernel", match(r"^Test: (\w+)$", output, "Test")[1], self.title)
        cpus = re.findall(r"^Group: .* running on hwthread (\d+) ", output, re.MULTILINE)
        expect("its threads on CPUs", sorted(map(int, cpus)), sorted(beside.cpus))
