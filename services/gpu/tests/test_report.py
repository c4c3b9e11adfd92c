"""What the report says of GPUs."""

import functools

import pytest

from hostbench.model.events import StartEvent
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord, Verdict
from hostbench.page.job import report_of
from hostbench.report.content import (
    BarChart,
    Bullets,
    Chart,
    Paragraph,
    Part,
    Share,
    Table,
    inlines,
)
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from services.gpu.report import report
from tests.unit.gpu_documents import CARD, NO_GPU, gpu_run
from tests.unit.report_sections import blocks_of


@functools.cache
def whole() -> ResultDocument:
    return gpu_run()


def text_of(paragraph: Paragraph) -> str:
    return " ".join(str(part) for part in inlines(paragraph.text))


def table(document: ResultDocument, caption: str) -> Table:
    (found,) = [
        block
        for block in blocks_of(document)
        if isinstance(block, Table) and block.caption == caption
    ]
    return found


def test_each_kind_of_work_has_its_part() -> None:
    assert [block.title for block in blocks_of(whole()) if isinstance(block, Part)] == [
        "Vector units",
        "Tensor cores",
        "Matrix products",
        "Device memory",
        "Latency of device memory",
        "Between host and device",
        "Launches",
        "What the card was doing",
        "Devices",
    ]
    titles = [block.title for block in blocks_of(whole()) if isinstance(block, Chart)]
    assert "Access time over the working set" in titles
    assert any(title.endswith("by host memory") for title in titles), titles


def test_a_pipe_and_a_product_are_never_in_one_chart() -> None:
    for part in (block for block in blocks_of(whole()) if isinstance(block, Part)):
        text = " ".join(text_of(block) for block in part.blocks if isinstance(block, Paragraph))
        if part.title == "Tensor cores":
            assert "not the rate of a matrix product" in text
        if part.title == "Matrix products":
            assert "does not measure the pipes alone" in text


def test_the_copy_of_the_driver_is_never_shown_as_ours() -> None:
    found = report(whole().cases, whole())
    (copy,) = [case for case in found.headline if case.workload == "gpu.copy"]
    assert copy.params["path"] == "kernel"
    (memory,) = [block for block in found.blocks if getattr(block, "title", "") == "Device memory"]
    assert isinstance(memory, Part)
    (chart,) = [block for block in memory.blocks if isinstance(block, Chart)]
    assert isinstance(chart.drawing, BarChart)
    bars = {group.title: [one.label for one in group.bars] for group in chart.drawing.groups}
    assert bars == {
        "": ["read", "write", "triad"],
        "kernel": ["copy"],
        "driver": ["copy"],
    }


def test_the_share_of_the_limit_at_the_clock_that_was_stands_beside_the_clock() -> None:
    """A throttled card is below its limit, and what it did in a cycle is not."""
    found = table(whole(), "What the card was doing")
    rows = {str(row[0]): row for group in found.groups for row in group.rows}
    columns = [column.title for column in found.columns]
    at_clock = columns.index("of the limit at this clock")
    (name,) = [name for name in rows if "tensor" in name and "fp16" in name]
    share = rows[name][at_clock]
    assert isinstance(share, Share) and share.ratio == pytest.approx(0.97, rel=0.01)
    (case,) = [
        one
        for one in whole().cases
        if one.workload == "gpu.tensor" and one.params.get("dtype") == "fp16"
    ]
    efficiency = case.metrics["operations_per_second"].efficiency
    assert efficiency is not None and efficiency < 0.9
    assert rows[name][columns.index("throttled")] == "40.0 %"
    assert rows[name][columns.index("clock")] == "1.720 GHz"


def test_every_device_stands_there_once() -> None:
    found = table(whole(), "Devices")
    (row,) = [row for group in found.groups for row in group.rows]
    assert row[0] == CARD["device_name"]
    assert CARD["device_uuid"] in row
    assert "141 GiB" in row


def warned(document: ResultDocument) -> str:
    lists = [block for block in blocks_of(document) if isinstance(block, Bullets)]
    return " ".join(str(item) for block in lists for item in block.items)


def test_warnings_are_reported_with_what_they_mean() -> None:
    assert "held the clock down" in warned(whole())


def test_a_part_of_a_card_has_the_sensors_of_the_whole_one() -> None:
    on_parts = whole().model_copy(update={"cases": tuple(map(on_a_part, whole().cases))})
    assert "part of a card (MIG)" in warned(on_parts)
    assert "part of a card" not in warned(whole())


def on_a_part(case: CaseResult) -> CaseResult:
    """The case as on a part of the card."""
    return case.model_copy(update={"trials": tuple(map(of_a_part, case.trials))})


def of_a_part(trial: TrialRecord) -> TrialRecord:
    events = tuple(
        event.model_copy(update={"facts": {**event.facts, "device_uuid": "MIG-1"}})
        if isinstance(event, StartEvent)
        else event
        for event in trial.events
    )
    return trial.model_copy(update={"events": events})


def test_a_host_without_a_gpu_says_why_and_draws_nothing() -> None:
    document = gpu_run(gpu=False)
    assert {case.verdict for case in document.cases} == {Verdict.SKIPPED}
    blocks = blocks_of(document)
    texts = [text_of(block) for block in blocks if isinstance(block, Paragraph)]
    assert sum("libcuda.so.1 is not installed" in text for text in texts) == 1
    assert not any(isinstance(block, Chart) for block in blocks)
    page = html(report_of(document, "result.json"))
    assert NO_GPU.split(";")[0] in page


@pytest.mark.parametrize("limits", [True, False])
@pytest.mark.parametrize("trials", [1, 3])
def test_it_renders_whatever_is_known(*, limits: bool, trials: int) -> None:
    document = gpu_run(trials, limits=limits)
    made = report_of(document, "result.json")
    assert "GPU" in html(made)
    assert "gpu.tensor" in markdown(made)
