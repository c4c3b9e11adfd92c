"""Cases of one quantity side by side: what distinguishes them, in bars and in the names of
groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.model.result import CaseResult
from hostbench.model.table import ParamMeaning
from hostbench.plan.label import param_title, param_word
from hostbench.report.content import Bar, BarGroup, Chart
from hostbench.report.figures import bar, bar_charts, primary, quantity

THREADS, PAGES = "threads", "pages"
# Page modes, which programs of several subsystems have.
PAGE_WORDS = {"4k": "pages of 4 KiB", "huge": "huge pages", "hugetlb": "pages of hugetlbfs"}

Params = Mapping[str, object]
Meanings = Mapping[str, ParamMeaning]


@dataclass(frozen=True)
class Layout:
    """How cases differ. `axes`: parameters; the first of them with several values distinguishes
    neighbouring bars. `first`: the parameters that come first in the name of a group."""

    axes: tuple[str, ...]
    first: tuple[str, ...] = ()


def param_meanings(cases: Sequence[tuple[CaseResult, Params]]) -> Meanings:
    """Return the meaning of the parameters of these cases, each from the first case that has it."""
    meanings: dict[str, ParamMeaning] = {}
    for case, params in cases:
        for name in params:
            meanings.setdefault(name, case.meaning(name))
    return meanings


def word(param: ParamMeaning, value: object) -> str:
    """Return the name of a value among those of other cases; empty for a value that is not set or
    was left to the program."""
    return "" if value is None or value in param.resolved else _word(param, value)


def _word(param: ParamMeaning, value: object) -> str:
    """Return a value in the words that all charts use; a label has `pages=4k`."""
    known = PAGE_WORDS.get(str(value)) if param.name == PAGES else None
    return known or param_word(param, value)


def resolved(case: CaseResult) -> Params:
    """Return the parameters as the program resolved them, such as what `best` was."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    return {**case.params, **(start.params if start else {})}


def charts(
    cases: Sequence[tuple[CaseResult, Params]],
    layout: Layout,
    *,
    title: str = "",
    has_limits: bool = True,
) -> Iterator[Chart]:
    """Yield bars of the cases that have a figure; all must have one unit. `title` names the
    quantity, by default as the metric does. `has_limits`: as in BarChart, for a quantity that
    should be high."""
    shown = [(case, params) for case, params in cases if primary(case)]
    if not shown:
        return
    meanings = param_meanings(shown)
    names = distinguishing_params([params for _, params in shown], layout, meanings)
    axis = names[0] if names else None
    groups: dict[str, list[Bar]] = {}
    for case, params in shown:
        name = _word(meanings[axis], params.get(axis)) if axis else case.label or case.workload
        one = bar(case, name)
        if one is not None:
            of = group_name(params, [name for name in names if name != axis], layout, meanings)
            groups.setdefault(of, []).append(one)
    (first, _), metric = shown[0], primary(shown[0][0])
    assert metric is not None
    heading = title or quantity(first.primary).capitalize()
    heading = f"{heading} by {param_title(meanings[axis])}" if axis else heading
    yield from bar_charts(
        heading,
        metric.unit,
        [BarGroup(name, tuple(bars)) for name, bars in groups.items()],
        # A quantity that should be low has no known limit.
        has_limits=has_limits and metric.direction == "higher",
    )


def series_names(
    cases: Sequence[tuple[CaseResult, Params]], layout: Layout
) -> tuple[list[str], str]:
    """Return the name of the series that each case belongs to, and in words what all series share.

    A single series has everything in its name.
    """
    meanings = param_meanings(cases)
    every = [params for _, params in cases]
    names = distinguishing_params(every, layout, meanings)
    differing = [name for name in names if _differs(name, every)]
    labels = [group_name(params, differing, layout, meanings) for params in every]
    if all(labels):
        shared = [name for name in names if name not in differing]
        return labels, group_name(every[0], shared, layout, meanings) if every else ""
    return [group_name(params, names, layout, meanings) for params in every], ""


def _differs(name: str, every: Sequence[Params]) -> bool:
    return len({str(params.get(name)) for params in every}) > 1


def group_name(params: Params, names: Sequence[str], layout: Layout, meanings: Meanings) -> str:
    """Return a name such as `fp64, 2 threads, avx512`."""
    order = {name: position for position, name in enumerate(layout.first)}
    ordered = sorted(names, key=lambda name: order.get(name, len(order)))
    words = (word(meanings[name], params.get(name)) for name in ordered)
    return ", ".join(word for word in words if word)


def distinguishing_params(
    all_params: Sequence[Params], layout: Layout, meanings: Meanings
) -> list[str]:
    """Return the parameters in which cases differ, and the usual ones that they share."""
    differing = [
        name
        for name in meanings
        if "how" not in meanings[name].roles and _differs(name, all_params)
    ]
    usual = [name for name in layout.axes if name in meanings and name not in differing]
    return (
        [name for name in layout.axes if name in differing]
        + [name for name in differing if name not in layout.axes]
        + usual
    )
