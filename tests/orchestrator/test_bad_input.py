"""What cannot be is refused with one clear line that names the field, and never with a 5xx."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hostbench.web.problem import MEDIA_TYPE
from tests.each import each
from tests.orchestrator.conftest import HOST, Stack
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY

CASE = {"workload": "cpu.fma", "params": {"duration_s": 0.05}}
SUITE: dict[str, Any] = {"name": "x", "cases": [CASE]}
SCALED: dict[str, Any] = {**SUITE, "scales": {"quick": {}, "full": {}}}


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    details: dict[str, Any] = answer.json()
    assert details["status"] == status and "\n" not in details["detail"]
    return details


@pytest.fixture
def stranger() -> Iterator[httpx.Client]:
    """One without a key, for many calls."""
    with httpx.Client() as client:
        yield client


def field_of(details: dict[str, Any]) -> str:
    return str(details["errors"][0]["field"])


@each(
    ("spec", "field", "says"),
    [
        ({"suite": "quik"}, "body.suite", "did you mean 'quick'"),
        ({"suite": "../quick"}, "body.suite", "there is no suite"),
        ({"suite": "/etc/passwd"}, "body.suite", "there is no suite"),
        ({"suite": "suites/quick.yaml"}, "body.suite", "there is no suite"),
        ({"workload": "cpu.fmaa"}, "body.workload", "did you mean 'cpu.fma'"),
        ({"workload": "fma"}, "body.workload", "has no subsystem"),
        ({"workload": "cpx.fma"}, "body.workload", "did you mean 'cpu'"),
        ({"workload": "npu.gemm"}, "body.workload", "there is no subsystem"),
        ({"workload": "gpu.gemm"}, "body.hosts", "has no service gpu"),
        (
            {"workload": "cpu.fma", "params": {"thread": 1}},
            "body.params.thread",
            "did you mean 'threads'",
        ),
        (
            {"workload": "cpu.fma", "params": {"threads": 0}},
            "body.params.threads",
            "out of range; give 1 to",
        ),
        (
            {"workload": "cpu.fma", "params": {"threads": "many"}},
            "body.params.threads",
            "is not a whole number",
        ),
        (
            {"workload": "cpu.fma", "params": {"threads": [1, 2]}},
            "body.params.threads",
            "is not allowed",
        ),
        (
            {"workload": "cpu.fma", "params": {"threads": None}},
            "body.params.threads",
            "None is not allowed",
        ),
        (
            {"workload": "cpu.fma", "params": {"dtype": "fp65"}},
            "body.params.dtype",
            "did you mean 'fp64'",
        ),
        ({"workload": "cpu.fma", "params": {"cpus": "9999"}}, "body.params.cpus", "9999"),
        (
            {"workload": "cpu.fma", "params": {"duration_s": 1, "work": 5}},
            "body.workload",
            "exclude one another",
        ),
        ({"suite": "quick", "hosts": ["bench-2"]}, "body.hosts", "did you mean 'bench-1'"),
        ({"suite": "quick", "hosts": []}, "body.hosts", "at least 1"),
        ({"suite": "quick", "hosts": ["a", "b", "c"]}, "body.hosts", "at most 2"),
        ({"suite": "quick", "hosts": [HOST, HOST]}, "body", "names one host twice"),
        ({"suite": "quick", "hosts": "bench-1"}, "body.hosts", "give a list"),
        ({"suite": "quick", "hosts": ["a|b"]}, "body.hosts[0]", "'a|b' is not allowed"),
        ({"suite": "quick", "priority": 11}, "body.priority", "give 10 or less"),
        ({"suite": "quick", "priority": "1"}, "body.priority", "give a whole number"),
        ({"suite": "quick", "trials": 0}, "body.trials", "give 1 or more"),
        ({"suite": "quick", "idle_policy": "wait"}, "body.idle_policy", "'fail', 'flag' or"),
        ({"suite": "quick"}, "body.hosts", "has no service disk; it has cpu: start that service"),
        ({"suite": SUITE, "peers": ["nothing"]}, "body.suite", "there is no peer"),
        ({"suite": "quick", "peers": "all"}, "body.peers", "'auto' or 'none'"),
        ({"suite": "quick", "sweet": 1}, "body.sweet", "is not known here"),
        ({"suite": "quick", "workload": "cpu.fma"}, "body", "either suite or workload"),
        ({"suite": "quick", "params": {"threads": 1}}, "body", "params needs workload"),
        ({}, "body", "either suite or workload"),
        ({"workload": "cpu.fma", "scale": "full"}, "body", "scale needs suite"),
        ({"suite": SUITE, "scale": "full"}, "body.scale", "has no scales"),
        ({"suite": SCALED, "scale": "ful"}, "body.scale", "did you mean 'full'"),
        ({"suite": SCALED, "scale": "No!"}, "body.scale", "'No!'"),
        (
            {"suite": {**SCALED, "cases": [{**CASE, "scales": {"ful": {}}}]}},
            "body.suite",
            "cases[0].scales: the suite has no scale 'ful'",
        ),
        ({"suite": {**SCALED, "scale": "full"}}, "body.suite", "beside scales"),
        ({"suite": {**SUITE, "name": "no spaces"}}, "body.suite.name", "'no spaces'"),
        ({"suite": {**SUITE, "cases": []}}, "body.suite.cases", "at least 1"),
        ({"suite": {"name": "x"}}, "body.suite.cases", "is missing"),
        ({"suite": 5}, "body.suite", "5 is not allowed"),
        (
            {"suite": {**SUITE, "cases": [{**CASE, "grid": {"threads": "some"}}]}},
            "body.suite.cases[0].grid.threads",
            "'some' is not allowed",
        ),
        (
            {"suite": {**SUITE, "cases": [{"workload": "cpu.fma", "params": {"thread": 1}}]}},
            "body.suite",
            "did you mean 'threads'",
        ),
        (
            {"suite": {**SUITE, "cases": [CASE, {"workload": "cpu.fmaa"}]}},
            "body.suite",
            "suite x, cases[1], cpu.fmaa",
        ),
        (
            {"suite": {**SUITE, "repeats": {"min_trials": 9, "max_trials": 3}}},
            "body.suite.repeats",
            "above max_trials",
        ),
        (
            {"suite": {**SUITE, "cases": [{**CASE, "grid": {"threads": [1] * 5, "work": [1]}}]}},
            "body.suite",
            "exclude one another",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    stack: Stack, spec: dict[str, Any], field: str, says: str
) -> None:
    details = problem(stack.client.post("/jobs", json=spec), 422)
    assert field_of(details) == field, details
    assert says in details["detail"]


def test_a_parameter_of_the_operator_is_not_for_requests(stack: Stack) -> None:
    """The table of cpu-bench has one: its lifeline."""
    tables = stack.client.get("/workloads").json()["hosts"][HOST]
    names = {
        param["name"]
        for workload in tables[0]["workloads"]
        for param in workload["params"]
        if param["scope"] == "host"
    }
    if not names:
        pytest.skip("no cpu workload has a parameter of scope host")
    for name in names:
        spec = {"workload": "cpu.fma", "params": {name: "1"}}
        details = problem(stack.client.post("/jobs", json=spec), 422)
        assert field_of(details) == f"body.params.{name}"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is missing"),
        (b"   ", "is missing"),
        (b"{", "not JSON"),
        (b'{"suite": "quick",}', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"suite": NaN}', "nan is not allowed"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "is not allowed"),
        (b'"quick"', "is not allowed"),
        (b"null", "is not allowed"),
        (b'{"workload":"cpu.fma","params":{"duration_s":1e999}}', "body"),
        (b'{"suite": "qu\\u0000ick"}', "there is no suite"),
    ],
)
def test_a_body_that_is_none_is_refused(stack: Stack, content: bytes, says: str) -> None:
    assert says in problem(stack.client.post("/jobs", content=content), 422)["detail"]


def test_a_large_body_is_not_read(stack: Stack) -> None:
    large = json.dumps({"suite": "x" * (10 << 20)}).encode()
    details = problem(stack.client.post("/jobs", content=large), 413)
    assert details["code"] == "too_large"

    def pieces() -> Any:
        for _ in range(160):
            yield b"x" * 65536

    try:
        answer = stack.client.post("/jobs", content=pieces())
    except httpx.WriteError:
        return  # the connection was closed under it, which is as good
    assert answer.status_code == 413


CALLS = [
    ("GET", "/jobs"),
    ("POST", "/jobs"),
    ("GET", "/jobs/20261120T174501Z-quick-3f2a"),
    ("DELETE", "/jobs/20261120T174501Z-quick-3f2a"),
    ("POST", "/jobs/20261120T174501Z-quick-3f2a/resume"),
    ("GET", "/jobs/20261120T174501Z-quick-3f2a/events"),
    ("GET", "/jobs/20261120T174501Z-quick-3f2a/result"),
    ("GET", "/jobs/20261120T174501Z-quick-3f2a/report"),
    ("GET", "/jobs/20261120T174501Z-quick-3f2a/baseline"),
    ("GET", "/compare"),
    ("GET", "/baselines"),
    ("GET", "/hosts/bench-1/history"),
    ("GET", "/hosts"),
    ("POST", "/hosts"),
    ("GET", "/suites"),
    ("GET", "/suites/quick"),
    ("GET", "/workloads"),
    ("POST", "/console/links"),
    ("POST", "/documents"),
    ("GET", "/points/rejected"),
    ("DELETE", "/points/rejected"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
]
# Opened in browsers, which ask their user for Basic alone.
IN_BROWSERS = ("/report", "/openapi.json")


@each(
    ("call", "key"),
    itertools.product(CALLS, [None, "Bearer wrong wrong wrong", "Bearer", "Basic QQ==", "x"]),
)
def test_every_call_needs_its_key(
    stack: Stack, stranger: httpx.Client, call: tuple[str, str], key: str | None
) -> None:
    method, path = call
    headers = {} if key is None else {"Authorization": key}
    answer = stranger.request(method, stack.orchestrator.url + path, headers=headers)
    assert problem(answer, 401)["code"] == "unauthorized"
    scheme = "Basic" if path.endswith(IN_BROWSERS) else "Bearer"
    assert answer.headers["www-authenticate"].startswith(scheme)


def test_users_and_services_have_different_keys(stack: Stack) -> None:
    url = stack.orchestrator.url
    services = {"Authorization": f"Bearer {SERVICE_KEY}"}
    assert httpx.post(f"{url}/jobs", headers=services, json={}).status_code == 403
    users = {"Authorization": f"Bearer {API_KEY}"}
    assert httpx.post(f"{url}/hosts", headers=users, json={}).status_code == 403


def test_every_call_is_among_those_that_need_a_key(stack: Stack) -> None:
    paths = stack.client.get("/openapi.json").json()["paths"]
    known = {
        (method, path.replace("20261120T174501Z-quick-3f2a", "{job_id}")) for method, path in CALLS
    }
    known = {(method, path.replace("/suites/quick", "/suites/{name}")) for method, path in known}
    known = {(method, path.replace("/hosts/bench-1", "/hosts/{host}")) for method, path in known}
    every = {(method.upper(), path) for path, calls in paths.items() for method in calls}
    assert every - known == {("GET", "/healthz")}


@each(
    ("job", "call"),
    itertools.product(
        [
            "20261120T174501Z-quick-3f2a",
            "..%2F..%2Fetc%2Fpasswd",
            "..",
            "latest",
            "20261120T174501Z-..-3f2a",
            "20261120T174501Z-quick-3f2a%0A",
            "99999999T999999Z-quick-3f2a",
            "%00",
            "x" * 200,
        ],
        ["GET ", "DELETE ", "POST /resume", "GET /events", "GET /result"],
    ),
)
def test_unknown_jobs_are_not_found(stack: Stack, job: str, call: str) -> None:
    method, _, path = call.partition(" ")
    answer = stack.client.request(method, f"/jobs/{job}{path}")
    if job == "..":
        # The address of the stack leads to the console.
        assert answer.status_code in (303, 404, 405), "the client made another path of it"
        return
    details = problem(answer, 404)
    if "%2F" not in job:
        assert details["code"] == "unknown_job"


NO_JOB_ID = "is not the id of a job; give `next` of the last answer"
JOB_STATES = "'queued', 'waiting', 'running', 'succeeded', 'failed', 'cancelled' or 'lost'"


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"state": "sleeping"}, f"state 'sleeping' is not allowed: give {JOB_STATES}"),
        (
            {"state": "runing"},
            f"state 'runing' is not allowed: did you mean 'running'? give {JOB_STATES}",
        ),
        ({"limit": 0}, "limit '0' is not allowed: give 1 or more"),
        ({"limit": 501}, "limit '501' is not allowed: give 500 or less"),
        ({"limit": "many"}, "limit 'many' is not allowed: give a whole number"),
        (
            {"before": "../x"},
            "before: '../x' is not the id of a job; give `next` of the last answer",
        ),
        ({"before": ""}, "before: '' is not the id of a job; give `next` of the last answer"),
        ({"host": "x" * 65}, f"host '{'x' * 65}' is not allowed: give at most 64 characters"),
    ],
)
def test_odd_questions_for_a_list_are_refused(
    stack: Stack, params: dict[str, Any], line: str
) -> None:
    details = problem(stack.client.get("/jobs", params=params), 422)
    assert details["detail"] == line
    assert field_of(details) == f"query.{next(iter(params))}"


def test_a_list_before_a_time_that_never_was_is_empty(stack: Stack) -> None:
    answer = stack.client.get("/jobs", params={"before": "99999999T999999Z-quick-3f2a"})
    assert answer.status_code == 200


def test_odd_idempotency_keys_are_refused(stack: Stack) -> None:
    for key in ("", "x" * 201):
        answer = stack.client.post("/jobs", json={}, headers={"Idempotency-Key": key})
        assert answer.status_code == 422


def test_a_format_that_is_not_known_is_refused(stack: Stack) -> None:
    path = "/jobs/20261120T174501Z-quick-3f2a/result"
    assert stack.client.get(path, params={"format": "xml"}).status_code in (404, 422)


# ---- registration ----


def registration(**changes: Any) -> dict[str, Any]:
    body = {
        "host": "bench-9",
        "subsystem": "cpu",
        "url": "http://127.0.0.1:1",
        "instance": "0123456789abcdef",
    }
    return {**body, **changes}


def register(stack: Stack, body: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": f"Bearer {SERVICE_KEY}"}
    return httpx.post(f"{stack.orchestrator.url}/hosts", headers=headers, json=body, timeout=30)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"host": "a b"}, "body.host"),
        ({"host": "a:b"}, "body.host"),
        ({"host": ""}, "body.host"),
        ({"subsystem": "cpx"}, "body.subsystem"),
        ({"url": "file:///etc/passwd"}, "body.url"),
        ({"url": "http://127.0.0.1:1/path"}, "body.url"),
        ({"instance": "x"}, "body.instance"),
        ({"more": 1}, "body.more"),
    ],
)
def test_odd_registrations_are_refused(stack: Stack, changes: dict[str, Any], field: str) -> None:
    assert field_of(problem(register(stack, registration(**changes)), 422)) == field


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "unix:/nowhere.sock", "http://[::1", "http://x:99999"]
)
def test_a_service_that_cannot_be_reached_is_not_taken_up(stack: Stack, url: str) -> None:
    details = problem(register(stack, registration(url=url)), 422)
    assert field_of(details) == "body.url"
    assert "HOSTBENCH_SERVICE_URL" in details["detail"]
    names = [host["name"] for host in stack.client.get("/hosts").json()["hosts"]]
    assert "bench-9" not in names


def test_an_address_that_is_no_service_is_not_taken_up(stack: Stack) -> None:
    details = problem(register(stack, registration(url=stack.orchestrator.url)), 422)
    assert (details["code"], field_of(details)) == ("unreachable", "body.url")


def test_a_service_of_another_subsystem_is_not_taken_up(stack: Stack) -> None:
    details = problem(register(stack, registration(subsystem="mem", url=stack.service.url)), 422)
    assert (details["code"], field_of(details)) == ("other_subsystem", "body.subsystem")
