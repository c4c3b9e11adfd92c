"""The report on what cores do together: the clock by the number of cores at work, and what the
second thread of a core adds."""

from collections.abc import Iterator, Sequence
from statistics import median

from hostbench.base.units import human, percent
from hostbench.judge.statistics import median_interval
from hostbench.model.result import CaseResult
from hostbench.report.content import (
    Block,
    Chart,
    Column,
    Curve,
    CurveAxis,
    CurveChart,
    CurveMark,
    CurvePoint,
    Paragraph,
    RowGroup,
    Table,
)
from hostbench.report.figures import label, primary
from hostbench.report.grouping import (
    Layout,
    distinguishing_params,
    group_name,
    param_meanings,
    resolved,
)

LADDER, YIELD = "cpu.clock_ladder", "cpu.smt_yield"
LADDER_INTRODUCTION = Paragraph(
    "More and more CPUs execute one class of instructions, and the first one reads its clock. "
    "Where the curve falls, the turbo clock ends for that many cores. Wider vectors draw more "
    "power, and some CPUs lower their clock for them. The curve is level on a CPU that gives all "
    "cores one clock, or on a virtual machine with too few of them to show a step."
)
YIELD_INTRODUCTION = Paragraph(
    "1 means that two threads on one core do as much as one alone, because one keeps the pipes "
    "busy already. 2 would be a second core. The last column is the control, two threads on two "
    "cores. If it is much less than 2, the two share a core although the host shows two."
)
CLOCK = CurveAxis("core clock", "Hz")
LAYOUT = Layout(axes=("isa",), first=("isa",))
TICKS_MOST = 8


def ladder_blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what the part about clock_ladder shows above its figures."""
    yield LADDER_INTRODUCTION
    curves = tuple(curve for curve in _curves(cases) if len(curve.points) > 1)
    if curves:
        counts = sorted({point.x for curve in curves for point in curve.points})
        yield Chart(
            title="Clock by CPUs at work",
            description=" ".join(_in_words(curve) for curve in curves),
            drawing=CurveChart(
                CurveAxis("CPUs at work", "1", ticks=_ticks(counts)),
                CLOCK,
                curves,
                marks=_marks(cases),
                marks_are="from here on, cores are shared",
                curves_are="median of the trials",
            ),
            numbers=_numbers(curves, counts),
        )


def _ticks(counts: Sequence[float]) -> tuple[float, ...]:
    """Return some of the counts, so many as an axis has room for, the last one among them."""
    step = -(-len(counts) // TICKS_MOST)
    return tuple(reversed(counts[::-step]))


def _curves(cases: Sequence[CaseResult]) -> list[Curve]:
    """Return a curve for each case, with what distinguishes it from the others as its label."""
    measured = [(case, resolved(case)) for case in cases if primary(case)]
    meanings = param_meanings(measured)
    names = distinguishing_params([params for _, params in measured], LAYOUT, meanings)
    return [_curve(case, group_name(params, names, LAYOUT, meanings)) for case, params in measured]


def _curve(case: CaseResult, name: str) -> Curve:
    """Return the clock by the number of CPUs at work: medians over the trials."""
    clocks: dict[int, list[float]] = {}
    for trial in case.trials:
        for rung in trial.end.rungs if trial.end else ():
            clocks.setdefault(len(rung.cpus), []).append(rung.value)
    return Curve(name, tuple(_point(cpus, clocks[cpus]) for cpus in sorted(clocks)))


def _point(cpus: int, clocks: Sequence[float]) -> CurvePoint:
    interval = median_interval(clocks)
    return CurvePoint(cpus, median(clocks), interval.low, interval.high)


def _marks(cases: Sequence[CaseResult]) -> tuple[CurveMark, ...]:
    """Return the number of cores where trials had more CPUs than that."""
    placements = [trial.start.placement for case in cases for trial in case.trials if trial.start]
    cores = sorted({one.cores for one in placements if one.smt_shared})
    return tuple(CurveMark(f"{count} cores", count) for count in cores)


def _in_words(curve: Curve) -> str:
    first, last = curve.points[0], curve.points[-1]
    return (
        f"{curve.label}: {human(first.y, 'Hz')} with one CPU at work, {human(last.y, 'Hz')} "
        f"({percent(last.y / first.y)}) with {last.x:g}."
    )


def _numbers(curves: Sequence[Curve], counts: Sequence[float]) -> Table:
    known = [{point.x: point.y for point in curve.points} for curve in curves]
    columns = (
        Column("CPUs at work", figures=True),
        *(Column(curve.label, figures=True) for curve in curves),
    )
    rows = tuple(
        (f"{count:g}", *(human(one.get(count), "Hz") for one in known)) for count in counts
    )
    return Table("Clock by CPUs at work: the figures", columns, (RowGroup(None, rows),))


def yield_blocks(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what the part about smt_yield shows above its figures."""
    measured = [case for case in cases if "yield_ratio" in case.metrics]
    if not measured:
        return
    yield YIELD_INTRODUCTION
    columns = (
        Column("case"),
        *(
            Column(title, figures=True)
            for title in ("one thread", "two on one core", "yield", "two cores over one thread")
        ),
    )
    rows = tuple(
        (
            label(case),
            human(_median(case, "operations_per_second_alone"), "operation/s"),
            human(_median(case, "operations_per_second_siblings"), "operation/s"),
            human(_median(case, "yield_ratio"), "1"),
            human(_median(case, "cores_ratio"), "1"),
        )
        for case in measured
    )
    yield Table("What the second thread of a core adds", columns, (RowGroup(None, rows),))


def _median(case: CaseResult, metric: str) -> float | None:
    found = case.metrics.get(metric)
    return found.statistics.median if found else None
