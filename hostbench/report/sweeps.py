"""Figures over what a suite swept: curves over each parameter with enough values, bars of all
else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hostbench.models.result import CaseResult
from hostbench.report.cases import asked, number
from hostbench.report.content import BarGroup, Chart, CurveAxis
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import bar, bar_charts, by_workload, label, primary
from hostbench.report.grouping import Layout, Params, charts, group_name

# Two cases are a comparison, which bars show better.
SWEEP_LEAST = 3


@dataclass(frozen=True)
class Sweep:
    """What a suite may vary: the parameter, and the axis that it is drawn along. `steep`: figures
    grow by orders of magnitude with it."""

    param: str
    over: str
    axis: CurveAxis
    steep: bool = False


Bars = Callable[[Sequence[CaseResult], str], Iterator[Chart]]


@dataclass(frozen=True)
class Sweeps:
    """How the cases of a section are drawn: what may be swept, how curves are told apart, the bars
    of all other cases under a title, and what tells a case apart at all."""

    sweeps: Sequence[Sweep]
    curves: Layout
    bars: Bars
    params: Callable[[CaseResult], Params] = asked


def laid_out(layout: Layout) -> Bars:
    """Bars that stand side by side where cases differ in one of the layout's axes."""

    def bars(cases: Sequence[CaseResult], title: str) -> Iterator[Chart]:
        yield from charts([(case, asked(case)) for case in cases], layout, title=title)

    return bars


def by_label(layout: Layout) -> Bars:
    """A group a workload, named by what its cases have in common of the layout's axes, and in it a
    bar a case by its label: for cases that each differ from the plain one in something else."""

    def bars(cases: Sequence[CaseResult], title: str) -> Iterator[Chart]:
        shown = [case for case in cases if primary(case)]
        groups = []
        for found in by_workload(shown).values():
            params = [asked(case) for case in found]
            common = [
                name for name in layout.axes if len({str(one.get(name)) for one in params}) == 1
            ]
            drawn = tuple(one for case in found if (one := bar(case, label(case))))
            groups.append(BarGroup(group_name(params[0], common, layout), drawn))
        if shown:
            metric = primary(shown[0])
            assert metric is not None
            has_limits = metric.direction == "higher"
            yield from bar_charts(title, metric.unit, groups, has_limits=has_limits)

    return bars


def sweep_charts(
    cases: Sequence[CaseResult], how: Sweeps, title: str, y: CurveAxis
) -> Iterator[Chart]:
    """A case stands on the curve of every parameter that was swept through it, or in the bars."""
    drawn: set[str] = set()
    for sweep in how.sweeps:
        found = swept(cases, sweep.param, how.params)
        drawn |= {case.case for case in found}
        yield from _curves(found, sweep, how, title, y)
    yield from how.bars([case for case in cases if case.case not in drawn], title)


def swept(
    cases: Sequence[CaseResult], param: str, params: Callable[[CaseResult], Params] = asked
) -> list[CaseResult]:
    """The cases with enough others that differ from them in nothing but `param`."""
    rows: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in cases:
        if primary(case) is not None and number(case, param) is not None:
            row = {(name, str(value)) for name, value in params(case).items() if name != param}
            rows.setdefault(frozenset(row), []).append(case)
    return [case for row in rows.values() if len(row) >= SWEEP_LEAST for case in row]


def _curves(
    cases: Sequence[CaseResult], sweep: Sweep, how: Sweeps, title: str, y: CurveAxis
) -> Iterator[Chart]:
    def place(case: CaseResult) -> float | None:
        return number(case, sweep.param)

    yield from curve_charts(
        f"{title} over {sweep.over}",
        [(case, how.params(case)) for case in cases],
        how.curves,
        Along(sweep.axis, place, left_out=(sweep.param,)),
        replace(y, logarithmic=y.logarithmic or sweep.steep),
    )
