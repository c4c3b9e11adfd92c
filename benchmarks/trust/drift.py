"""Which drift the intervals of each class need, chosen on a part of the rounds and tried on the
others: what was chosen on all of them might fit their accidents.

usage: python -m benchmarks.trust.drift [FILE]

Chooses for each class the least drifts of rates and of times that meet two conditions. 95 % of the
intervals hold the truth, counted separately for quiet figures, planted figures and what was
delivered. And for no cell of workload and disturbance does Wilson's interval lie wholly below 95 %
(19 of 23 figures are too few). Also chooses how many times the share that others took adds to the
drift of what was delivered: one number for all classes, the one that gives the sharpest intervals.
"""

import argparse
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trust.experiment import LATENCIES, QUIET, RAW
from benchmarks.trust.table import (
    INTERVALS,
    USABLE,
    Z,
    kinds,
    load,
    share,
    trials_part,
    truth,
    wilson,
)
from hostbench.judge.figure import DRIFT_OF_SHARE
from hostbench.model.registry import find_subsystem

COVERED_LEAST = 0.95
DRIFTS = (0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, *(n / 100 for n in range(2, 21, 2)))
OF_SHARE = (0.0, 1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Seen:
    """A figure with an interval. Its fields are the distance of the truth on a logarithmic scale,
    and half the interval that the trials alone give. `cell` is workload, disturbance and figure."""

    kind: str
    cell: tuple[str, str, str]
    round: int
    off: float
    by_trials: float
    shared_ratio: float

    @property
    def pool(self) -> str:
        """Return the group of figures with which it is counted."""
        _, plant, figure = self.cell
        return figure if figure == "delivered" else f"{figure} {plant == QUIET}"

    def half(self, rule: "Rule") -> float:
        """Return half the interval under a rule."""
        workload, _, figure = self.cell
        drift = rule.times if workload in LATENCIES else rule.rates
        of_share = rule.of_share * self.shared_ratio if figure == "delivered" else 0.0
        return math.hypot(self.by_trials, Z * drift * (1 + of_share))


@dataclass(frozen=True)
class Rule:
    """The drift of rates and of times in a class, and what the share that others took adds to
    it."""

    rates: float
    times: float
    of_share: float


def seen(file: Path) -> Iterator[Seen]:
    """Yield every figure that has an interval and a known truth."""
    rows = load(file)
    for row, (figure, low, high, drift) in itertools.product(rows, INTERVALS):
        if figure == "value" and row["verdict"] not in USABLE:
            continue
        true = truth(row, rows, figure, QUIET if figure == "value" else row["plant"])
        if true is None or not row[low] or row[low] >= row[high]:
            continue
        yield Seen(
            kind=row["class"],
            cell=(row["workload"], row["plant"], figure),
            round=int(row["round"]),
            off=abs(math.log(true) - math.log(row[high] * row[low]) / 2),
            by_trials=trials_part(row, low, high, drift),
            shared_ratio=row["shared_ratio"],
        )


def held(found: Iterable[Seen], rule: Rule) -> tuple[int, int]:
    """Return how many intervals hold the truth, and out of how many."""
    inside = [one.off <= one.half(rule) for one in found]
    return sum(inside), len(inside)


def grouped(found: Iterable[Seen], by: str) -> Iterator[list[Seen]]:
    """Yield the figures of each cell, or of each pool."""
    groups: defaultdict[object, list[Seen]] = defaultdict(list)
    for one in found:
        groups[getattr(one, by)].append(one)
    yield from groups.values()


def cells(found: Sequence[Seen], rule: Rule) -> list[tuple[str, int, int]]:
    """Return each cell, how many of its intervals hold the truth, and out of how many."""
    return [(", ".join(own[0].cell), *held(own, rule)) for own in grouped(found, "cell")]


def holds(found: Sequence[Seen], rule: Rule) -> bool:
    """Return whether a rule meets the requirements on all pools and cells."""
    counts = [held(own, rule) for own in grouped(found, "pool")]
    return all(inside >= COVERED_LEAST * of for inside, of in counts) and all(
        wilson(inside, of)[1] >= COVERED_LEAST for _, inside, of in cells(found, rule)
    )


def least_rule(found: Sequence[Seen], of_share: float) -> Rule | None:
    """Return the drifts with the least sum that meet the requirements, or None when not even the
    largest do."""
    has_times = any(one.cell[0] in LATENCIES for one in found)
    pairs = itertools.product(DRIFTS, DRIFTS if has_times else (0.0,))
    rules = [Rule(rates, times, of_share) for rates, times in sorted(pairs, key=sum)]
    return next((rule for rule in rules if holds(found, rule)), None)


def chosen(found: Sequence[Seen]) -> dict[str, Rule]:
    """Return the rule of each class; all have the same `of_share`."""
    best: tuple[float, dict[str, Rule]] = (math.inf, {})
    for of_share in OF_SHARE:
        rules, widths = {}, []
        for kind in kinds():
            own = [one for one in found if one.kind == kind]
            rule = least_rule(own, of_share)
            if rule is None:
                break
            rules[kind] = rule
            widths.append(statistics.median(math.log(one.half(rule)) for one in own))
        else:
            best = min(best, (statistics.fmean(widths), rules), key=lambda one: one[0])
    return best[1]


def todays() -> dict[str, Rule]:
    """Return the rules by which jobs are judged now."""
    names = dict(zip(kinds(), ("cpu", "mem", "disk", "net"), strict=True))
    usual = {kind: find_subsystem(name).guest_spread for kind, name in names.items()}
    return {
        kind: Rule(one.drift_of("higher"), one.drift_of("lower"), DRIFT_OF_SHARE)
        for kind, one in usual.items()
    }


def main() -> None:
    """Print the chosen rules, and how well they hold in the rounds that were not used to choose
    them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", default=RAW)
    found = list(seen(parser.parse_args().file))
    odd, even = ([one for one in found if one.round % 2 == part] for part in (1, 0))
    tries = [
        ("odd rounds", chosen(odd), "even", even),
        ("even rounds", chosen(even), "odd", odd),
        ("all rounds", chosen(found), "all", found),
        ("today's rule", todays(), "odd", odd),
        ("today's rule", todays(), "even", even),
        ("today's rule", todays(), "all", found),
    ]
    print("| chosen on | class | rates | times | of the share | tried on | figures | delivered |")
    print("|---|---|---|---|---|---|---|---|")
    poor: dict[tuple[str, str], list[str]] = {}
    for by, rules, on, some in tries:
        for kind, rule in rules.items():
            own = [one for one in some if one.kind == kind]
            figures = [one for one in own if one.cell[2] == "value"]
            delivered = [one for one in own if one.cell[2] == "delivered"]
            print(
                f"| {by} | {kind} | {100 * rule.rates:g} % | {100 * rule.times:g} % | "
                f"{rule.of_share:g} | {on} | {share(*held(figures, rule))} | "
                f"{share(*held(delivered, rule))} |"
            )
            poor.setdefault((by, on), []).extend(
                f"{name}: {inside} of {of}"
                for name, inside, of in cells(own, rule)
                if wilson(inside, of)[1] < COVERED_LEAST
            )
    print()
    for (by, on), names in poor.items():
        print(
            f"{by}, tried on {on}: cells whose interval is below 95 %: {'; '.join(names) or 'none'}"
        )


if __name__ == "__main__":
    main()
