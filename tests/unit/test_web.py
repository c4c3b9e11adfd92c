"""What the HTTP APIs share: bodies, keys, problem details."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from pydantic import Field

from hostbench.base.config import EnvironmentSettings, Option, url_of
from hostbench.base.errors import HostbenchError, ResourceError, UsageError
from hostbench.model.jobs import JobSpec
from hostbench.web.body import BodyLimit, accepts, describe_bodies, json_body
from hostbench.web.keys import Caller, KeyRing, Role, digest_of, requires
from hostbench.web.problem import MEDIA_TYPE, Problem, install_problem_handlers
from hostbench.web.settings import Key

KEY = "0123456789abcdef"
ANN = Caller("ann", Role.OPERATOR)
RING = KeyRing(lambda: [(ANN, digest_of(one)) for one in (KEY, "another key of users")])
BODY_BYTES_MOST = 2000


def application() -> FastAPI:
    app = FastAPI()
    install_problem_handlers(app)
    app.add_middleware(BodyLimit, most=BODY_BYTES_MOST)

    @app.post("/jobs", openapi_extra=accepts(JobSpec, {"quick": {"suite": "quick"}}))
    def jobs(spec: Annotated[JobSpec, Depends(json_body(JobSpec))]) -> JobSpec:
        return spec

    @app.get("/locked", dependencies=[Depends(requires(RING, Role.OPERATOR))])
    def locked() -> str:
        return "open"

    @app.get("/fails/{how}")
    def fails(how: str) -> None:
        raise {
            "usage": UsageError("a\nb"),
            "resource": ResourceError("no room"),
            "other": HostbenchError("no"),
            "problem": Problem(409, "busy", "held", field="body.fence", retry_after_s=3.5),
        }[how]

    describe_bodies(app, JobSpec)
    return app


APP = application()


async def ask(method: str, path: str, **options: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=APP)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path, **options)


def call(method: str, path: str, **options: Any) -> httpx.Response:
    return asyncio.run(ask(method, path, **options))


def test_a_suite_may_be_given_by_name_or_in_full() -> None:
    suite = {"name": "mine", "cases": [{"workload": "cpu.fma", "grid": {"threads": [1, "all"]}}]}
    assert call("POST", "/jobs", json={"suite": "quick"}).json()["suite"] == "quick"
    assert call("POST", "/jobs", json={"suite": suite}).json()["suite"]["cases"]


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (b"", "body", "is missing"),
        (b"{bad", "body", "not JSON"),
        (b"[]", "body", "object"),
        (b"null", "body", "object"),
        (b"{}", "body", "either suite or workload"),
        (b'{"suite": 3}', "body.suite", "3"),
        (b'{"suite": "a", "workload": "b"}', "body", "either"),
        (b'{"suite": "a", "priority": "high"}', "body.priority", "'high'"),
        (b'{"suite": "a", "priority": 11}', "body.priority", "11"),
        (b'{"suite": "a", "trials": 1.5}', "body.trials", "1.5"),
        (b'{"suite": "a", "hosts": []}', "body.hosts", "at least 1"),
        (b'{"suite": "a", "hosts": ["a", "a"]}', "body", "twice"),
        (b'{"suite": "a", "hosts": ["../a"]}', "body.hosts[0]", "'../a'"),
        (b'{"suite": "a", "params": {"threads": 1}}', "body", "needs workload"),
        (b'{"suite": "a", "hots": ["a"]}', "body.hots", "not known"),
        (
            b'{"workload": "cpu.fma", "params": {"duration_s": NaN}}',
            "body.params.duration_s",
            "nan",
        ),
        (b'{"suite": {"name": "x", "cases": []}}', "body.suite.cases", "at least 1"),
        (b'"\xff"', "body", "not JSON"),
    ],
)
def test_bad_bodies_are_problems_that_name_the_field(body: bytes, field: str, words: str) -> None:
    answer = call("POST", "/jobs", content=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem = answer.json()
    assert problem["errors"][0]["field"].startswith(field), problem
    assert words in problem["errors"][0]["detail"], problem
    assert problem["status"] == 422 and "\n" not in problem["detail"]


@pytest.mark.parametrize("announced", [True, False])
def test_a_large_body_is_refused_before_it_is_read(announced: bool) -> None:
    async def pieces() -> Any:
        for _ in range(3):
            yield b"x" * 1000

    content = b"x" * 3000 if announced else pieces()
    answer = call("POST", "/jobs", content=content)
    assert answer.status_code == 413
    assert str(BODY_BYTES_MOST) in answer.json()["detail"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        (f"Basic {KEY}", 401),
        ("Bearer wrong", 401),
        (f"Bearer {KEY}x", 401),
        ("Bearer \xfc", 401),
        (f"Bearer {KEY}", 200),
        (f"bearer {KEY}", 200),
        ("Bearer another key of users", 200),
    ],
)
def test_a_call_takes_one_of_its_keys(header: str | None, status: int) -> None:
    headers = {} if header is None else {"authorization": header.encode("latin-1")}
    answer = call("GET", "/locked", headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert KEY not in answer.text


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ("usage", 422, "invalid"),
        ("resource", 503, "lacking"),
        ("other", 409, "refused"),
        ("problem", 409, "busy"),
    ],
)
def test_expected_errors_are_problems(how: str, status: int, code: str) -> None:
    problem = call("GET", f"/fails/{how}").json()
    assert (problem["status"], problem["code"]) == (status, code)
    if how == "problem":
        assert problem["retry_after_s"] == 3.5
        assert problem["errors"] == [{"field": "body.fence", "detail": "held"}]


def test_what_the_framework_refuses_is_a_problem_too() -> None:
    for method, path, status in (("GET", "/nowhere", 404), ("DELETE", "/jobs", 405)):
        answer = call(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == MEDIA_TYPE


def test_openapi_describes_the_bodies() -> None:
    document = call("GET", "/openapi.json").json()
    content = document["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert content["schema"]["$ref"].endswith("/JobSpec")
    assert content["examples"]["quick"]["value"] == {"suite": "quick"}
    assert {"JobSpec", "Suite"} <= set(document["components"]["schemas"])


class KeySettings(EnvironmentSettings):
    x_key: Key


def read_key() -> str:
    return KeySettings.from_environment().x_key.get_secret_value()


def test_a_key_comes_from_its_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTBENCH_X_KEY", raising=False)
    with pytest.raises(UsageError, match=r"^HOSTBENCH_X_KEY_FILE is not set; name a file"):
        read_key()
    monkeypatch.setenv("HOSTBENCH_X_KEY", KEY)
    assert read_key() == KEY
    (tmp_path / "key").write_text(f"{KEY}-of-the-file\n")
    monkeypatch.setenv("HOSTBENCH_X_KEY_FILE", str(tmp_path / "key"))
    assert read_key() == f"{KEY}-of-the-file"
    assert KEY not in repr(KeySettings.from_environment())
    (tmp_path / "key").write_text("short\n")
    with pytest.raises(UsageError, match=r"^HOSTBENCH_X_KEY has 5 characters, 16 are the least"):
        read_key()
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(ResourceError, match="not text"):
        read_key()
    monkeypatch.setenv("HOSTBENCH_X_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(ResourceError, match="No such file"):
        read_key()


class PlaceSettings(EnvironmentSettings):
    x_url: Annotated[str, url_of("redis")] | None = None
    x_count: int = Field(default=3, title="a count", description="give a whole number")


def test_the_line_about_a_wrong_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, its value unless that may hold a password, what is allowed; options go first."""
    monkeypatch.setenv("HOSTBENCH_X_COUNT", "")
    assert PlaceSettings.from_environment().x_count == 3
    monkeypatch.setenv("HOSTBENCH_X_COUNT", "many")
    with pytest.raises(UsageError) as wrong:
        PlaceSettings.from_environment()
    assert wrong.value.message == ("HOSTBENCH_X_COUNT 'many' is not a count; give a whole number")
    with pytest.raises(UsageError, match=r"^--count 'few' is not a count"):
        PlaceSettings.from_environment(x_count=Option("--count", "few"))
    assert PlaceSettings.from_environment(x_count=Option("--count", 5)).x_count == 5
    monkeypatch.setenv("HOSTBENCH_X_COUNT", "4")
    monkeypatch.setenv("HOSTBENCH_X_URL", "ftp://me:PASSWORD@redis")
    with pytest.raises(UsageError, match=r"^HOSTBENCH_X_URL is not a URL .* redis://name:port$"):
        PlaceSettings.from_environment(x_count=Option("--count", None))
