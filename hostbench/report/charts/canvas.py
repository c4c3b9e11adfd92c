"""A surface in CSS pixels, origin top left, that becomes an inline SVG element.

Every ink is a variable of the style sheet, so a chart follows the page's light or dark theme.
Shapes of one look become one path, texts stay text, and there are no ids that two charts could
share. With a plotting library, a page took six times as long: benchmarks/README.md, "The cost of
hostbench itself".
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from hostbench.report.plaintext import one_line

Anchor = Literal["start", "middle", "end"]
XY = tuple[float, float]
# Below this width of the window, the narrow drawing is shown; page.css has the same number.
WIDE_PX, NARROW_PX = 760, 340
# The approximate width of a character of the page's font, and the distance of its base line below
# its middle.
CHARACTER_PX, BASELINE_PX = 6.4, 4.4
# The dashes and the gaps of a dashed line, in line widths.
DASH, GAP = 4, 2.5


class Ink(StrEnum):
    """The ink of a shape: the name of a variable of page.css."""

    TEXT = "text"
    QUIET = "quiet"
    TRACK = "track"
    BAR = "bar"
    LIMIT = "limit"
    PEER = "peer"
    INTERVAL = "interval"
    WARN = "warn"
    GRID = "grid"
    BAND = "band"
    PAPER = "paper"
    THIRD = "third"
    FOURTH = "fourth"
    # From as good as others to worst.
    CELL_0 = "cell-0"
    CELL_1 = "cell-1"
    CELL_2 = "cell-2"
    CELL_3 = "cell-3"
    CELL_4 = "cell-4"
    ON_CELL = "on-cell"

    @property
    def variable(self) -> str:
        """Its name in the style sheet."""
        return f"var(--{self})"


class _Look(NamedTuple):
    """How a path is drawn; `width` 0: it is filled."""

    ink: Ink
    width: float = 0
    rounded: bool = False
    dashed: bool = False

    @property
    def attributes(self) -> str:
        """Not `style`: the console's policy forbids styles inside a page."""
        if not self.width:
            return f'fill="{self.ink.variable}"'
        found = f'fill="none" stroke="{self.ink.variable}" stroke-width="{self.width:g}"'
        if self.rounded:
            found += ' stroke-linecap="round" stroke-linejoin="round"'
        if self.dashed:
            found += f' stroke-dasharray="{DASH * self.width:g},{GAP * self.width:g}"'
        return found


class Canvas:
    """Collects texts, and shapes by look."""

    def __init__(self, width: float, height: float) -> None:
        self._width, self._height = width, height
        self._texts: list[str] = []
        self._links: list[str] = []
        self._paths: defaultdict[_Look, list[str]] = defaultdict(list)

    def text(
        self,
        at: XY,
        text: str,
        *,
        ink: Ink = Ink.TEXT,
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """Draw one line of text, vertically centred on `at`."""
        classes = [*([ink] if ink is not Ink.TEXT else []), *(["bold"] if bold else [])]
        named = f' class="{" ".join(classes)}"' if classes else ""
        anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
        x, y = _px(at[0]), _px(at[1] + BASELINE_PX)
        words = escape(one_line(text))
        self._texts.append(f'<text x="{x}" y="{y}"{anchored}{named}>{words}</text>')

    def box(self, x: float, y: float, width: float, height: float, ink: Ink) -> None:
        """Draw a filled rectangle."""
        self.shape([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], ink)

    def shape(self, corners: Sequence[XY], ink: Ink) -> None:
        """Draw a filled polygon."""
        self._paths[_Look(ink)].append(f"{_path(corners)}z")

    def outline(self, corners: Sequence[XY], ink: Ink, width: float = 1.5) -> None:
        """Draw the outline of a polygon."""
        self._paths[_Look(ink, width)].append(f"{_path(corners)}z")

    def line(self, start: XY, stop: XY, ink: Ink, width: float = 1) -> None:
        """Draw a straight line."""
        self._paths[_Look(ink, width)].append(_path([start, stop]))

    def polyline(
        self, points: Sequence[XY], ink: Ink, width: float = 1.5, *, dashed: bool = False
    ) -> None:
        """Draw straight lines from each point to the next; for a single point, a dot."""
        path = _path(points) if len(points) > 1 else _dot(points[0])
        self._paths[_Look(ink, width, rounded=not dashed, dashed=dashed)].append(path)

    def dot(self, at: XY, ink: Ink, size: float = 5) -> None:
        """Draw a disc: a line of zero length with round ends takes the least room in the SVG."""
        self._paths[_Look(ink, size, rounded=True)].append(_dot(at))

    def link(self, at: XY, size: float, address: str, text: str) -> None:
        """Have a disc without a colour lead to an address."""
        x, y = _px(at[0]), _px(at[1])
        words = one_line(text)
        self._links.append(
            f"<a href={quoteattr(address)} aria-label={quoteattr(words)}><title>{escape(words)}"
            f'</title><circle cx="{x}" cy="{y}" r="{size / 2:g}" fill="transparent"/></a>'
        )

    def svg(self, title: str, css_class: str, order: Iterable[Ink]) -> str:
        """Return the element with an accessible name. The first ink is at the bottom; texts are on
        top."""
        title = one_line(title)
        # A picture has no parts that can be reached.
        role = "group" if self._links else "img"
        lines = [
            f'<svg class="{css_class}" viewBox="0 0 {_px(self._width)} {_px(self._height)}" '
            f'role="{role}" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            *self._layers(order),
            *self._texts,
            *self._links,
            "</svg>",
        ]
        return "\n".join(lines)

    def _layers(self, order: Iterable[Ink]) -> Iterator[str]:
        for ink in order:
            # Filled shapes lie below stroked ones.
            for look in sorted((one for one in self._paths if one.ink is ink), key=_is_stroked):
                yield f'<path d="{"".join(self._paths.pop(look))}" {look.attributes}/>'
        assert not self._paths, "an ink without a place"


def _is_stroked(look: _Look) -> bool:
    return look.width > 0


def _px(value: float) -> str:
    """Return tenths of a pixel, which are enough; adding 0.0 turns -0 into 0."""
    return f"{round(value, 1) + 0.0:g}"


def _path(points: Sequence[XY]) -> str:
    return "M" + " ".join(f"{_px(x)} {_px(y)}" for x, y in points)


def _dot(at: XY) -> str:
    return f"{_path([at])}h0"
