"""Every kernel against its theoretical limit: median of clean slices / (clock × table × cores).

usage: python -m benchmarks.cpu.against_limit [TRIALS] (default 7)
"""

import sys
from typing import Any

from benchmarks.cpu.trials import ALL_THREADS, cpu_bench, save, spread
from hostbench.host import inventory
from services.cpu.limits import trial_limits
from services.cpu.microarchitecture import CpuIdentity

KERNELS = {
    "fma": ["fp64", "fp32"],
    "add_sub": ["int8", "int16", "int32", "int64", "fp32", "fp64"],
}
ISAS = ["scalar", "sse2", "avx2", "avx512", "neon"]


def efficiency(workload: str, events: dict[str, Any], identity: CpuIdentity) -> float | None:
    start, end = events["start"], events["end"]
    limit = trial_limits(
        identity, workload, start["params"], end["metrics"], start["placement"]["cores"]
    )["operations_per_second"]
    return end["metrics"]["operations_per_second"] / limit.value if limit.value else None


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    identity = CpuIdentity.from_inventory(inventory().cpu)
    figures = []
    print("| kernel | threads | Gop/s | of the limit: median | min – max | n |")
    print("|---|---|---|---|---|---|")
    for workload, dtypes in KERNELS.items():
        for dtype in dtypes:
            for isa in ISAS:
                for threads in sorted({1, ALL_THREADS}):
                    command = f"{workload} --dtype {dtype} --isa {isa} --threads {threads}"
                    try:
                        events = [cpu_bench(f"{command} --duration-s 0.5") for _ in range(trials)]
                    except SystemExit as unsupported:
                        print(unsupported, file=sys.stderr)
                        continue
                    ratios = [efficiency(workload, e, identity) for e in events]
                    rates = [e["end"]["metrics"]["operations_per_second"] for e in events]
                    known = [ratio for ratio in ratios if ratio is not None]
                    shown = (
                        f"**{spread(known)['median']:.3f}** | {min(known):.3f} – {max(known):.3f}"
                        if known
                        else "no limit known | "
                    )
                    print(
                        f"| {workload} {dtype} {isa} | {threads} "
                        f"| {spread(rates)['median'] / 1e9:.2f} | {shown} | {trials} |",
                        flush=True,
                    )
                    figures.append(
                        {
                            "command": f"cpu-bench {command} --duration-s 0.5",
                            "rates": rates,
                            "efficiencies": ratios,
                        }
                    )
    save("against_limit", figures)


if __name__ == "__main__":
    main()
