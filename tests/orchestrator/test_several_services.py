"""One host with several services, one orchestrator and a job that needs them all."""

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from hostbench import __version__
from hostbench.cli.render_jobs import show_hosts
from hostbench.model.jobs import HostList, StackState
from tests.faults.stack import StackParts
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess, events

HOST = "bench-1"
SHORT = {"threads": 1, "duration_s": 0.1, "warmup_s": 0}
SMALL = {**SHORT, "size_bytes": 4 << 20}
ONE_STREAM = {"duration_s": 0.1, "warmup_s": 0}
ON_THE_CPU = {**ONE_STREAM, "backend": "opencl", "device": "0"}
SMALL_FILE = {**SHORT, "file_bytes": 4 << 20}
TRIALS = 2
# Case after case another service has its turn. No limit is known of them, so that no verdict
# depends on the machine.
MIXED: dict[str, Any] = {
    "name": "mixed",
    "idle": {"policy": "force"},
    "repeats": {"min_trials": TRIALS, "max_trials": TRIALS},
    "cases": [
        {"workload": "cpu.clock", "params": SHORT},
        {"workload": "mem.copy", "params": SMALL},
        {"workload": "disk.rand_read", "params": SMALL_FILE},
        {"workload": "net.tcp_rr", "params": ONE_STREAM},
        {"workload": "gpu.fma", "params": ON_THE_CPU},
        {"workload": "cpu.clock", "params": {**SHORT, "duration_s": 0.15}},
        {"workload": "mem.pointer_chase", "params": SMALL},
        {"workload": "disk.seq_read", "params": SMALL_FILE},
        {"workload": "net.udp_rr", "params": ONE_STREAM},
        {"workload": "gpu.int_add", "params": ON_THE_CPU},
    ],
}
SUBSYSTEMS = {case["workload"].partition(".")[0] for case in MIXED["cases"]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackParts]:
    with StackParts(tmp_path_factory.mktemp("stack")) as parts:
        yield parts


@pytest.fixture(scope="module")
def orchestrator(stack: StackParts) -> OrchestratorProcess:
    return stack.orchestrator()


@pytest.fixture(scope="module")
def services(
    stack: StackParts, orchestrator: OrchestratorProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ServiceProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTBENCH_SCRATCH", str(tmp_path_factory.mktemp("scratch")))
        return {name: stack.host(orchestrator, HOST, subsystem=name) for name in SUBSYSTEMS}


def succeeds(orchestrator: OrchestratorProcess, job: str) -> None:
    """Wait for the end of a job."""
    view = orchestrator.wait_for(job)
    assert view["state"] == "succeeded", (view["reason"], orchestrator.result(job)["cases"])


def spans(service: ServiceProcess) -> list[tuple[str, str]]:
    """When each trial of a service began and when it ended, by its log."""
    found: dict[str, list[str]] = {}
    for line in service.log.splitlines():
        if line.startswith("{") and (event := json.loads(line))["event"].startswith("trial_"):
            found.setdefault(event["trial"], []).append(event["timestamp"])
    return [(began, ended) for began, ended in found.values()]


@pytest.mark.exhaustive
def test_the_examples_of_the_description_are_accepted(
    orchestrator: OrchestratorProcess, services: dict[str, ServiceProcess]
) -> None:
    """Among them the suites that come with the project, which need them all."""
    description = orchestrator.client.get("/openapi.json").json()
    body = description["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert len(body["examples"]) >= 4
    for example in body["examples"].values():
        answer = orchestrator.client.post("/jobs", json=example["value"] | {"hosts": [HOST]})
        assert answer.status_code == 202, answer.text
        orchestrator.client.delete(answer.headers["location"])
        orchestrator.wait_for(answer.json()["id"])


def test_the_host_has_them_all(
    orchestrator: OrchestratorProcess,
    services: dict[str, ServiceProcess],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    listed = HostList.model_validate_json(orchestrator.client.get("/hosts").content)
    (host,) = listed.hosts
    assert {one.subsystem: one.url for one in host.services} == {
        name: service.url for name, service in services.items()
    }
    show_hosts(listed.hosts, sys.stdout)
    printed = capsys.readouterr().out
    # A line may end between a name and its version.
    assert all(name in printed for name in SUBSYSTEMS) and printed.count(__version__) == len(
        SUBSYSTEMS
    ), printed
    assert host.inventory is not None and host.inventory.scratch is not None
    tables = orchestrator.client.get("/workloads").json()["hosts"][HOST]
    assert {table["subsystem"] for table in tables} == set(SUBSYSTEMS)


def test_a_job_that_needs_them_all_runs_one_trial_at_a_time(
    orchestrator: OrchestratorProcess, services: dict[str, ServiceProcess]
) -> None:
    jobs = [orchestrator.submit(suite=MIXED) for _ in range(2)]
    for job in jobs:
        succeeds(orchestrator, job)
        document = orchestrator.result(job)
        assert [case["workload"] for case in document["cases"]] == [
            case["workload"] for case in MIXED["cases"]
        ]
        assert [len(case["trials"]) for case in document["cases"]] == [TRIALS] * len(MIXED["cases"])
        programs = {program["subsystem"] for program in document["programs"]}
        assert programs == set(SUBSYSTEMS)
        place = document["host"]["scratch"]
        assert place is not None, "the disk service alone knows it"
        # One file of the job: what its first trial wrote the later ones found.
        filled = [
            event["metrics"]["prefilled_bytes"]
            for case in document["cases"]
            if case["workload"].startswith("disk.")
            for trial in case["trials"]
            for event in trial["events"]
            if event["event"] == "end"
        ]
        assert filled == [4 << 20, *[0] * (2 * TRIALS - 1)]
    # Two jobs with two cases of each service.
    assert all(len(spans(service)) == 2 * 2 * TRIALS for service in services.values())
    turns = sorted(span for service in services.values() for span in spans(service))
    for (_, ended), (began, _) in pairwise(turns):
        assert ended <= began


def test_a_trial_of_one_keeps_the_other_from_measuring(
    stack: StackParts, orchestrator: OrchestratorProcess, services: dict[str, ServiceProcess]
) -> None:
    long = {**SMALL, "duration_s": 600}
    job = orchestrator.submit(workload="mem.read", params=long, trials=1, idle_policy="force")
    orchestrator.wait_for(job, StackState.RUNNING)
    services["mem"].wait_for_program()
    by_hand: dict[str, Any] = {"id": "by-hand", "workload": "clock", "params": SHORT}
    refused = services["cpu"].post(**by_hand)
    assert (refused.status_code, refused.json()["code"]) == (409, "busy")
    assert refused.json()["holder"]["service"] == "mem"
    behind = orchestrator.submit(workload="cpu.clock", params=SHORT, trials=1, idle_policy="force")
    assert orchestrator.job(behind)["state"] == "queued"
    orchestrator.client.delete(f"/jobs/{job}")
    assert orchestrator.wait_for(job)["state"] == "cancelled"
    succeeds(orchestrator, behind)
    assert events(services["cpu"].post(**by_hand))[-1]["event"] == "control_plane"


@pytest.mark.exhaustive
def test_a_job_waits_for_the_service_that_is_away(
    orchestrator: OrchestratorProcess, services: dict[str, ServiceProcess]
) -> None:
    """Jobs that need the other one alone do not."""
    services["mem"].stop()
    both = orchestrator.submit(suite=MIXED)
    alone = orchestrator.submit(workload="cpu.clock", params=SHORT, trials=1, idle_policy="force")
    succeeds(orchestrator, alone)
    assert orchestrator.job(both)["state"] == "queued"
    services["mem"].start()
    succeeds(orchestrator, both)
