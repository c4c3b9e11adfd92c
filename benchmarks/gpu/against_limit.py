"""Every kernel against its peak at the clock that was observed, memory against the bus.

usage: python -m benchmarks.gpu.against_limit [TRIALS] (default: 7)
"""

import sys

from benchmarks.arguments import given_number
from benchmarks.gpu.trials import (
    BYTES,
    RATE,
    Row,
    Table,
    device,
    giga,
    gpu_bench,
    limits_of,
)
from benchmarks.pairs import Comparison, Target
from benchmarks.programs import Unsupported
from benchmarks.quiet import quietly
from hostbench.model.limit import Limit

PER_CYCLE = "operations_per_cycle"
# What has to be reached; the others are reported and have no target.
TARGETS = {
    "fma --dtype fp64": 0.97,
    "fma --dtype fp32": 0.97,
    "tensor --dtype bf16": 0.90,
    "tensor --dtype fp16": 0.90,
    "tensor --dtype fp8": 0.88,
    "copy": 0.90,
    "triad": 0.90,
}
OTHERS = (
    "fma --dtype fp16",
    "fma --dtype bf16",
    "int_add --dtype int32",
    "int_add --dtype int64",
    "int_mul_add --dtype int32",
    "int_mul_add --dtype int64",
    "dp4a",
    "tensor --dtype tf32",
    "tensor --dtype int8",
    "tensor --dtype fp64",
    "gemm --dtype bf16",
    "read",
    "write",
)


class Left(Exception):
    """Why there is no row of a kernel; `failed`: it should have run."""

    def __init__(self, why: str, *, failed: bool = False) -> None:
        super().__init__(why)
        self.failed = failed


def compared(command: str, trials: int) -> Row:
    """The row of a kernel. Raise Left."""
    name = RATE
    ours, peaks = [], []
    limit = Limit(value=None, unit="")
    for _ in range(trials):
        try:
            events = quietly(gpu_bench, command)
        except SystemExit as ended:
            # One that cannot run, for want of memory say, keeps no other from being measured.
            raise Left(str(ended), failed=not isinstance(ended, Unsupported)) from None
        found, metrics = limits_of(events), events["end"]["metrics"]
        # A library's product has no clock of its own: its limit is that of the highest clock.
        name = next(name for name in (BYTES, PER_CYCLE, RATE) if name in found and name in metrics)
        limit, value = found[name], metrics[name]
        if limit.value is None or value is None:
            raise Left(limit.reason or f"no {name}")
        ours.append(float(value))
        peaks.append(limit.value)
    least, most = TARGETS.get(command, 0.0), 1 + limit.tolerance
    target = Target(f"{least:g} – {most:.4g}" if least else f"≤ {most:.4g}", least, most)
    unit = {BYTES: "byte/s", RATE: "operations/s"}.get(name, "operations a cycle")
    scale = 1e9 if name == PER_CYCLE else 1.0
    cells = (command, unit, giga([value * scale for value in ours]))
    return Row(cells, Comparison(target, tuple(ours), tuple(peaks)), (f"gpu-bench {command}",))


def main() -> None:
    trials = given_number(7)
    device()
    table = Table("against_limit", ("kernel", "unit (a second: 10⁹)", "ours"))
    for command in (*TARGETS, *OTHERS):
        try:
            table.add(compared(command, trials))
        except Left as left:
            print(f"{command}: {left}", file=sys.stderr)
            table.holds = table.holds and not left.failed
    table.end()


if __name__ == "__main__":
    main()
