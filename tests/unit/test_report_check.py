"""A document that was changed, or that mixes versions, is refused in one line."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.result import ResultDocument
from hostbench.report.check import load_checked
from hostbench.results.sealed import sealed
from tests.unit.report_documents import full_run, stored


@functools.cache
def whole() -> ResultDocument:
    return full_run(trials=5, workloads=("fma",))


# The first case is cpu.clock, the second cpu.fma fp64 scalar on one thread.
RATE = "operations_per_second"
STATISTICS = f"cases.1.metrics.{RATE}.statistics"


def edited(change: Callable[[Any], None]) -> ResultDocument:
    raw = json.loads(whole().model_dump_json())
    change(raw)
    return ResultDocument.model_validate_json(json.dumps(raw))


def at(path: str, value: Any) -> Callable[[Any], None]:
    """Set what stands at a dotted path; a function of what is there now may be given."""

    def change(raw: Any) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        node = raw
        for part in way:
            node = node[part]
        node[last] = value(node[last]) if callable(value) else value

    return change


def times(factor: float) -> Callable[[Any], Any]:
    return lambda value: (
        [one * factor for one in value] if isinstance(value, list) else (value * factor)
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("job.cases", 99),
        ("job.verdicts", {"clean": 1}),
        ("cases.1.verdict", "invalid"),
        ("cases.1.reasons", []),
        ("cases.1.counted", [0, 1, 2]),
        (f"{STATISTICS}.median", times(1.01)),
        (f"{STATISTICS}.median", times(1 + 2e-16)),
        (f"{STATISTICS}.n", 50),
        (f"{STATISTICS}.standard_deviation", None),
        (f"{STATISTICS}.interval.confidence", 0.99),
        (f"cases.1.metrics.{RATE}.unit", "byte/s"),
        (f"cases.1.metrics.{RATE}.efficiency", 0.999),
        (f"cases.1.metrics.{RATE}.limit.value", times(2)),
        ("cases.1.trials.0.value", times(1.1)),
        ("cases.1.trials.0.events.1.elapsed_s", times(2)),
        ("cases.1.trials", lambda trials: trials[1:]),
        ("cases.1.peers.0.statistics.median", times(1.1)),
        ("host.cpu.model_name", "Another CPU"),
        ("digest", "sha256:" + 64 * "0"),
        ("digest", None),
        ("digest", 17),
    ],
)
def test_a_document_that_was_edited_is_refused(tmp_path: Path, path: str, value: Any) -> None:
    job = stored(whole(), tmp_path)
    raw = json.loads(job.document.read_text())
    at(path, value)(raw)
    job.document.write_text(json.dumps(raw))
    with pytest.raises(UsageError) as caught:
        job.load()
    message = caught.value.message
    assert message.startswith(f"{job.document} was changed after it was written: its digest is ")
    assert message.endswith(
        "; build it again from its journal with: hostbench run --resume "
        f"{job.id} --results {job.path.parent}"
    )
    job.journal.unlink()
    with pytest.raises(UsageError, match="take the file that hostbench wrote, or measure again"):
        job.load()
    assert "\n" not in message and len(message) < 600


def test_a_document_without_its_digest_is_refused(tmp_path: Path) -> None:
    job = stored(whole(), tmp_path)
    raw = json.loads(job.document.read_text())
    del raw["digest"]
    job.document.write_text(json.dumps(raw))
    with pytest.raises(UsageError, match="its digest is missing"):
        job.load()


def test_layout_is_no_content(tmp_path: Path) -> None:
    """Spaces and the order of keys are not what the digest is of."""
    job = stored(whole(), tmp_path)
    before = job.load()
    raw = json.loads(job.document.read_text())
    job.document.write_text(json.dumps(dict(reversed(raw.items())), separators=(" , ", " : ")))
    assert job.load() == before
    assert before.digest and re.fullmatch("sha256:[0-9a-f]{64}", before.digest)


def test_what_is_made_from_a_journal_has_its_digest(tmp_path: Path) -> None:
    job = stored(whole(), tmp_path)
    job.document.unlink()
    assert sealed(job.load()) == job.load()


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
    """Even where its digest is right."""
    document = edited(at(path, value))
    job = stored(document, tmp_path)
    with pytest.raises(UsageError) as caught:
        load_checked(job)
    assert "mixes versions" in caught.value.message
    assert says in caught.value.message
    assert f"hostbench run --resume {job.id}" in caught.value.message
