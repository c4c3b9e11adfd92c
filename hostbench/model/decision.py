"""Decisions: whether figures of two sides differ, in words whose error rates are known."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from hostbench.model.events import ParamValue
from hostbench.model.host import Boot
from hostbench.model.result import StoredModel
from hostbench.model.summary import Verdict
from hostbench.model.table import Direction

# How sure all words of one comparison are together: of a hundred comparisons of sides that do not
# differ five say better or worse of anything.
COMPARISON_CONFIDENCE = 0.95
# How often a change as large as the least effect is found.
LEAST_EFFECT_POWER = 0.95


class Word(StrEnum):
    """What is known of a change; the worst first."""

    WORSE = "worse"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"
    BETTER = "better"
    SAME = "same"


class FigureKind(StrEnum):
    """Which of the two figures of a case (TwoFigures)."""

    UNDISTURBED = "undisturbed"
    DELIVERED = "delivered"


class FigureChange(StoredModel):
    """How one figure differs from side A to side B.

    `ratio` is B over A, of the medians in the metric's unit `value_a` and `value_b`; `low` to
    `high` holds the true ratio with 95 % at least, each figure by itself; that it leaves out 1
    where nothing changed happens in 5 % of comparisons at most, all their figures together. They
    are None where the spread is unknown. `margin`: `same` means that the interval lies within this
    share of 1, even where it leaves 1 out. `least_effect_ratio`: the least relative change that is
    found in 95 of 100 such comparisons. `reason`: why nothing is decided, as a sentence.
    """

    word: Word
    value_a: float | None = None
    value_b: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float
    least_effect_ratio: float | None = None
    reason: str | None = None


class Change(FigureChange):
    """How a figure differs between two sets of jobs, those of `jobs_a` and `jobs_b` that have it.
    `more`: how many more jobs on each side would decide, None where none are needed, or too many.
    """

    jobs_a: int
    jobs_b: int
    more: int | None = None


class CaseChange(StoredModel):
    """How a case changed; `changes` has the figures that both sides have. `word` is the worst of
    theirs. `reason`: why the case is not comparable."""

    case: str
    title: str
    unit: str
    direction: Direction
    word: Word
    changes: dict[FigureKind, Change] = Field(default={})
    reason: str | None = None


class FactDifference(StoredModel):
    """A fact of the host or of what measured that differs: the values of each side's jobs, the
    most frequent first; empty: no job tells."""

    fact: str
    a: tuple[str, ...]
    b: tuple[str, ...]


class Side(StoredModel):
    """One side of a comparison: how it was named, its jobs, the oldest first, and their hosts."""

    name: str
    jobs: tuple[str, ...]
    hosts: tuple[str, ...]


class Comparison(StoredModel):
    """Side B beside side A. `word` sums up: worse if anything is, else undecided if anything is,
    else not comparable if nothing could be compared, else better if anything is, else same.
    `earlier`: how many other jobs of the hosts told how jobs vary, where the sides have too few.
    `clock_went_back`: see History."""

    word: Word
    a: Side
    b: Side
    confidence: float = COMPARISON_CONFIDENCE
    power: float = LEAST_EFFECT_POWER
    earlier: int = 0
    facts: tuple[FactDifference, ...] = ()
    cases: tuple[CaseChange, ...] = ()
    clock_went_back: tuple[str, ...] = ()


class CaseFigure(StoredModel):
    """What one job says of one case: the figures that may be compared, in `unit`. `why_not`: why
    there are none, as a sentence part."""

    case: str
    title: str
    workload: str
    unit: str
    direction: Direction
    undisturbed: float | None = None
    delivered: float | None = None
    why_not: str | None = None

    def value(self, kind: FigureKind) -> float | None:
        """One of the two figures."""
        return self.undisturbed if kind is FigureKind.UNDISTURBED else self.delivered

    @property
    def subsystem(self) -> str:
        """The part of the workload's name before the dot."""
        return self.workload.partition(".")[0]


class JobFigures(StoredModel):
    """What decisions need of a job: its figures by case, and the facts of its host and programs.

    `host`: its name; `machine`: see HostInventory. `is_guest`: a hypervisor lies below. `versions`:
    of the program of each subsystem. `digest`: of the document it is from, None: it has none.
    `boot`: when it was begun by the clock that nobody sets, None: unknown.
    """

    job: str
    suite: str
    host: str
    machine: str
    is_guest: bool
    created_unix_s: float
    digest: str | None
    versions: dict[str, str]
    facts: dict[str, str]
    cases: dict[str, CaseFigure]
    boot: Boot | None = None


class SettingSide(StoredModel):
    """One of the two settings that are measured in turn: `title` names the case with this side's
    parameters; `environment` is set while its trials run; `command` runs before each of them."""

    title: str
    params: dict[str, ParamValue]
    environment: dict[str, str] = Field(default={})
    command: str | None = None


class SettingTrial(StoredModel):
    """One trial of a test of a setting: its side, its block and attempt, from 0, and its figures
    in the metric's unit; `reasons` are codes."""

    side: Literal["a", "b"]
    block: int
    attempt: int
    time_unix_s: float
    verdict: Verdict
    reasons: tuple[str, ...]
    undisturbed: float | None
    delivered: float | None


class SettingFigure(FigureChange):
    """How a figure differs between two settings, in so many `blocks`."""

    blocks: int


class SettingTest(StoredModel):
    """Whether a setting matters: blocks of A B B A or B A A B in one run. `word` sums up as that of
    a Comparison does.

    `looks`: after how many blocks it was decided whether to go on, as far as it came to that last;
    all words together are wrong as rarely as `confidence` says, whenever it stopped. `repeated`:
    how many blocks were measured again since trials in them were disturbed or invalid. `idle`: what
    the idle gate said, None: it was not asked or could not tell. `no_figure`: why a figure that the
    workload has is not among `figures`, as a sentence. `not_restored`: why the setting of one side
    is still in force, as a sentence; None: it is not, or there is nothing to restore.
    """

    kind: Literal["hostbench.ab"] = "hostbench.ab"
    word: Word
    hostbench: str
    host: str
    created_unix_s: float
    workload: str
    unit: str
    direction: Direction
    a: SettingSide
    b: SettingSide
    confidence: float = COMPARISON_CONFIDENCE
    power: float = LEAST_EFFECT_POWER
    looks: tuple[int, ...]
    blocks: int
    repeated: int
    idle: bool | None
    figures: dict[FigureKind, SettingFigure]
    no_figure: dict[FigureKind, str] = Field(default={})
    trials: tuple[SettingTrial, ...]
    not_restored: str | None = None


class HistoryPoint(StoredModel):
    """What one job measured of a case, in the case's unit."""

    job: str
    created_unix_s: float
    value: float


class ChangePoint(StoredModel):
    """Where a case changed: `job`, begun at `created_unix_s`, is the first after it, and
    `job_before` the last before it; a job more or less may be meant.

    `ratio` is after over before, of the `jobs_before` and `jobs_after` up to the next change points
    or the ends; `value_before` and `value_after` are their medians. `low` to `high` holds the true
    ratio, wherever between those jobs the change was, with the confidence of the history.
    `least_effect_ratio`: the least relative change that so many jobs would have shown in 95 of 100
    histories. `facts`: those that differ between the two jobs before and the two after; side A is
    before.
    """

    word: Word
    job: str
    job_before: str
    created_unix_s: float
    value_before: float
    value_after: float
    ratio: float
    low: float
    high: float
    least_effect_ratio: float
    jobs_before: int
    jobs_after: int
    facts: tuple[FactDifference, ...] = ()


class History(StoredModel):
    """A figure of a case over the jobs of a host, the oldest first, and where it changed.

    `word`: undecided with fewer jobs than can decide, else that of the newest change point, else
    same: no change was found. `least_effect_ratio`: the least relative change that would have been
    found if it parts the jobs into `least_effect_jobs` on each side; None: there are too few.
    `left_out`: why jobs are missing, as sentences. `autocorrelation`: that of neighbouring jobs
    around the means between the changes; None: there are too few jobs. `clock_went_back`: jobs that
    were begun before they were submitted, or that by the clock of the host's boot follow one that
    was begun later; the order is that of the times.
    """

    case: str
    title: str
    unit: str
    direction: Direction
    kind: FigureKind
    host: str
    word: Word
    confidence: float = COMPARISON_CONFIDENCE
    power: float = LEAST_EFFECT_POWER
    least_effect_ratio: float | None = None
    least_effect_jobs: int | None = None
    left_out: tuple[str, ...] = ()
    autocorrelation: float | None = None
    clock_went_back: tuple[str, ...] = ()
    points: tuple[HistoryPoint, ...] = ()
    changes: tuple[ChangePoint, ...] = ()


class HostHistory(StoredModel):
    """The histories of one case of a host, or of all its headline cases, each with its share of the
    error rate: where nothing changed, at most 5 of 100 such answers show a change in any of them.
    `left_out`: documents that cannot be trusted and are in none of the histories, as sentences.
    """

    host: str
    confidence: float = COMPARISON_CONFIDENCE
    histories: tuple[History, ...]
    left_out: tuple[str, ...] = ()
