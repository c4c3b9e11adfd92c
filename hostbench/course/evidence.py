"""What the sentences on a published table rest on: its rows, and this run's figures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostbench.base.units import percent
from hostbench.course.figures import BLOCK, Figure, fixed
from hostbench.course.rows import CourseRow
from hostbench.model.published import Published, PublishedTable
from hostbench.model.result import CaseResult, ResultDocument, Verdict

# Figures that differ by less than this are called alike.
ALIKE = 0.1


@dataclass(frozen=True)
class Pair:
    """A row that was measured here both ways. For the naive way the mean counts, as in the
    reports."""

    row: CourseRow
    ours: Figure
    naive: Figure

    @property
    def ratio(self) -> float:
        """The naive figure over ours."""
        return self.naive.mean / self.ours.median

    @property
    def distance(self) -> float:
        """How far apart they are, in either direction."""
        return abs(math.log(self.ratio))


@dataclass(frozen=True)
class Evidence:
    """One table of a document."""

    published: Published
    table: PublishedTable
    rows: Sequence[CourseRow]
    document: ResultDocument

    @property
    def pairs(self) -> list[Pair]:
        return [
            Pair(row, row.ours.figure, row.naive.figure)
            for row in self.rows
            if row.ours.figure and row.naive and row.naive.figure
        ]

    @property
    def fair(self) -> list[Pair]:
        """The pairs whose threads have a CPU each, if there are any: sharing CPUs causes a good
        part of the difference."""
        cpus = len(self.document.host.allowed_cpus)
        return where(self.pairs, lambda pair: (pair.row.threads or 0) <= cpus)

    @property
    def measured(self) -> list[tuple[CourseRow, Figure]]:
        """The rows for which we have a figure."""
        return [(row, row.ours.figure) for row in self.rows if row.ours.figure]

    def with_unit(self, value: float) -> str:
        """Return a figure of the table with its unit."""
        return f"{fixed(value, 3)} {self.table.unit}"

    def both(self, pair: Pair) -> str:
        """Return a text such as `at int, 8 threads the naive way gives 1.41 GIOPS, 19.6 % of our
        7.2 GIOPS`."""
        ours, limit = pair.ours, ""
        if ours.efficiency is not None and ours.limit is not None:
            limit = f" ({percent(ours.efficiency)} of its limit of {self.with_unit(ours.limit)})"
        peer = f"; {ours.peers[0].tool} {self.with_unit(ours.peers[0].value)}" if ours.peers else ""
        return (
            f"at {pair.row.title} the naive way gives {self.with_unit(pair.naive.mean)}, "
            f"{over(pair.ratio)} our {self.with_unit(ours.median)}{limit}{peer}{_doubts(pair)}"
        )


@dataclass(frozen=True)
class Effect:
    """What was done, the figures that show its effect, and what else to say about it."""

    what: str
    shown: str
    more: tuple[str, ...] = ()


def over(ratio: float) -> str:
    """Return the words for a ratio before its reference: `about`, `1.6 % of`, `3.26 times`."""
    if abs(ratio - 1) < ALIKE:
        return "about"
    return times(ratio) if ratio > 1 else f"{times(ratio)} of"


def times(ratio: float) -> str:
    """Return a text such as `1.6 %` or `3.26 times`."""
    return percent(ratio) if ratio < 1 else f"{fixed(ratio, 3)} times"


def _doubts(pair: Pair) -> str:
    """Return the verdicts that are not clean."""
    found = (("ours", pair.ours.case.verdict), ("the naive one", pair.naive.case.verdict))
    verdicts = [
        f"{who} {verdict}" for who, verdict in found if verdict not in (None, Verdict.CLEAN)
    ]
    if len(verdicts) == len(found) and pair.ours.case.verdict is pair.naive.case.verdict:
        verdicts = [f"both {pair.ours.case.verdict}"]
    return f" ({', '.join(verdicts)})" if verdicts else ""


def block_of(case: CaseResult) -> float:
    """Return the bytes of a block. The value sorts larger blocks later, and cases without blocks
    last."""
    value = case.params.get(BLOCK)
    return float(value) if isinstance(value, int | float) else math.inf


def farthest(pairs: Sequence[Pair]) -> Pair | None:
    """Return the pair whose figures are furthest apart."""
    return max(pairs, key=lambda pair: pair.distance, default=None)


def smallest_block(pairs: Sequence[Pair]) -> Pair | None:
    """Return the pair with the smallest block, and among these the one with the fewest threads."""
    return min(pairs, key=lambda p: (block_of(p.naive.case), p.row.threads or 0), default=None)


def fewest_threads(pairs: Sequence[Pair]) -> Pair | None:
    """Return, of the pairs with the fewest threads, the one whose figures are furthest apart."""
    least = min((pair.row.threads or 0 for pair in pairs), default=0)
    return farthest([pair for pair in pairs if (pair.row.threads or 0) == least])


def where(pairs: Sequence[Pair], meant: Callable[[Pair], bool]) -> list[Pair]:
    """Return the pairs for which `meant` is true; all pairs if there are none."""
    return [pair for pair in pairs if meant(pair)] or list(pairs)
