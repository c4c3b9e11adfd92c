"""How often is `hostbench history` right when neighbouring jobs are correlated?

usage: python -m benchmarks.decisions.histories [--readme | [--short] [JOBS.csv …]]

The series contain no change, so every change that is reported is wrong. Some are simulated: each
value keeps a share of the deviation of the one before it (AR(1)), or a part of the variance drifts
slowly. Others are windows of the quiet jobs of benchmarks.trust and of benchmarks.decisions.fresh.
Then a shift of twice the least effect that such a series printed is planted by multiplication, at
least ten jobs from either end. It has to be found within one job of its place, and nothing else may
be found. Prints the table of README, or writes it there with --readme. Takes a minute on one CPU
and needs no quiet host. --short takes a quarter of the series.
"""

import itertools
import math
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decisions import fresh
from benchmarks.decisions.page import show
from benchmarks.decisions.resampled import Job, Tally, changed, lines_of, recorded
from benchmarks.tables import README
from benchmarks.trust import experiment
from benchmarks.trust.experiment import QUIET
from hostbench.decisions.history import history
from hostbench.model.decision import CaseFigure, FigureKind, History

LENGTHS = (8, 12, 20, 40, 90)
SERIES, SHIFTS = 400, 100
SPREAD = 0.01
# Every twentieth value deviates this many times more than the others.
TAIL = 4
LEADING = 50
# The least number of jobs on each side of a shift.
SIDE_LEAST = 10
# Windows of real jobs begin a quarter of their length apart.
STRIDE = 4
CASE = "cpu.fma"
FILES = {"jobs of benchmarks.trust": experiment.RAW, "fresh jobs": fresh.RAW}


@dataclass(frozen=True)
class Drift:
    """How consecutive logarithms depend on each other: `share` of their variance drifts, and `kept`
    of the drift carries over from one job to the next; the rest is independent."""

    kept: float
    share: float = 1.0

    def __str__(self) -> str:
        if self.share == 1:
            return f"autocorrelation {self.kept:g}"
        return f"{self.share:.0%} of the variance drifting ({self.kept:g})".replace("%", " %")


DRIFTS = (*map(Drift, (0.0, 0.2, 0.4, 0.5, 0.6)), Drift(0.9, 0.2), Drift(0.9, 0.4))


def simulated(rng: random.Random, drift: Drift, count: int) -> list[Job]:
    """Return simulated jobs of one case whose logarithms have heavy tails."""

    def step() -> float:
        return rng.gauss(0, SPREAD) * (TAIL if rng.random() < 0.05 else 1)

    slow, found = 0.0, []
    for number in range(LEADING + count):
        slow = drift.kept * slow + math.sqrt(1 - drift.kept**2) * step()
        log = math.sqrt(drift.share) * slow + math.sqrt(1 - drift.share) * step()
        found.append(_job(number, math.exp(log)))
    return found[LEADING:]


def _job(number: int, value: float) -> Job:
    figure = CaseFigure(
        case=CASE,
        title=CASE,
        workload=CASE,
        unit="1/s",
        direction="higher",
        undisturbed=value,
        delivered=value,
    )
    return Job(
        job=f"{number:06d}",
        suite="simulated",
        host="guest",
        machine="guest",
        is_guest=True,
        created_unix_s=1.8e9 + 3600.0 * number,
        digest=None,
        versions={},
        facts={},
        cases={CASE: figure},
    )


def history_of(
    jobs: Sequence[Job], case: str = CASE, kind: FigureKind = FigureKind.DELIVERED
) -> History:
    """Return the history of one case."""
    newest = next(job.cases[case] for job in reversed(jobs) if case in job.cases)
    return history(jobs, newest, kind)


def is_found(jobs: Sequence[Job], least: float, before: int, case: str, kind: FigureKind) -> bool:
    """Plant a shift of twice `least` after the first `before` jobs. Return whether it is the only
    change reported, within one job of its place."""
    factor = {case: 1 / (1 + 2 * least)}
    shifted = [*jobs[:before], *(changed(job, factor) for job in jobs[before:])]
    found = history_of(shifted, case, kind)
    place = [job.job for job in jobs].index
    return len(found.changes) == 1 and abs(place(found.changes[0].job) - before) <= 1


def of_simulated(part: int) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of simulated series, first without a change and then with one."""
    for drift in DRIFTS:
        rng = random.Random(f"series {drift}")  # noqa: S311 - the same each time
        for length in LENGTHS:
            tally = Tally()
            for _ in range(SERIES // part):
                tally.count(bool(history_of(simulated(rng, drift, length)).changes))
            yield f"nothing changed, {drift}, {length} jobs", tally
    for drift in DRIFTS:
        rng = random.Random(f"shift {drift}")  # noqa: S311 - the same each time
        tally, sizes = Tally(), []
        for _ in range(SHIFTS // part):
            before, after = rng.randrange(SIDE_LEAST, 26), rng.randrange(SIDE_LEAST, 26)
            least = history_of(simulated(rng, drift, before + after)).least_effect_ratio
            assert least is not None
            sizes.append(least)
            fresh = simulated(rng, drift, before + after)
            tally.count(is_found(fresh, least, before, CASE, FigureKind.DELIVERED))
        size = f"{100 * 2 * statistics.median(sizes):.1f} %"
        yield f"a shift within a job, {drift} ({size})", tally


def figures_of(jobs: Sequence[Job]) -> Iterator[tuple[str, FigureKind, list[Job]]]:
    """Yield every figure that more than 80 % of the real jobs have, with the jobs that have it."""
    for case in dict.fromkeys(name for job in jobs for name in job.cases):
        for kind in FigureKind:
            own = [job for job in jobs if case in job.cases and job.cases[case].value(kind)]
            if len(own) > 0.8 * len(jobs):
                yield case, kind, own


def of_real(name: str, jobs: Sequence[Job]) -> Iterator[tuple[str, Tally]]:
    """Yield the same tallies for windows of real jobs.

    The least effect that a shift is compared with comes from the jobs in which the shift is
    planted.
    """
    windows: dict[int, Tally] = {}
    shifts = Tally()
    most = 0.0
    for case, kind, own in figures_of(jobs):
        whole = history_of(own, case, kind)
        most = max(most, whole.autocorrelation or 0.0)
        for length in (*(one for one in LENGTHS if one < len(own)), len(own)):
            size = length if length < len(own) else len(jobs)
            for start in range(0, len(own) - length + 1, max(1, length // STRIDE)):
                found = history_of(own[start : start + length], case, kind)
                windows.setdefault(size, Tally()).count(bool(found.changes))
        for start in range(0, len(own) - 2 * SIDE_LEAST + 1, SIDE_LEAST // 2):
            window = own[start : start + 2 * SIDE_LEAST]
            least = history_of(window, case, kind).least_effect_ratio
            assert least is not None
            shifts.count(is_found(window, least, SIDE_LEAST, case, kind))
    for length, tally in sorted(windows.items()):
        yield f"nothing changed, {name}, {length} jobs", tally
    yield f"a shift within a job, {name} (autocorrelation up to {most:.2f})", shifts


def lines(part: int, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the table as lines of Markdown."""
    rows = [of_simulated(part)]
    for name, by_plant in recorded(files):
        quiet = by_plant.get(QUIET, [])
        if len(quiet) >= 2 * SIDE_LEAST:
            rows.append(of_real(name, quiet))
    yield from lines_of("histories", itertools.chain.from_iterable(rows))


def main() -> None:
    """Print the table."""
    part = 4 if "--short" in sys.argv else 1
    named = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    files = {f"jobs of {path.name}": path for path in named} or FILES
    show({README: {"histories": lines(part, files)}})


if __name__ == "__main__":
    main()
