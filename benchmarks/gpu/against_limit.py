"""Every kernel against its peak at the clock that was observed, memory against the bus.

usage: python -m benchmarks.gpu.against_limit [TRIALS] (default: 7)
"""

import sys

from benchmarks.gpu.trials import (
    BYTES,
    RATE,
    Row,
    Table,
    at_least,
    device,
    giga,
    gpu_bench,
    limits_of,
)
from benchmarks.pairs import Comparison, Target
from benchmarks.programs import Unsupported
from benchmarks.quiet import quietly

PER_CYCLE = "operations_per_cycle"
# What has to be reached; the others are told and have no target.
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


def compared(command: str, trials: int) -> tuple[Row | None, str]:
    """The row of a kernel, or why there is none."""
    name = RATE
    ours, peaks = [], []
    for _ in range(trials):
        try:
            events = quietly(gpu_bench, command)
        except Unsupported as skipped:
            return None, str(skipped)
        found = limits_of(events)
        name = BYTES if BYTES in found else PER_CYCLE
        limit, value = found[name], events["end"]["metrics"][name]
        if limit.value is None or value is None:
            return None, limit.reason or f"no {name}"
        ours.append(float(value))
        peaks.append(limit.value)
    target = at_least(TARGETS[command]) if command in TARGETS else Target("–")
    unit = "byte/s" if name == BYTES else "operations a cycle"
    scale = 1.0 if name == BYTES else 1e9
    cells = (command, unit, giga([value * scale for value in ours]))
    row = Row(cells, Comparison(target, tuple(ours), tuple(peaks)), (f"gpu-bench {command}",))
    return row, ""


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    device()
    table = Table("against_limit", ("kernel", "unit (byte/s: 10⁹)", "ours"))
    left_out = []
    for command in (*TARGETS, *OTHERS):
        row, why = compared(command, trials)
        if row is not None:
            table.add(row)
        else:
            left_out.append(f"{command}: {why}")
    print("\n".join(["", *left_out]), file=sys.stderr)
    table.end()


if __name__ == "__main__":
    main()
