"""Whether the figures of one set of jobs differ from those of another (docs/comparing.md).

The unit of evidence is the job: trials of one job share its boot and its moment, and agree better
with each other than with those of the next. With four jobs a side and more the arrangements of the
jobs are the test (hostbench.decisions.permutation). With fewer the spread between jobs must be
known from elsewhere: other jobs of the same host.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.base.units import plural
from hostbench.decisions.change import Difference, change
from hostbench.decisions.facts import fact_differences
from hostbench.decisions.method import method_change
from hostbench.decisions.permutation import CLASS_DEGREES, Column, Judged, two_sides
from hostbench.judge.statistics import NORMAL, student_quantile
from hostbench.model.decision import (
    COMPARISON_CONFIDENCE,
    CaseChange,
    CaseFigure,
    Change,
    Comparison,
    FigureKind,
    JobFigures,
    Side,
    Word,
)
from hostbench.model.registry import subsystems

# With three there is no arrangement as rare as one in twenty.
JOBS_LEAST = 4
# Of the spread between jobs: that of six jobs has five.
DEGREES_LEAST = 5
# Within it two jobs of a guest share what its neighbours did: benchmarks/trust's rounds are apart
# as far.
MOMENT_S = 20 * 60
# From so many on each side the drift is in the spread that the jobs themselves show.
MOMENTS_KNOWN = 4
# No figure repeats better than this; an interval is for the answer that nothing changed, too.
MARGIN_LEAST = 0.01
MARGIN_MOST = 0.5


@dataclass(frozen=True)
class _Pair:
    """One figure of one case on both sides: logarithms by job, None where a job has none."""

    case: CaseFigure
    kind: FigureKind
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]

    @property
    def group(self) -> str:
        """Figures of one have spreads that are alike."""
        return f"{self.case.subsystem}.{self.kind}"

    @property
    def present(self) -> tuple[list[float], list[float]]:
        """The logarithms there are."""
        return [v for v in self.a if v is not None], [v for v in self.b if v is not None]


def compare(
    a: Sequence[JobFigures],
    b: Sequence[JobFigures],
    *,
    names: tuple[str, str],
    earlier: Sequence[JobFigures] = (),
    margin: float | None = None,
) -> Comparison:
    """Side `b` beside side `a`, each of one job at least, and no job on both. `earlier`: other jobs
    of their hosts, which tell the spread between jobs. `margin`: the share of 1 that an interval
    must lie within to be called same, None: what the subsystem's figures are expected to reach."""
    cases, pairs = _pairs(a, b)
    changes: dict[str, dict[FigureKind, Change]] = {}
    for pair, difference in zip(pairs, _differences(pairs, a, b, earlier), strict=True):
        logs_a, logs_b = pair.present
        changes.setdefault(pair.case.case, {})[pair.kind] = change(
            difference,
            pair.case.direction,
            margin or usual_margin(pair.case.subsystem),
            (math.exp(statistics.median(logs_a)), math.exp(statistics.median(logs_b))),
            (len(logs_a), len(logs_b)),
            jobs_least=JOBS_LEAST,
        )
    judged = tuple(_case_change(case, why_not, changes) for case, why_not in cases)
    return Comparison(
        word=summed_up(one.word for one in judged),
        a=_side(names[0], a),
        b=_side(names[1], b),
        earlier=len(earlier),
        facts=tuple(fact_differences(a, b)),
        cases=judged,
    )


def summed_up(words: Iterable[Word]) -> Word:
    """One word for many: see Comparison."""
    found = set(words)
    for word in (Word.WORSE, Word.UNDECIDED, Word.BETTER, Word.SAME):
        if word in found:
            return word
    return Word.NOT_COMPARABLE


def _case_change(
    case: CaseFigure, why_not: str | None, changes: Mapping[str, dict[FigureKind, Change]]
) -> CaseChange:
    own = changes.get(case.case, {})
    return CaseChange(
        case=case.case,
        title=case.title,
        unit=case.unit,
        direction=case.direction,
        word=summed_up(one.word for one in own.values()),
        changes=own,
        reason=None if own else why_not,
    )


def _side(name: str, jobs: Sequence[JobFigures]) -> Side:
    return Side(
        name=name,
        jobs=tuple(job.job for job in jobs),
        hosts=tuple(dict.fromkeys(job.host for job in jobs)),
    )


def usual_margin(subsystem: str) -> float:
    """The share within which figures are the same: what those of a subsystem repeat to."""
    known = subsystems().get(subsystem)
    return max(MARGIN_LEAST, known.target_half_width if known else 0.0)


def _pairs(
    a: Sequence[JobFigures], b: Sequence[JobFigures]
) -> tuple[list[tuple[CaseFigure, str | None]], list[_Pair]]:
    """Every case of either side, with why it is not comparable; and the pairs of figures."""
    cases: list[tuple[CaseFigure, str | None]] = []
    pairs = []
    order: dict[str, CaseFigure] = {}
    for job in (*a, *b):
        for case in job.cases.values():
            order.setdefault(case.case, case)
    for name, case in order.items():
        both = _of_case(a, name), _of_case(b, name)
        missing = [side for side, jobs in zip("AB", both, strict=True) if not jobs]
        if missing:
            cases.append((case, f"no job of side {missing[0]} has this case"))
            continue
        factor, why_not = method_change(case, both[0], both[1])
        found = [] if why_not else list(_pairs_of(case, a, b, factor))
        pairs += found
        cases.append((case, why_not or _nothing_usable(both, name)))
    return cases, pairs


def _of_case(jobs: Iterable[JobFigures], case: str) -> list[JobFigures]:
    return [job for job in jobs if case in job.cases]


def _pairs_of(
    case: CaseFigure, a: Sequence[JobFigures], b: Sequence[JobFigures], factor: float
) -> Iterator[_Pair]:
    shift = math.log(factor)
    for kind in FigureKind:
        logs = [
            tuple(None if (log := _log(job, case.case, kind)) is None else log + by for job in side)
            for side, by in ((a, shift), (b, 0.0))
        ]
        if all(any(log is not None for log in side) for side in logs):
            yield _Pair(case, kind, logs[0], logs[1])


def _log(job: JobFigures, case: str, kind: FigureKind) -> float | None:
    figure = job.cases.get(case)
    value = figure.value(kind) if figure else None
    return None if value is None else math.log(value)


def _nothing_usable(sides: tuple[list[JobFigures], list[JobFigures]], case: str) -> str:
    """Why no figure of a case that both sides have may be compared."""
    for side, jobs in zip("AB", sides, strict=True):
        figures = [job.cases[case] for job in jobs]
        if not any(one.undisturbed or one.delivered for one in figures):
            why = next((one.why_not for one in figures if one.why_not), None)
            return f"no job of side {side} has a figure of it: {why or 'there is none above 0'}"
    return "the sides have no figure of the same kind: one was disturbed wherever the other was not"


def _differences(
    pairs: Sequence[_Pair],
    a: Sequence[JobFigures],
    b: Sequence[JobFigures],
    earlier: Sequence[JobFigures],
) -> list[Difference]:
    """How each figure differs, all judged together."""
    drift = _Drift(pairs, a, b)
    many = [pair for pair in pairs if min(len(logs) for logs in pair.present) >= JOBS_LEAST]
    judged: dict[int, Judged] = {}
    if many:
        columns = [Column(pair.group, (*pair.a, *pair.b)) for pair in many]
        seed = "".join(job.job for job in (*a, *b))
        # What is judged by its own jobs and what by earlier ones share the error rate.
        share = len(many) / len(pairs)
        confidence = 1 - (1 - COMPARISON_CONFIDENCE) * max(share, 0.5 if share < 1 else 1)
        found = two_sides(columns, len(a), len(b), confidence=confidence, seed=seed)
        judged = {id(pair): one for pair, one in zip(many, found or (), strict=True)}
    few = [pair for pair in pairs if id(pair) not in judged]
    spreads = _Spreads(few, earlier, halved=bool(judged))
    return [
        drift.widened(pair, one) if (one := judged.get(id(pair))) else spreads.difference(pair)
        for pair in pairs
    ]


class _Drift:
    """By how much figures of a guest wander between moments, which the jobs of a side that were
    measured in one moment do not show."""

    def __init__(
        self, pairs: Sequence[_Pair], a: Sequence[JobFigures], b: Sequence[JobFigures]
    ) -> None:
        moments = [_moments(side) for side in (a, b)]
        guests = any(job.is_guest for job in (*a, *b))
        counts = guests and min(moments) < MOMENTS_KNOWN and not _in_turn(a, b)
        self._factor = math.sqrt(sum(1 / n for n in moments)) if counts else 0.0
        classes = len({pair.group for pair in pairs}) or 1
        self._quantile = NORMAL.inv_cdf(1 - (1 - COMPARISON_CONFIDENCE) / 2 / classes)

    def widened(self, pair: _Pair, judged: Judged) -> Difference:
        """The difference, with the drift in its interval and its error."""
        known = subsystems().get(pair.case.subsystem)
        drift = self._factor * (known.guest_spread.drift_ratio if known else 0.0)
        # Of what repeats to the last digit on all jobs, any difference is one.
        half = judged.quantile * judged.error if judged.error else 0.0
        return Difference(
            value=judged.difference,
            half=math.hypot(half, self._quantile * drift),
            error=math.hypot(judged.error, drift),
            degrees=sum(len(logs) for logs in pair.present) - 2 + CLASS_DEGREES,
        )


def _moments(jobs: Sequence[JobFigures]) -> int:
    """How many moments the jobs were measured in."""
    moments, last_s = 0, -math.inf
    for created_s in sorted(job.created_unix_s for job in jobs):
        if created_s - last_s >= MOMENT_S:
            moments, last_s = moments + 1, created_s
    return moments


def _in_turn(a: Sequence[JobFigures], b: Sequence[JobFigures]) -> bool:
    """Whether the sides were measured in turn, A B B A or A B A B, so that both had the same of
    every moment."""
    marked = sorted(
        [(job.created_unix_s, 1) for job in a] + [(job.created_unix_s, -1) for job in b]
    )
    lead = [abs(ahead) for ahead in itertools.accumulate(step for _, step in marked)]
    return len(a) == len(b) and max(lead) <= 2


class _Spreads:
    """The spread between jobs of figures with fewer than JOBS_LEAST jobs on a side: that within the
    sides and that of earlier jobs, by Student's distribution, every figure with its part of the
    error rate (Bonferroni)."""

    def __init__(
        self, pairs: Sequence[_Pair], earlier: Sequence[JobFigures], *, halved: bool
    ) -> None:
        self._own = {id(pair): _within(pair, earlier) for pair in pairs}
        errors = (1 - COMPARISON_CONFIDENCE) * (0.5 if halved else 1)
        known = [one for one in self._own.values() if one.degrees >= DEGREES_LEAST]
        self._probability = 1 - errors / 2 / max(1, len(known))
        self._usual: dict[str, float] = {}
        for pair in pairs:
            alike = (
                [
                    one.variance
                    for other in pairs
                    if other.group == pair.group
                    and (one := self._own[id(other)]).degrees >= DEGREES_LEAST
                ]
                if pair.group not in self._usual
                else []
            )
            if alike:
                self._usual[pair.group] = statistics.median(alike)

    def difference(self, pair: _Pair) -> Difference:
        """The difference of a figure, and its interval where the spread is known."""
        logs_a, logs_b = pair.present
        value = statistics.fmean(logs_b) - statistics.fmean(logs_a)
        own = self._own[id(pair)]
        if own.degrees < DEGREES_LEAST:
            why = _few(len(logs_a), len(logs_b), own.degrees)
            return Difference(value, None, None, reason=why)
        degrees = own.degrees + CLASS_DEGREES
        variance = (own.variance * own.degrees + self._usual[pair.group] * CLASS_DEGREES) / degrees
        error = math.sqrt(variance * (1 / len(logs_a) + 1 / len(logs_b)))
        half = student_quantile(self._probability, degrees) * error
        return Difference(value, half, error, degrees)


@dataclass(frozen=True)
class _Within:
    """A variance, and its degrees of freedom."""

    variance: float
    degrees: int


def _within(pair: _Pair, earlier: Sequence[JobFigures]) -> _Within:
    """Between jobs, of both sides and of the earlier jobs, each around its own mean."""
    logs = [_log(job, pair.case.case, pair.kind) for job in earlier]
    groups = [*pair.present, [log for log in logs if log is not None]]
    squares, degrees = 0.0, 0
    for group in groups:
        if len(group) > 1:
            mean = statistics.fmean(group)
            squares += math.fsum((log - mean) ** 2 for log in group)
            degrees += len(group) - 1
    return _Within(squares / degrees if degrees else 0.0, degrees)


def _few(jobs_a: int, jobs_b: int, degrees: int) -> str:
    known = f", of which {degrees} are there" if degrees else ""
    return (
        f"{plural(jobs_a, 'job')} beside {jobs_b} cannot tell how far two jobs lie apart where "
        f"nothing changed; measure {JOBS_LEAST} on each side, or have 6 earlier jobs of the host "
        f"with this figure ({DEGREES_LEAST} differences between jobs{known})"
    )
