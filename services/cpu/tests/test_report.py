"""How the CPU's cases are laid out in bars."""

import functools

import pytest

from hostbench.base.units import human
from hostbench.model.events import PairFigure, RungFigure
from hostbench.model.result import CaseResult, ResultDocument
from hostbench.report.content import (
    BarChart,
    Block,
    Bullets,
    Chart,
    CurveChart,
    MatrixChart,
    Part,
    Table,
)
from hostbench.report.figures import NOTHING
from hostbench.report.grouping import resolved
from services.cpu.cores_report import LADDER, ladder_blocks, yield_blocks
from services.cpu.report import TITLES, report
from tests.machine_code import ROOT
from tests.unit.records import start
from tests.unit.report_documents import full_run, sampled_run


@functools.cache
def whole() -> ResultDocument:
    return full_run(trials=5)


def chart(blocks: tuple[Block, ...], workload: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """The title of a workload's first chart, and its groups with the labels of their bars."""
    part = next(one for one in blocks if isinstance(one, Part) and one.title == workload)
    found = next(block for block in part.blocks if isinstance(block, Chart))
    assert isinstance(found.drawing, BarChart)
    groups = [(group.title, [bar.label for bar in group.bars]) for group in found.drawing.groups]
    return found.title, groups


def of(*cases: CaseResult) -> tuple[Block, ...]:
    return report(cases, whole()).blocks


def cases_where(**params: object) -> list[CaseResult]:
    return [
        case
        for case in whole().cases
        if case.workload == "cpu.fma"
        and all(case.params.get(name) == value for name, value in params.items())
    ]


def test_bars_are_instruction_sets_by_data_type_and_threads() -> None:
    title, groups = chart(report(whole().cases, whole()).blocks, "cpu.fma")
    assert title == "Operations per second by instruction set"
    isas = ["scalar", "sse2", "avx2", "avx512"]
    assert groups == [
        ("fp64, 1 thread", isas),
        ("fp64, 2 threads", isas),
        ("fp32, 1 thread", isas),
        ("fp32, 2 threads", isas),
    ]


def test_bars_are_threads_where_the_instruction_set_is_one() -> None:
    title, groups = chart(of(*cases_where(isa="avx2")), "cpu.fma")
    assert title == "Operations per second by number of threads"
    assert groups == [("fp64, avx2", ["1 thread", "2 threads"]),
                      ("fp32, avx2", ["1 thread", "2 threads"])]  # fmt: skip


def test_bars_are_data_types_where_all_else_is_one() -> None:
    title, groups = chart(of(*cases_where(isa="avx2", threads=2)), "cpu.fma")
    assert title == "Operations per second by data type"
    assert groups == [("2 threads, avx2", ["fp64", "fp32"])]


@pytest.mark.parametrize(
    ("values", "labels"),
    [(("2:1", "1:1"), ["mix=2:1", "mix=1:1"]), ((4096, None), ["mix=4096", "mix not set"]),
     (((0, 1), (2, 3)), ["mix=0,1", "mix=2,3"])],
)  # fmt: skip
def test_parameters_of_a_workload_of_its_own(
    values: tuple[object, object], labels: list[str]
) -> None:
    """Whatever else cases differ in is named: no two bars have the same name."""
    one, *_ = cases_where(isa="avx2", threads=2, dtype="fp64")
    cases = []
    for value in values:
        (trial, *rest) = one.trials
        first = trial.start
        assert first is not None and trial.end is not None
        params = {**first.params, "mix": value}
        changed = first.model_copy(update={"params": params})
        trials = (trial.model_copy(update={"events": (changed, trial.end)}), *rest)
        cases.append(one.model_copy(update={"trials": trials}))
    _, groups = chart(of(*cases), "cpu.fma")
    assert [label for _, names in groups for label in names] == labels


def test_what_best_was_is_reported() -> None:
    (case, *_) = whole().cases
    trial = case.trials[0].model_copy(update={"events": (start(params={"isa": "avx512"}),)})
    best = case.model_copy(update={"params": {"isa": "best"}, "trials": (trial,)})
    assert resolved(best)["isa"] == "avx512"
    assert resolved(best.model_copy(update={"trials": ()}))["isa"] == "best"


def test_a_single_case_needs_no_chart() -> None:
    document = sampled_run(5, cases=1)
    blocks = report(document.cases, document).blocks
    (part,) = [block for block in blocks if isinstance(block, Part)]
    assert not any(isinstance(block, Chart) for block in part.blocks)


def test_cases_without_figures_are_in_the_table_alone() -> None:
    (skipped,) = cases_where(isa="neon")
    (part,) = [block for block in of(skipped) if isinstance(block, Part)]
    assert not any(isinstance(block, Chart) for block in part.blocks)


def with_pairs(times_s: dict[tuple[int, int], float]) -> CaseResult:
    pairs = tuple(PairFigure(cpus=cpus, value=value) for cpus, value in times_s.items())
    one, *_ = cases_where(isa="avx2", threads=2, dtype="fp64")
    (trial, *_) = one.trials
    assert trial.start is not None and trial.end is not None
    end = trial.end.model_copy(update={"pairs": pairs})
    changed = trial.model_copy(update={"events": (trial.start, end)})
    return one.model_copy(update={"trials": (changed,)})


def distances(case: CaseResult) -> list[MatrixChart]:
    part, *_ = (block for block in of(case) if isinstance(block, Part))
    found = (block.drawing for block in part.blocks if isinstance(block, Chart))
    return [drawing for drawing in found if isinstance(drawing, MatrixChart)]


def test_pairs_of_cpus_are_a_heat_map_beside_the_nearest() -> None:
    (drawing,) = distances(with_pairs({(0, 2): 50e-9, (2, 5): 100e-9}))
    assert drawing.labels == ("CPU 0", "CPU 2", "CPU 5")
    assert drawing.scale.words[0] == "up to 62.50 ns"
    assert drawing.cells == {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 0.5, (2, 1): 0.5}


def test_groups_of_cpus_stand_below_the_map() -> None:
    times_s = {(0, 1): 20e-9, (2, 3): 20e-9} | {
        (one, other): 90e-9 for one in (0, 1) for other in (2, 3)
    }
    part, *_ = (block for block in of(with_pairs(times_s)) if isinstance(block, Part))
    (groups,) = (block for block in part.blocks if isinstance(block, Bullets))
    assert str(groups.items[0]).startswith("CPUs 0-1 and 2-3 are near each other")


@pytest.mark.parametrize("title", TITLES.values())
def test_the_page_of_maps_explains_each_part(title: str) -> None:
    page = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
    headings = [line.lower() for line in page.splitlines() if line.startswith("## ")]
    assert any(title.lower() in heading for heading in headings)


def test_one_pair_is_no_map() -> None:
    assert not distances(with_pairs({(0, 1): 50e-9}))


def with_rungs(isa: str, clocks: dict[tuple[int, ...], list[float]]) -> CaseResult:
    """A case of clock_ladder: the clocks of each trial by the CPUs at work."""
    one, *_ = cases_where(isa=isa, threads=2, dtype="fp64")
    trials = []
    for number, trial in enumerate(one.trials[: len(next(iter(clocks.values())))]):
        assert trial.start is not None and trial.end is not None
        rungs = tuple(
            RungFigure(cpus=cpus, value=values[number]) for cpus, values in clocks.items()
        )
        placement = trial.start.placement.model_copy(update={"cores": 2, "smt_shared": True})
        events = (
            trial.start.model_copy(update={"placement": placement}),
            trial.end.model_copy(update={"rungs": rungs}),
        )
        trials.append(trial.model_copy(update={"events": events}))
    update = {"workload": LADDER, "label": isa, "trials": tuple(trials)}
    return one.model_copy(update=update)


def test_the_ladder_has_a_line_for_each_class_of_instructions() -> None:
    clocks = {(0,): [4e9, 4.2e9, 4.1e9], (0, 1): [4e9, 4e9, 4e9], (0, 1, 2): [3e9, 3.1e9, 3.2e9]}
    cases = [with_rungs("scalar", clocks), with_rungs("avx512", clocks | {(0,): [3.5e9] * 3})]
    (chart,) = (block for block in ladder_blocks(cases) if isinstance(block, Chart))
    assert isinstance(chart.drawing, CurveChart)
    assert [curve.label for curve in chart.drawing.curves] == ["scalar", "avx512"]
    points = [[(point.x, point.y) for point in one.points] for one in chart.drawing.curves]
    assert points == [[(1, 4.1e9), (2, 4e9), (3, 3.1e9)], [(1, 3.5e9), (2, 4e9), (3, 3.1e9)]]
    assert [mark.x for mark in chart.drawing.marks] == [2]
    assert "scalar: 4.100 GHz with one CPU at work, 3.100 GHz (75.6 %) with 3." in chart.description


def test_one_cpu_is_no_ladder() -> None:
    assert not any(
        isinstance(one, Chart) for one in ladder_blocks([with_rungs("avx2", {(0,): [4e9]})])
    )


def test_a_yield_stands_beside_the_rates_behind_it() -> None:
    one, *_ = cases_where(isa="avx2", threads=2, dtype="fp64")
    rate = one.metrics["operations_per_second"]
    statistics = rate.statistics.model_copy(update={"median": 1.25})
    ratio = rate.model_copy(update={"unit": "1", "statistics": statistics})
    metrics = {"yield_ratio": ratio, "operations_per_second_alone": rate}
    blocks = list(yield_blocks([one.model_copy(update={"label": "fma", "metrics": metrics})]))
    (table,) = (block for block in blocks if isinstance(block, Table))
    ((name, alone, siblings, found, control),) = table.groups[0].rows
    assert (name, found) == ("fma", "1.250")
    assert alone == human(rate.statistics.median, "operation/s")
    assert siblings == control == NOTHING
    assert not list(yield_blocks([one]))


def test_many_cpus_are_rows_of_neighbours() -> None:
    """Of 256 CPUs, pairs at seven distances are measured: each cell has some of them."""
    steps = (1, 22, 43, 64, 85, 106, 128)
    times_s = {
        (cpu, (cpu + step) % 256): 50e-9
        for step in steps
        for cpu in range(128 if step == 128 else 256)
    }
    times_s[0, 1] = 25e-9
    case = with_pairs(times_s)
    (drawing,) = distances(case)
    assert drawing.labels[:2] == ("0–15", "16–31") and len(drawing.labels) == 16
    assert len(drawing.cells) == 16 * 16 and set(drawing.cells.values()) == {1.0}
    part, *_ = (block for block in of(case) if isinstance(block, Part))
    (chart,) = (block for block in part.blocks if isinstance(block, Chart))
    assert (
        "Of the 32,640 pairs, 1,664 were measured. The nearest pair: 25.00 ns" in chart.description
    )
