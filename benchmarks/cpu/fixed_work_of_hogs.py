"""fixed_work beside hogs of a known share and period on its CPU: interleaved pairs of a trial with
a hog and one without.

usage: python -m benchmarks.cpu.fixed_work_of_hogs [PAIRS] (default: 11)

A hog computes for so long in every period, and records when it began and what it took. The share
that fixed_work finds beside it is `lost_ratio`, less what the trial alone lost in the time that the
hog left. The period is that of the hog's records.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import Events, cpu_bench
from benchmarks.figures import Entry, Value, order_interval, save
from benchmarks.pairs import interleaved, print_header, print_row
from services.cpu.tests.planted import Planted, beside_a_hog

CPU = max(os.sched_getaffinity(0))
BESIDE_S, ALONE_S = 2.0, 1.0
# Of the CPU's time, and of the period.
SHARE_MOST, PERIOD_MOST = 0.01, 0.01
TARGET = f"± {SHARE_MOST:.0%} of the CPU, period ± {PERIOD_MOST:.0%}"


@dataclass(frozen=True)
class Hog:
    """How long it computes in every period."""

    computing_s: float
    period_s: float

    @property
    def name(self) -> str:
        """Return how a table calls it."""
        return f"{self.computing_s * 1e3:g} ms of {self.period_s * 1e3:g} ms"

    def beside(self) -> Planted:
        """Run a trial beside it."""
        return beside_a_hog(partial(trial, BESIDE_S), CPU, self.computing_s, self.period_s)


HOGS = (Hog(0.0002, 0.01), Hog(0.002, 0.02), Hog(0.0025, 0.01))


def command(seconds: float) -> str:
    return f"fixed_work --threads 1 --cpus {CPU} --duration-s {seconds}"


def trial(seconds: float) -> Events:
    """Run a trial and return its event `end`."""
    end: Events = cpu_bench(command(seconds))["end"]
    return end


def lost_alone() -> float:
    """Run a trial without a hog and return the share that it lost."""
    return float(trial(ALONE_S)["metrics"]["lost_ratio"])


def figures_of(found: Planted, alone_ratio: float) -> dict[str, Value]:
    """Return what is saved of one pair."""
    lost, period_s = found.metrics["lost_ratio"], found.metrics["interruption_period_s"]
    return {
        "lost_ratio": lost,
        "lost_ratio_alone": alone_ratio,
        "hog_ratio": found.hog_ratio,
        "excess_ratio": lost - (1 - found.hog_ratio) * alone_ratio - found.hog_ratio,
        "others_ratio": found.others_ratio,
        "interruption_period_s": period_s,
        "hog_period_s": found.hog_period_s,
        "period_ratio": None if period_s is None else period_s / found.hog_period_s,
    }


def holds(excesses: Sequence[float], periods: Sequence[float]) -> bool:
    """Return whether the medians meet the target, and each trial found a period."""
    return (
        len(periods) == len(excesses)
        and abs(median(excesses)) <= SHARE_MOST
        and abs(median(periods) - 1) <= PERIOD_MOST
    )


def cells(entry: Entry) -> list[str]:
    """Return the cells of a row."""
    excesses, periods = entry.numbers("excess_ratio"), entry.numbers("period_ratio")
    interval = order_interval(excesses)
    return [
        f"{median(entry.numbers('hog_ratio')):.2%}",
        f"{median(entry.numbers('lost_ratio')):.2%}",
        f"**{median(excesses) * 100:+.2f}**",
        f"{interval.low * 100:+.2f} – {interval.high * 100:+.2f}",
        f"{len(periods)} of {len(excesses)}",
        f"**{median(periods):.4f}**" if periods else "–",
        TARGET,
        "holds" if holds(excesses, periods) else "**misses**",
    ]


def main() -> None:
    pairs = given_number(11)
    print_header(
        [
            "hog",
            "its share",
            "lost",
            "excess, points",
            "its interval",
            "periods found",
            "found / the hog's",
            "target",
            "",
        ]
    )
    entries: list[Entry] = []
    for hog in HOGS:
        found = [figures_of(*pair) for pair in interleaved(pairs, hog.beside, lost_alone)]
        facts = {"command": f"cpu-bench {command(BESIDE_S)}", "hog": hog.name, "target": TARGET}
        entries.append(Entry(facts, {name: [one[name] for one in found] for name in found[0]}))
        print_row([hog.name, *cells(entries[-1])])
        save("cpu/fixed_work_of_hogs", entries, alone_command=f"cpu-bench {command(ALONE_S)}")


if __name__ == "__main__":
    main()
