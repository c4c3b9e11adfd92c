"""Two tools in turn: pairs of figures, each pair taken on a quiet moment."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.figures import Entry, spread
from benchmarks.quiet import quietly, quietly_with_a_disk

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")

# The last columns of every table, and what Comparison.cells() fills them with.
RATIO_COLUMNS = ("ratio: median", "its interval", "spread", "pairs", "target", "")


def interleaved(
    count: int,
    ours: Callable[[], Ours],
    theirs: Callable[[], Theirs],
    *,
    disk: bool = False,
) -> list[tuple[Ours, Theirs]]:
    """`count` pairs, as each_pair() takes them."""
    return list(each_pair(0, count, ours, theirs, disk=disk))


def each_pair(
    first: int,
    count: int,
    ours: Callable[[], Ours],
    theirs: Callable[[], Theirs],
    *,
    disk: bool = False,
) -> Iterator[tuple[Ours, Theirs]]:
    """The pairs from number `first` on, of `count`: A B, B A, A B and so on, so that neither tool
    gains by its place in a pair. `disk`: the kernel works for both of them, in threads of its
    own."""
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
    """Where the median of the ratios is to lie; `reach`: what its interval is to reach, too."""

    text: str
    least: float = 0.0
    most: float = float("inf")
    reach: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The figures of pairs, and how far ours over theirs is from what it is to be."""

    target: Target
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, pair by pair."""
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def met(self) -> bool:
        """Whether the ratios are where they are to be."""
        ratio, target = spread(self.ratios), self.target
        return target.least <= ratio["median"] <= target.most and ratio["high"] >= target.reach

    def cells(self) -> list[str]:
        """Of RATIO_COLUMNS."""
        ratio = spread(self.ratios)
        return [
            f"**{ratio['median']:.3f}**",
            f"{ratio['low']:.3f} – {ratio['high']:.3f}",
            f"{ratio['mad_relative']:.1%}",
            f"{ratio['n']}",
            self.target.text,
            "holds" if self.met else "**misses**",
        ]

    def entry(self, **facts: object) -> Entry:
        """What is kept of it."""
        columns = {"ours": self.ours, "theirs": self.theirs}
        return Entry({**facts, "target": self.target.text}, columns)


def print_row(cells: Sequence[str]) -> None:
    """A line of a Markdown table, shown at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_header(columns: Sequence[str]) -> None:
    """The two lines that begin a Markdown table."""
    print_row(columns)
    print("|---" * len(columns) + "|", flush=True)
