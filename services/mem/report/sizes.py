"""Curves over the size of what is accessed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hostbench.model.result import CaseResult
from hostbench.report.content import Chart, CurveAxis, CurveMark
from hostbench.report.curves import Roof, curve_charts
from hostbench.report.grouping import Layout
from hostbench.report.sweeps import along_param
from services.mem.params import PAGES, SHARE, SIZE, SMALL_PAGES
from services.mem.report.values import requested


def over_size(
    title: str,
    cases: Sequence[CaseResult],
    layout: Layout,
    y: CurveAxis,
    *,
    x: str = "",
    same: tuple[str, ...] = (),
    marks: tuple[CurveMark, ...] = (),
    roof: Roof | None = None,
) -> Iterator[Chart]:
    """Yield the curves, those in small pages last, so that a page mode has one colour in all charts
    of a report.

    `x`: the title of the axis, by default that of the parameter. `same`: parameters that all cases
    share, given or by default. `roof`: what limits the cases.
    """
    if not cases:
        return
    along = along_param(cases, SIZE)
    axis = replace(along.axis, title=x or along.axis.title)
    ordered = sorted(cases, key=lambda case: case.params.get(PAGES) == SMALL_PAGES)
    yield from curve_charts(
        title,
        [(case, requested(case)) for case in ordered],
        layout,
        replace(along, axis=axis, left_out=(SIZE, SHARE, *same)),
        y,
        marks=marks,
        roof=roof,
    )
