"""The content of a report, before it is HTML or Markdown.

All texts are plain: a renderer escapes them. The meaning of a text (a code, a verdict, a share of a
limit) is in its type, and the renderer decides how it looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from hostbench.model.baseline import HostWord
from hostbench.model.decision import Word
from hostbench.model.pairs import PairWord
from hostbench.model.result import Verdict


@dataclass(frozen=True)
class Code:
    """Something to copy: an id, a command, a name of the protocol."""

    text: str


@dataclass(frozen=True)
class JobId:
    """The id of a job; in the console it leads there."""

    id: str


@dataclass(frozen=True)
class Workload:
    """The name of a workload; the console explains it."""

    name: str


@dataclass(frozen=True)
class Commands:
    """Commands that repeat something, which `of` names; no other on the page has this name. The
    reader can unfold them."""

    of: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Strong:
    """What a reader should see first."""

    text: str


@dataclass(frozen=True)
class Mark:
    """A verdict with its sign, or the word for a change, a host or the network between hosts; None:
    the case is not finished. `count`: how many cases or hosts have it."""

    verdict: Verdict | Word | HostWord | PairWord | None
    count: int | None = None

    @property
    def text(self) -> str:
        """The words, such as `noisy` or `2 noisy`."""
        word = str(self.verdict or "unfinished")
        return word if self.count is None else f"{self.count} {word}"


@dataclass(frozen=True)
class Share:
    """A figure over its limit; None: there is no limit."""

    ratio: float | None


@dataclass(frozen=True)
class Reference:
    """A reference to the Source with that number."""

    number: int


Inline = str | Code | JobId | Workload | Commands | Strong | Mark | Share | Reference
Text = Inline | tuple[Inline, ...]


def inlines(text: Text) -> tuple[Inline, ...]:
    """Return the parts of a text."""
    return text if isinstance(text, tuple) else (text,)


# ---- charts ----


@dataclass(frozen=True)
class Bar:
    """One measured figure with its limit and peers, all in the chart's unit.

    `peers` are the figures of outside tools. `note` is a word that must not be overlooked, such as
    a verdict other than clean.
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
    """Horizontal bars from zero with their limits, and beside each its share of the limit.

    `has_limits` False: the quantity, such as a time, has none.
    """

    unit: str
    groups: tuple[BarGroup, ...]
    has_limits: bool = True


class PointKind(StrEnum):
    """The role of a trial in its case's statistics."""

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
    """A strip of points for each case, around its median."""

    groups: tuple[SpreadGroup, ...]


@dataclass(frozen=True)
class Line:
    """A run of samples; None is a sample without a figure."""

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
    """One quantity over time. `whole`: the axis starts at zero, and for a ratio ends at 1."""

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

    `beside` is the number of the curve to which this one is the counterpart: it has the same colour
    and sign, but is dashed.
    """

    label: str
    points: tuple[CurvePoint, ...]
    beside: int | None = None


@dataclass(frozen=True)
class CurveAxis:
    """What an axis shows.

    It begins at zero unless it is `logarithmic`. Bytes on a logarithmic axis are written in powers
    of two. `ticks`: the places of its ticks, if not at round values.
    """

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
    and `dashed_are`: what the signs of solid and of dashed curves mean."""

    x: CurveAxis
    y: CurveAxis
    curves: tuple[Curve, ...]
    marks: tuple[CurveMark, ...] = ()
    marks_are: str = ""
    curves_are: str = "median of a case"
    dashed_are: str = ""


@dataclass(frozen=True)
class ForestRow:
    """One ratio with its interval; None: unknown.

    `margin`: a ratio this close to 1 is no change. `stands_out`: the reader should see it first.
    `remark`: the result, in a word or two.
    """

    label: str
    ratio: float
    low: float | None
    high: float | None
    margin: float
    remark: str
    stands_out: bool = False


@dataclass(frozen=True)
class ForestChart:
    """Ratios around 1, one for each row."""

    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class HistoryChart:
    """One figure of many jobs: `points` are (begun, figure), `levels` the medians between the times
    of the `changes`. Times are seconds since 1970.

    For each point, `intervals` has its interval (None: unknown) and `jobs` its job. `limit` is the
    theoretical one; `expected` the figures of sound hosts, from the lowest to the highest, one of
    which may be None: open. None: unknown.
    """

    unit: str
    points: tuple[tuple[float, float], ...]
    levels: tuple[Level, ...] = ()
    changes: tuple[float, ...] = ()
    intervals: tuple[tuple[float, float] | None, ...] = ()
    jobs: tuple[str, ...] = ()
    limit: float | None = None
    expected: tuple[float | None, float | None] | None = None


@dataclass(frozen=True)
class HostsRow:
    """One figure on the hosts of a population: `values` of those that are as expected, `off` of
    those that are low or suspect. `usual` is the median, `expected` the tolerance limit, `limit`
    the theoretical one; None: unknown."""

    label: str
    values: tuple[float, ...]
    off: tuple[float, ...]
    usual: float
    expected: float | None
    limit: float | None


@dataclass(frozen=True)
class HostsChart:
    """A dot for each host, a row for each population, on one axis."""

    unit: str
    rows: tuple[HostsRow, ...]


@dataclass(frozen=True)
class MatrixScale:
    """Below each of the `steps` (ratios) a cell has another colour; `words` say what each of the
    five colours means, the first for ratios above all steps."""

    steps: tuple[float, float, float, float]
    words: tuple[str, str, str, str, str]


BESIDE_SOUND = MatrixScale(
    (0.97, 0.9, 0.8, 0.7), ("as good as others", "3 % worse or more", "10 %", "20 %", "30 %")
)


@dataclass(frozen=True)
class MatrixChart:
    """How good pairs are beside sound ones, or beside the best.

    `cells` has a ratio by row and column; a pair that is missing was not measured. Rows and columns
    have the same labels. `groups` are titles and numbers of consecutive rows that belong together.
    `stands_out`: the rows that the reader should see first. `words` are figures by row and column;
    they are in the cells, below the labels of the columns, if all of them have room. `rows_are` and
    `columns_are` then say what the labels are of.
    """

    labels: tuple[str, ...]
    groups: tuple[tuple[str, int], ...]
    cells: Mapping[tuple[int, int], float]
    stands_out: frozenset[int] = frozenset()
    scale: MatrixScale = BESIDE_SOUND
    words: Mapping[tuple[int, int], str] = field(default_factory=dict)
    rows_are: str = ""
    columns_are: str = ""


Drawing = (
    BarChart
    | SpreadChart
    | TimeChart
    | CurveChart
    | ForestChart
    | HistoryChart
    | HostsChart
    | MatrixChart
)


# ---- blocks ----


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences."""

    text: Text


class AnswerKind(StrEnum):
    """The kind of an answer; `open`: unknown."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class Answer:
    """The answer to the reader's question, in a sentence, and what to look at: what it is, and how
    it is known."""

    question: str
    text: str
    kind: AnswerKind
    items: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Notice:
    """What the reader must know before any figure. `serious`: some figures must not be used."""

    text: Text
    serious: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Sources:
    """The texts that References refer to, numbered from 1; a report has one list of them."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    items: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class Column:
    """A column of a table; figures are aligned to the right."""

    title: str
    figures: bool = False


@dataclass(frozen=True)
class RowGroup:
    """Rows with a title; None: no title."""

    title: Text | None
    rows: tuple[tuple[Text, ...], ...]


Narrow = Literal["scrolls", "wraps", "stacks"]


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows. `narrow`: on a narrow screen it is scrolled, its
    cells are wrapped, or each row is a block with a line for each cell."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    narrow: Narrow = "scrolls"


@dataclass(frozen=True)
class Chart:
    """A drawing. `description` says in words what it shows; `numbers` has its figures, unless the
    page shows them as a table anyway."""

    title: str
    description: str
    drawing: Drawing
    numbers: Table | None = None


class InBrief(StrEnum):
    """What happens to folded blocks in the short form."""

    FOLDED = "folded"
    UNFOLDED = "unfolded"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Fold:
    """Blocks that the reader can unfold. `on_paper`: also shown in print."""

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
    """A chapter of the report. `in_brief`: it is also part of the short form, Markdown."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    in_brief: bool = True


@dataclass(frozen=True)
class Report:
    """A whole page.

    `subtitle` is the host, or the answer, in one line. `tally` is the number of cases for each
    verdict, or of hosts for each word. `answer` is what to read first; `kind` is the text above
    the title.
    """

    title: str
    subtitle: str
    facts: Facts
    tally: tuple[tuple[Verdict | Word | HostWord | None, int], ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...] = field(default=())
    kind: str = "hostbench report"
    answer: tuple[Block, ...] = ()
