"""What the sentences on a published table are backed by: its rows, and this run's figures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostbench.base.units import percent
from hostbench.course.figures import BLOCK, Figure, fixed
from hostbench.course.rows import CourseRow
from hostbench.model.published import Published, PublishedTable
from hostbench.model.result import CaseResult, ResultDocument, Verdict

# Figures that differ by less are called alike.
ALIKE = 0.1


@dataclass(frozen=True)
class Pair:
    """A row that was measured here both ways. Of the naive way it is the mean that counts, as it
    was the mean that the reports took."""

    row: CourseRow
    ours: Figure
    naive: Figure

    @property
    def ratio(self) -> float:
        """The naive figure over ours."""
        return self.naive.mean / self.ours.median

    @property
    def distance(self) -> float:
        """How far apart they are, whichever is the larger."""
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
        """The pairs whose threads have a CPU each, if there are any: where they share CPUs, that is
        a good part of the difference."""
        cpus = len(self.document.host.allowed_cpus)
        return where(self.pairs, lambda pair: (pair.row.threads or 0) <= cpus)

    @property
    def measured(self) -> list[tuple[CourseRow, Figure]]:
        """The rows that ours has a figure of."""
        return [(row, row.ours.figure) for row in self.rows if row.ours.figure]

    def with_unit(self, value: float) -> str:
        """A figure of the table with its unit."""
        return f"{fixed(value, 3)} {self.table.unit}"

    def both(self, pair: Pair) -> str:
        """`at int, 8 threads the naive way gives 1.41 GIOPS, 19.6 % of our 7.2 GIOPS`."""
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
    """What was done, the figures that show what it comes to, and what else is to say of it."""

    what: str
    shown: str
    more: tuple[str, ...] = ()


def over(ratio: float) -> str:
    """What a ratio is called before what it is of: `about`, `1.6 % of`, `3.26 times`."""
    if abs(ratio - 1) < ALIKE:
        return "about"
    return times(ratio) if ratio > 1 else f"{times(ratio)} of"


def times(ratio: float) -> str:
    """`1.6 %`, `3.26 times`."""
    return percent(ratio) if ratio < 1 else f"{fixed(ratio, 3)} times"


def _doubts(pair: Pair) -> str:
    """The verdicts that are not clean."""
    found = (("ours", pair.ours.case.verdict), ("the naive one", pair.naive.case.verdict))
    verdicts = [
        f"{who} {verdict}" for who, verdict in found if verdict not in (None, Verdict.CLEAN)
    ]
    if len(verdicts) == len(found) and pair.ours.case.verdict is pair.naive.case.verdict:
        verdicts = [f"both {pair.ours.case.verdict}"]
    return f" ({', '.join(verdicts)})" if verdicts else ""


def block_of(case: CaseResult) -> float:
    """Bytes of a block; the larger ones last, those without any too."""
    value = case.params.get(BLOCK)
    return float(value) if isinstance(value, int | float) else math.inf


def farthest(pairs: Sequence[Pair]) -> Pair | None:
    """The pair whose figures are the farthest apart."""
    return max(pairs, key=lambda pair: pair.distance, default=None)


def smallest_block(pairs: Sequence[Pair]) -> Pair | None:
    """The pair of the smallest block, and of the fewest threads among these."""
    return min(pairs, key=lambda p: (block_of(p.naive.case), p.row.threads or 0), default=None)


def fewest_threads(pairs: Sequence[Pair]) -> Pair | None:
    """Of the pairs with the fewest threads the farthest apart."""
    least = min((pair.row.threads or 0 for pair in pairs), default=0)
    return farthest([pair for pair in pairs if (pair.row.threads or 0) == least])


def where(pairs: Sequence[Pair], meant: Callable[[Pair], bool]) -> list[Pair]:
    """The pairs that are meant; all where none is."""
    return [pair for pair in pairs if meant(pair)] or list(pairs)
