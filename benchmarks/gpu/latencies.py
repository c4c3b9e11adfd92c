"""The pointer chase in each level of memory against published cycles, within 5 %.

usage: python -m benchmarks.gpu.latencies [TRIALS] (default: 7)

The published figures are those of services/gpu/published.py, known of compute capability 9.0
alone.
"""

import sys

from benchmarks.arguments import given_number
from benchmarks.gpu.trials import Row, Table, device, gpu_bench, nothing_compared
from benchmarks.pairs import Comparison, Target
from benchmarks.quiet import quietly
from services.gpu.published import CYCLES, LEVELS

NEAR = 0.05


def main() -> None:
    trials = given_number(7)
    levels = LEVELS.get(device().compute_capability or "")
    if levels is None:
        print(f"of {device().name} no published cycles are known here", file=sys.stderr)
        nothing_compared()
    table = Table("latencies", ("level", "ours, cycles", "published"))
    for level, known in levels.items():
        least, most = known.least, known.most
        command = f"pointer_chase --size-bytes {level}"
        cycles = tuple(
            float(quietly(gpu_bench, command)["end"]["metrics"][CYCLES]) for _ in range(trials)
        )
        middle = (least + most) / 2
        low, high = least * (1 - NEAR) / middle, most * (1 + NEAR) / middle
        target = Target("within 5 %", least=low, most=high)
        compared = Comparison(target, cycles, (middle,) * trials)
        published = f"{least:g}" if least == most else f"{least:g} – {most:g}"
        cells = (level, f"{sorted(cycles)[trials // 2]:.1f}", published)
        table.add(Row(cells, compared, (f"gpu-bench {command}",)))
    table.end()


if __name__ == "__main__":
    main()
