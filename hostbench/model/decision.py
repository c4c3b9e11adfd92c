"""Decisions: whether the figures of two sides differ, in words with known error rates."""

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field

from hostbench.model.baseline import HostKey, HostWord
from hostbench.model.events import ParamValue
from hostbench.model.host import Boot
from hostbench.model.result import CampaignMember, ConditionState, StoredModel
from hostbench.model.summary import Verdict
from hostbench.model.table import Direction

# The confidence of all words of one comparison together: where the sides do not differ, at most 5
# of 100 comparisons call any figure better or worse.
COMPARISON_CONFIDENCE = 0.95
# How often a change of the size of the least effect is found.
LEAST_EFFECT_POWER = 0.95
# The fact with the name of the second host, of jobs between two hosts.
FAR_HOST_FACT = "far host"


class Word(StrEnum):
    """The result for a change; the worst first."""

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

    - `value_a`, `value_b`: the medians, in the metric's unit. `ratio`: B over A, of the geometric
      means, so that one odd job may move it away from the ratio of the medians.
    - `low` to `high`: holds the true ratio with at least 95 % confidence, for each figure by
      itself. For all figures of a comparison together, it excludes 1 in at most 5 % of the
      comparisons where nothing changed. None where the spread is unknown.
    - `margin`: the word is `same` if the interval lies within this share of 1, even where it
      excludes 1.
    - `least_effect_ratio`: the least relative change that 95 of 100 such comparisons find.
    - `reason`: why nothing is decided, as a sentence.
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
    """How a figure differs between two sets of jobs. `jobs_a` and `jobs_b` count the jobs that have
    it.

    `more`: how many more jobs on each side would decide; None: none are needed, or too many.
    """

    jobs_a: int
    jobs_b: int
    more: int | None = None


class CaseChange(StoredModel):
    """How a case changed. `changes` holds the figures that both sides have, and `word` is the worst
    of their words. `reason`: why the case is not comparable."""

    case: str
    title: str
    unit: str
    direction: Direction
    word: Word
    changes: dict[FigureKind, Change] = Field(default={})
    reason: str | None = None


class FactDifference(StoredModel):
    """A fact about the host or the measuring programs that differs: the values of each side's jobs,
    the most frequent first. Empty: unknown in all jobs."""

    fact: str
    a: tuple[str, ...]
    b: tuple[str, ...]


class Side(StoredModel):
    """One side of a comparison: its name as given, its jobs, oldest first, and their hosts."""

    name: str
    jobs: tuple[str, ...]
    hosts: tuple[str, ...]


class Comparison(StoredModel):
    """Side B compared with side A.

    - `word`: worse if any case is worse, else undecided if any is undecided, else not comparable if
      no case could be compared, else better if any is better, else same.
    - `earlier`: where the sides have too few jobs, how many other jobs of the hosts showed the
      spread between jobs.
    - `clock_went_back`: see History.
    """

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
    """One case in one job: the figures that may be compared, in `unit`. `why_not`: why there are
    none, as part of a sentence.

    - `headline`: the figure that tables show, from `low` to `high`; None where its verdict forbids
      its use.
    - `naive`: see CaseResult. `limit`: the theoretical limit.
    - `given`: the parameters that the suite named: the same case is measured with these.
    - `verdict` None: the job did not finish the case. `reason`: the code of the verdict's first
      reason; `reason_text`: the same in words. `culprit`: who took what was taken from the trials.
    """

    case: str
    title: str
    workload: str
    unit: str
    direction: Direction
    undisturbed: float | None = None
    delivered: float | None = None
    why_not: str | None = None
    headline: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    naive: bool = False
    given: dict[str, ParamValue] = Field(default={})
    verdict: Verdict | None = None
    reason: str | None = None
    reason_text: str | None = None
    culprit: str | None = None

    def value(self, kind: FigureKind) -> float | None:
        """Return one of the two figures."""
        return self.undisturbed if kind is FigureKind.UNDISTURBED else self.delivered

    @property
    def share_of_limit(self) -> float | None:
        """How much of its limit the headline figure reached; of a time, the limit over it."""
        if self.headline is None or not self.limit:
            return None
        share = self.headline / self.limit
        return 1 / share if self.direction == "lower" and share else share

    @property
    def subsystem(self) -> str:
        """The part of the workload's name before the dot."""
        return self.workload.partition(".")[0]


class SubsystemStatus(StoredModel):
    """What monitoring shows of one subsystem of a host: the line of an overview
    (hostbench.judge.overview) of the job that measured it last. None: unknown.

    - `workload`, `label`, `unit`, `figure`, `share_of_limit`: of the headline case.
    - `delivered_ratio`, `verdict`, `condition`, `condition_ratio`: the worst of its cases.
    - `word`, `lost_ratio`: the worst of its headline figures beside other hosts of the model, when
      the document was read; None without a baseline.
    """

    host: str
    subsystem: str
    job: str
    suite: str
    ended_unix_s: float | None
    workload: str | None = None
    label: str | None = None
    unit: str | None = None
    figure: float | None = None
    share_of_limit: float | None = None
    delivered_ratio: float | None = None
    verdict: Verdict | None = None
    condition: ConditionState | None = None
    condition_ratio: float | None = None
    word: HostWord | None = None
    lost_ratio: float | None = None

    @property
    def title(self) -> str | None:
        """The title of the headline case."""
        return f"{self.workload} {self.label or ''}".strip() if self.workload else None


class JobFigures(StoredModel):
    """What decisions need from a job: its figures by case, and the facts of its host and programs.

    - `host`: the name of the host; `machine`: see HostInventory.
    - `is_guest`: the host runs on a hypervisor.
    - `versions`: the version of each subsystem's program.
    - `digest`: the digest of the job's document; None: it has none.
    - `boot`: when the job began, by a clock that cannot be set; None: unknown.
    - `key`: the hardware model of the host. `member`: the campaign that the job is a part of.
    - `statuses`: of the subsystems that it measured; empty where the index gave the rest.
    - `document`: the file that they are from; it is in no answer. None: only the head was read.
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
    key: HostKey | None = None
    member: CampaignMember | None = None
    statuses: tuple[SubsystemStatus, ...] = ()
    document: Path | None = Field(default=None, exclude=True)

    @property
    def is_of_two_hosts(self) -> bool:
        """Whether network cases may have had their far ends on a second host."""
        return FAR_HOST_FACT in self.facts


class SettingSide(StoredModel):
    """One of the two settings that are measured in turn.

    `title` names the case with this side's parameters; `environment` is set while its trials run;
    `command` runs before each of them.
    """

    title: str
    params: dict[str, ParamValue]
    environment: dict[str, str] = Field(default={})
    command: str | None = None


class SettingTrial(StoredModel):
    """One trial of a test of a setting: its side, its block and attempt (from 0), and its figures
    in the metric's unit. `reasons` are codes."""

    side: Literal["a", "b"]
    block: int
    attempt: int
    time_unix_s: float
    verdict: Verdict
    reasons: tuple[str, ...]
    undisturbed: float | None
    delivered: float | None


class SettingFigure(FigureChange):
    """How a figure differs between two settings, over `blocks` blocks."""

    blocks: int


class SettingTest(StoredModel):
    """Whether a setting matters: blocks of A B B A or B A A B in one run.

    - `word`: computed as that of a Comparison.
    - `looks`: the numbers of blocks after which the test decided, or would have decided, whether to
      continue. The error rate of all words together is 1 - `confidence`, whenever the test stops.
    - `repeated`: how many blocks were measured again because trials in them were disturbed or
      invalid.
    - `idle`: the idle gate's answer; None: the gate did not run, or could not read the host.
    - `no_figure`: why a figure of the workload is missing in `figures`, as a sentence.
    - `not_restored`: why the setting of one side is still in force, as a sentence. None: it is
      restored, or there is nothing to restore.
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
    """What one job measured of a case, in the case's unit.

    `low` to `high`: the interval of the figure; None where the document has none of this figure.
    """

    job: str
    created_unix_s: float
    value: float
    low: float | None = None
    high: float | None = None


class ChangePoint(StoredModel):
    """Where a case changed: `job`, begun at `created_unix_s`, is the first job after the change,
    and `job_before` the last one before it. The true place may be a job earlier or later.

    - `jobs_before`, `jobs_after`: how many jobs there are up to the next change points, or to the
      ends of the history; `value_before`, `value_after`: their medians.
    - `ratio`: after over before.
    - `low` to `high`: holds the true ratio with the history's confidence, wherever between those
      jobs the change was.
    - `least_effect_ratio`: the least relative change that 95 of 100 histories with as many jobs
      would have shown.
    - `facts`: the facts that differ between the two jobs before the change (side A) and the two
      jobs after it.
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
    """A figure of a case over the jobs of a host, oldest first, and where it changed.

    - `word`: undecided with too few jobs to decide, else the word of the newest change point, else
      same: no change was found.
    - `least_effect_ratio`: the least relative change that would have been found with
      `least_effect_jobs` jobs on each side of it; None: too few jobs.
    - `left_out`: why jobs are missing, as sentences.
    - `autocorrelation`: the autocorrelation of neighbouring jobs around the means between the
      changes; None: too few jobs.
    - `clock_went_back`: jobs that began before they were submitted, or before an earlier job of the
      same boot, by their time stamps. The history is in the order of the time stamps.
    - `limit`: the theoretical limit in the newest job that knows one; None: unknown.
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
    limit: float | None = None


class HostHistory(StoredModel):
    """The histories of one case of a host, or of all its headline cases, each with its share of the
    error rate: where nothing changed, at most 5 of 100 such answers show a change in any of them.

    `left_out`: documents that cannot be trusted and are in none of the histories, as sentences.
    """

    host: str
    confidence: float = COMPARISON_CONFIDENCE
    histories: tuple[History, ...]
    left_out: tuple[str, ...] = ()
