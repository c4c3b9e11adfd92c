"""stress-ng: a stress tool whose figures people quote. What they really are:

- `fp`, method doubleadd or floatadd: scalar additions, eight dependent chains, compiled C. Mfp-ops
  per second of one instance, over the time inside its loops; with n instances we take n times
  their mean (0.15: geometric, 0.19: harmonic). Comparable with scalar additions of ours.
- `vecfp`: additions of compiler vectors in compiled C, of whichever instruction set the build
  chooses at run time. Of the quantity of our widest additions, but by other instructions: context.
- `cpu`: bogo operations, rounds through some 80 unlike methods. Context only.

Sources: stress-fp.c, stress-vecfp.c, stress-cpu.c of V0.15.06 and V0.19.02.
"""

from dataclasses import replace

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.placement import moving
from hostbench.programs.tools.reading import NUMBER, expect, number, version, whole_seconds

PACKAGE = "stress-ng"
TOOL = "stress-ng"
# stress-vecfp.c: operations on each element in one bogo operation.
LOOPS_A_CALL = 65536
_MAKESPAN = "operations_per_second_makespan"
_SCALAR = {"fp64": ("doubleadd", "double add"), "fp32": ("floatadd", "float add")}
# 512 bytes, which are eight registers of 512 bits.
_VECTOR = {"fp64": ("doublev64add", 64), "fp32": ("floatv128add", 128)}
# The widest of their architectures, which stress-ng uses where it can.
_WIDEST = ("best", "avx512", "neon")


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for cpu.clock, or for floating-point additions."""
    if workload == "clock":
        return CpuBogoOps()
    dtype, isa = str(params.get("dtype")), params.get("isa")
    if workload != "add_sub" or dtype not in _SCALAR:
        return None
    if isa == "scalar":
        return ScalarAdditions(*_SCALAR[dtype])
    return VectorAdditions(*_VECTOR[dtype]) if isa in _WIDEST else None


class StressNg(Peer):
    """What all stressors share."""

    tool = TOOL
    package = PACKAGE
    stressor: str

    def trial_time_s(self, elapsed_s: float) -> float:
        return whole_seconds(elapsed_s) + 0.2

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--version")), r"version ([\d.]+)")
        return Survey(version=found, differs=moving(beside.cpus))

    def options(self) -> tuple[str, ...]:
        """Return the options that choose the method."""
        return ()

    def command(self, beside: Beside) -> Command:
        # --timeout takes whole seconds: 0.5 would become 0, which means forever.
        options = (
            f"--{self.stressor}",
            str(beside.threads),
            *self.options(),
            "--timeout",
            f"{whole_seconds(beside.elapsed_s)}s",
            "--metrics",
        )
        return Command(on_cpus(beside.cpus, TOOL, *options))

    def check(self, output: str, beside: Beside) -> None:
        """Raise BadOutput unless all instances ran."""
        pattern = rf"dispatching hogs: {NUMBER} {self.stressor}$"
        expect("instances", int(number(pattern, output, "dispatching hogs")), beside.threads)

    def bogo_operations_per_second(self, output: str) -> float:
        """Return the rate of all instances together, in real time."""
        columns = rf" {self.stressor} +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +{NUMBER} "
        return number(columns, output, f"line of {self.stressor} bogo ops")


class CpuBogoOps(StressNg):
    """--cpu with all its methods, as people run it."""

    stressor = "cpu"
    title = "cpu"
    measures = "bogo operations per second: rounds through some 80 unlike methods, no known unit"
    unit = "bogo-op/s"

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        return self.bogo_operations_per_second(output)


class ScalarAdditions(StressNg):
    """--fp with one method."""

    stressor = "fp"
    unit = "operation/s"
    metric = _MAKESPAN

    def __init__(self, method: str, described: str) -> None:
        self.title = f"fp {method}"
        self.measures = (
            "scalar floating-point additions per second, eight dependent chains in compiled C, "
            "over the time inside its loops"
        )
        self._method, self._described = method, described

    def options(self) -> tuple[str, ...]:
        return ("--fp-method", self._method)

    def parse(self, output: str, beside: Beside) -> float:
        self.check(output, beside)
        pattern = rf" fp +{NUMBER} Mfp-ops per sec, {self._described} .* mean of (?:\d+) instance"
        return number(pattern, output, "Mfp-ops per sec") * 1e6 * beside.threads


class VectorAdditions(StressNg):
    """--vecfp with one method of `lanes` elements."""

    stressor = "vecfp"
    unit = "operation/s"

    def __init__(self, method: str, lanes: int) -> None:
        self.title = f"vecfp {method}"
        self.measures = (
            f"floating-point additions per second on compiler vectors of {lanes} elements, whole "
            "run; it chooses its instruction set itself and does not try to reach a peak"
        )
        self._method, self._lanes = method, lanes

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = super().survey(ask, beside)
        other = "instructions that its build chooses; ours those of the case"
        return replace(found, differs=(other, *found.differs))

    def options(self) -> tuple[str, ...]:
        return ("--vecfp-method", self._method)

    def parse(self, output: str, beside: Beside) -> float:
        # Version 0.15 prints no operations here. In all versions, a bogo operation of one method is
        # LOOPS_A_CALL operations on each lane.
        self.check(output, beside)
        if "failed:" in output and "failed: 0" not in output:
            raise BadOutput("its own verification failed")
        return self.bogo_operations_per_second(output) * LOOPS_A_CALL * self._lanes
