"""Whether a host does what hosts of its model do (docs/comparing.md, "Is this host good?").

The unit is the host: how much the jobs of one host differ shows little about how much two hosts do.
A host is called low if a headline figure is below the tolerance limit of the others, and so far
below that all headline figures together would show such a figure in at most 1 of 100 sound hosts.

On a guest, figures of memory, disks and networks vary between jobs, with longer tails than a normal
distribution has. There a single job makes a figure suspect at most, and of several jobs the best
one counts.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.base.units import plural
from hostbench.decisions.baseline import headline_cases, strays, subsystem_of
from hostbench.decisions.method import method_change
from hostbench.decisions.population import error_shares
from hostbench.decisions.reference import Reference, check_fields, deciding_log
from hostbench.decisions.tolerance import (
    DISTRIBUTION_FREE_FROM,
    benjamini_hochberg,
    holm,
    tolerance_factor,
)
from hostbench.model.baseline import (
    HOSTS_LEAST,
    REPORT_ERROR,
    REST_ERROR,
    SUSPECT_ERROR,
    Baseline,
    BaselineCase,
    BaselineHost,
    BaselineJob,
    FigureCheck,
    HostCheck,
    HostWord,
    MeasuredFigure,
    MeasuredJob,
)
from hostbench.model.decision import CaseFigure, JobFigures

# The error rate of the test. REPORT_ERROR then holds with the spreads of real jobs, whose tails are
# longer than those of normal values: tests/unit/test_baseline.py draws from them.
TESTED_ERROR = 0.6 * REPORT_ERROR
# No figure repeats better than this, so the deviation between hosts is never taken to be smaller.
DEVIATION_LEAST = 0.002


@dataclass(frozen=True)
class _Others:
    """A case on other hosts: the medians of their logarithms (higher is better), the number of jobs
    behind each, and the variance of one host's jobs."""

    logs: tuple[float, ...]
    jobs: tuple[int, ...]
    within: float | None


def check_host(jobs: Sequence[MeasuredJob], baseline: Baseline | None) -> HostCheck:
    """Compare some jobs of one host, oldest first, with a baseline of its model; None: with its
    limits alone.

    What the host itself contributed to the baseline is left out.
    """
    job = jobs[-1]
    figures = _figures_of(jobs)
    headlines = set(headline_cases(figures))
    notes: list[str] = []
    others = _others(baseline, jobs) if baseline is not None else {}
    checks = []
    # For the figures that decide: the logarithms of all hosts, including this one.
    logs: dict[str, list[float]] = {}
    for case, values in figures.items():
        others_of_case = _of_case(case, values, baseline, others, job, notes)
        check = _figure_check(case, values, _values(jobs, case), others_of_case, headlines, job)
        checks.append(check)
        if others_of_case is not None and check.is_headline:
            sign = 1.0 if check.direction == "higher" else -1.0
            logs[case] = [*others_of_case.logs, sign * math.log(check.value)]
    if baseline is not None and 0 < len(others) < HOSTS_LEAST:
        notes.insert(
            0,
            f"The baseline has {plural(len(others), 'other host')} of this model; hostbench "
            f"uses it from {HOSTS_LEAST} hosts on. Until then the limit is the reference.",
        )
    elif baseline is not None and not others:
        notes.insert(0, "The baseline has no other host than this one.")
    kinds = {case: subsystem_of(figures[case].workload) for case in logs}
    judged = _judged(checks, error_shares(logs, kinds))
    word = _word_of(judged)
    known = any(one.p is not None for one in judged if one.is_headline)
    return HostCheck(
        word=word,
        key=job.key,
        hosts=len(others),
        error=REPORT_ERROR if known else None,
        figures=tuple(judged),
        notes=tuple(dict.fromkeys(notes)),
    )


def expectation(case: BaselineCase) -> float | None:
    """Return the tolerance limit of a case, or None if too few hosts are known.

    It is the least value (for times: the largest) of a sound host with as many jobs as the
    baseline's hosts have.
    """
    if len(case.hosts) < HOSTS_LEAST:
        return None
    sign = 1.0 if case.direction == "higher" else -1.0
    logs = tuple(sign * math.log(one.median) for one in case.hosts.values())
    return math.exp(sign * _least(logs, max(DEVIATION_LEAST, statistics.stdev(logs))))


def _least(logs: Sequence[float], deviation: float) -> float:
    """Return the tolerance limit of logarithms; a higher one is better."""
    if len(logs) >= DISTRIBUTION_FREE_FROM:
        return min(logs)
    return statistics.fmean(logs) - tolerance_factor(len(logs)) * deviation


def _figures_of(jobs: Sequence[MeasuredJob]) -> dict[str, MeasuredFigure]:
    """Return every case of any of the jobs, as the newest job has it."""
    found: dict[str, MeasuredFigure] = {}
    for job in reversed(jobs):
        for case, one in job.figures.items():
            found.setdefault(case, one)
    return found


def _values(jobs: Sequence[MeasuredJob], case: str) -> list[float]:
    return [job.figures[case].value for job in jobs if case in job.figures]


def _others(baseline: Baseline, jobs: Sequence[MeasuredJob]) -> dict[str, BaselineHost]:
    own = {job.digest for job in jobs}
    return {
        name: host
        for name, host in baseline.hosts.items()
        if name != jobs[-1].machine and not own & {job.digest for job in host.jobs}
    }


def _of_case(
    case: str,
    figure: MeasuredFigure,
    baseline: Baseline | None,
    others: dict[str, BaselineHost],
    job: MeasuredJob,
    notes: list[str],
) -> _Others | None:
    """Return a case on the other hosts, or None if fewer than HOSTS_LEAST have it."""
    known = baseline.cases.get(case) if baseline is not None else None
    if known is None or (known.unit, known.direction) != (figure.unit, figure.direction):
        return None
    sign = 1.0 if known.direction == "higher" else -1.0
    logs, counts = [], []
    for name, host in others.items():
        if name not in known.hosts:
            continue
        found = list(_host_logs(known, name, host, job, notes))
        if found:
            logs.append(sign * statistics.median(found))
            counts.append(len(found))
    if len(logs) < HOSTS_LEAST:
        return None
    return _Others(tuple(logs), tuple(counts), known.within)


def _host_logs(
    case: BaselineCase, name: str, host: BaselineHost, job: MeasuredJob, notes: list[str]
) -> Iterator[float]:
    """Yield the logarithms of one host, converted to the method of `job`'s version."""
    for value, of in zip(case.hosts[name].figures, host.jobs, strict=True):
        if value is None:
            continue
        factor, why_not = 1.0, None
        if of.versions != job.versions:
            factor, why_not = _method(case, of, job)
        if why_not is not None:
            notes.append(f"Figures of {case.workload} in the baseline are left out: {why_not}.")
        else:
            yield math.log(value * factor)


def _method(case: BaselineCase, of: BaselineJob, job: MeasuredJob) -> tuple[float, str | None]:
    figure = CaseFigure(
        case="", title="", workload=case.workload, unit=case.unit, direction=case.direction
    )
    return method_change(figure, [_bare(of.versions)], [_bare(job.versions)])


def _bare(versions: dict[str, str]) -> JobFigures:
    """Return a job with nothing but its versions."""
    return JobFigures(
        job="",
        suite="",
        host="",
        machine="",
        is_guest=False,
        created_unix_s=0.0,
        digest=None,
        versions=versions,
        facts={},
        cases={},
    )


def _figure_check(
    case: str,
    figure: MeasuredFigure,
    values: Sequence[float],
    others: _Others | None,
    headlines: set[str],
    job: MeasuredJob,
) -> FigureCheck:
    """Return the check of one figure. So far, its word says only whether it is below the tolerance
    limit."""
    sign = 1.0 if figure.direction == "higher" else -1.0
    logs = [sign * math.log(value) for value in values]
    log, needs_another = deciding_log(logs, is_stray=strays(job.key, figure.workload))
    reference = None if others is None else _reference(others, len(values))
    word = HostWord.NO_REFERENCE
    if reference is not None:
        word = HostWord.SUSPECT if log < reference.least else HostWord.AS_EXPECTED
    return FigureCheck(
        case=case,
        word=word,
        is_headline=case in headlines,
        **check_fields(figure, log, reference, needs_another=needs_another),
    )


def _reference(others: _Others, jobs: int) -> Reference:
    """Return the reference of a host that is known by `jobs` jobs."""
    deviation = _deviation(others, jobs)
    return Reference(
        n=len(others.logs),
        mean=statistics.fmean(others.logs),
        deviation=deviation,
        usual=statistics.median(others.logs),
        least=_least(others.logs, deviation),
        is_free=len(others.logs) >= DISTRIBUTION_FREE_FROM,
    )


def _deviation(others: _Others, jobs: int) -> float:
    """Return the deviation of hosts that are known by `jobs` jobs: with fewer jobs than the
    baseline's hosts have, a host varies more."""
    variance = statistics.variance(others.logs)
    if others.within is not None:
        there = statistics.fmean(1 / count for count in others.jobs)
        variance += max(0.0, others.within * (1 / jobs - there))
    return max(DEVIATION_LEAST, math.sqrt(variance))


def _judged(checks: Sequence[FigureCheck], shares: Mapping[str, float]) -> list[FigureCheck]:
    """Return the figures with their final words.

    Chance alone can put a figure below the tolerance limit: with twelve figures, that happens in
    every tenth to fourth sound host. So a headline figure is low or suspect only where all of them
    together leave chance that little room. Of the other figures, those are suspect that are too
    many for chance. `shares` are the parts of the error rate by headline figure.
    """
    known = [one for one in checks if one.p is not None]
    found: dict[str, HostWord] = {}
    headlines = [one for one in known if one.is_headline]
    rest = [one for one in known if not one.is_headline]
    chances, own = [one.p or 0.0 for one in headlines], [shares[one.case] for one in headlines]
    low = holm(chances, TESTED_ERROR, own)
    suspect = holm(chances, SUSPECT_ERROR, own)
    many = benjamini_hochberg([one.p or 0.0 for one in rest], REST_ERROR)
    for one, is_low, is_suspect in zip(headlines, low, suspect, strict=True):
        if one.word is HostWord.SUSPECT and not is_suspect:
            found[one.case] = HostWord.AS_EXPECTED
        elif one.word is HostWord.SUSPECT and is_low and not one.needs_another:
            found[one.case] = HostWord.LOW
    for one, is_one_of_many in zip(rest, many, strict=True):
        if not is_one_of_many and one.word is HostWord.SUSPECT:
            found[one.case] = HostWord.AS_EXPECTED
    return [
        one.model_copy(update={"word": found[one.case]}) if one.case in found else one
        for one in checks
    ]


def _word_of(checks: Sequence[FigureCheck]) -> HostWord:
    """Return the word of the headline figures together."""
    words = {one.word for one in checks if one.is_headline and one.p is not None}
    return next((word for word in HostWord if word in words), HostWord.NO_REFERENCE)
