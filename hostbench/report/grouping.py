"""Cases of one quantity side by side: what tells them apart, in bars and in the names of groups."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.models.result import CaseResult
from hostbench.report.content import Bar, BarGroup, Chart
from hostbench.report.figures import bar, bar_charts, primary, quantity

THREADS = "threads"
# How it was measured rather than what: never a label.
_UNLABELLED = frozenset({"duration_s", "warmup_s", "slice_s", "sample_interval_s"})

Params = Mapping[str, object]


def word(name: str, value: object) -> str:
    """How the value of a parameter is called: `2 threads`, `avx2`, `n=4096`."""
    if name == THREADS:
        return "1 thread" if value == 1 else f"{value} threads"
    if isinstance(value, str) and value[:1].isalpha():
        return value
    if isinstance(value, tuple):
        return f"{name}={','.join(str(one) for one in value)}"
    if value is None:
        return f"{name} not set"
    return f"{name}={value}"


@dataclass(frozen=True)
class Layout:
    """How cases are told apart. `axes`: parameters and what they are called in titles; of them the
    first with several values is what bars next to one another differ in. `first`: what leads in the
    name of a group. `word` names a value; an empty word is left out."""

    axes: Mapping[str, str]
    first: tuple[str, ...] = ()
    word: Callable[[str, object], str] = word


def resolved(case: CaseResult) -> Params:
    """The parameters as the program resolved them: what `best` was."""
    start = next((trial.start for trial in case.trials if trial.start), None)
    return {**case.params, **(start.params if start else {})}


def charts(
    cases: Sequence[tuple[CaseResult, Params]],
    layout: Layout,
    *,
    title: str = "",
    has_limits: bool = True,
) -> Iterator[Chart]:
    """Bars of the cases that have a figure; all are of one unit. `title` names the quantity, as
    the metric does when it is empty. `has_limits`: as in BarChart, of what is to be high."""
    shown = [(case, params) for case, params in cases if primary(case)]
    if not shown:
        return
    names = telling_params([params for _, params in shown], layout)
    axis = names[0] if names else None
    groups: dict[str, list[Bar]] = {}
    for case, params in shown:
        name = layout.word(axis, params.get(axis)) if axis else case.label or case.workload
        one = bar(case, name)
        if one is not None:
            of = group_name(params, [name for name in names if name != axis], layout)
            groups.setdefault(of, []).append(one)
    (first, _), metric = shown[0], primary(shown[0][0])
    assert metric is not None
    said = title or quantity(first.primary).capitalize()
    said = f"{said} by {layout.axes.get(axis, axis)}" if axis else said
    yield from bar_charts(
        said,
        metric.unit,
        [BarGroup(name, tuple(bars)) for name, bars in groups.items()],
        # What is to be low is bounded by nothing that we know.
        has_limits=has_limits and metric.direction == "higher",
    )


def group_name(params: Params, names: Sequence[str], layout: Layout) -> str:
    """`fp64, 2 threads, avx512`."""
    order = {name: position for position, name in enumerate(layout.first)}
    ordered = sorted(names, key=lambda name: order.get(name, len(order)))
    words = (layout.word(name, params.get(name)) for name in ordered)
    return ", ".join(word for word in words if word)


def telling_params(all_params: Sequence[Params], layout: Layout) -> list[str]:
    """The parameters in which cases differ, and the usual ones that they share."""
    names = dict.fromkeys(name for params in all_params for name in params)
    differing = [
        name
        for name in names
        if name not in _UNLABELLED and len({str(params.get(name)) for params in all_params}) > 1
    ]
    usual = [name for name in layout.axes if name in names and name not in differing]
    return (
        [name for name in layout.axes if name in differing]
        + [name for name in differing if name not in layout.axes]
        + usual
    )
