"""The calls against their own description: whatever is sent, no 5xx, and answers as described."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from hostbench.model.job_events import JobEvent
from hostbench.model.jobs import JobSpec, StackState
from orchestrator.settings import Settings
from tests.orchestrator.conftest import HOST, Stack
from tests.patience import PATIENCE_S
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY
from tests.stack.redis_server import REPOSITORY

SECONDS = 20
REGISTRATION_SECONDS = 6
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# What a schema allows may still name a workload that is not there, and what DELETE cancels is not
# gone. Of a path with several methods Starlette's 405 names one.
NOT_OURS = "positive_data_acceptance,use_after_free,allow_header_conformance"


@pytest.fixture(scope="module")
def schema(stack: Stack) -> dict[str, Any]:
    document: dict[str, Any] = stack.client.get("/openapi.json").json()
    return document


def test_every_call_is_described(schema: dict[str, Any]) -> None:
    for path, calls in schema["paths"].items():
        for method, call in calls.items():
            assert call["summary"] and call["tags"], (method, path)
            for status, answer in call["responses"].items():
                if status.startswith("4"):
                    assert "application/problem+json" in answer["content"], (method, path, status)
            assert path == "/healthz" or "401" in call["responses"], (method, path)


def whatever_is_sent(stack: Stack, directory: Path, key: str, seconds: int, *which: str) -> None:
    ended = subprocess.run(
        [
            SCHEMATHESIS,
            "run",
            f"{stack.orchestrator.url}/openapi.json",
            *("--header", f"Authorization: Bearer {key}"),
            *("--max-time", str(seconds)),
            *("--request-timeout", str(PATIENCE_S)),
            *("--seed", "20261121"),
            "--no-color",
            *("--exclude-checks", NOT_OURS),
            *which,
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in stack.orchestrator.log


@pytest.mark.exhaustive
def test_whatever_is_sent_by_a_user(stack: Stack, schema: dict[str, Any], tmp_path: Path) -> None:
    # Events of a job that waits come without end.
    exclude = ("--exclude-path", "/jobs/{job_id}/events", "--exclude-operation-id")
    registration = schema["paths"]["/hosts"]["post"]["operationId"]
    try:
        whatever_is_sent(stack, tmp_path, API_KEY, SECONDS, *exclude, registration)
    finally:
        for state in ("queued", "waiting", "running"):
            jobs = stack.client.get("/jobs", params={"state": state, "limit": 500}).json()["jobs"]
            for job in jobs:
                stack.client.delete(f"/jobs/{job['id']}")
        stack.orchestrator.wait_for_host(HOST)


@pytest.mark.exhaustive
def test_whatever_is_sent_by_a_service(
    stack: Stack, schema: dict[str, Any], tmp_path: Path
) -> None:
    registration = schema["paths"]["/hosts"]["post"]["operationId"]
    which = ("--include-operation-id", registration)
    whatever_is_sent(stack, tmp_path, SERVICE_KEY, REGISTRATION_SECONDS, *which)


def page() -> str:
    return (REPOSITORY / "docs/api.md").read_text()


def test_the_page_knows_every_call_code_event_and_variable(schema: dict[str, Any]) -> None:
    text = page()
    for path, calls in schema["paths"].items():
        for method in calls:
            assert re.search(rf"`{method.upper()} {re.escape(path)}[`?]", text), (method, path)
    sources = [*(REPOSITORY / "orchestrator").rglob("*.py"), REPOSITORY / "hostbench/web/body.py"]
    for source in sources:
        for code in re.findall(r"Problem\(\s*\d+,\s*\"([a-z_]+)\"", source.read_text()):
            assert f"`{code}`" in text, (source, code)
    for word in (*StackState, *events()):
        assert f"| `{word}` |" in text, word
    for field in Settings.model_fields:
        assert f"`{Settings.variable(field)}`" in text, field
    for field in JobSpec.model_fields:
        assert f"`{field}`" in text, field


def events() -> list[str]:
    """The words that tell events apart."""
    schema = TypeAdapter(JobEvent).json_schema()
    return list(schema["discriminator"]["mapping"])


def test_the_page_s_examples(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/authorization").write_text(f"Authorization: Bearer {API_KEY}")
    commands = re.findall(r"^curl(?:.*\\\n)*.*$", page(), re.MULTILINE)
    assert len(commands) == 4
    job = ""
    for command in commands:
        command = command.replace("http://127.0.0.1:8000", stack.orchestrator.url)
        environment = {**os.environ, "JOB": job}
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        if not job:
            job = json.loads(ended.stdout)["id"]
        else:
            assert job in ended.stdout
