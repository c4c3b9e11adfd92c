"""How often is `hostbench compare` right? Measured jobs, divided into two sides in many ways.

usage: python -m benchmarks.decisions.resampled [--readme | JOBS.csv …]

The jobs are those of benchmarks.trust from two evenings, with quiet jobs between the others. When
both sides consist of quiet jobs nothing changed, and every report of a change is wrong. A change of
the hardware is planted by multiplying figures of one side. Quotas were really set, and the jobs of
benchmarks.decisions.fresh were run with slower programs and small pages. Prints the table of README
with one row for each design: how often a report says that something changed, with Wilson's
interval. --readme writes it there. Takes two minutes on one CPU and needs no quiet host. The tables
of the fresh jobs come from benchmarks.decisions.settings --table.
"""

import csv
import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decisions import fresh
from benchmarks.decisions.page import show
from benchmarks.tables import README
from benchmarks.trust import experiment
from benchmarks.trust.experiment import LATENCIES, QUIET
from benchmarks.trust.table import USABLE, wilson
from hostbench.decisions.compare import compare
from hostbench.model.decision import CaseFigure, Comparison, FigureKind, JobFigures, Word

CHANGED = (Word.WORSE, Word.BETTER)
KERNELS = ("cpu.fma", "cpu.add_sub")
# The cases that a slower program and small pages change.
PLANTED = ("cpu.", "mem.", "disk.seq_read")
# Jobs on a side.
SIDES = (4, 6, 8)
QUOTA_SIDE = 5
EARLIER = (12,)
EVENINGS_APART_S = 3600.0
Job = JobFigures
Pair = tuple[Sequence[Job], Sequence[Job]]


def recorded(files: Mapping[str, Path]) -> Iterator[tuple[str, dict[str, list[Job]]]]:
    """Yield the title and the jobs, by what was planted, of each group to look at. Jobs measured
    beside other work form a group of their own."""
    for name, path in files.items():
        if not path.exists():
            continue
        with path.open() as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        for beside in dict.fromkeys(row.get("beside") or "" for row in rows):
            own = [row for row in rows if (row.get("beside") or "") == beside]
            yield f"{name} beside {beside}" if beside else name, jobs_of(own)


def jobs_of(rows: Sequence[dict[str, str]]) -> dict[str, list[Job]]:
    """Return the jobs by what was planted, the oldest first."""
    by_job: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        by_job.setdefault((row["plant"], row["time_unix_s"]), []).append(row)
    found: dict[str, list[Job]] = {}
    for number, ((plant, time_s), own) in enumerate(
        sorted(by_job.items(), key=lambda it: it[0][1])
    ):
        found.setdefault(plant, []).append(
            Job(
                job=f"{number:06d}",
                suite="trust",
                host="guest",
                machine="guest",
                is_guest=True,
                created_unix_s=float(time_s),
                digest=None,
                versions={},
                facts={},
                cases={row["workload"]: _case(row) for row in own},
            )
        )
    return found


def _case(row: dict[str, str]) -> CaseFigure:
    usable = row["verdict"] in USABLE
    # For a workload without slices, the figure of a disturbed case counts for nothing.
    tells = usable or bool(row["delivered_ratio"])
    return CaseFigure(
        case=row["workload"],
        title=row["workload"],
        workload=row["workload"],
        unit="s" if row["workload"] in LATENCIES else "1/s",
        direction="lower" if row["workload"] in LATENCIES else "higher",
        undisturbed=float(row["undisturbed"]) if usable and row["undisturbed"] else None,
        delivered=float(row["delivered"]) if tells and row["delivered"] else None,
        why_not=None if tells else f"it was {row['verdict']}",
    )


def changed(job: Job, factors: dict[str, float]) -> Job:
    """Return the job with its figures multiplied by these factors, as a faster or slower host would
    have measured it."""
    cases = {
        name: one.model_copy(
            update={
                kind.value: value * factors.get(name, 1.0)
                for kind in FigureKind
                if (value := one.value(kind)) is not None
            }
        )
        for name, one in job.cases.items()
    }
    return job.model_copy(update={"cases": cases})


def one_after_the_other(jobs: Sequence[Job], n: int) -> Iterator[Pair]:
    """Yield pairs of sides where all jobs of A come first, then all of B."""
    for start in range(len(jobs) - 2 * n + 1):
        yield jobs[start : start + n], jobs[start + n : start + 2 * n]


def in_turn(jobs: Sequence[Job], n: int) -> Iterator[Pair]:
    """Yield pairs of sides where each two consecutive jobs are split at random between A and B. A
    fixed split would follow the order in which disturbances were planted between them."""
    draw = random.Random(n)  # noqa: S311 - the same pairs each time
    for start in range(len(jobs) - 2 * n + 1):
        own = jobs[start : start + 2 * n]
        a = [own[at + draw.randrange(2)] for at in range(0, 2 * n, 2)]
        yield a, [job for job in own if job not in a]


def evenings(jobs: Sequence[Job], n: int) -> Iterator[Pair]:
    """Yield pairs of sides with A from the first evening and B from the second."""
    gap = max(
        range(1, len(jobs)), key=lambda i: jobs[i].created_unix_s - jobs[i - 1].created_unix_s
    )
    if min(gap, len(jobs) - gap) < n:
        return
    draw = random.Random(n)  # noqa: S311 - the same pairs each time
    for _ in range(60):
        a, b = draw.randrange(gap - n + 1), draw.randrange(gap, len(jobs) - n + 1)
        yield jobs[a : a + n], jobs[b : b + n]


@dataclass
class Tally:
    """How many hits out of how many tries."""

    hits: int = 0
    of: int = 0

    def count(self, hit: bool) -> None:
        """Count one try."""
        self.hits += hit
        self.of += 1

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        self.hits += other.hits
        self.of += other.of

    def __str__(self) -> str:
        low, high = wilson(self.hits, self.of)
        return f"{self.hits} of {self.of} | {100 * low:.1f} to {100 * high:.1f} %"


def says_changed(found: Comparison) -> bool:
    """Return whether the report says of anything that it changed."""
    return any(one.word in CHANGED for case in found.cases for one in case.changes.values())


def compared(pair: Pair, earlier: Sequence[Job] = ()) -> Comparison:
    """Compare B with A."""
    return compare(pair[0], pair[1], names=("A", "B"), earlier=earlier)


def unchanged(jobs: Sequence[Job]) -> Iterator[tuple[str, Tally]]:
    """Yield tallies where nothing changed: each report of a change is wrong."""
    designs: tuple[tuple[str, Callable[[Sequence[Job], int], Iterator[Pair]]], ...] = (
        ("one side after the other", one_after_the_other),
        ("in turn", in_turn),
        ("on two evenings", evenings),
    )
    for name, design in designs:
        apart_s = [b.created_unix_s - a.created_unix_s for a, b in itertools.pairwise(jobs)]
        if design is evenings and max(apart_s, default=0.0) < EVENINGS_APART_S:
            continue
        for n in SIDES:
            tally = Tally()
            for pair in design(jobs, n):
                tally.count(says_changed(compared(pair)))
            yield f"nothing changed, {n} jobs a side, {name}", tally
    for earlier in EARLIER:
        tally = Tally()
        for at in range(earlier, len(jobs) - 1):
            pair = ([jobs[at]], [jobs[at + 1]])
            tally.count(says_changed(compared(pair, jobs[at - earlier : at])))
        yield f"nothing changed, 1 job beside 1, {earlier} earlier ones", tally


def planted(jobs: Sequence[Job]) -> Iterator[tuple[str, Tally]]:
    """Yield tallies where a change was planted: each report without that change misses it."""
    for n in SIDES:
        tally = Tally()
        for a, b in one_after_the_other(jobs, n):
            slower = [changed(job, {"cpu.fma": 0.95}) for job in b]
            tally.count(_word(compared((a, slower)), "cpu.fma") is Word.WORSE)
        yield f"cpu.fma 5 % slower is found, {n} jobs a side", tally
    by_class: dict[str, Tally] = {}
    sizes: dict[str, list[float]] = {}
    for a, b in one_after_the_other(jobs, 8):
        for case in compared((a, b)).cases:
            kind, one = next(iter(case.changes.items()))
            if one.least_effect_ratio is None or one.ratio is None:
                continue
            # Take away the difference that the sides have anyway, so that only the printed effect
            # remains.
            factor = math.exp(-math.log1p(one.least_effect_ratio)) / one.ratio
            slower = [changed(job, {case.case: factor}) for job in b]
            again = next(c for c in compared((a, slower)).cases if c.case == case.case)
            hit = kind in again.changes and again.changes[kind].word in CHANGED
            by_class.setdefault(case.case, Tally()).count(hit)
            sizes.setdefault(case.case, []).append(one.least_effect_ratio)
    for name, tally in by_class.items():
        size = f"{100 * statistics.median(sizes[name]):.1f} %"
        yield f"the least effect printed ({name}: {size}) is found, 8 jobs a side", tally


def quotas(by_plant: dict[str, list[Job]]) -> Iterator[tuple[str, Tally]]:
    """Yield tallies of jobs under a quota: it takes CPU time but leaves the hardware as it is."""
    quiet = by_plant.get(QUIET, [])
    for plant in ("quota 60 %", "quota 30 %"):
        own = by_plant.get(plant, []) if len(quiet) >= QUOTA_SIDE else []
        delivered, undisturbed = Tally(), Tally()
        for start in range(len(own) - QUOTA_SIDE + 1):
            b = own[start : start + QUOTA_SIDE]
            a = _nearest(quiet, b)
            found = {case.case: case for case in compared((a, b)).cases}
            changes = [found[name].changes for name in KERNELS]
            delivered.count(
                all(
                    one.get(FigureKind.DELIVERED, None) is not None
                    and one[FigureKind.DELIVERED].word is Word.WORSE
                    for one in changes
                )
            )
            undisturbed.count(
                any(
                    FigureKind.UNDISTURBED in one and one[FigureKind.UNDISTURBED].word in CHANGED
                    for one in changes
                )
            )
        if own:
            yield f"{plant}: delivered is worse, {QUOTA_SIDE} jobs a side", delivered
            yield f"{plant}: undisturbed reported as changed", undisturbed


def slower(by_plant: dict[str, list[Job]]) -> Iterator[tuple[str, Tally]]:
    """Yield tallies of the slower program.

    It does 5 % more work in the register kernels, and its memory has no huge pages, including the
    disk buffers of large blocks. Short reads and the network are unaffected.
    """
    own, quiet = by_plant.get(fresh.SLOWER, []), by_plant.get(QUIET, [])
    # A round that was cut short may have fewer quiet jobs.
    for n in (n for n in SIDES if n <= len(quiet)):
        worse: dict[str, Tally] = {}
        others = Tally()
        for start in range(len(own) - n + 1):
            b = own[start : start + n]
            found = compared((_nearest(quiet, b), b))
            for case in found.cases:
                if case.case.startswith(PLANTED):
                    kinds = [kind for kind in FigureKind if kind in case.changes]
                    tally = worse.setdefault(case.case, Tally())
                    tally.count(bool(kinds) and case.changes[kinds[0]].word is Word.WORSE)
            others.count(
                any(
                    one.word in CHANGED
                    for case in found.cases
                    if not case.case.startswith(PLANTED)
                    for one in case.changes.values()
                )
            )
        for name, tally in worse.items():
            what = "5 % more work" if name.startswith("cpu.") else "no huge pages"
            yield f"{name}, {what}: worse, {n} jobs a side", tally
        if own:
            yield f"random reads or network reported as changed, {n} jobs a side", others


@dataclass(frozen=True)
class Group:
    """Jobs that were measured beside the same work, and the tallies that two tables show."""

    title: str
    by_plant: dict[str, list[Job]]
    unchanged: Sequence[tuple[str, Tally]]
    slower: Sequence[tuple[str, Tally]]

    @property
    def quiet(self) -> list[Job]:
        """The jobs with which nothing was planted."""
        return self.by_plant.get(QUIET, [])


def groups_of(files: Mapping[str, Path]) -> list[Group]:
    """Return the groups of the recorded jobs with their tallies, which take half a minute."""
    return [
        Group(title, jobs, tuple(unchanged(jobs.get(QUIET, []))), tuple(slower(jobs)))
        for title, jobs in recorded(files)
    ]


def fresh_table(jobs: Path, groups: Sequence[Group]) -> Iterator[str]:
    """Yield the summary of the fresh jobs, all sides together, as lines of Markdown."""
    yield from (fresh.progress(fresh.rows_of(jobs)), "")
    tallies: dict[str, Tally] = {}
    for group in groups:
        for name, tally in (*group.unchanged, *group.slower):
            if name.startswith(("nothing changed, ", "cpu.")) and ", 1 job" not in name:
                what = name[: name.index(" jobs a side")].rpartition(", ")[0]
                tallies.setdefault(what, Tally()).add(tally)
    yield from lines_of(f"{SIDES[0]} to {SIDES[-1]} jobs a side", tallies.items())


def compared_tables(groups: Sequence[Group]) -> Iterator[str]:
    """Yield a table of all rates for each group of jobs, as lines of Markdown."""
    for number, group in enumerate(groups):
        rows = (
            in_all(group.unchanged),
            planted(group.quiet),
            group.slower,
            quotas(group.by_plant),
        )
        if number:
            yield ""
        yield from lines_of(group.title, itertools.chain.from_iterable(rows))


def in_all(rows: Iterable[tuple[str, Tally]]) -> Iterator[tuple[str, Tally]]:
    """Yield the rows of reports in which nothing changed, and at the end their sum."""
    whole = Tally()
    for name, tally in rows:
        whole.add(tally)
        yield name, tally
    yield "nothing changed, all of these", whole


def lines_of(what: str, rows: Iterable[tuple[str, Tally]]) -> Iterator[str]:
    """Yield a table of rates as lines of Markdown."""
    yield from (f"| {what} | say so | 95 % interval |", "| --- | --- | --- |")
    for name, tally in rows:
        if tally.of:
            yield f"| {name} | {tally} |"


def _nearest(quiet: Sequence[Job], jobs: Sequence[Job]) -> list[Job]:
    """Return one quiet job for each of `jobs`: the nearest in time that is not yet taken."""
    left = list(quiet)
    found = []
    for job in jobs:
        one = min(left, key=lambda other: abs(other.created_unix_s - job.created_unix_s))
        left.remove(one)
        found.append(one)
    return sorted(found, key=lambda job: job.created_unix_s)


def _word(found: Comparison, case: str) -> Word:
    return next(one.word for one in found.cases if one.case == case)


def main() -> None:
    """Print the table, or those of the files named on the command line."""
    named = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    files = {f"jobs of {path.name}": path for path in named} or {"reports": experiment.RAW}
    show({README: {"jobs of the experiment": compared_tables(groups_of(files))}})


if __name__ == "__main__":
    main()
