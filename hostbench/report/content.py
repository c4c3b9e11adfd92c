"""What a report says, before it is HTML or Markdown.

Everything here is plain text: a renderer escapes it. What a text means (a code, a verdict, a share
of a limit) is in its type, and how that looks is the renderer's business.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from hostbench.model.decision import Word
from hostbench.model.result import Verdict


@dataclass(frozen=True)
class Code:
    """Something to copy: an id, a command, a name of the protocol."""

    text: str


@dataclass(frozen=True)
class Strong:
    """What the eye should find first."""

    text: str


@dataclass(frozen=True)
class Mark:
    """A verdict with its sign, or the word for a change; None: the case is not finished. `count`:
    so many cases have it."""

    verdict: Verdict | Word | None
    count: int | None = None

    @property
    def text(self) -> str:
        """`noisy`; `2 noisy`."""
        word = str(self.verdict or "unfinished")
        return word if self.count is None else f"{self.count} {word}"


@dataclass(frozen=True)
class Share:
    """A figure over its limit; None: there is no limit."""

    ratio: float | None


@dataclass(frozen=True)
class Reference:
    """A reference to the Source of that number."""

    number: int


Inline = str | Code | Strong | Mark | Share | Reference
Text = Inline | tuple[Inline, ...]


def inlines(text: Text) -> tuple[Inline, ...]:
    """The parts of a text."""
    return text if isinstance(text, tuple) else (text,)


# ---- charts ----


@dataclass(frozen=True)
class Bar:
    """One measured figure with what it is held against, all in the chart's unit.

    `peers` are the figures of outside tools; `note` is a word that must not be overlooked, such as
    the verdict when it is not clean.
    """

    label: str
    value: float
    low: float
    high: float
    limit: float | None
    efficiency: float | None
    peers: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class BarGroup:
    """Bars that belong together; the title may be empty."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars from zero with their limits, and beside each the share of its limit.

    `has_limits` False: the quantity is one that has none, such as a time.
    """

    unit: str
    groups: tuple[BarGroup, ...]
    has_limits: bool = True


class PointKind(StrEnum):
    """What a trial is to its case's statistics."""

    COUNTED = "counted"
    DISTURBED = "disturbed"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Point:
    """One trial: its distance from the case's median, as a ratio of it."""

    deviation: float
    kind: PointKind


@dataclass(frozen=True)
class SpreadRow:
    """The trials of one case; `low` and `high` bound the interval of its median."""

    label: str
    points: tuple[Point, ...]
    low: float
    high: float


@dataclass(frozen=True)
class SpreadGroup:
    """Rows that belong together; the title may be empty."""

    title: str
    rows: tuple[SpreadRow, ...]


@dataclass(frozen=True)
class SpreadChart:
    """A strip of points a case, around its median."""

    groups: tuple[SpreadGroup, ...]


@dataclass(frozen=True)
class Line:
    """A run of samples without a gap; None is a sample without a figure."""

    x: tuple[float, ...]
    y: tuple[float | None, ...]


@dataclass(frozen=True)
class Level:
    """A horizontal line from `first` to `last`, such as the limit of one trial."""

    first: float
    last: float
    y: float


@dataclass(frozen=True)
class Panel:
    """One quantity over time. `whole` shows the axis from zero, up to 1 for a ratio."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class TimeChart:
    """Panels above one another on one axis from 0 to `seconds`."""

    seconds: float
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class CurvePoint:
    """One case: the median of its figure, and the interval of that median."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """Cases that differ in one quantity only, in the order in which they are joined.

    `beside` is the number of the curve that this one is the counterpart of: it has its colour and
    sign, and is dashed.
    """

    label: str
    points: tuple[CurvePoint, ...]
    beside: int | None = None


@dataclass(frozen=True)
class CurveAxis:
    """What an axis shows, which begins at zero unless it is `logarithmic`; bytes on a
    logarithmic axis are written in powers of two. `ticks`: where it has its ticks, if not at round
    values."""

    title: str
    unit: str
    logarithmic: bool = False
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class CurveMark:
    """A place on the x axis that explains the curves, such as the size of a cache."""

    label: str
    x: float


@dataclass(frozen=True)
class CurveChart:
    """One quantity over another. `marks_are`: what all marks are, in a word or two; `curves_are`
    and `dashed_are`: what a sign of the curves is, and of those that are dashed."""

    x: CurveAxis
    y: CurveAxis
    curves: tuple[Curve, ...]
    marks: tuple[CurveMark, ...] = ()
    marks_are: str = ""
    curves_are: str = "median of a case"
    dashed_are: str = ""


@dataclass(frozen=True)
class ForestRow:
    """One ratio with its interval, None: unknown; `margin`: so far from 1 nothing has changed.
    `stands_out`: the reader should see it first; `remark`: what it comes to, in a word or two."""

    label: str
    ratio: float
    low: float | None
    high: float | None
    margin: float
    remark: str
    stands_out: bool = False


@dataclass(frozen=True)
class ForestChart:
    """Ratios around 1, a row each."""

    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class HistoryChart:
    """One figure of many jobs: `points` are (begun, figure), `levels` the medians between the
    times of the `changes`. Times are seconds since 1970."""

    unit: str
    points: tuple[tuple[float, float], ...]
    levels: tuple[Level, ...] = ()
    changes: tuple[float, ...] = ()


Drawing = BarChart | SpreadChart | TimeChart | CurveChart | ForestChart | HistoryChart


# ---- blocks ----


@dataclass(frozen=True)
class Paragraph:
    """A sentence or some."""

    text: Text


class AnswerKind(StrEnum):
    """What an answer comes to; `open`: nobody can tell."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class Answer:
    """The answer to the question that the reader came with, in a sentence, and what to look at:
    what it is, and how it is known."""

    question: str
    text: str
    kind: AnswerKind
    items: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Notice:
    """What the reader must know before any figure. `serious`: some figures are not to be used."""

    text: Text
    serious: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Sources:
    """What References refer to, numbered from 1; a report has one list of them."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    items: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Column:
    """A column of a table; figures stand flush right."""

    title: str
    figures: bool = False


@dataclass(frozen=True)
class RowGroup:
    """Rows under a title of their own; None: no title."""

    title: Text | None
    rows: tuple[tuple[Text, ...], ...]


@dataclass(frozen=True)
class Table:
    """The first column names its row. `wraps`: on a narrow screen its cells are broken into lines
    rather than scrolled."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    wraps: bool = False


@dataclass(frozen=True)
class Chart:
    """A drawing; `description` says in words what it shows, `numbers` has its figures where the
    page does not show them as a table anyway."""

    title: str
    description: str
    drawing: Drawing
    numbers: Table | None = None


class InBrief(StrEnum):
    """What becomes of folded blocks in the short form."""

    FOLDED = "folded"
    UNFOLDED = "unfolded"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Fold:
    """Blocks that the reader unfolds. `on_paper`: shown there, too."""

    title: str
    blocks: tuple["Block", ...]
    on_paper: bool = False
    brief: InBrief = InBrief.FOLDED


@dataclass(frozen=True)
class Part:
    """A titled part of a section."""

    title: str
    blocks: tuple["Block", ...]


Block = Paragraph | Answer | Notice | Bullets | Sources | Facts | Table | Chart | Fold | Part


@dataclass(frozen=True)
class Section:
    """A chapter of the report. `in_brief`: it belongs into the short form, Markdown, too."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    in_brief: bool = True


@dataclass(frozen=True)
class Report:
    """A whole page. `subtitle` is the host, or the answer, in one line, `tally` how many cases have
    which verdict, `answer` what is read first, `kind` what stands above the title."""

    title: str
    subtitle: str
    facts: Facts
    tally: tuple[tuple[Verdict | Word | None, int], ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...] = field(default=())
    kind: str = "hostbench report"
    answer: tuple[Block, ...] = ()
