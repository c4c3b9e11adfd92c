"""What a user reads when the orchestrator does not answer, or says no: one line with the remedy."""

import gzip
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostbench.base.errors import HostbenchError, ResourceError, UnreachableError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.client import api
from hostbench.client.api import Orchestrator
from hostbench.client.connection import Connection
from hostbench.client.failures import LostContact, Refusal
from hostbench.model.jobs import JobSpec
from tests.client.canned_server import (
    HTML,
    KEY,
    PROBLEM,
    Canned,
    CannedServer,
    certificate,
    expired_certificate,
    serving,
)

JOB = "20260102T030405Z-quick-0a1b"
VIEW = {
    "id": JOB,
    "state": "queued",
    "reason": None,
    "suite": "quick",
    "hosts": ["node"],
    "priority": 0,
    "spec": {"suite": "quick"},
    "submitted_unix_s": 1.7e9,
}
ACCEPTED = Canned(202, json.dumps(VIEW).encode())


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with serving(CannedServer()) as running:
        yield running


def error_of(connection: Connection, call: Callable[[Orchestrator], object]) -> HostbenchError:
    with Orchestrator(connection) as orchestrator, pytest.raises(HostbenchError) as caught:
        call(orchestrator)
    assert "\n" not in caught.value.message
    return caught.value


def hosts_error(connection: Connection) -> HostbenchError:
    return error_of(connection, Orchestrator.hosts)


def submit(orchestrator: Orchestrator) -> object:
    return orchestrator.submit(JobSpec(suite="quick"))


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# ---- no answer ----


def test_nothing_listens(server: CannedServer) -> None:
    server.url = f"http://127.0.0.1:{closed_port()}"
    error = hosts_error(server.connection())
    assert isinstance(error, LostContact) and error.exit_code is ExitCode.UNREACHABLE
    assert error.message == (
        f"no answer from {server.url}: nothing listens there; start the stack (make up), or "
        "correct the address of --url"
    )


def test_there_is_no_such_host(server: CannedServer) -> None:
    server.url = "https://there-is-none.invalid:8000"
    assert "there is no host 'there-is-none.invalid'; correct" in str(
        hosts_error(server.connection())
    )


def test_no_answer(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "CONNECT_S", 0.2)
    # Linux drops who comes when the queue of connections is full.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(address)
            server.url = f"http://127.0.0.1:{address[1]}"
            assert "the host does not answer; check that the host is up" in str(
                hosts_error(server.connection())
            )


def test_no_answer_in_time(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert "took the call and gave no answer in time; look at its log" in str(
            hosts_error(server.connection())
        )
        error = error_of(server.connection(), submit)
        assert error.message.endswith("may be queued all the same: look with hostbench jobs")


def test_it_breaks_off(server: CannedServer) -> None:
    server.answers["/hosts"] = Canned(cut=True)
    error = hosts_error(server.connection())
    assert isinstance(error, LostContact) and "it broke off the connection" in error.message


# ---- TLS ----


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("IP:127.0.0.1", "is not signed by an authority trusted here: self-signed certificate;"),
        ("IP:192.0.2.1", "is for another name: IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_accepted(tmp_path: Path, names: str, says: str) -> None:
    made = certificate(tmp_path, names)
    with serving(
        CannedServer(), ssl_certfile=str(made.certificate), ssl_keyfile=str(made.key)
    ) as server:
        trusted = None if "signed" in says else made.certificate
        error = hosts_error(server.connection(ca_file=trusted))
        assert error.exit_code is ExitCode.UNREACHABLE and not isinstance(error, LostContact)
        assert says in error.message


def test_a_certificate_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made = certificate(tmp_path, "IP:127.0.0.1")
    other = certificate(tmp_path / "other", "IP:127.0.0.1").certificate
    with serving(
        CannedServer(), ssl_certfile=str(made.certificate), ssl_keyfile=str(made.key)
    ) as server:
        assert f"by an authority trusted by those in {other}" in str(
            hosts_error(server.connection(ca_file=other))
        )
        server.answers["/jobs"] = ACCEPTED
        with Orchestrator(server.connection(ca_file=made.certificate)) as orchestrator:
            assert orchestrator.submit(JobSpec(suite="quick")).id == JOB


def test_a_certificate_that_expired(tmp_path: Path) -> None:
    made = expired_certificate(tmp_path, "IP:127.0.0.1")
    with serving(
        CannedServer(), ssl_certfile=str(made.certificate), ssl_keyfile=str(made.key)
    ) as server:
        assert "is not valid now: certificate has expired; renew it" in str(
            hosts_error(server.connection(ca_file=made.certificate))
        )


def test_tls_to_a_server_without_it(server: CannedServer) -> None:
    server.url = server.url.replace("http:", "https:")
    assert "does not speak TLS" in str(hosts_error(server.connection()))


def test_no_tls_to_a_server_with_it(tmp_path: Path) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1")
    with serving(
        CannedServer(), ssl_certfile=str(made.certificate), ssl_keyfile=str(made.key)
    ) as server:
        server.url = server.url.replace("https:", "http:")
        assert "use https:// if it speaks TLS" in str(hosts_error(server.connection()))


@pytest.mark.parametrize(("content", "says"), [(None, "No such file"), ("x", "no certificate")])
def test_an_authority_that_is_none(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    server = CannedServer()
    server.url = "https://127.0.0.1:1"
    with pytest.raises(ResourceError, match=f"cannot use the authority .*{says}"):
        Orchestrator(server.connection(ca_file=path))


# ---- something else answers ----


@pytest.mark.parametrize(
    "answer",
    [
        Canned(200, b"<html>hello</html>", HTML),
        Canned(404, b"<html>nothing</html>", HTML),
        Canned(301, b"", HTML, {"location": "https://elsewhere.example.org/"}),
        Canned(200, b"[]"),
        Canned(200, b'{"hosts": [{"name": "node"}]}'),
        Canned(200, b"\xff"),
        Canned(200, b"no gzip", headers={"content-encoding": "gzip"}),
        Canned.problem(404, "not_found", "Not Found"),
    ],
)
def test_it_is_no_orchestrator(server: CannedServer, answer: Canned) -> None:
    server.answers["/hosts"] = answer
    error = hosts_error(server.connection())
    assert isinstance(error, UnreachableError) and error.exit_code is ExitCode.UNREACHABLE
    assert "does not answer as an orchestrator of this version" in error.message
    assert "(GET /hosts: " in error.message
    assert error.message.endswith(
        "correct the address of --url, or use the same version on both sides"
    )


def test_a_refusal_that_cannot_be_read(server: CannedServer) -> None:
    server.answers["/hosts"] = Canned(404, b"{", PROBLEM)
    assert hosts_error(server.connection()).message == "Not Found"


def test_what_is_new_in_an_answer_is_passed_over(server: CannedServer) -> None:
    body = gzip.compress(json.dumps(VIEW | {"new": {"a": 1}}).encode())
    server.answers[f"/jobs/{JOB}"] = Canned(200, body, headers={"content-encoding": "gzip"})
    with Orchestrator(server.connection()) as orchestrator:
        assert orchestrator.job(JOB).id == JOB


def test_a_document_of_another_kind(server: CannedServer) -> None:
    server.answers[f"/jobs/{JOB}/report"] = Canned()
    assert "it sent application/json" in str(
        error_of(server.connection(), lambda orchestrator: orchestrator.report(JOB))
    )


# ---- it says no ----


@pytest.mark.parametrize("status", [401, 403])
def test_the_key_is_refused(server: CannedServer, status: int) -> None:
    server.answers["/hosts"] = Canned.problem(status, "unauthorized", "no")
    error = hosts_error(server.connection())
    assert error.exit_code is ExitCode.UNREACHABLE
    assert f"{server.url} refuses the key from key (--key-file); give" in error.message
    assert KEY not in error.message
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "answer",
    [
        Canned.problem(503, "lacking", "Redis is not available"),
        Canned.problem(500, "internal", "Redis is not available"),
        Canned(502, b"<html>", HTML),
    ],
)
def test_it_cannot_work_now(server: CannedServer, answer: Canned) -> None:
    server.answers["/hosts"] = answer
    error = hosts_error(server.connection())
    assert isinstance(error, LostContact)
    assert f"{server.url} cannot work now: " in error.message


@pytest.mark.parametrize(
    ("detail", "says"),
    [
        ("there is no suite 'quik'; did you mean 'quick'?",) * 2,
        ("body.hosts[0]: 'x y' is not allowed", "--host: 'x y' is not allowed"),
        ("body.params.threads: 0 is out of range", "--param: 0 is out of range"),
        ("body.idle_policy: 'x' is not allowed", "--idle-policy: 'x' is not allowed"),
        ("two\nlines", "two lines"),
    ],
)
def test_a_refusal_speaks_of_options(server: CannedServer, detail: str, says: str) -> None:
    server.answers["/jobs"] = Canned.problem(422, "invalid", detail)
    error = error_of(server.connection(), submit)
    assert isinstance(error, Refusal) and error.exit_code is ExitCode.USAGE
    assert (error.message, error.code) == (says, "invalid")


# ---- a job is queued once ----


def test_a_submission_is_repeated_with_the_same_key(server: CannedServer) -> None:
    server.answers["/jobs"] = [Canned(cut=True), ACCEPTED]
    with Orchestrator(server.connection()) as orchestrator:
        assert orchestrator.submit(JobSpec(suite="quick", priority=2)).id == JOB
        orchestrator.submit(JobSpec(suite="quick"))
    first, second, other = (request.headers["idempotency-key"] for request in server.requests)
    assert first == second != other
    assert json.loads(server.requests[0].body) == {"suite": "quick", "priority": 2}


def test_a_submission_is_not_repeated_forever(server: CannedServer) -> None:
    server.answers["/jobs"] = Canned(cut=True)
    error = error_of(server.connection(), submit)
    assert error.message.endswith("may be queued all the same: look with hostbench jobs")
    assert len(server.requests) == api.POST_ATTEMPTS


# ---- lists ----


def test_a_list_is_fetched_page_by_page(server: CannedServer) -> None:
    def page(following: str | None) -> Canned:
        content = {"jobs": [VIEW] * 2, "next": following}
        return Canned(200, json.dumps(content).encode())

    with Orchestrator(server.connection()) as orchestrator:
        server.answers["/jobs"] = [page("a"), page(None)]
        assert len(orchestrator.jobs(0).jobs) == 4
        server.answers["/jobs"] = page("more")
        found = orchestrator.jobs(3, "running", "node")
    assert len(found.jobs) == 3 and found.next is not None
    assert server.requests[1].query == f"limit={api.PAGE_JOBS}&before=a"
    assert server.requests[2].query == "state=running&host=node&limit=3"
    assert server.requests[3].query == "state=running&host=node&limit=1&before=more"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_cannot_be_used(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = CannedServer()
    server.url = "https://bench.example.org"
    with pytest.raises(UsageError, match=r"put bench\.example\.org into NO_PROXY$"):
        Orchestrator(server.connection())


def test_no_proxy_is_used_for_this_machine(
    server: CannedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server.answers["/jobs"] = ACCEPTED
    with Orchestrator(server.connection()) as orchestrator:
        orchestrator.submit(JobSpec(suite="quick"))
