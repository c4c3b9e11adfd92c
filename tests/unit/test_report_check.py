"""A document whose figures are not those of its trials is refused, and the field is named."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostbench.errors import UsageError
from hostbench.models.result import ResultDocument
from hostbench.report.check import contradictions, load_checked
from tests.unit.report_documents import full_run, sampled_run, stored

DOCUMENT = full_run(trials=5, workloads=("fma",))
# The first case is cpu.clock, the second cpu.fma fp64 scalar on one thread.
RATE = "operations_per_second"
STATISTICS = f"cases.1.metrics.{RATE}.statistics"


def edited(change: Callable[[Any], None]) -> ResultDocument:
    raw = json.loads(DOCUMENT.model_dump_json())
    change(raw)
    return ResultDocument.model_validate_json(json.dumps(raw))


def at(path: str, value: Any) -> Callable[[Any], None]:
    """Sets what stands at a dotted path; a function of what is there now may be given."""

    def change(raw: Any) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        node = raw
        for part in way:
            node = node[part]
        node[last] = value(node[last]) if callable(value) else value

    return change


@pytest.mark.parametrize("document", [DOCUMENT, full_run(), sampled_run(5, 2, 3)])
def test_what_was_assembled_is_right(document: ResultDocument) -> None:
    assert list(contradictions(document)) == []


def times(factor: float) -> Callable[[Any], Any]:
    return lambda value: (
        [one * factor for one in value] if isinstance(value, list) else (value * factor)
    )


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("job.cases", 99, "job.cases"),
        ("job.verdicts", {"clean": 1}, "job.verdicts"),
        ("cases.1.verdict", "invalid", "job.verdicts"),
        ("cases.1.workload", "cpu.other", "cases.1.workload"),
        ("cases.1.primary", "clock_hertz", "cases.1.primary"),
        ("cases.1.counted", [0, 1, 2, 77], "cases.1.counted"),
        (f"{STATISTICS}.median", times(1.01), f"{STATISTICS}.median"),
        (f"{STATISTICS}.mean", times(1.000001), f"{STATISTICS}.mean"),
        (f"{STATISTICS}.n", 50, f"{STATISTICS}.n"),
        (f"{STATISTICS}.standard_deviation", None, f"{STATISTICS}.standard_deviation"),
        (f"{STATISTICS}.minimum", 0.0, f"{STATISTICS}.minimum"),
        (f"{STATISTICS}.maximum", times(2), f"{STATISTICS}.maximum"),
        (f"{STATISTICS}.half_width_ratio", 0.0001, f"{STATISTICS}.half_width_ratio"),
        (f"{STATISTICS}.outliers", [0], f"{STATISTICS}.outliers"),
        (f"{STATISTICS}.interval.low", times(1.001), f"{STATISTICS}.interval.low"),
        (f"{STATISTICS}.interval.confidence", 0.99, f"{STATISTICS}.interval.confidence"),
        (f"cases.1.metrics.{RATE}.unit", "byte/s", f"cases.1.metrics.{RATE}.unit"),
        (f"cases.1.metrics.{RATE}.efficiency", 0.999, f"cases.1.metrics.{RATE}.efficiency"),
        (f"cases.1.metrics.{RATE}.limit.value", times(2), f"cases.1.metrics.{RATE}.limit.value"),
        ("cases.1.trials.0.value", times(1.1), "cases.1.trials.0.value"),
        ("cases.1.trials.0.efficiency", 1.0, "cases.1.trials.0.efficiency"),
        (
            f"cases.1.trials.0.limits.{RATE}.factors.1.value",
            times(2),
            f"cases.1.trials.0.limits.{RATE}.value",
        ),
        ("cases.1.peers.0.statistics.median", times(1.1), "cases.1.peers.0.statistics.median"),
        ("cases.1.peers.0.trials", [], "cases.1.peers.0.statistics.n"),
    ],
)  # fmt: skip
def test_what_was_edited_is_named(path: str, value: Any, field: str) -> None:
    found = [one.field for one in contradictions(edited(at(path, value)))]
    assert field in found


def test_a_trial_that_was_edited_with_its_raw_event() -> None:
    """The trial agrees with itself; the statistics give it away."""

    def change(raw: Any) -> None:
        trial = raw["cases"][0]["trials"][0]
        trial["value"] = trial["events"][1]["metrics"]["clock_hertz"] = 9e9

    found = [one.field for one in contradictions(edited(change))]
    assert found[0] == "cases.0.metrics.clock_hertz.statistics.mean"


def test_a_trial_that_was_taken_out() -> None:
    def change(raw: Any) -> None:
        raw["cases"][1]["trials"].pop(0)

    assert [one.field for one in contradictions(edited(change))] == ["cases.1.counted"]


def test_two_trials_of_one_index() -> None:
    def change(raw: Any) -> None:
        raw["cases"][1]["trials"][1]["index"] = 0

    assert "cases.1.trials" in [one.field for one in contradictions(edited(change))]


def test_the_refusal_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    job = stored(edited(at(f"{STATISTICS}.median", 1.0)), tmp_path)
    with pytest.raises(UsageError) as caught:
        load_checked(job)
    message = caught.value.message
    assert re.search(
        rf"result\.json contradicts itself: {re.escape(STATISTICS)}\.median is 1\.0, and its own "
        r"trials make it 1\d{10}\.",
        message,
    )
    assert f"hostbench run --resume {job.id}" in message


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("programs.0.version", "9.9", "cases.0.trials.0 is of cpu-bench 0.1.0, and the document"),
        ("programs.0.subsystem", "mem", "document names no program of its subsystem"),
        ("cases.1.trials.2.events.0.version", "0.2.0", "cases.1.trials.2 is of cpu-bench 0.2.0"),
        ("cases.1.trials.2.events.0.program", "mem-bench", "is of mem-bench 0.1.0"),
    ],
)
def test_a_result_of_several_versions(tmp_path: Path, path: str, value: str, says: str) -> None:
    """Even where every figure agrees with its trials."""
    document = edited(at(path, value))
    assert list(contradictions(document)) == []
    job = stored(document, tmp_path)
    with pytest.raises(UsageError) as caught:
        load_checked(job)
    assert "mixes versions" in caught.value.message
    assert says in caught.value.message
    assert f"hostbench run --resume {job.id}" in caught.value.message
