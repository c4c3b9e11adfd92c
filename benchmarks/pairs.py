"""Run two tools in turn: pairs of figures, each pair measured while the host is quiet."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.figures import Entry, spread
from benchmarks.quiet import quietly, quietly_with_a_disk

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")

# The last columns of every table; Comparison.cells() fills them.
RATIO_COLUMNS = ("ratio: median", "its interval", "spread", "pairs", "target", "")


def interleaved(
    count: int,
    ours: Callable[[], Ours],
    theirs: Callable[[], Theirs],
    *,
    disk: bool = False,
) -> list[tuple[Ours, Theirs]]:
    """Return `count` pairs, measured as each_pair() does."""
    return list(each_pair(0, count, ours, theirs, disk=disk))


def each_pair(
    first: int,
    count: int,
    ours: Callable[[], Ours],
    theirs: Callable[[], Theirs],
    *,
    disk: bool = False,
) -> Iterator[tuple[Ours, Theirs]]:
    """Yield the pairs from number `first` up to `count`.

    The order is A B, B A, A B and so on, so that neither tool gains by its place in a pair. `disk`
    is for tools for which the kernel also works in threads of its own.
    """
    quiet = quietly_with_a_disk if disk else quietly

    def pair(ours_first: bool) -> tuple[Ours, Theirs]:
        if ours_first:
            figure = ours()
            return figure, theirs()
        other = theirs()
        return ours(), other

    for index in range(first, count):
        yield quiet(pair, index % 2 == 0)


@dataclass(frozen=True)
class Target:
    """Where the median of the ratios should lie. `reach` is the value that the upper end of its
    interval must reach, too."""

    text: str
    least: float = 0.0
    most: float = float("inf")
    reach: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The figures of pairs, and the target for our figure divided by the other's."""

    target: Target
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Return our figure divided by the other tool's, pair by pair."""
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def holds(self) -> bool:
        """Return whether the ratios meet the target."""
        ratio, target = spread(self.ratios), self.target
        return target.least <= ratio["median"] <= target.most and ratio["high"] >= target.reach

    def cells(self) -> list[str]:
        """Return the cells of RATIO_COLUMNS."""
        ratio = spread(self.ratios)
        return [
            f"**{ratio['median']:.3f}**",
            f"{ratio['low']:.3f} – {ratio['high']:.3f}",
            f"{ratio['mad_relative']:.1%}",
            f"{ratio['n']}",
            self.target.text,
            "holds" if self.holds else "**misses**",
        ]

    def entry(self, **facts: object) -> Entry:
        """Return what is saved of the comparison."""
        columns = {"ours": self.ours, "theirs": self.theirs}
        return Entry({**facts, "target": self.target.text}, columns)


def print_row(cells: Sequence[str]) -> None:
    """Print a line of a Markdown table at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_header(columns: Sequence[str]) -> None:
    """Print the two lines that begin a Markdown table."""
    print_row(columns)
    print("|---" * len(columns) + "|", flush=True)
