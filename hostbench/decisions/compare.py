"""Whether the figures of one set of jobs differ from those of another (docs/comparing.md).

The unit of evidence is the job: trials of one job share its boot and its moment, and agree better
with each other than with those of the next job. With four or more jobs a side, the test compares
arrangements of these jobs (hostbench.decisions.permutation). With fewer, other jobs of the same
host take part: would any of them, in place of these, look as different?
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hostbench.decisions.change import Difference, change
from hostbench.decisions.clock import clock_went_back
from hostbench.decisions.facts import fact_differences
from hostbench.decisions.method import method_change
from hostbench.decisions.permutation import CLASS_DEGREES, Column, Judged, two_sides
from hostbench.judge.statistics import NORMAL
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
from hostbench.model.subsystem import Subsystem

# With three jobs a side, no arrangement is as rare as one in twenty.
JOBS_LEAST = 4
# Shown for a parameter that a suite does not name.
DEFAULT = "the default"
# Eight jobs make 28 pairs, and one of 28 may be as rare as one in twenty. But a host drifts: with
# six earlier jobs, 7 of 85 reports of a guest were wrong; with twelve, 2 of 79
# (benchmarks/decisions).
EARLIER_LEAST = 12
# Within this time, two jobs of a guest share the effects of its neighbours. The rounds of
# benchmarks/trust are this far apart.
MOMENT_S = 20 * 60
# From this many moments a side on, the spread of the jobs includes the drift.
MOMENTS_KNOWN = 4
# How much the neighbours of a guest leave it differs from evening to evening, as a standard
# deviation of logarithms: on four evenings, register kernels were delivered 0.943 to 0.974 of what
# the hardware did (benchmarks/trust, benchmarks/decisions).
LEFT_DRIFT = 0.015


@dataclass(frozen=True)
class _Pair:
    """One figure of one case on both sides, and in earlier jobs if they are needed: logarithms by
    job, None where a job has none."""

    case: CaseFigure
    kind: FigureKind
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]
    others: tuple[float | None, ...] = ()

    @property
    def group(self) -> str:
        """The group of the figure: figures of one group have similar spreads."""
        return f"{self.case.subsystem}.{self.kind}"

    @property
    def present(self) -> tuple[list[float], list[float]]:
        """The existing logarithms of either side."""
        return [v for v in self.a if v is not None], [v for v in self.b if v is not None]

    @property
    def degrees(self) -> int:
        """The degrees of freedom of the known spread between jobs."""
        groups = (*self.present, [v for v in self.others if v is not None])
        return sum(len(logs) - 1 for logs in groups if logs)


def compare(
    a: Sequence[JobFigures],
    b: Sequence[JobFigures],
    *,
    names: tuple[str, str],
    earlier: Sequence[JobFigures] = (),
    margin: float | None = None,
) -> Comparison:
    """Compare side `b` with side `a`, each with at least one job, and without a job in common.

    `earlier` are other jobs of their hosts, which show the spread between jobs. `margin` is the
    share of 1 that an interval must lie within to be called same; None: the share that the
    subsystem's figures are expected to reach.
    """
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
    # Fewer earlier jobs do not show the spread.
    used = min(len(a), len(b)) < JOBS_LEAST and len(earlier) >= EARLIER_LEAST
    return Comparison(
        word=summed_up(one.word for one in judged),
        a=_side(names[0], a),
        b=_side(names[1], b),
        earlier=len(earlier) if used else 0,
        facts=tuple(fact_differences(a, b)),
        cases=judged,
        clock_went_back=_clocks_went_back((*a, *b)),
    )


def summed_up(words: Iterable[Word]) -> Word:
    """Return one word for many: see Comparison."""
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
    """Return the share within which figures of a subsystem count as the same: how well they
    repeat."""
    known = subsystems().get(subsystem)
    return known.target_half_width if known else Subsystem.target_half_width


def _pairs(
    a: Sequence[JobFigures], b: Sequence[JobFigures]
) -> tuple[list[tuple[CaseFigure, str | None]], list[_Pair]]:
    """Return every case of either side, with the reason if it is not comparable, and the pairs of
    figures."""
    cases: list[tuple[CaseFigure, str | None]] = []
    pairs = []
    order: dict[str, CaseFigure] = {}
    for job in (*a, *b):
        for case in job.cases.values():
            order.setdefault(case.case, case)
    for name, case in order.items():
        both = _of_case(a, name), _of_case(b, name)
        missing = [number for number, jobs in enumerate(both) if not jobs]
        if missing:
            cases.append((case, _missing("AB"[missing[0]], (a, b)[missing[0]], case)))
            continue
        factor, why_not = method_change(case, both[0], both[1])
        found = [] if why_not else list(_pairs_of(case, a, b, factor))
        pairs += found
        cases.append((case, why_not or _nothing_usable(both, name)))
    return cases, pairs


def _of_case(jobs: Iterable[JobFigures], case: str) -> list[JobFigures]:
    return [job for job in jobs if case in job.cases]


def _missing(side: str, jobs: Iterable[JobFigures], case: CaseFigure) -> str:
    """Return why a side lacks a case: it may have one of the same title with other parameters."""
    alike = (one for job in jobs for one in job.cases.values() if one.title == case.title)
    if (own := next(alike, None)) is None:
        return f"no job of side {side} has this case"
    names = sorted(own.given.keys() | case.given.keys())
    differences = [
        f"{name}={own.given.get(name, DEFAULT)} in place of {case.given.get(name, DEFAULT)}"
        for name in names
        if own.given.get(name) != case.given.get(name)
    ]
    return f"side {side} has it with other parameters: {', '.join(differences) or 'unknown ones'}"


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
    """Return why no figure of a case that both sides have may be compared."""
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
    """Return how each figure differs.

    Figures with enough jobs on both sides are judged together; so are the others, with the earlier
    jobs. Each of the two groups has its part of the error rate.
    """
    drift = _Drift(pairs, a, b)
    many = [pair for pair in pairs if min(map(len, pair.present)) >= JOBS_LEAST]
    few = [
        _with_earlier(pair, earlier) for pair in pairs if min(map(len, pair.present)) < JOBS_LEAST
    ]
    few = [pair for pair in few if sum(log is not None for log in pair.others) >= EARLIER_LEAST]
    confidence = COMPARISON_CONFIDENCE if not many or not few else (1 + COMPARISON_CONFIDENCE) / 2
    judged: dict[tuple[str, FigureKind], Difference] = {}
    for some in (many, few):
        columns = [Column(pair.group, (*pair.a, *pair.b, *pair.others)) for pair in some]
        seed = "".join(job.job for job in (*a, *b))
        found = two_sides(columns, len(a), len(b), confidence=confidence, seed=seed) if some else ()
        for pair, one in zip(some, found or (), strict=bool(found)):
            judged[pair.case.case, pair.kind] = drift.widened(pair, one)
    return [judged.get((pair.case.case, pair.kind)) or _undecided(pair) for pair in pairs]


def _with_earlier(pair: _Pair, earlier: Sequence[JobFigures]) -> _Pair:
    return replace(pair, others=tuple(_log(job, pair.case.case, pair.kind) for job in earlier))


def _undecided(pair: _Pair) -> Difference:
    logs_a, logs_b = pair.present
    value = statistics.fmean(logs_b) - statistics.fmean(logs_a)
    why = (
        "too few jobs have the figure, so the spread between jobs is unknown; measure until there "
        f"are {JOBS_LEAST} jobs on each side, or {EARLIER_LEAST} earlier jobs of the host"
    )
    return Difference(value, None, None, reason=why)


class _Drift:
    """How much figures of a guest drift between moments. The jobs of a side that were measured in
    one moment do not show it."""

    def __init__(
        self, pairs: Sequence[_Pair], a: Sequence[JobFigures], b: Sequence[JobFigures]
    ) -> None:
        # If a clock was set, time stamps do not show moments and turns.
        in_order = not _clocks_went_back((*a, *b))
        moments = [_moments(side) if in_order else 1 for side in (a, b)]
        guests = any(job.is_guest for job in (*a, *b))
        counts = guests and min(moments) < MOMENTS_KNOWN and not (in_order and _in_turn(a, b))
        self._factor = math.sqrt(sum(1 / n for n in moments)) if counts else 0.0
        classes = len({pair.group for pair in pairs}) or 1
        self._quantile = NORMAL.inv_cdf(1 - (1 - COMPARISON_CONFIDENCE) / 2 / classes)

    def widened(self, pair: _Pair, judged: Judged) -> Difference:
        """Return the difference with the drift in its interval and its error."""
        known = subsystems().get(pair.case.subsystem)
        usual = known.guest_spread.drift_of(pair.case.direction) if known else 0.0
        if pair.kind is FigureKind.DELIVERED:
            usual = math.hypot(usual, LEFT_DRIFT)
        drift = self._factor * usual
        # If all jobs agree to the last digit, any difference is a real one.
        half = judged.quantile * judged.error if judged.error else 0.0
        return Difference(
            value=judged.difference,
            half=math.hypot(half, self._quantile * drift),
            error=math.hypot(judged.error, drift),
            degrees=pair.degrees + CLASS_DEGREES,
        )


def _clocks_went_back(jobs: Sequence[JobFigures]) -> tuple[str, ...]:
    """Return the jobs before which the clock of their host was set back."""
    machines = dict.fromkeys(job.machine for job in jobs)
    own = ([job for job in jobs if job.machine == machine] for machine in machines)
    return tuple(itertools.chain.from_iterable(map(clock_went_back, own)))


def _moments(jobs: Sequence[JobFigures]) -> int:
    """Return the number of separate moments in which the jobs were measured."""
    moments, last_s = 0, -math.inf
    for created_s in sorted(job.created_unix_s for job in jobs):
        if created_s - last_s >= MOMENT_S:
            moments, last_s = moments + 1, created_s
    return moments


def _in_turn(a: Sequence[JobFigures], b: Sequence[JobFigures]) -> bool:
    """Whether the sides were measured in turn, A B B A or A B A B, so that every moment affected
    both alike."""
    marked = sorted(
        [(job.created_unix_s, 1) for job in a] + [(job.created_unix_s, -1) for job in b]
    )
    lead = [abs(ahead) for ahead in itertools.accumulate(step for _, step in marked)]
    return len(a) == len(b) and max(lead) <= 2
