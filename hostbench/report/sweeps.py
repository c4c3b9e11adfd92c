"""Figures over what a suite swept: curves over each parameter with enough values, bars of all
else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.models.result import CaseResult
from hostbench.report.cases import asked, number
from hostbench.report.content import Chart, CurveAxis
from hostbench.report.curves import Along, curve_charts
from hostbench.report.figures import primary
from hostbench.report.grouping import Layout, charts

# Two cases are a comparison, which bars show better.
SWEEP_LEAST = 3


@dataclass(frozen=True)
class Sweep:
    """What a suite may vary: the parameter, and the axis that it is drawn along."""

    param: str
    over: str
    axis: CurveAxis


@dataclass(frozen=True)
class Sweeps:
    """How the cases of a section are drawn: what may be swept, and how curves and bars are told
    apart."""

    sweeps: Sequence[Sweep]
    curves: Layout
    bars: Layout


def sweep_charts(
    cases: Sequence[CaseResult], how: Sweeps, title: str, y: CurveAxis
) -> Iterator[Chart]:
    """A case stands on the curve of every parameter that was swept through it, or in the bars."""
    drawn: set[str] = set()
    for sweep in how.sweeps:
        found = swept(cases, sweep.param)
        drawn |= {case.case for case in found}
        yield from _curves(found, sweep, how.curves, title, y)
    rest = [(case, asked(case)) for case in cases if case.case not in drawn]
    yield from charts(rest, how.bars, title=title)


def swept(cases: Sequence[CaseResult], param: str) -> list[CaseResult]:
    """The cases with enough others that differ from them in nothing but `param`."""
    rows: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in cases:
        if primary(case) is not None and number(case, param) is not None:
            row = {(name, str(value)) for name, value in asked(case).items() if name != param}
            rows.setdefault(frozenset(row), []).append(case)
    return [case for row in rows.values() if len(row) >= SWEEP_LEAST for case in row]


def _curves(
    cases: Sequence[CaseResult], sweep: Sweep, layout: Layout, title: str, y: CurveAxis
) -> Iterator[Chart]:
    def place(case: CaseResult) -> float | None:
        return number(case, sweep.param)

    yield from curve_charts(
        f"{title} over {sweep.over}",
        [(case, asked(case)) for case in cases],
        layout,
        Along(sweep.axis, place, left_out=(sweep.param,)),
        y,
    )
