"""Every call of a service, as its users see it, with the real program."""

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from hostbench.host.inventory import inventory
from hostbench.model.host import HostInventory
from hostbench.model.service import SERVICE_EVENT, IdleAnswer, ServiceTable
from tests.patience import SOON_S, comes_true
from tests.service.streams import SHORT, outcome, running
from tests.stack.service_process import PROGRAMS, ServiceProcess, events


def test_a_trial_is_streamed(service: ServiceProcess) -> None:
    answer = service.post(id="t1", workload="fma", params={"threads": 1, "duration_s": 0.3})
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = events(answer)
    assert [line["event"] for line in lines] == ["start", "end", "others", "control_plane"]
    for line in answer.content.splitlines():
        SERVICE_EVENT.validate_json(line)
    assert lines[0]["params"]["threads"] == 1 and lines[0]["params"]["duration_s"] == 0.3
    assert lines[1]["metrics"]["operations_per_second"] > 1e8


def test_the_last_line_is_what_the_service_used(service: ServiceProcess) -> None:
    (used,) = events(service.post(id="t1", **SHORT))[-1]["processes"]
    assert used["component"] == "service"
    assert 0 < used["cpu_s"] < used["elapsed_s"] < SOON_S
    assert used["written_bytes"] >= 0


def test_samples_come_as_they_are_taken(service: ServiceProcess) -> None:
    params = {"threads": 1, "duration_s": 2.5, "sample_interval_s": 0.3}
    with service.client.stream(
        "POST", "/trials", json={"id": "t1", "workload": "clock", "params": params}
    ) as answer:
        came_s = [time.monotonic() for line in answer.iter_lines() if '"sample"' in line]
    assert len(came_s) >= 2
    assert came_s[-1] - came_s[0] > 0.5, "they came all at once"


def test_a_skipped_trial_is_no_failure(service: ServiceProcess) -> None:
    lines = events(service.post(id="t1", workload="fma", params={"isa": "neon"}))
    assert [line["event"] for line in lines] == ["skip", "control_plane"]


def test_a_failed_trial_says_so_in_place_of_a_figure(service: ServiceProcess) -> None:
    lines = events(
        service.post(id="t1", workload="clock", params={"duration_s": 30}, timeout_s=0.5)
    )
    # On a busy host a sample is printed before the program is ended.
    lines = [line for line in lines if line["event"] != "sample"]
    assert [line["event"] for line in lines] == ["start", "failure", "control_plane"]
    assert lines[1]["code"] == "timeout" and "timeout_s" in lines[1]["message"]


def test_the_table_is_that_of_the_program(service: ServiceProcess) -> None:
    answer = ServiceTable.model_validate_json(service.client.get("/workloads").content)
    program = (PROGRAMS / "cpu-bench").read_bytes()
    assert answer.program.sha256 == hashlib.sha256(program).hexdigest()
    assert answer.table.workload("fma") is not None
    assert "likwid-bench" in answer.peers


def test_the_inventory_has_the_name_the_operator_gave(service: ServiceProcess) -> None:
    answer = HostInventory.model_validate_json(service.client.get("/host").content)
    assert answer == inventory(scratch=False, network=False).model_copy(
        update={"hostname": "bench-1"}
    )


def test_idle_looks_for_as_long_as_requested(service: ServiceProcess) -> None:
    began_s = time.monotonic()
    answer = IdleAnswer.model_validate_json(service.client.get("/idle?seconds=0.5").content)
    assert 0.5 <= answer.window.seconds < SOON_S and time.monotonic() - began_s >= 0.5
    assert answer.window.busy_ratio is not None
    assert answer.window.network_bytes_per_second is not None


def test_more_looks_than_sensible_are_put_off(service: ServiceProcess) -> None:
    with service.another_client() as client, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(client.get, ["/idle?seconds=3"] * 6))
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [429] * 2
    assert service.client.get("/idle?seconds=0.1").status_code == 200


def test_health_needs_no_key(service: ServiceProcess) -> None:
    assert httpx.get(f"{service.url}/healthz").json() == {"status": "ok"}


def test_health_while_a_trial_runs(service: ServiceProcess) -> None:
    with running(service, "t1"):
        worst_s = 0.0
        for _ in range(20):
            began_s = time.monotonic()
            assert service.client.get("/healthz").status_code == 200
            worst_s = max(worst_s, time.monotonic() - began_s)
        assert worst_s < SOON_S, "it was not put off until the end of the trial"


def test_metrics_count_trials_and_tell_the_fence(service: ServiceProcess) -> None:
    measured, stale = trials(service, "measured"), trials(service, "stale_fence")
    service.post(id="t1", fence=7, **SHORT)
    service.post(id="t2", fence=6, **SHORT)
    assert trials(service, "measured") == measured + 1
    assert trials(service, "stale_fence") == stale + 1
    text = service.client.get("/metrics").text
    assert "hostbench_service_fence 7.0" in text
    assert "hostbench_service_trials_running 0.0" in text
    with running(service, "t3", fence=7, workload="clock", params={"duration_s": 60}):
        assert "hostbench_service_trials_running 1.0" in service.client.get("/metrics").text


def trials(service: ServiceProcess, outcome: str) -> float:
    """How many trials have ended so, by the service's metrics."""
    name = f'hostbench_service_trials_total{{outcome="{outcome}",tool="hostbench"}}'
    lines = service.client.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_nothing_is_left_of_many_trials(service: ServiceProcess) -> None:
    service.post(id="t0", **SHORT)
    service.client.get("/idle?seconds=0.1")
    before = _threads_and_descriptors(service.pid)
    for i in range(20):
        service.post(id=f"t{i}", **SHORT)

    def is_as_before() -> bool:
        after = _threads_and_descriptors(service.pid)
        return after[0] <= before[0] + 2 and after[1] <= before[1] + 2

    assert comes_true(is_as_before)


def _threads_and_descriptors(pid: int) -> tuple[int, int]:
    process = Path("/proc") / str(pid)
    return len(list((process / "task").iterdir())), len(list((process / "fd").iterdir()))


def test_one_line_of_log_an_event(service: ServiceProcess) -> None:
    before = len(service.log.splitlines())
    service.post(id="log", workload="clock", params={"duration_s": 1, "sample_interval_s": 0.1})
    assert outcome(service, "log") == "measured"
    logged = [json.loads(line)["event"] for line in service.log.splitlines()]
    assert logged[0] == "listening" and "listening" not in logged[1:]
    assert logged[before:] == ["trial_begins", "trial_ends"]
    assert service.key not in service.log


def test_without_an_orchestrator_it_registers_nowhere(service: ServiceProcess) -> None:
    assert httpx.get(f"{service.url}/healthz").status_code == 200
    assert "registration" not in service.log


@pytest.mark.parametrize("path", ["/", "/trials/x", "/nothing"])
def test_an_unknown_call(service: ServiceProcess, path: str) -> None:
    answer = service.client.get(path)
    assert answer.status_code in (404, 405)
    assert answer.headers["content-type"] == "application/problem+json"
