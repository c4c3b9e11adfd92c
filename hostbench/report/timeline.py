"""The figures second by second, with what disturbed them."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hostbench.base.units import human, percent, plural
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord, Verdict
from hostbench.model.table import Metric
from hostbench.report.content import (
    Block,
    Chart,
    Code,
    Column,
    Level,
    Line,
    Mark,
    Panel,
    Paragraph,
    RowGroup,
    Section,
    Table,
    Text,
    TimeChart,
)
from hostbench.report.figures import quantity

SAMPLES_LEAST = 3
# Each may take 40 KB, and a page must open at once.
CHARTS_MOST = 12
# A limit farther away than this would compress the series.
LIMIT_SHOWN = 1.25
# Of a trial's length.
PAUSE_MOST = 0.5
_WORST_FIRST = (Verdict.INVALID, Verdict.DISTURBED, Verdict.NOISY)
_TRIAL_COLUMNS = (
    Column("trial", figures=True),
    Column("samples", figures=True),
    Column("lowest", figures=True),
    Column("median", figures=True),
    Column("highest", figures=True),
    Column("clean slices", figures=True),
    Column("CPU got", figures=True),
    Column("stolen", figures=True),
    Column("PSI cpu", figures=True),
    Column("verdict"),
)


def time_section(document: ResultDocument) -> Section | None:
    """Return the section, or None when no trial has enough samples."""
    cases = [case for case in document.cases if sampled_trials(case)]
    if not cases:
        return None
    drawn = _drawn(cases)
    blocks: list[Block] = [Paragraph(_introduction(document, len(drawn), len(cases)))]
    blocks += [
        _chart(case, document.workloads[case.workload]) for case in cases if case.case in drawn
    ]
    left = [case for case in cases if case.case not in drawn]
    if left:
        blocks.append(_table("Series that are not drawn", left))
    return Section("time", "Over time", tuple(blocks), in_brief=False)


def sampled_trials(case: CaseResult) -> list[TrialRecord]:
    """Return the trials with a series worth drawing: samples of a slow trial may have no figure."""
    return [trial for trial in case.trials if len(_sampled(trial, case.primary)) >= SAMPLES_LEAST]


def _sampled(trial: TrialRecord, metric: str) -> list[float]:
    """Return the figures of a trial's samples, without missing ones."""
    return [value for sample in trial.samples if (value := sample.metrics.get(metric)) is not None]


def _introduction(document: ResultDocument, drawn: int, of: int) -> Text:
    text = (
        "Each point is one sample: the work of one interval divided by its time, disturbances "
        "included. The charts below it show the other values of a sample on the same axis: the "
        "share of slices without interruption and the core clock; for disks and round trips, "
        "the latency; for a GPU, its clock, power and temperature. Pauses between trials are "
        "shortened. Steal and pressure are "
        "known only for a whole trial: the tables have them."
    )
    if drawn < of:
        text += (
            f" {drawn} of {plural(of, 'case')} with samples are drawn: first the disturbed and "
            "noisy ones, then the longest."
        )
    return (
        f"{text} All samples as CSV: ",
        Code(f"hostbench show {document.job.id} --csv --samples"),
        ".",
    )


def _drawn(cases: Sequence[CaseResult]) -> set[str]:
    """Return the hashes of the cases to draw, as many as a page can hold."""

    def interest(case: CaseResult) -> tuple[int, int]:
        known = case.verdict in _WORST_FIRST
        rank = _WORST_FIRST.index(case.verdict) if known and case.verdict else len(_WORST_FIRST)
        return rank, -max(len(trial.samples) for trial in sampled_trials(case))

    return {case.case for case in sorted(cases, key=interest)[:CHARTS_MOST]}


def _chart(case: CaseResult, metrics: Sequence[Metric]) -> Chart:
    trials = sampled_trials(case)
    primary = next(metric for metric in metrics if metric.primary)
    names = dict.fromkeys(
        name for trial in trials for sample in trial.samples for name in sample.metrics
    )
    known = {metric.name: metric for metric in metrics}
    others = [known[name] for name in names if name in known and name != primary.name]
    # What explains the figure comes right below it.
    others.sort(key=lambda metric: metric.unit != "1")
    panels = [_panel(trials, metric, case) for metric in (primary, *others)]
    values = [value for trial in trials for value in _sampled(trial, primary.name)]
    seconds = _offset_s(trials[-1], trials) + trials[-1].samples[-1].t_s
    return Chart(
        title=case.title,
        description=_description(trials, primary, values),
        drawing=TimeChart(seconds, tuple(panel for panel in panels if panel.lines)),
        numbers=_table(f"Trials of {case.title}", [case]),
    )


def _description(trials: Sequence[TrialRecord], primary: Metric, values: Sequence[float]) -> str:
    low, high = (human(f(values), primary.unit) for f in (min, max))
    text = f"{plural(len(trials), 'trial')} with {plural(len(values), 'sample')}: {low} to {high}."
    limits = [
        limit.value
        for trial in trials
        if (limit := trial.limits.get(primary.name)) and limit.value is not None
    ]
    if limits and min(limits) > max(values) * LIMIT_SHOWN:
        text += f" The limit, {human(min(limits), primary.unit)}, is far above what is drawn."
    return text


def _panel(trials: Sequence[TrialRecord], metric: Metric, case: CaseResult) -> Panel:
    lines = tuple(sample_line(trial, metric.name, _offset_s(trial, trials)) for trial in trials)
    lines = tuple(line for line in lines if any(y is not None for y in line.y))
    return Panel(
        title=quantity(metric.name),
        unit=metric.unit,
        lines=lines,
        levels=tuple(_levels(trials, metric.name, lines)) if metric.name == case.primary else (),
        whole=metric.unit == "1",
    )


def _offset_s(trial: TrialRecord, trials: Sequence[TrialRecord]) -> float:
    """Return the trial's place on the axis: trials follow one another as they did in time. Other
    cases may have had their turn between them, so pauses are at most a part of a trial long."""
    offset_s = 0.0
    for before, after in pairwise(trials[: trials.index(trial) + 1]):
        length_s = before.samples[-1].t_s
        pause_s = after.time_unix_s - before.time_unix_s - length_s
        offset_s += length_s + min(max(pause_s, 0.0), PAUSE_MOST * length_s)
    return offset_s


def sample_line(trial: TrialRecord, name: str, offset_s: float) -> Line:
    """Return the samples of a trial, starting at `offset_s`."""
    # A sample is the mean of its interval, so it is drawn in the interval's middle.
    return Line(
        x=tuple(offset_s + sample.t_s - sample.dt_s / 2 for sample in trial.samples),
        y=tuple(sample.metrics.get(name) for sample in trial.samples),
    )


def _levels(trials: Sequence[TrialRecord], name: str, lines: Sequence[Line]) -> Iterator[Level]:
    highest = max((y for line in lines for y in line.y if y is not None), default=0.0)
    for trial in trials:
        limit = trial.limits.get(name)
        if limit is None or limit.value is None or limit.value > highest * LIMIT_SHOWN:
            continue
        offset_s = _offset_s(trial, trials)
        first, last = trial.samples[0], trial.samples[-1]
        yield Level(offset_s + first.t_s - first.dt_s, offset_s + last.t_s, limit.value)


def _table(caption: str, cases: Sequence[CaseResult]) -> Table:
    groups = tuple(
        RowGroup(
            case.title if len(cases) > 1 else None,
            tuple(_row(case, trial) for trial in sampled_trials(case)),
        )
        for case in cases
    )
    return Table(caption, _TRIAL_COLUMNS, groups)


def _row(case: CaseResult, trial: TrialRecord) -> tuple[Text, ...]:
    values = _sampled(trial, case.primary)
    unit = case.metrics[case.primary].unit if case.primary in case.metrics else ""
    seen = trial.end.disturbance if trial.end else None
    return (
        str(trial.index + 1),
        str(len(trial.samples)),
        human(min(values), unit),
        human(statistics.median(values), unit),
        human(max(values), unit),
        percent(seen.clean_slice_ratio if seen else None),
        percent(seen.cpu_ratio if seen else None),
        human(seen.steal_s if seen else None, "s"),
        human(seen.psi_cpu_some_s if seen else None, "s"),
        Mark(trial.verdict),
    )
