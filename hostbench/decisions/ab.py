"""Whether a setting matters: figures of two settings, measured in turn in one run.

The unit of evidence is the block: trials in the order A B B A or B A A B, drawn at random. The
order cancels a drift that is even over a block. Because the order is random, a block whose settings
do not differ has either sign with equal probability, however the host drifts. So the sign-flip test
is exact (hostbench.decisions.permutation).

The test runs at looks that are fixed beforehand. Each look has its part of the error rate
(Bonferroni), so stopping early does not raise it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostbench.decisions.change import Difference, change
from hostbench.decisions.permutation import Judged, sign_flips
from hostbench.model.decision import (
    COMPARISON_CONFIDENCE,
    FigureKind,
    SettingFigure,
    Word,
)
from hostbench.model.table import Direction

# The signs of eight blocks have 256 arrangements, enough for a look that is one of four. With many
# more looks, the first ones could decide nothing.
BLOCKS_LEAST, BLOCKS_USUAL, BLOCKS_MOST = 8, 24, 96
LOOKS = (8, 12, 16, 24, 36, 54, 80)


@dataclass(frozen=True)
class BlockFigure:
    """One figure in the trials of a block, as natural logarithms: at least two trials a side."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The difference of the means, B minus A."""
        return statistics.fmean(self.b) - statistics.fmean(self.a)


Block = Mapping[FigureKind, BlockFigure]


def looks_of(blocks_most: int) -> tuple[int, ...]:
    """Return the numbers of blocks after which to decide whether to continue."""
    return (*(look for look in LOOKS if look < blocks_most), blocks_most)


class SettingJudge:
    """Takes one block after another, and reports when there are enough."""

    def __init__(self, direction: Direction, margin: float, blocks_most: int) -> None:
        """`margin`: see Change."""
        self.looks = looks_of(blocks_most)
        self._direction = direction
        self._margin = margin
        self._blocks: list[Block] = []
        self._decided: dict[FigureKind, SettingFigure] = {}
        # The figures of the last look, and after how many blocks it was.
        self._looked: tuple[int, dict[FigureKind, SettingFigure]] = (0, {})

    @property
    def count(self) -> int:
        """The number of blocks so far."""
        return len(self._blocks)

    def take(self, block: Block) -> bool:
        """Add a block; return whether the test is over."""
        self._blocks.append(block)
        if len(self._blocks) not in self.looks:
            return False
        for kind, figure in self._look().items():
            if figure.word is not Word.UNDECIDED:
                self._decided.setdefault(kind, figure)
        # If no block has a figure so far, further blocks will have none either.
        return len(self._blocks) == self.looks[-1] or self._kinds <= self._decided.keys()

    def figures(self) -> dict[FigureKind, SettingFigure]:
        """Return the figures of the last look; for a figure that an earlier look decided, the
        result of that look."""
        found = self._look() | self._decided
        return {kind: found[kind] for kind in FigureKind if kind in found}

    @property
    def _kinds(self) -> set[FigureKind]:
        return {kind for block in self._blocks for kind in block}

    def _look(self) -> dict[FigureKind, SettingFigure]:
        if self._looked[0] != self.count:
            self._looked = (self.count, self._look_again())
        return self._looked[1]

    def _look_again(self) -> dict[FigureKind, SettingFigure]:
        present = {
            kind: [block[kind] for block in self._blocks if kind in block] for kind in self._kinds
        }
        columns = {
            kind: [one.difference for one in found]
            for kind, found in present.items()
            if len(found) >= BLOCKS_LEAST
        }
        judged = _judged(columns, (1 - COMPARISON_CONFIDENCE) / len(self.looks))
        return {kind: self._figure(found, judged.get(kind)) for kind, found in present.items()}

    def _figure(self, blocks: Sequence[BlockFigure], judged: Judged | None) -> SettingFigure:
        difference = statistics.fmean(block.difference for block in blocks)
        medians = (
            math.exp(statistics.median(log for block in blocks for log in block.a)),
            math.exp(statistics.median(log for block in blocks for log in block.b)),
        )
        known = Difference(difference, None, None, reason=_few(len(blocks)))
        if judged is not None:
            # If all blocks agree to the last digit, any difference is a real one.
            half = judged.quantile * judged.error if judged.error else 0.0
            known = Difference(difference, half, judged.error, len(blocks) - 1)
        count = (len(blocks), len(blocks))
        found = change(
            known, self._direction, self._margin, medians, count, jobs_least=BLOCKS_LEAST
        )
        return SettingFigure(
            **found.model_dump(exclude={"jobs_a", "jobs_b", "more"}), blocks=len(blocks)
        )


def _judged(
    columns: Mapping[FigureKind, Sequence[float]], errors: float
) -> dict[FigureKind, Judged]:
    """Judge the figures together if they come from the same blocks; else each with its part of
    `errors`."""
    if len({len(column) for column in columns.values()}) == 1:
        found = sign_flips(list(columns.values()), confidence=1 - errors)
        return dict(zip(columns, found or (), strict=bool(found)))
    alone = {
        kind: sign_flips([column], confidence=1 - errors / len(columns))
        for kind, column in columns.items()
    }
    return {kind: found[0] for kind, found in alone.items() if found}


def _few(blocks: int) -> str:
    return (
        f"{blocks} blocks have a figure of both settings, and {BLOCKS_LEAST} are needed; more "
        "--blocks, or an idle host, give more of them"
    )
