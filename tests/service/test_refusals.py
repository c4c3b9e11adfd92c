"""Whatever is requested that cannot be: problem details that name the field, never a 5xx."""

import fcntl
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.each import each
from tests.service.conftest import behaving, check_and_stop
from tests.service.streams import SHORT, lock_is_free, running
from tests.stack.service_process import ServiceProcess

CALLS = [
    ("POST", "/trials"),
    ("PUT", "/trials/x/lease"),
    ("GET", "/idle"),
    ("GET", "/lock"),
    ("GET", "/host"),
    ("GET", "/workloads"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
]
BESIDE = {"cpus": [0], "rate": 1e9, "elapsed_s": 0.1}
FMA = {"dtype": "fp64", "isa": "avx2", "threads": 1}


def problem(answer: httpx.Response) -> Any:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    content = answer.json()
    assert content["status"] == answer.status_code
    assert content["detail"] and "\n" not in content["detail"]
    return content


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_no_key(service: ServiceProcess, method: str, path: str) -> None:
    answer = httpx.request(method, service.url + path)
    assert answer.status_code == 401 and problem(answer)["code"] == "unauthorized"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_wrong_key(service: ServiceProcess) -> None:
    with httpx.Client(base_url=service.url) as stranger:
        for (method, path), given in itertools.product(
            CALLS, ("Bearer wrong", "Basic YTpi", "Bearer", "Bearer \xff", "")
        ):
            headers = {b"Authorization": given.encode("latin-1")}
            answer = stranger.request(method, path, headers=headers)
            refused = answer.status_code == 401 and problem(answer)["code"] == "unauthorized"
            assert refused, (method, path, given)


def test_calls_that_do_not_exist(service: ServiceProcess) -> None:
    for method, path, status, why in (
        ("GET", "/trial", 404, "there is no such path"),
        ("DELETE", "/lock", 405, "this path has no such method"),
    ):
        answer = service.client.request(method, path)
        assert answer.status_code == status
        detail = f"{method} {path!r}: {why}; GET /openapi.json lists the calls"
        assert problem(answer)["detail"] == detail


@each(
    ("request_", "field", "part"),
    [
        ({"workload": "fmaa"}, "body.workload", "did you mean 'fma'?"),
        ({"workload": "Fma!"}, "body.workload", "not allowed"),
        ({}, "body.workload", "is missing"),
        ({"workload": "fma", "id": None}, "body.id", "not allowed"),
        ({"workload": "fma", "id": "../x"}, "body.id", "not allowed"),
        ({"workload": "fma", "id": "x" * 200}, "body.id", "not allowed"),
        ({"workload": "fma", "params": {"thread": 1}}, "body.params.thread", "did you mean"),
        ({"workload": "fma", "params": {"threads": 0}}, "body.params.threads", "1 to 4096"),
        ({"workload": "fma", "params": {"threads": 10**30}}, "body.params.threads", "1 to 4096"),
        ({"workload": "fma", "params": {"threads": 10**400}}, "body.params.threads", "1 to 4096"),
        ({"workload": "fma", "params": {"threads": 1.5}}, "body.params.threads", "whole number"),
        ({"workload": "fma", "params": {"isa": "avx3"}}, "body.params.isa", "did you mean"),
        ({"workload": "fma", "params": {"isa": 3}}, "body.params.isa", "not known"),
        ({"workload": "fma", "params": {"cpus": "0-99999"}}, "body.params.cpus", "may not use"),
        ({"workload": "fma", "params": {"lifeline_fd": 3}}, "body.params.lifeline_fd", "operator"),
        ({"workload": "fma", "params": {"threads": None}}, "body.params.threads", "not allowed"),
        ({"workload": "fma", "params": {"threads": [1]}}, "body.params.threads", "not allowed"),
        ({"workload": "fma", "params": {"work": 5, "duration_s": 1}}, "body.params.work", "exclu"),
        ({"workload": "fma", "params": []}, "body.params", "not allowed"),
        ({"workload": "fma", "timeout_s": 0}, "body.timeout_s", "not allowed"),
        ({"workload": "fma", "timeout_s": "1"}, "body.timeout_s", "not allowed"),
        ({"workload": "fma", "fence": -1}, "body.fence", "not allowed"),
        ({"workload": "fma", "fence": True}, "body.fence", "not allowed"),
        ({"workload": "fma", "fence": 2**62}, "body.fence", "not allowed"),
        ({"workload": "fma", "sha256": "abc"}, "body.sha256", "not allowed"),
        ({"workload": "fma", "limits": {}}, "body.limits", "not known here"),
        ({"workload": "fma", "beside": BESIDE}, "body.beside", "a peer's trial only"),
        ({"workload": "fma", "tool": "likwid", "beside": BESIDE}, "body.tool", "did you mean"),
        ({"workload": "fma", "tool": "likwid-bench", "params": FMA}, "body.beside", "needs beside"),
        (
            {"workload": "clock", "tool": "likwid-bench", "beside": BESIDE},
            "body.tool",
            "does not stand beside cpu.clock",
        ),
        (
            {"workload": "fma", "tool": "likwid-bench", "params": FMA}
            | {"beside": BESIDE | {"cpus": [0, 4000]}},
            "body.beside.cpus",
            "CPU 4000",
        ),
        (
            {"workload": "fma", "tool": "likwid-bench", "params": FMA}
            | {"beside": BESIDE | {"cpus": []}},
            "body.beside.cpus",
            "not allowed",
        ),
        (
            {"workload": "fma", "tool": "likwid-bench", "params": FMA | {"isa": "; rm -rf"}}
            | {"beside": BESIDE},
            "body.params.isa",
            "not known",
        ),
        (
            {"workload": "gemm", "tool": "hpcc", "params": {"n": 10**30}, "beside": BESIDE},
            "body.params.n",
            "out of range",
        ),
    ],
)  # fmt: skip
def test_the_field_is_named(
    service: ServiceProcess, request_: dict[str, Any], field: str, part: str
) -> None:
    answer = service.client.post("/trials", json={"id": "t1"} | request_)
    content = problem(answer)
    assert answer.status_code == 422 and content["code"] == "invalid", content
    assert [one["field"] for one in content["errors"]] == [field]
    assert part in content["errors"][0]["detail"], content


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"", 422, "is missing"),
        (b"{", 422, "not JSON"),
        (b"[]", 422, "body"),
        (b"null", 422, "body"),
        (b"\xff\xfe", 422, "not JSON"),
        (b'{"id": "a", "id": "b"}', 422, "workload"),
        (b"[" * 60_000, 422, "not JSON"),
        (b'{"id": "t", "workload": "fma", "timeout_s": NaN}', 422, "body"),
        (b'{"id": "t", "workload": "fma", "timeout_s": 1e999}', 422, "timeout_s"),
        (b'{"id": "t", "workload": "fma", "params": {"threads": ' + b"9" * 5000 + b"}}", 422, ""),
        (b" " * (64 << 10) + b"{}", 413, "65536 bytes"),
        (b"x" * 10_000_000, 413, "65536 bytes"),
    ],
)
def test_bad_bodies(service: ServiceProcess, body: bytes, status: int, part: str) -> None:
    answer = service.client.post("/trials", content=body)
    assert answer.status_code == status
    assert part in problem(answer)["detail"]


def test_a_large_body_without_a_length(service: ServiceProcess) -> None:
    pieces = iter([b"x" * 10_000] * 1000)
    try:
        answer = service.client.post("/trials", content=pieces)
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        return  # refused and closed while we still wrote
    assert answer.status_code == 413 and problem(answer)["code"] == "too_large"


@pytest.mark.parametrize("seconds", ["0", "0.09", "10.1", "nan", "inf", "-1", "x", "1e9", ""])
def test_windows_out_of_range(service: ServiceProcess, seconds: str) -> None:
    answer = service.client.get("/idle", params={"seconds": seconds})
    assert answer.status_code == 422
    assert problem(answer)["errors"][0]["field"] == "query.seconds"


@pytest.mark.parametrize("trial", ["t1", "..", "x" * 5000, "%00", "ä"])
def test_a_lease_of_no_trial(service: ServiceProcess, trial: str) -> None:
    answer = service.client.put(f"/trials/{trial}/lease")
    assert answer.status_code == 404
    problem(answer)


def test_the_same_id_twice_at_a_time(service: ServiceProcess) -> None:
    with running(service, "t1"):
        answer = service.post(id="t1", **SHORT)
        assert answer.status_code == 409
        assert problem(answer)["code"] == "busy" and "t1 runs already" in problem(answer)["detail"]


def test_another_build_of_the_program(service: ServiceProcess) -> None:
    answer = service.post(id="t1", sha256="0" * 64, **SHORT)
    assert answer.status_code == 409 and problem(answer)["code"] == "program_changed"
    assert service.post(id="t1", sha256=problem(answer)["sha256"], **SHORT).status_code == 200


def programs_of(service: ServiceProcess) -> Path:
    return Path(service.environment["HOSTBENCH_PROGRAMS"])


def test_a_program_that_was_built_again(scripted: ServiceProcess) -> None:
    service = scripted
    before = service.client.get("/workloads").json()["program"]["sha256"]
    with (programs_of(scripted) / "cpu-bench").open("a") as program:
        program.write("# another build\n")
    answer = service.post(id="t1", sha256=before, workload="fma")
    assert answer.status_code == 409 and problem(answer)["code"] == "program_changed"
    now = service.client.get("/workloads").json()["program"]["sha256"]
    assert now != before
    assert service.post(id="t1", sha256=now, workload="fma").status_code == 200


def test_a_program_that_was_removed(scripted: ServiceProcess) -> None:
    service, programs = scripted, programs_of(scripted)
    shutil.move(programs / "cpu-bench", programs / "away")
    for answer in (service.post(id="t1", workload="fma"), service.client.get("/workloads")):
        assert answer.status_code == 503 and problem(answer)["code"] == "lacking"
        assert "make programs" in problem(answer)["detail"]
    shutil.move(programs / "away", programs / "cpu-bench")
    assert service.post(id="t1", workload="fma").status_code == 200


def test_a_program_that_cannot_be_started(scripted: ServiceProcess) -> None:
    service, program = scripted, programs_of(scripted) / "cpu-bench"
    program.chmod(0o644)
    answer = service.post(id="t1", workload="fma")
    assert answer.status_code == 503 and problem(answer)["code"] == "lacking"
    assert "cannot start" in problem(answer)["detail"]
    program.chmod(0o755)
    assert service.post(id="t1", workload="fma").status_code == 200


@pytest.fixture(scope="module")
def with_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose lock file is alone in its directory, and may be spoilt."""
    root = tmp_path_factory.mktemp("with_lock")
    (root / "away").mkdir()
    one = ServiceProcess(root, lock=root / "away" / "lock")
    one.start()
    yield one
    check_and_stop(one)


def test_a_lock_that_cannot_be_taken(with_lock: ServiceProcess) -> None:
    service, lock = with_lock, with_lock.lock
    lock.unlink()
    lock.parent.rmdir()
    answer = service.post(id="t1", **SHORT)
    assert answer.status_code == 503 and "lock file" in problem(answer)["detail"]
    lock.parent.mkdir()
    assert service.post(id="t1", **SHORT).status_code == 200


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("garbage", "malformed_output"),
        ("crash", "killed"),
        ("hang_after_end", "timeout"),
        ("wrong", "wrong_result"),
    ],
)
@pytest.mark.sampled(2)
def test_faulty_programs(scripted: ServiceProcess, script: str, code: str) -> None:
    service = scripted
    params = {"threads": 1}
    with (
        behaving(service, script),
        running(service, "t1", workload="fma", params=params) as trial,
    ):
        assert trial.failure()["code"] == code
    assert json.loads(service.lock.read_text())["holder"]["job"] == "t1"
    assert lock_is_free(service.lock)


def test_whatever_stands_in_the_lock_file(with_lock: ServiceProcess) -> None:
    service = with_lock
    service.lock.write_text(
        '{"fence": NaN, "holder": {"job": NaN, "pid": 1e400, "user": ["x"], "host": "' + "h" * 900
        + '", "fence": "4", "since_unix_s": 1e300}}'
    )  # fmt: skip
    with service.lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        answer = service.post(id="t1", fence=5, **SHORT)
        assert answer.status_code == 409
        assert problem(answer)["holder"] == {"host": "h" * 200}
    assert service.post(id="t1", fence=5, **SHORT).status_code == 200
