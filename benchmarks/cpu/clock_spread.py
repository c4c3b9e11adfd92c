"""The clock over many trials, and what a trial costs.

usage: python -m benchmarks.cpu.clock_spread [TRIALS] (default 20)
"""

import time

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import cpu_bench
from benchmarks.figures import Entry, save, spread


def main() -> None:
    trials = given_number(20)
    clocks, walls, harness = [], [], []
    for _ in range(trials):
        clocks.append(cpu_bench("clock --threads 1")["end"]["metrics"]["clock_hertz"])
        began = time.monotonic()
        end = cpu_bench("fma --duration-s 1")["end"]
        walls.append(time.monotonic() - began)
        harness.append(end["disturbance"]["harness_ratio"])
    figures = {"clock_hertz": clocks, "wall_s_of_a_1_s_trial": walls, "harness_ratio": harness}
    for name, raw in figures.items():
        values = spread(raw)
        print(
            f"{name}: median {values['median']:.6g}, MAD {values['mad_relative']:.2%}, "
            f"min {values['min']:.6g}, max {values['max']:.6g}, n {values['n']}"
        )
    save("cpu/clock_spread", [Entry({}, figures)])


if __name__ == "__main__":
    main()
