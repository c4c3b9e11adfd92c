"""A surface for drawings that are rows of shapes: pixels, origin top left."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from hostbench.report.charts.svg import Ink
from hostbench.report.plaintext import one_line

Anchor = Literal["left", "center", "right"]
XY = tuple[float, float]
# matplotlib's: where it begins, then what is drawn and what is left out, in widths of the line.
DASHES = (0, (4, 2.5))
# About as wide is a character of the page's font.
CHARACTER_PX = 6.4


class Canvas:
    """Collects shapes by ink and stroke, so that each becomes one SVG path."""

    def __init__(self, figure: Figure, width: float, height: float) -> None:
        self._axes: Axes = figure.add_axes((0, 0, 1, 1))
        self._axes.set_xlim(0, width)
        self._axes.set_ylim(height, 0)
        self._axes.axis("off")
        self._filled: defaultdict[Ink, list[Path]] = defaultdict(list)
        self._stroked: defaultdict[tuple[Ink, float, str, bool], list[Path]] = defaultdict(list)

    def text(
        self,
        at: XY,
        text: str,
        *,
        ink: Ink = Ink.TEXT,
        anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:
        """One line of text, centred on `at` vertically."""
        self._axes.text(
            *at,
            one_line(text),
            color=ink.value,
            ha=anchor,
            va="center_baseline",
            fontweight="bold" if bold else "normal",
        )

    def box(self, x: float, y: float, width: float, height: float, ink: Ink) -> None:
        """A filled rectangle."""
        self.shape([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], ink)

    def shape(self, corners: Sequence[XY], ink: Ink) -> None:
        """A filled polygon."""
        self._filled[ink].append(_closed(corners))

    def outline(self, corners: Sequence[XY], ink: Ink, width: float = 1.5) -> None:
        """A polygon that is not filled."""
        self._stroked[ink, width, "butt", False].append(_closed(corners))

    def line(self, start: XY, stop: XY, ink: Ink, width: float = 1) -> None:
        """A straight line."""
        self._stroked[ink, width, "butt", False].append(Path([start, stop]))

    def polyline(
        self, points: Sequence[XY], ink: Ink, width: float = 1.5, *, dashed: bool = False
    ) -> None:
        """Straight lines from each point to the next."""
        self._stroked[ink, width, "butt", dashed].append(Path(list(points)))

    def dot(self, at: XY, ink: Ink, size: float = 5) -> None:
        """A disc: a line without length and with round ends takes the least room in the SVG."""
        self._stroked[ink, size, "round", False].append(Path([at, at]))

    def finish(self, order: Iterable[Ink]) -> None:
        """Puts the shapes on the figure, the first ink at the bottom; call it once."""
        for level, ink in enumerate(order, start=1):
            if self._filled[ink]:
                path = Path.make_compound_path(*self._filled.pop(ink))
                self._add(path, level, facecolor=ink.value, edgecolor="none", linewidth=0)
            for key in [key for key in self._stroked if key[0] is ink]:
                path = Path.make_compound_path(*self._stroked.pop(key))
                self._add(
                    path,
                    level,
                    facecolor="none",
                    edgecolor=ink.value,
                    linewidth=key[1],
                    capstyle=key[2],
                    linestyle=DASHES if key[3] else "solid",
                )
        assert not self._stroked and not any(self._filled.values()), "an ink without a place"

    def _add(self, path: Path, level: int, **look: object) -> None:
        self._axes.add_patch(PathPatch(path, clip_on=False, zorder=level, **look))


def _closed(corners: Sequence[XY]) -> Path:
    return Path([*corners, corners[0]], closed=True)
