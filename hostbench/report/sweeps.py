"""Figures over the parameters that a suite swept: curves for a parameter with enough values, bars
for the other cases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hostbench.model.result import CaseResult
from hostbench.plan.label import param_title
from hostbench.report.cases import number, requested
from hostbench.report.content import BarGroup, Chart, CurveAxis
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import bar, bar_charts, by_workload, label, primary
from hostbench.report.grouping import Layout, Params, charts, group_name, param_meanings

# Two cases are a comparison, which bars show better.
SWEEP_LEAST = 3


@dataclass(frozen=True)
class Sweep:
    """A parameter that a suite may vary; figures are drawn along it. `steep`: they grow by orders
    of magnitude with it."""

    param: str
    steep: bool = False


Bars = Callable[[Sequence[CaseResult], str], Iterator[Chart]]


@dataclass(frozen=True)
class Sweeps:
    """How the cases of a section are drawn: what may be swept, how curves are named, the bars of
    all other cases under a title, and what distinguishes a case."""

    sweeps: Sequence[Sweep]
    curves: Layout
    bars: Bars
    params: Callable[[CaseResult], Params] = requested


def laid_out(layout: Layout) -> Bars:
    """Return a function for bars that are neighbours where cases differ in one of the layout's
    axes."""

    def bars(cases: Sequence[CaseResult], title: str) -> Iterator[Chart]:
        yield from charts([(case, requested(case)) for case in cases], layout, title=title)

    return bars


def by_label(layout: Layout) -> Bars:
    """Return a function for a group for each workload and, in it, a bar for each case with its
    label.

    The group's name has what its cases have in common of the layout's axes. This is for cases that
    each differ from the plain one in something else.
    """

    def bars(cases: Sequence[CaseResult], title: str) -> Iterator[Chart]:
        shown = [case for case in cases if primary(case)]
        groups = []
        for found in by_workload(shown).values():
            params = [requested(case) for case in found]
            common = [
                name
                for name in layout.axes
                if name in params[0] and len({str(one.get(name)) for one in params}) == 1
            ]
            drawn = tuple(one for case in found if (one := bar(case, label(case))))
            meanings = param_meanings(list(zip(found, params, strict=True)))
            groups.append(BarGroup(group_name(params[0], common, layout, meanings), drawn))
        if shown:
            metric = primary(shown[0])
            assert metric is not None
            has_limits = metric.direction == "higher"
            yield from bar_charts(title, metric.unit, groups, has_limits=has_limits)

    return bars


def sweep_charts(
    cases: Sequence[CaseResult], how: Sweeps, title: str, y: CurveAxis
) -> Iterator[Chart]:
    """Yield curves of every swept parameter, and bars. A case is on the curve of every parameter
    that was swept through it, or else in the bars."""
    drawn: set[str] = set()
    for sweep in how.sweeps:
        found = swept(cases, sweep.param, how.params)
        drawn |= {case.case for case in found}
        yield from _curves(found, sweep, how, title, y)
    yield from how.bars([case for case in cases if case.case not in drawn], title)


def swept(
    cases: Sequence[CaseResult], param: str, params: Callable[[CaseResult], Params] = requested
) -> list[CaseResult]:
    """Return the cases with enough others that differ from them only in `param`."""
    rows: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in cases:
        if primary(case) is not None and number(case, param) is not None:
            row = {(name, str(value)) for name, value in params(case).items() if name != param}
            rows.setdefault(frozenset(row), []).append(case)
    return [case for row in rows.values() if len(row) >= SWEEP_LEAST for case in row]


def _curves(
    cases: Sequence[CaseResult], sweep: Sweep, how: Sweeps, title: str, y: CurveAxis
) -> Iterator[Chart]:
    if not cases:
        return
    along = along_param(cases, sweep.param)
    yield from curve_charts(
        f"{title} over the {along.axis.title}",
        [(case, how.params(case)) for case in cases],
        how.curves,
        along,
        replace(y, logarithmic=y.logarithmic or sweep.steep),
    )


def along_param(cases: Sequence[CaseResult], name: str) -> Along:
    """Return the axis of a parameter's numbers, which must be in at least one of the cases; it is
    logarithmic."""
    param = next((case for case in cases if name in case.params), cases[0]).meaning(name)
    axis = CurveAxis(param_title(param), param.unit or "1", logarithmic=True)
    return Along(axis, lambda case: number(case, name), left_out=(name,))
