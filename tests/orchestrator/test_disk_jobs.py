"""Jobs for the disk through the API: what is refused before anything is written, what fails with
one line, and that no request can name a file or a device."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from services.disk.tests.program import on_disk
from tests.faults.stack import StackParts
from tests.orchestrator.test_bad_input import field_of, problem
from tests.stack.orchestrator_process import OrchestratorProcess

HOST = "bench-1"
SHORT = {"duration_s": 0.1, "warmup_s": 0, "file_bytes": 4 << 20}


@pytest.fixture(scope="module")
def orchestrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorProcess]:
    """One with a host that has a disk service alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTBENCH_SCRATCH", str(on_disk()))
        patch.setenv("HOSTBENCH_DISK_RESERVE_BYTES", "0")
        with StackParts(tmp_path_factory.mktemp("stack")) as stack:
            orchestrator = stack.orchestrator()
            stack.host(orchestrator, HOST, subsystem="disk")
            yield orchestrator


@pytest.mark.parametrize(
    ("workload", "params", "field", "says"),
    [
        ("seq_read", {"block_bytes": 0}, "body.params.block_bytes", "give 1 to"),
        ("seq_read", {"block_bytes": -1}, "body.params.block_bytes", "give 1 to"),
        ("seq_read", {"block_bytes": (256 << 20) + 1}, "body.params.block_bytes", "268435456"),
        ("seq_read", {"block_bytes": "4k"}, "body.params.block_bytes", "is not a whole number"),
        ("rand_read", {"queue_depth": 0}, "body.params.queue_depth", "give 1 to 1024"),
        ("rand_read", {"threads": 513}, "body.params.threads", "512"),
        ("rand_read", {"file_bytes": 100}, "body.params.file_bytes", "give 4096 to"),
        ("rand_read", {"engine": "sync"}, "body.params.engine", "'psync'"),
        ("rand_read", {"cache_mode": "directs"}, "body.params.cache_mode", "'direct'"),
        ("rand_rw", {"read_share": 1.5}, "body.params.read_share", "1"),
        ("rand_read", {"rate": 0}, "body.params.rate", "give"),
        # No caller chooses where the file lies, or hands one over.
        ("rand_write", {"scratch_fd": 3}, "body.params.scratch_fd", "operator"),
        ("rand_write", {"file": "/etc/passwd"}, "body.params.file", "no parameter"),
        ("rand_write", {"device": "/dev/sda"}, "body.params.device", "no parameter"),
        ("rand_write", {"filename": "../../x"}, "body.params.filename", "no parameter"),
        ("rand_write", {"scratch": "/root"}, "body.params.scratch", "no parameter"),
        ("rand_write", {"engine": "/dev/sda"}, "body.params.engine", "'/dev/sda'"),
    ],
)
def test_what_cannot_be_is_refused(
    orchestrator: OrchestratorProcess, workload: str, params: dict[str, Any], field: str, says: str
) -> None:
    spec = {"workload": f"disk.{workload}", "params": params}
    details = problem(orchestrator.client.post("/jobs", json=spec), 422)
    assert field_of(details) == field, details
    assert says in details["detail"], details


def measured(orchestrator: OrchestratorProcess, workload: str, **params: Any) -> dict[str, Any]:
    """The only case of a job with one trial."""
    job = orchestrator.submit(
        workload=f"disk.{workload}", params={**SHORT, **params}, trials=1, idle_policy="force"
    )
    orchestrator.wait_for(job)
    (case,) = orchestrator.result(job)["cases"]
    found: dict[str, Any] = case
    return found


@pytest.mark.parametrize(
    ("workload", "params", "parts"),
    [
        ("rand_read", {"block_bytes": 1}, ["--block-bytes 1", "multiple of", "buffered"]),
        ("rand_write", {"block_bytes": 4095}, ["--block-bytes 4095", "multiple of", "buffered"]),
        ("seq_read", {"block_bytes": 8 << 20}, [str(8 << 20), str(4 << 20)]),
        ("rand_read", {"engine": "psync", "queue_depth": 2}, ["--queue-depth 2", "libaio"]),
        ("seq_write", {"file_bytes": 10**15}, ["more bytes are needed", "--file-bytes"]),
    ],
)
def test_what_cannot_be_here_fails_with_one_line(
    orchestrator: OrchestratorProcess, workload: str, params: dict[str, Any], parts: list[str]
) -> None:
    case = measured(orchestrator, workload, **params)
    assert (case["verdict"], case["metrics"]) == ("failed", {})
    (reason,) = case["reasons"]
    assert "\n" not in reason["text"]
    for part in parts:
        assert part in reason["text"], reason


def test_one_byte_through_the_page_cache_is_measured_and_says_so(
    orchestrator: OrchestratorProcess,
) -> None:
    case = measured(orchestrator, "rand_read", block_bytes=1, cache_mode="buffered")
    assert case["metrics"]["operations_per_second"]["statistics"]["median"] > 0
    assert "page_cache_measured" in json.dumps(case["trials"])
