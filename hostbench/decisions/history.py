"""A figure of a case over the stored jobs of a host: where it changed, by how much, and what else
changed there (docs/comparing.md)."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.base.units import plural
from hostbench.decisions.baseline import headline_cases, headline_workloads
from hostbench.decisions.change_points import Split, change_points, series_least
from hostbench.decisions.clock import clock_went_back
from hostbench.decisions.facts import fact_differences
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.method import method_change
from hostbench.decisions.sets import JobFilter
from hostbench.judge.statistics import NORMAL
from hostbench.model.decision import (
    COMPARISON_CONFIDENCE,
    LEAST_EFFECT_POWER,
    CaseFigure,
    ChangePoint,
    FactDifference,
    FigureKind,
    History,
    HistoryPoint,
    HostHistory,
    JobFigures,
    Word,
)
from hostbench.results.ids import job_ids
from hostbench.results.store import resume_command

CANDIDATES_NAMED = 5
REFUSED_NAMED = 3
NO_FIGURES = "the results directory has no jobs with figures; measure some with hostbench run"
# Fewer characters of a hash could be the beginning of a workload's name.
HASH_LEAST = 6
# The place of a change is known to within one job, so the facts of this many jobs on either side
# are compared.
NEIGHBOURS = 2
# For the least effect of a whole history: a change with this many jobs before it, and after it.
LEAST_EFFECT_JOBS = 10


def history_of(
    index: FigureIndex, name: str, wanted: JobFilter, kind: FigureKind | None = None
) -> History:
    """Return the history of the case that `name` means.

    `kind` None: its undisturbed figure, if it has one. Raise UsageError if `name` means no case or
    several, if no job is left, or if the jobs are of several hosts.
    """
    heads = _trusted(index)
    case = find_case(index.newest_of_each_case(), name)
    figures = index.of_case(case.case)
    jobs = [job for job in heads if job.job in figures]
    taken = [job for job in jobs if wanted.takes(job)]
    if not taken:
        hosts, suites = sorted({job.host for job in jobs}), sorted({job.suite for job in jobs})
        raise UsageError(
            f"{case.title} is in {plural(len(jobs), 'job')}, and host, suite, since and "
            f"until leave none of them; they are of the hosts {', '.join(hosts)} and the suites "
            f"{', '.join(suites)}"
        )
    _one_host(taken, f"{case.title} was measured")
    found = history(_with_figures(taken, figures), case, kind)
    return found.model_copy(update={"left_out": (*found.left_out, *_refused(index))})


def headline_histories(
    index: FigureIndex, wanted: JobFilter, kind: FigureKind | None = None
) -> HostHistory:
    """Return the histories of a host's headline cases; for each workload, the cases that most jobs
    have come first.

    Raise UsageError if no job is left, or if the jobs are of several hosts.
    """
    heads = _trusted(index)
    taken = [job for job in heads if wanted.takes(job)]
    if not taken:
        hosts = ", ".join(sorted({job.host for job in heads}))
        raise UsageError(
            f"host, suite, since and until leave no stored job; jobs are of the hosts: {hosts}"
        )
    host = _one_host(taken, "the jobs were measured")
    workloads = headline_workloads()
    newest = {one.case: one for one in index.newest_of_each_case() if one.workload in workloads}
    figures = {case: index.of_case(case) for case in newest}
    jobs = {case: [job for job in taken if job.job in figures[case]] for case in newest}
    order = sorted(
        (case for case in newest if jobs[case]),
        key=lambda case: (-len(jobs[case]), newest[case].title),
    )
    chosen = headline_cases({case: newest[case] for case in order})
    confidence = shared_confidence(len(chosen))
    return HostHistory(
        host=host,
        histories=tuple(
            history(
                _with_figures(jobs[case], figures[case]), newest[case], kind, confidence=confidence
            )
            for case in chosen
        ),
        left_out=_refused(index),
    )


def _trusted(index: FigureIndex) -> list[JobFigures]:
    """Return all jobs whose documents can be trusted. Raise UsageError, which names the refused
    documents, if there are none."""
    heads = index.heads()
    if heads:
        return heads
    refused = index.refused()
    if not refused:
        raise UsageError(_no_job_ended(index.root) or NO_FIGURES)
    more = len(refused) - REFUSED_NAMED
    others = f"; and {plural(more, 'more document')}" if more > 0 else ""
    raise UsageError(
        f"no stored job has a document that can be used, {len(refused)} refused: "
        f"{'; '.join(refused[:REFUSED_NAMED])}{others}"
    )


def _no_job_ended(root: Path) -> str | None:
    """Return what to do where all jobs of a results directory were interrupted, or None if it has
    no jobs."""
    ids = job_ids(root)
    if not ids:
        return None
    return (
        f"{root} has {plural(len(ids), 'job')}, and none has ended; finish the latest with: "
        f"{resume_command(root / ids[-1])}"
    )


def _refused(index: FigureIndex) -> tuple[str, ...]:
    """Return the jobs whose documents cannot be trusted, as sentences."""
    return tuple(f"1 job left out: {why}" for why in index.refused())


def shared_confidence(figures: int) -> float:
    """Return the confidence for each of `figures` figures that makes all of them together wrong as
    rarely as one."""
    return 1 - (1 - COMPARISON_CONFIDENCE) / max(1, figures)


def _one_host(jobs: Sequence[JobFigures], what: str) -> str:
    """Return the host of these jobs. Raise UsageError for several."""
    hosts = sorted({job.host for job in jobs})
    if len(hosts) > 1:
        raise UsageError(
            f"{what} on {len(hosts)} hosts; choose one with --host, such as "
            f"{listing(hosts[:CANDIDATES_NAMED])}"
        )
    return hosts[0]


def _with_figures(
    jobs: Iterable[JobFigures], figures: Mapping[str, CaseFigure]
) -> list[JobFigures]:
    """Return the jobs, each with its figure of one case only."""
    return [
        job.model_copy(update={"cases": {figures[job.job].case: figures[job.job]}}) for job in jobs
    ]


def find_case(cases: Sequence[CaseFigure], name: str) -> CaseFigure:
    """Return the case that `name` means: a title, a workload with a single case, the beginning of a
    title, or at least HASH_LEAST characters of a hash.

    Raise UsageError for none and for several.
    """
    plain = " ".join(name.split())
    for fits in (
        [case for case in cases if plain in (case.case, case.title)],
        [case for case in cases if case.workload == plain],
        [case for case in cases if plain and case.title.startswith(plain)],
        [case for case in cases if len(plain) >= HASH_LEAST and case.case.startswith(plain)],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise UsageError(_ambiguous(name, sorted(fits, key=lambda case: case.title)))
    names = dict.fromkeys(one for case in cases for one in (case.workload, case.title))
    remedy = (
        f"{did_you_mean(name, names)}give the title of a case as hostbench show prints it, its "
        "beginning, or a workload such as mem.triad"
        if cases
        else NO_FIGURES
    )
    raise UsageError(f"no stored job has a case {shown(name)}; {remedy}")


def _ambiguous(name: str, fits: Sequence[CaseFigure]) -> str:
    named = [_name_among(case, fits) for case in fits[:CANDIDATES_NAMED]]
    more = len(fits) - len(named)
    others = f" and {more} others" if more else ""
    return f"{shown(name)} may be any of {len(fits)} cases; give one: {', '.join(named)}{others}"


def _name_among(case: CaseFigure, fits: Sequence[CaseFigure]) -> str:
    """Return the title of a case; where others have the same, its hash with the parameters in which
    it differs from them."""
    alike = [one for one in fits if one.title == case.title]
    if len(alike) == 1:
        return repr(case.title)
    own = (
        f"{param}={value}"
        for param, value in case.given.items()
        if any(one.given.get(param) != value for one in alike)
    )
    return f"{case.case} ({', '.join(own) or case.title})"


def history(
    jobs: Sequence[JobFigures],
    case: CaseFigure,
    kind: FigureKind | None = None,
    *,
    confidence: float = COMPARISON_CONFIDENCE,
) -> History:
    """Return the history of a case over jobs of one host that all have it; `case` is the newest.

    `kind` None: the undisturbed figure, if any job has one.
    """
    order = sorted(jobs, key=lambda job: (job.created_unix_s, job.job))
    if kind is None:
        has_slices = any(job.cases[case.case].undisturbed is not None for job in order)
        kind = FigureKind.UNDISTURBED if has_slices else FigureKind.DELIVERED
    usable, points, left_out = _usable(order, case, kind)
    values = [point.value for point in points]
    logs = [math.log(value) for value in values]
    found = change_points(logs, confidence=confidence, side=LEAST_EFFECT_JOBS)
    changes = [_change_point(split, usable, values, case) for split in found.splits]
    can_tell = len(logs) >= series_least(confidence)
    return History(
        case=case.case,
        title=case.title,
        unit=case.unit,
        direction=case.direction,
        kind=kind,
        host=order[-1].host,
        word=changes[-1].word if changes else Word.SAME if can_tell else Word.UNDECIDED,
        confidence=confidence,
        least_effect_ratio=_least_effect(found.quantile, found.error) if can_tell else None,
        least_effect_jobs=found.side if can_tell else None,
        left_out=left_out,
        autocorrelation=found.autocorrelation,
        clock_went_back=clock_went_back(jobs),
        points=tuple(points),
        changes=tuple(changes),
        limit=next(filter(None, (job.cases[case.case].limit for job in reversed(order))), None),
    )


def _usable(
    order: Sequence[JobFigures], case: CaseFigure, kind: FigureKind
) -> tuple[list[JobFigures], list[HistoryPoint], tuple[str, ...]]:
    """Return the jobs with a figure, the figures as the newest version measures them, and why the
    other jobs have none."""
    jobs, points = [], []
    reasons: Counter[str] = Counter()
    for job in order:
        figure = job.cases[case.case]
        value = figure.value(kind)
        factor, why_not = method_change(case, [job], [order[-1]])
        if value is None:
            why_not = figure.why_not or f"no {kind} figure, the case was disturbed"
        if value is None or why_not:
            reasons[why_not or ""] += 1
            continue
        jobs.append(job)
        points.append(_point(job, figure, value, factor))
    left_out = tuple(
        f"{plural(count, 'job')} left out: {why}" for why, count in reasons.most_common()
    )
    return jobs, points, left_out


def _point(job: JobFigures, figure: CaseFigure, value: float, factor: float) -> HistoryPoint:
    # The interval is that of the figure in tables, which is one of the two.
    low, high = (figure.low, figure.high) if figure.headline == value else (None, None)
    return HistoryPoint(
        job=job.job,
        created_unix_s=job.created_unix_s,
        value=value * factor,
        low=None if low is None else low * factor,
        high=None if high is None else high * factor,
    )


def _change_point(
    split: Split, jobs: Sequence[JobFigures], values: Sequence[float], case: CaseFigure
) -> ChangePoint:
    half = split.quantile * split.error
    near = (
        jobs[max(split.begin, split.after - NEIGHBOURS) : split.after],
        jobs[split.after : min(split.end, split.after + NEIGHBOURS)],
    )
    return ChangePoint(
        word=Word.BETTER if (split.difference > 0) == (case.direction == "higher") else Word.WORSE,
        job=jobs[split.after].job,
        job_before=jobs[split.after - 1].job,
        created_unix_s=jobs[split.after].created_unix_s,
        value_before=statistics.median(values[split.begin : split.after]),
        value_after=statistics.median(values[split.after : split.end]),
        ratio=math.exp(split.difference),
        low=math.exp(split.difference - half),
        high=math.exp(split.difference + half),
        least_effect_ratio=_least_effect(split.quantile, split.error),
        jobs_before=split.after - split.begin,
        jobs_after=split.end - split.after,
        facts=(*_machines(*near), *fact_differences(*near)),
    )


def _machines(before: Sequence[JobFigures], after: Sequence[JobFigures]) -> list[FactDifference]:
    """Return the difference of the machines: two machines may have had the same name."""
    a, b = (tuple(dict.fromkeys(job.machine for job in side)) for side in (before, after))
    return [FactDifference(fact="machine", a=a, b=b)] if set(a) != set(b) else []


def _least_effect(quantile: float, error: float) -> float:
    return math.expm1((quantile + NORMAL.inv_cdf(LEAST_EFFECT_POWER)) * error)
