"""fma and mul_add against likwid-bench: whole-run means of the same instructions, interleaved pairs
A B A B under the same placement.

usage: python -m benchmarks.cpu.against_likwid [PAIRS [ISA ...]] (default: 9 pairs, every isa)
Needs the Debian package likwid.
"""

import sys

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import cpu_bench, likwid_bench
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.quiet import quietly

KERNELS = {
    ("fp64", "avx2"): "peakflops_avx_fma",
    ("fp32", "avx2"): "peakflops_sp_avx_fma",
    ("fp64", "avx512"): "peakflops_avx512_fma",
    ("fp32", "avx512"): "peakflops_sp_avx512_fma",
    # likwid-bench has no FMA kernels of these widths: for them, both tools multiply and add
    # separately.
    ("fp64", "scalar"): "peakflops",
    ("fp32", "scalar"): "peakflops_sp",
    ("fp64", "sse2"): "peakflops_sse",
    ("fp32", "sse2"): "peakflops_sp_sse",
}


def main() -> None:
    pairs = given_number(9)
    isas = sys.argv[2:] or sorted({isa for _, isa in KERNELS})
    figures = []
    print("| kernel | threads | ours Gop/s | likwid-bench | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|")
    for (dtype, isa), kernel in KERNELS.items():
        if isa not in isas:
            continue
        for threads in sorted({1, ALL_THREADS}):
            workload = "fma" if kernel.endswith("_fma") else "mul_add"
            command = f"{workload} --dtype {dtype} --isa {isa} --threads {threads} --duration-s 1"
            ours, theirs = [], []
            for _ in range(pairs):
                end = quietly(cpu_bench, command)["end"]
                ours.append(end["metrics"]["operations_per_second_makespan"])
                theirs.append(quietly(likwid_bench, kernel, threads, 1))
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            row = {"ours": spread(ours), "likwid": spread(theirs), "ratio": spread(ratios)}
            print(
                f"| {dtype} {isa} | {threads} | {row['ours']['median'] / 1e9:.1f} "
                f"| {row['likwid']['median'] / 1e9:.1f} | **{row['ratio']['median']:.3f}** "
                f"| {min(ratios):.3f} – {max(ratios):.3f} | {pairs} |",
                flush=True,
            )
            facts = {"command": f"cpu-bench {command}", "kernel": kernel}
            figures.append(Entry(facts, {"ours": ours, "likwid": theirs}))
    save("_".join(["cpu/against_likwid", *sys.argv[2:]]), figures)


if __name__ == "__main__":
    main()
