"""linpack's share of gemm's rate over the same BLAS: at n = 4000, and at the order that takes 20 s.

usage: python -m benchmarks.cpu.linpack_of_gemm [PAIRS [PAIRS_OF_20_S]] (default 7 and 3)

Each pair is gemm of n = 3072 for a second, then linpack. The table also shows gemm's share of its
limit.
"""

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import cpu_bench, named
from benchmarks.figures import ALL_THREADS, Entry, save, spread
from benchmarks.quiet import quietly

METRIC = "operations_per_second_makespan"
ORDERS = {"4000": 0.5, "auto": 20}


def main() -> None:
    pairs = {"4000": given_number(7), "auto": given_number(3, place=2)}
    start = cpu_bench("gemm --n 64 --duration-s 0.05")["start"]
    word, (library,) = start["params"]["library"], start["libraries"]
    figures = []
    print("| n | threads | linpack Gop/s | gemm | ratio: median | min – max | pairs |")
    print("|---|---|---|---|---|---|---|")
    for n, duration_s in ORDERS.items():
        for threads in sorted({1, ALL_THREADS}):
            beside = f"gemm --library {word} --threads {threads} --duration-s 1"
            command = (
                f"linpack --n {n} --library {word} --threads {threads} --duration-s {duration_s}"
            )
            ours, gemm, cycles, orders = [], [], [], []
            for _ in range(pairs[n]):
                product = quietly(cpu_bench, beside)["end"]["metrics"]
                gemm.append(product[METRIC])
                cycles.append(product["operations_per_cycle"])
                events = quietly(cpu_bench, command)
                ours.append(events["end"]["metrics"][METRIC])
                orders.append(events["start"]["params"]["n"])
            ratios = [a / b for a, b in zip(ours, gemm, strict=True)]
            row = {"ours": spread(ours), "gemm": spread(gemm), "ratio": spread(ratios)}
            print(
                f"| {min(orders)} – {max(orders)} | {threads} "
                f"| {row['ours']['median'] / 1e9:.1f} | {row['gemm']['median'] / 1e9:.1f} "
                f"| **{row['ratio']['median']:.3f}** | {min(ratios):.3f} – {max(ratios):.3f} "
                f"| {pairs[n]} |",
                flush=True,
            )
            facts = {"command": f"cpu-bench {command}", "gemm_command": f"cpu-bench {beside}"}
            columns = {"ours": ours, "gemm": gemm, "gemm_operations_per_cycle": cycles}
            figures.append(Entry(facts, {**columns, "n": orders}))
            save("cpu/linpack_of_gemm", figures, library=named(library))


if __name__ == "__main__":
    main()
