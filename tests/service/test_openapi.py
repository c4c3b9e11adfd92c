"""The calls against their own description: whatever is sent, no 5xx, and answers as described."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.service import (
    Ending,
    Refusal,
    SessionOutcome,
    SessionRequest,
    TrialRequest,
)
from hostbench.service.settings import Settings
from tests.patience import PATIENCE_S
from tests.service.streams import outcome
from tests.stack.service_process import CHECKOUT, ServiceProcess

SECONDS = 20
CALLS = {
    "GET /healthz",
    "GET /host",
    "GET /idle",
    "GET /lock",
    "GET /metrics",
    "GET /workloads",
    "POST /trials",
    "PUT /trials/{trial_id}/lease",
}
NET_CALLS = {"POST /sessions", "GET /route"}
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


def test_every_call_is_described(service: ServiceProcess) -> None:
    schema = service.client.get("/openapi.json").json()
    assert calls_of(schema) == CALLS
    body = schema["paths"]["/trials"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["$ref"].endswith("/TrialRequest") and len(body["examples"]) == 3
    for path, item in schema["paths"].items():
        for operation in item.values():
            assert operation["summary"]
            assert path == "/healthz" or "401" in operation["responses"]


def calls_of(schema: Any) -> set[str]:
    return {f"{method.upper()} {path}" for path, item in schema["paths"].items() for method in item}


def test_the_calls_of_the_net_service(net: ServiceProcess) -> None:
    schema = net.client.get("/openapi.json").json()
    assert calls_of(schema) == CALLS | NET_CALLS
    body = schema["paths"]["/sessions"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["$ref"].endswith("/SessionRequest")
    assert set(schema["components"]["schemas"]["SessionRequest"]["properties"]) == set(
        SessionRequest.model_fields
    )
    for example in body["examples"].values():
        SessionRequest.model_validate_json(json.dumps(example["value"]))


def test_the_examples_are_accepted(service: ServiceProcess) -> None:
    schema = service.client.get("/openapi.json").json()
    body = schema["paths"]["/trials"]["post"]["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():
        request = example["value"] | {"sha256": None, "fence": None}
        with service.client.stream("POST", "/trials", json=request) as answer:
            assert answer.status_code == 200, answer.read()
            next(answer.iter_lines())
        # It ends with its caller, and the host is free for the next.
        outcome(service, request["id"])


@pytest.mark.exhaustive
def test_whatever_is_sent(service: ServiceProcess, tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            SCHEMATHESIS,
            "run",
            f"{service.url}/openapi.json",
            "--header",
            f"Authorization: Bearer {service.key}",
            "--max-time",
            str(SECONDS),
            "--request-timeout",
            str(PATIENCE_S),
            "--seed",
            "20261121",
            "--no-color",
            # What a schema allows may still name a workload that is not there.
            "--exclude-checks",
            "positive_data_acceptance",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_page_knows_every_call_code_and_variable() -> None:
    page = (CHECKOUT / "docs/service.md").read_text()
    for call in CALLS | NET_CALLS:
        method, path = call.split()
        assert re.search(rf"\| `{method} {re.escape(path)}[?`]", page), call
    for code in (*Ending, *Refusal, *SessionOutcome):
        assert f"`{code}`" in page, code
    for name in Settings.model_fields.keys() - {"subsystem"}:
        assert f"`{Settings.variable(name)}`" in page, name
    for field in (*TrialRequest.model_fields, *SessionRequest.model_fields):
        assert f"`{field}`" in page, field


def test_the_page_s_first_example(service: ServiceProcess) -> None:
    page = (CHECKOUT / "docs/service.md").read_text()
    example = re.search(r"^authorization\(\).*?^```", page, re.MULTILINE | re.DOTALL)
    assert example is not None
    command = example[0].removesuffix("```").replace("http://127.0.0.1:8001", service.url)
    command = command.replace("$(cat secrets/service_key)", service.key)
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert '"control_plane"' in ended.stdout, ended.stdout + ended.stderr
