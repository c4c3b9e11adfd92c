"""What all charts share: a figure in CSS pixels, and its SVG made fit for the page.

matplotlib draws with a sentinel colour for each ink; the SVG is then reduced to its paths and
texts, and every sentinel becomes a variable of the style sheet. So a chart follows the page's
light or dark theme, has no ids that two charts could share, and keeps its text as text.
"""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from hostbench.report.plaintext import one_line

TEXT_PX = 11.5
# Below this width of the window the narrow drawing is shown: page.css has the same number.
WIDE_PX, NARROW_PX = 760, 340

_SVG = "{http://www.w3.org/2000/svg}"
# matplotlib's SVG has 72 units an inch, which we take for pixels.
_DPI = 72
_SETTINGS: dict[Any, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hostbench",
    "text.parse_math": False,
    "path.simplify": False,
    "font.size": TEXT_PX,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_NUMBER = re.compile(r"-?\d+\.\d+")


class Ink(StrEnum):
    """What is drawn, which is a variable of page.css; the value here only marks the place."""

    TEXT = "#010101"
    QUIET = "#010102"
    TRACK = "#010103"
    BAR = "#010104"
    LIMIT = "#010105"
    PEER = "#010106"
    INTERVAL = "#010107"
    WARN = "#010108"
    GRID = "#010109"
    BAND = "#01010a"
    PAPER = "#01010b"
    THIRD = "#01010c"
    FOURTH = "#01010d"

    @property
    def variable(self) -> str:
        """The style sheet's name of it."""
        return f"var(--{self.name.lower()})"


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of that many pixels, under the settings that all charts share."""
    with mpl.rc_context(), warnings.catch_warnings():
        # Whatever the user's own matplotlibrc says.
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        # A label may hold characters that matplotlib's font lacks; the browser's has them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        yield figure


def svg_of(figure: Figure, title: str, css_class: str) -> str:
    """The figure as an inline SVG element with an accessible name. Call it inside `drawing`."""
    width, height = (round(inches * _DPI) for inches in figure.get_size_inches())
    title = one_line(title)
    raw = io.StringIO()
    figure.savefig(raw, format="svg", metadata=_NO_METADATA)
    # What is parsed was written by matplotlib a moment ago.
    root = ElementTree.fromstring(raw.getvalue())  # noqa: S314
    shapes = "\n".join(_shape(element) for element in root.iter() if _is_shape(element))
    return (
        f'<svg class="{css_class}" viewBox="0 0 {width} {height}" role="img" '
        f"aria-label={quoteattr(title)}>\n<title>{escape(title)}</title>\n{shapes}\n</svg>"
    )


def _is_shape(element: ElementTree.Element) -> bool:
    name = element.tag.removeprefix(_SVG)
    assert name in _KNOWN, f"an SVG element that charts do not use: {name}"
    return name in ("path", "text")


_KNOWN = frozenset({"svg", "g", "defs", "style", "clipPath", "rect", "path", "text"})


def _shape(element: ElementTree.Element) -> str:
    parts = (part.partition(":") for part in element.get("style", "").split(";"))
    style = {name.strip(): value.strip() for name, _, value in parts if value}
    return _path(element, style) if element.tag == f"{_SVG}path" else _text(element, style)


def _path(element: ElementTree.Element, style: dict[str, str]) -> str:
    names = ["fill", "stroke"]
    if style.get("stroke", "none") != "none":
        names += ["stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray"]
    kept = {name: style[name] for name in names if name in style}
    text = ";".join(f"{name}:{_inked(value)}" for name, value in kept.items())
    return f'<path d="{_compact(element.get("d", ""))}" style="{text}"/>'


def _inked(value: str) -> str:
    return Ink(value).variable if value in set(Ink) else value


def _compact(path: str) -> str:
    """Tenths of a pixel are enough; a repeated L is implied."""
    path = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), path)
    path = re.sub(r"\s*\n\s*", "", path.strip())
    return re.sub(r"([MLz]) ", r"\1", path).replace("-0 ", "0 ")


def _text(element: ElementTree.Element, style: dict[str, str]) -> str:
    classes = []
    if style.get("fill", Ink.TEXT) != Ink.TEXT:
        classes.append(Ink(style["fill"]).name.lower())
    if style.get("font-weight") == "700":
        classes.append("bold")
    named = f' class="{" ".join(classes)}"' if classes else ""
    anchor = style.get("text-anchor", "start")
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    x, y = (round(float(element.get(name, "0")), 1) for name in ("x", "y"))
    return f'<text x="{x:g}" y="{y:g}"{anchored}{named}>{escape(element.text or "")}</text>'
