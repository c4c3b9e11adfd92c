"""The pointer chase in each level of memory against published cycles, within 5 %.

usage: python -m benchmarks.gpu.latencies [TRIALS] (default: 7)

Published figures are known here of compute capability 9.0 alone (GH200: te42kyfo/gpu-benches and
others): L1 32 cycles, L2 226 to 280 by the distance of its half, DRAM about 690.
"""

import sys

from benchmarks.gpu.trials import Row, Table, device, gpu_bench, nothing_compared
from benchmarks.pairs import Comparison, Target
from benchmarks.quiet import quietly

CYCLES = "access_cycles"
NEAR = 0.05
# Options of the level, and the published cycles: the least and the most.
LEVELS: dict[str, tuple[tuple[str, str, float, float], ...]] = {
    "9.0": (
        ("L1", "--size-bytes l1", 32, 32),
        ("L2", "--size-bytes l2", 226, 280),
        ("DRAM", "--size-bytes dram", 690, 690),
    )
}


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    levels = LEVELS.get(device().compute_capability or "")
    if levels is None:
        print(f"of {device().name} no published cycles are known here", file=sys.stderr)
        nothing_compared()
    table = Table("latencies", ("level", "ours, cycles", "published"))
    for level, options, least, most in levels:
        command = f"pointer_chase {options}"
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
