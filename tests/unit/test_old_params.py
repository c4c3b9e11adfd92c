"""Documents that do not say what their parameters mean, and those that do.

old_document.json and the points beside it were written before the tables had roles.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.old_params import old_meaning
from hostbench.model.result import CaseResult, ResultDocument, SessionRecord
from hostbench.model.table import ParamMeaning
from hostbench.plan.label import param_word
from hostbench.report.content import BarChart, Chart, Part
from hostbench.results.document import planned_label
from orchestrator.influx.points import document_points
from services.disk.report import report
from tests.unit.records import session

FIXTURES = Path(__file__).with_name("fixtures")
OLD = (FIXTURES / "old_document.json").read_text()
DEPTH = ParamMeaning(
    name="queue_depth", type="count", unit=None, roles=("tag",), noun="request", title="depth"
)


def document(**params: list[ParamMeaning]) -> ResultDocument:
    """The old document; `params`: what it says of those of a workload, `_` for the dot."""
    content = json.loads(OLD)
    if params:
        content["params"] = {
            workload.replace("_", ".", 1): [one.model_dump(mode="json") for one in meanings]
            for workload, meanings in params.items()
        }
    return ResultDocument.model_validate_json(json.dumps(content))


def case_of(found: ResultDocument, workload: str) -> CaseResult:
    return next(case for case in found.cases if case.workload == workload)


def points(found: ResultDocument) -> list[list[Any]]:
    return [
        [point.measurement, dict(point.tags), _of_then(point.fields), point.time_ms]
        for point in document_points(found)
    ]


def _of_then(fields: Mapping[str, float | str]) -> dict[str, float | str]:
    """Without the figure as text, which came later."""
    return {name: value for name, value in fields.items() if name != "figure"}


def test_an_old_document_gives_the_points_that_it_gave() -> None:
    """But for the job, which was a tag of some."""
    before = json.loads((FIXTURES / "old_points.json").read_text())
    for _, tags, fields, _ in before:
        if "job" in tags:
            fields["job"] = tags.pop("job")
    assert points(document()) == before


@pytest.mark.parametrize(
    ("workload", "label", "planned"),
    [
        ("cpu.fma", "1 thread sve", "1 thread"),
        ("mem.copy", "pages=4k 1 thread libc", "pages=4k 1 thread"),
        ("mem.naive_copy", "lock each 2 threads", "lock each 2 threads"),
        ("net.tcp_rr", "loopback 2 load streams", "loopback 2 load streams"),
    ],
)
def test_what_best_became_is_taken_off_an_old_label(
    workload: str, label: str, planned: str
) -> None:
    case = case_of(document(), workload)
    assert (case.label, planned_label(case)) == (label, planned)


def test_a_document_says_what_its_parameters_mean() -> None:
    found = document(disk_rand_read=[DEPTH])
    case = case_of(found, "disk.rand_read")
    assert param_word(case.meaning("queue_depth"), 16) == "16 requests"
    tags = [tags for _, tags, _, _ in points(found) if "queue_depth" in tags]
    assert {one["queue_depth"] for one in tags} == {"1", "16"}
    # What it does not say is what it once meant.
    assert case.meaning("threads") == old_meaning("threads")
    again = ResultDocument.model_validate_json(found.model_dump_json())
    assert again == found
    assert case_of(again, "disk.rand_read").meaning("queue_depth") == DEPTH


@pytest.mark.parametrize(
    ("meanings", "title", "bars"),
    [
        ([], "by queue depth", ["queue_depth=1", "queue_depth=16"]),
        ([DEPTH], "by depth", ["1 request", "16 requests"]),
    ],
)
def test_a_chart_takes_its_words_from_the_document(
    meanings: list[ParamMeaning], title: str, bars: list[str]
) -> None:
    found = document(disk_rand_read=meanings) if meanings else document()
    disks = [case for case in found.cases if case.workload == "disk.rand_read"]
    parts = [part for part in report(disks, found).blocks if isinstance(part, Part)]
    (chart,) = [block for part in parts for block in part.blocks if isinstance(block, Chart)]
    assert chart.title.endswith(title)
    assert isinstance(chart.drawing, BarChart)
    assert [bar.label for group in chart.drawing.groups for bar in group.bars] == bars


def test_an_unknown_parameter_is_only_part_of_a_label() -> None:
    meaning = old_meaning("colour")
    assert (meaning.roles, param_word(meaning, "red"), param_word(meaning, 2)) == (
        (),
        "red",
        "colour=2",
    )


def test_an_old_journal_is_read() -> None:
    written = json.loads(session().model_dump_json())
    del written["params"]
    read = SessionRecord.model_validate_json(json.dumps(written))
    assert read.meaning("cpu.fma", "threads") == old_meaning("threads")
