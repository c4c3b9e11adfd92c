"""The report on fixed_work: how often a CPU is interrupted and for how long, and when."""

import re
from collections.abc import Iterator, Sequence

from hostbench.base.units import human, percent
from hostbench.model.result import CaseResult
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurvePoint,
    Panel,
    Paragraph,
    RowGroup,
    Table,
    TimeChart,
)
from hostbench.report.figures import NOTHING, label
from hostbench.report.timeline import sample_line, sampled_trials

WORKLOAD = "cpu.fixed_work"
INTRODUCTION = Paragraph(
    "Each CPU repeats the same quantum of work. If a quantum takes over 2 % longer than usual, "
    "the excess counts as lost time: to ticks and interrupts of the kernel, to other processes, "
    "to the hypervisor. A regular interruption has a period."
)
CLASS = re.compile(r"interruptions_per_second_(\d+)(us|ms)")
UNIT_S = {"us": 1e-6, "ms": 1e-3}
LENGTH = CurveAxis("at least this long", "s", logarithmic=True)
OFTEN = CurveAxis("interruptions a second and CPU", "1", logarithmic=True)
PANELS = (
    ("interruption_max_s", "Longest interruption", "s"),
    ("lost_ratio", "Share of the time that was lost", "1"),
)


def noise_blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what the part about the workload shows above its figures."""
    measured = [case for case in cases if "lost_ratio" in case.metrics]
    yield INTRODUCTION
    if measured:
        yield _table(measured)
    yield from _lengths(measured)
    for case in measured:
        yield from _over_time(case)


def _median(case: CaseResult, metric: str) -> float | None:
    found = case.metrics.get(metric)
    return found.statistics.median if found else None


def _table(cases: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        *(
            Column(title, figures=True)
            for title in ("lost", "on the worst CPU", "longest", "period", "quantum", "shortest")
        ),
    )
    rows = tuple(
        (
            label(case),
            percent(_median(case, "lost_ratio")),
            percent(_median(case, "lost_ratio_most")),
            human(_median(case, "interruption_max_s"), "s"),
            _period(case),
            human(_median(case, "quantum_time_s"), "s"),
            human(_median(case, "latency_min_s"), "s"),
        )
        for case in cases
    )
    return Table("What was lost", columns, (RowGroup(None, rows),))


def _period(case: CaseResult) -> str:
    """Return the period, or why there is none in any trial."""
    seconds = _median(case, "interruption_period_s")
    if seconds is not None:
        return human(seconds, "s")
    name = "metrics.interruption_period_s"
    reasons = [trial.end.reasons.get(name) for trial in case.trials if trial.end]
    return next((reason for reason in reasons if reason), NOTHING)


def _classes(case: CaseResult) -> Iterator[tuple[float, str]]:
    """Yield length and metric of each class of interruptions, from the shortest."""
    found = [(CLASS.fullmatch(name), name) for name in case.metrics]
    lengths = [(int(match[1]) * UNIT_S[match[2]], name) for match, name in found if match]
    yield from sorted(lengths)


def _lengths(cases: Sequence[CaseResult]) -> Iterator[Chart]:
    curves = tuple(curve for case in cases if len((curve := _curve(case)).points) > 1)
    if not curves:
        return
    yield Chart(
        title="Interruptions by their length",
        description=" ".join(_in_words(curve) for curve in curves),
        drawing=CurveChart(LENGTH, OFTEN, curves),
        numbers=_numbers(curves),
    )


def _curve(case: CaseResult) -> Curve:
    """Return how often interruptions of at least each length came. A logarithmic axis has no place
    for those that never came."""
    points = []
    for length_s, name in _classes(case):
        statistics = case.metrics[name].statistics
        if statistics.median > 0:
            low = statistics.interval.low if statistics.interval.low > 0 else statistics.median
            points.append(CurvePoint(length_s, statistics.median, low, statistics.interval.high))
    return Curve(label(case), tuple(points))


def _in_words(curve: Curve) -> str:
    first, last = curve.points[0], curve.points[-1]
    return (
        f"{curve.label}: {human(first.y, '1')} a second of at least {human(first.x, 's')}, "
        f"{human(last.y, '1')} of at least {human(last.x, 's')}."
    )


def _numbers(curves: Sequence[Curve]) -> Table:
    lengths = sorted({point.x for curve in curves for point in curve.points})
    known = [{point.x: point.y for point in curve.points} for curve in curves]
    columns = (Column("at least"), *(Column(curve.label, figures=True) for curve in curves))
    rows = tuple(
        (human(length_s, "s"), *(human(one.get(length_s, 0.0), "1") for one in known))
        for length_s in lengths
    )
    return Table("Interruptions a second and CPU", columns, (RowGroup(None, rows),))


def _over_time(case: CaseResult) -> Iterator[Chart]:
    """Yield the last trial, sample by sample, if it has enough of them."""
    trials = sampled_trials(case)
    if not trials:
        return
    trial = trials[-1]
    panels = [
        Panel(title, unit, (sample_line(trial, metric, 0.0),)) for metric, title, unit in PANELS
    ]
    longest = [y for y in panels[0].lines[0].y if y is not None]
    if longest:
        yield Chart(
            title=f"Interruptions over time: {label(case)}",
            description=(
                f"Trial {trial.index + 1}: the longest interruption of each sample is between "
                f"{human(min(longest), 's')} and {human(max(longest), 's')}."
            ),
            drawing=TimeChart(trial.samples[-1].t_s, tuple(panels)),
        )
