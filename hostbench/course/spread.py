"""What few, short and disturbed runs hide: sentences on the spread of this run's trials."""

from collections.abc import Callable, Mapping

from hostbench.base.units import human, percent, plural
from hostbench.course.evidence import Effect, Evidence
from hostbench.course.figures import Figure, fixed
from hostbench.course.rows import CourseRow
from hostbench.course.samples import longest
from hostbench.judge.trial import is_disturbed
from hostbench.model.published import Shortcut

NO_SPREAD = "no row of this run has several trials"


def widest(evidence: Evidence) -> tuple[CourseRow, Figure] | None:
    """Return the row whose trials differ most."""
    found = [(row, one) for row, one in evidence.measured if one.variation is not None]
    return max(found, key=lambda one: one[1].variation or 0.0, default=None)


def _one_run(evidence: Evidence) -> Effect:
    return Effect("A single run shows no spread", _scatter(evidence))


def _few_runs(evidence: Evidence) -> Effect:
    printed = _published_scatter(evidence)
    return Effect(f"A few runs show only a part of the spread{printed}", _scatter(evidence))


def _short_run(evidence: Evidence) -> Effect:
    what = f"The whole run was very short{_published_scatter(evidence)}"
    pairs = [pair for pair in evidence.pairs if pair.naive.variation is not None]
    if not pairs:
        return Effect(what, _scatter(evidence))
    pair = max(pairs, key=lambda one: one.naive.variation or 0.0)
    return Effect(
        what,
        f"trials of the naive way vary by up to {percent(pair.naive.variation)} of their mean here "
        f"({pair.row.title}), ours of that row by {percent(pair.ours.variation)}",
    )


def _host_not_idle(evidence: Evidence) -> Effect:
    what = f"Others used the report's host at the same time{_published_scatter(evidence)}"
    cases = {figure.case.case: figure.case for _, figure in evidence.measured}
    trials = [trial for case in cases.values() for trial in case.trials]
    disturbed = sum(is_disturbed(trial) for trial in trials)
    found = f"{disturbed} of {plural(len(trials), 'trial')}" if trials else "no trial"
    return Effect(what, f"here {found} of this table were disturbed; the table marks them")


def _scatter(evidence: Evidence) -> str:
    found = widest(evidence)
    if found is None:
        return _within_a_trial(evidence) or NO_SPREAD
    row, figure = found
    low, high = figure.statistics.minimum, figure.statistics.maximum
    return (
        f"the {plural(figure.statistics.n, 'trial')} of {row.title} lie between "
        f"{fixed(low)} and {evidence.with_unit(high)} here, with a standard deviation of "
        f"{percent(figure.variation)} of their mean, the most of all rows"
    )


def _within_a_trial(evidence: Evidence) -> str | None:
    """Return a sentence on the samples of a single trial."""
    for row in evidence.rows:
        case = row.ours.case
        trial = longest(case) if case else None
        if case is None or trial is None or case.primary not in case.metrics:
            continue
        found = [sample.metrics.get(case.primary) for sample in trial.samples]
        values, unit = [one for one in found if one is not None], case.metrics[case.primary].unit
        if values:
            return (
                f"within the one trial of {row.title} {plural(len(values), 'sample')} lie between "
                f"{human(min(values), unit)} and {human(max(values), unit)} here"
            )
    return None


def _published_scatter(evidence: Evidence) -> str:
    """Return the widest printed deviation, in parentheses; empty if none is printed."""
    found = [(row.deviation / row.mean, row) for row in evidence.rows if row.deviation and row.mean]
    if not found:
        return ""
    ratio, row = max(found, key=lambda one: one[0])
    return f" (published: up to {percent(ratio)} of the mean, {row.title})"


RUNS: Mapping[Shortcut, Callable[[Evidence], Effect]] = {
    "one_run": _one_run,
    "few_runs": _few_runs,
    "short_run": _short_run,
    "host_not_idle": _host_not_idle,
}
