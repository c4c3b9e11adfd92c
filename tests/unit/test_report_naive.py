"""What the report says of workloads that mislead on purpose."""

import re
from collections.abc import Callable, Collection

import pytest

from hostbench.model.result import CaseResult, ResultDocument
from hostbench.page.job import report_of
from hostbench.report.content import Chart, Part, Table
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from hostbench.report.subsystem import SubsystemReport
from hostbench.report.subsystems import subsystem_reports
from tests.unit.disk_documents import disk_run
from tests.unit.gpu_documents import gpu_run
from tests.unit.memory_documents import memory_run
from tests.unit.net_documents import net_run
from tests.unit.report_documents import full_run
from tests.unit.test_report_page import blocks

RUNS: dict[str, Callable[[], ResultDocument]] = {
    "cpu": lambda: full_run(trials=2),
    "mem": lambda: memory_run(2),
    "disk": lambda: disk_run(2),
    "net": net_run,
    "gpu": lambda: gpu_run(2),
    # One without a section of its own.
    "npu": lambda: _renamed(full_run(trials=2), "cpu.", "npu."),
}


def _renamed(document: ResultDocument, old: str, new: str) -> ResultDocument:
    cases = tuple(
        case.model_copy(update={"workload": case.workload.replace(old, new)})
        for case in document.cases
    )
    workloads = {name.replace(old, new): found for name, found in document.workloads.items()}
    return document.model_copy(update={"cases": cases, "workloads": workloads})


def _with_naive(document: ResultDocument, workloads: Collection[str]) -> ResultDocument:
    """The document as it were if these workloads misled on purpose."""
    cases = tuple(
        _as_naive(case) if case.workload in workloads else case for case in document.cases
    )
    return document.model_copy(update={"cases": cases})


def _as_naive(case: CaseResult) -> CaseResult:
    metrics = {
        name: metric.model_copy(update={"limit": None, "efficiency": None})
        for name, metric in case.metrics.items()
    }
    return case.model_copy(update={"naive": True, "peers": (), "metrics": metrics})


def _naive_part(report: SubsystemReport) -> Part | None:
    parts = [block for block in report.blocks if isinstance(block, Part)]
    return next((part for part in parts if part.title == "Naive"), None)


def _rows(part: Part) -> list[object]:
    tables = [block for block in blocks(part) if isinstance(block, Table)]
    return [row for table in tables for group in table.groups for row in group.rows]


@pytest.mark.parametrize("subsystem", RUNS)
@pytest.mark.sampled(3)
def test_a_naive_workload_is_no_headline_and_has_its_own_part(subsystem: str) -> None:
    document = RUNS[subsystem]()
    plain = subsystem_reports(document)[subsystem]
    assert _naive_part(plain) is None
    best = plain.headline[0].workload
    document = _with_naive(document, {best})
    found = subsystem_reports(document)[subsystem]
    assert found.headline
    assert best not in {case.workload for case in found.headline}
    part = _naive_part(found)
    assert part is found.blocks[-1]
    assert part is not None
    assert len(_rows(part)) == sum(case.workload == best for case in document.cases)
    elsewhere = [block for block in found.blocks if block is not part]
    assert not any(re.search(rf"{best}\b", repr(block)) for block in elsewhere)


@pytest.mark.parametrize("subsystem", RUNS)
@pytest.mark.sampled(3)
def test_a_subsystem_of_which_only_naive_workloads_were_measured(subsystem: str) -> None:
    document = RUNS[subsystem]()
    document = _with_naive(document, document.workloads)
    found = subsystem_reports(document)[subsystem]
    part = _naive_part(found)
    assert found.headline == () and part is not None
    assert len(_rows(part)) == len(document.cases)
    # A page of some of the cases: drawing all takes seconds.
    report = report_of(document.model_copy(update={"cases": document.cases[::8]}), "result.json")
    for page in (html(report), markdown(report)):
        assert "measure in a way that is known to mislead" in " ".join(page.split())


def test_the_figures_of_naive_workloads_are_drawn_without_a_limit() -> None:
    document = _with_naive(full_run(trials=2), {"cpu.add_sub"})
    part = _naive_part(subsystem_reports(document)["cpu"])
    assert part is not None
    charts = [block for block in part.blocks if isinstance(block, Chart)]
    assert charts and not any("limit" in chart.description for chart in charts)
