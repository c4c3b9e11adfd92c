"""A published table that is a plot over time: the samples of our trials and of the naive ones."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human, percent, plural
from hostbench.course.rows import CourseRow
from hostbench.model.result import CaseResult, TrialRecord
from hostbench.report.content import Block, Chart, Panel, Paragraph, TimeChart
from hostbench.report.timeline import sample_line, sampled_trials


def sample_charts(rows: Sequence[CourseRow]) -> Iterator[Block]:
    """Yield a chart for each operation, ours above the naive way, or a sentence if there is
    none."""
    for row in rows:
        panels = tuple(_panels(row))
        if not panels:
            yield Paragraph(f"{row.title}: no trial of this run has a series of samples.")
            continue
        seconds = max(x for panel in panels for line in panel.lines for x in line.x)
        yield Chart(row.title, _series_text(row), TimeChart(seconds, panels))


def _panels(row: CourseRow) -> Iterator[Panel]:
    for what, case in _drawn(row):
        trial = longest(case)
        metric = case.metrics.get(case.primary)
        if trial is None or metric is None:
            continue
        line = sample_line(trial, case.primary, 0.0)
        if any(y is not None for y in line.y):
            yield Panel(f"{row.operation}, {what}", metric.unit, (line,))


def _drawn(row: CourseRow) -> Iterator[tuple[str, CaseResult]]:
    if row.ours.case is not None:
        yield "ours", row.ours.case
    if row.naive is not None and row.naive.case is not None:
        yield "the naive way", row.naive.case


def longest(case: CaseResult) -> TrialRecord | None:
    """Return the trial with the most samples, or None without a series."""
    return max(sampled_trials(case), key=lambda trial: len(trial.samples), default=None)


def _series_text(row: CourseRow) -> str:
    return " ".join(text for what, case in _drawn(row) if (text := _series(what, case)))


def _series(what: str, case: CaseResult) -> str:
    trial, metric = longest(case), case.metrics.get(case.primary)
    values = [one for s in (trial.samples if trial else ()) if (one := s.metrics.get(case.primary))]
    if not values or metric is None:
        return ""
    low, high, middle = min(values), max(values), sorted(values)[len(values) // 2]
    return (
        f"{what.capitalize()}: {plural(len(values), 'sample')} from {human(low, metric.unit)} to "
        f"{human(high, metric.unit)}, the lowest {percent(low / middle)} of their median, "
        f"{human(middle, metric.unit)}."
    )
