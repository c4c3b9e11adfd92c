"""Keys with names: of users, with roles, and of hosts; made and taken away while the orchestrator
runs, and who did what."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts
from tests.machine_code import ROOT
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY, OrchestratorProcess

SOME_SECONDS = {**SHORT, "params": {"threads": 1, "duration_s": 8, "warmup_s": 0}}


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/keys").write_text("# no key yet\n")
    (tmp_path / "secrets/host_keys").write_text("# none yet\n")
    (tmp_path / ".env").write_text("HOSTBENCH_HOST=bench-1\n")
    with StackParts(tmp_path) as stack:
        one = stack.orchestrator(HOSTBENCH_KEYS_FILE=str(tmp_path / "secrets/keys"))
        stack.host(one)
        yield one


def make_key(directory: Path, name: str, role: str, code: int = 0) -> str:
    """What `make key` prints: the key, or why there is none."""
    ended = subprocess.run(
        [ROOT / "scripts/make-key.sh", name, role, directory], capture_output=True, text=True
    )
    assert ended.returncode == code, ended.stderr
    return (ended.stdout or ended.stderr).strip()


def audit(orchestrator: OrchestratorProcess) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in orchestrator.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "audit"]


def test_keys_with_names_and_roles(tmp_path: Path, orchestrator: OrchestratorProcess) -> None:
    def call(key: str, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.request(method, orchestrator.url + path, headers=headers, **options)

    ann, bob = (make_key(tmp_path, *one) for one in (("ann", "viewer"), ("bob", "operator")))
    # A viewer looks and changes nothing.
    for path in ("/jobs", "/hosts", "/baselines", "/metrics", "/openapi.json"):
        assert call(ann, "GET", path).status_code == 200, path
    refused = call(ann, "POST", "/jobs", json=SHORT_THEN_LONG)
    assert refused.status_code == 403 and refused.json()["code"] == "forbidden"
    assert "ann has the role viewer" in refused.json()["detail"]
    # An operator does what the key of make env does.
    job = call(bob, "POST", "/jobs", json=SHORT_THEN_LONG).raise_for_status().json()["id"]
    call(bob, "DELETE", f"/jobs/{job}").raise_for_status()
    # Neither registers, and services do nothing else.
    assert call(bob, "POST", "/hosts", json={}).status_code == 403
    assert call(SERVICE_KEY, "GET", "/jobs").status_code == 403
    # Another key in place of the one that was lost, and none.
    another = make_key(tmp_path, "ann", "viewer")
    assert call(ann, "GET", "/jobs").status_code == 401
    assert call(another, "GET", "/jobs").status_code == 200
    make_key(tmp_path, "bob", "none")
    assert call(bob, "GET", "/jobs").status_code == 401
    assert call(another, "GET", "/jobs").status_code == 200
    # Who did what, and nothing that is secret.
    events = [
        (one["key"], one["call"], one.get("status"), one.get("made")) for one in audit(orchestrator)
    ]
    assert events == [
        ("services", "register", None, "bench-1 cpu"),
        ("ann", "POST /jobs", 403, None),
        ("bob", "POST /jobs", 202, f"/jobs/{job}"),
        ("bob", f"DELETE /jobs/{job}", 202, None),
        ("bob", "POST /hosts", 403, None),
    ]
    for secret in (ann, bob, another, API_KEY, SERVICE_KEY):
        assert secret not in orchestrator.log
        assert secret not in (tmp_path / "secrets/keys").read_text()


def test_a_file_of_keys_that_is_wrong(tmp_path: Path, orchestrator: OrchestratorProcess) -> None:
    keys = tmp_path / "secrets/keys"
    ann = make_key(tmp_path, "ann", "viewer")
    headers = {"Authorization": f"Bearer {ann}"}
    # A key in clear is no line of it; the others hold.
    keys.write_text("bob operator my-own-secret-word\n" + keys.read_text())
    assert httpx.get(f"{orchestrator.url}/jobs", headers=headers).status_code == 200
    assert '"event": "keys_line_ignored"' in orchestrator.log and '"line": 1' in orchestrator.log
    assert "my-own-secret-word" not in orchestrator.log
    # Without it only the key of make env is accepted.
    keys.unlink()
    assert httpx.get(f"{orchestrator.url}/jobs", headers=headers).status_code == 401
    orchestrator.client.get("/jobs").raise_for_status()
    assert '"event": "keys_unreadable"' in orchestrator.log
    assert "is missing; run: make env" in make_key(tmp_path, "ann", "viewer", code=3)
    assert "is not a role; give viewer" in make_key(tmp_path, "ann", "admin", code=2)
    assert "is not a name" in make_key(tmp_path, "a b", "viewer", code=2)


def test_the_key_of_make_env_is_changed_without_a_restart(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name, text in (
        ("keys", "# no key yet"),
        ("host_keys", "# none yet"),
        ("api_key", API_KEY),
        ("authorization", f"Authorization: Bearer {API_KEY}"),
    ):
        (secrets / name).write_text(f"{text}\n")
    (tmp_path / ".env").write_text("HOSTBENCH_HOST=bench-1\n")
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator(HOSTBENCH_API_KEY_FILE=str(secrets / "api_key"))
        stack.host(orchestrator)

        def status(header: str) -> int:
            headers = {"Authorization": header.partition(": ")[2].strip()}
            return httpx.get(f"{orchestrator.url}/jobs", headers=headers).status_code

        before = (secrets / "authorization").read_text()
        assert status(before) == 200
        job = orchestrator.submit(**SHORT_THEN_LONG)
        stack.service("bench-1").wait_for_program()

        # Changed in mid-job: the key before is refused at once, and the job goes on.
        printed = make_key(tmp_path, "api_key", "operator")
        after = (secrets / "authorization").read_text()
        key = (secrets / "api_key").read_text().strip()
        assert after == f"Authorization: Bearer {key}\n" and key not in printed and after != before
        assert (status(before), status(after)) == (401, 200)
        orchestrator.client.headers["Authorization"] = f"Bearer {key}"
        assert orchestrator.job(job)["state"] in ("waiting", "running")
        orchestrator.client.delete(f"/jobs/{job}").raise_for_status()
        assert orchestrator.wait_for(job)["state"] == "cancelled"

        # A file that is being written, or that holds no key, changes nothing.
        for text in ("", "short\n"):
            (secrets / "api_key").chmod(0o644)
            (secrets / "api_key").write_text(text)
            assert status(after) == 200 and status("Authorization: Bearer short") == 401
        assert '"event": "key_too_short"' in orchestrator.log
        for name in (key, API_KEY):
            assert name not in orchestrator.log
        assert "which the stack does not start without" in make_key(
            tmp_path, "api_key", "none", code=2
        )


def test_a_host_has_a_key_of_its_own(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("keys", "host_keys", "service_key"):
        (secrets / name).write_text("# none yet\n")
    (tmp_path / ".env").write_text("HOSTBENCH_HOST=bench-1\n")
    first = make_key(tmp_path, "bench-1", "host")
    second = make_key(tmp_path, "bench-2", "host")
    assert (secrets / "service_key").read_text().strip() == first, "this host's services read it"
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator(HOSTBENCH_HOST_KEYS_FILE=str(secrets / "host_keys"))
        stack.host(orchestrator, HOSTBENCH_SERVICE_KEY_FILE=str(secrets / "service_key"))

        def register(key: str, host: str, url: str = "http://127.0.0.1:9") -> httpx.Response:
            body = {"host": host, "subsystem": "net", "url": url, "instance": "5d41402abc4b2a76"}
            headers = {"Authorization": f"Bearer {key}"}
            return httpx.post(f"{orchestrator.url}/hosts", headers=headers, json=body)

        # The key of a host registers no other, and the orchestrator calls no host for it.
        refused = register(second, "bench-1")
        assert (refused.status_code, refused.json()["code"]) == (403, "other_host")
        assert "HOSTBENCH_HOST=bench-2" in refused.json()["detail"]
        assert register(second, "bench-2").json()["code"] == "unreachable"
        assert register(SERVICE_KEY, "bench-1").status_code == 401
        # Nor does it send the key in clear to where others may listen.
        for url in (
            "http://192.0.2.8:8004",
            "http://bench-2.example.org:8004",
            "http://[2001:db8::8]",
        ):
            assert register(second, "bench-2", url).json()["code"] == "in_clear", url

        # Changed in mid-trial, the job goes on, and the host registers with the new key.
        job = orchestrator.submit(**SOME_SECONDS)
        stack.service("bench-1").wait_for_program()
        another = make_key(tmp_path, "bench-1", "host")
        assert orchestrator.wait_for(job)["state"] == "succeeded"
        assert register(first, "bench-1").status_code == 401
        again = orchestrator.submit(**SHORT)
        assert orchestrator.wait_for(again)["state"] == "succeeded"

        # Taken away, its host is called no more; with another one its job begins.
        make_key(tmp_path, "bench-1", "none")
        waits = orchestrator.submit(**SHORT)
        wait_until(lambda: "bench-1 has no key" in (orchestrator.job(waits)["reason"] or ""))
        make_key(tmp_path, "bench-1", "host")
        assert orchestrator.wait_for(waits)["state"] == "succeeded"
        for secret in (first, second, another):
            assert secret not in orchestrator.log + stack.service("bench-1").log
