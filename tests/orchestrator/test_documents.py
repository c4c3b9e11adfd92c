"""POST /documents: documents of nodes in the orchestrator's results, metrics and points."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from hostbench.fleet.campaign import Digest
from hostbench.fleet.node import MESSAGE_BYTES_MOST, read_message
from hostbench.model.result import CampaignMember, JobState, ResultDocument
from hostbench.results.sealed import sealed
from hostbench.results.store import CSV, DOCUMENT
from orchestrator.influx.outbox import STREAM
from orchestrator.run.posted import AT_ONCE_MOST, DOCUMENT_BYTES_MOST
from tests.faults.command import Command
from tests.fleet.campaigns import campaign, campaign_file
from tests.orchestrator.test_bad_input import problem
from tests.orchestrator.test_keys import make_key
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.ports import free_port
from tests.stack.redis_server import RedisServer
from tests.unit.baseline_documents import of_host


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("posted")
    (root / "secrets").mkdir()
    for name in ("keys", "host_keys"):
        (root / "secrets" / name).write_text("# none yet\n")
    (root / ".env").write_text("HOSTBENCH_HOST=bench-1\n")
    return root


@pytest.fixture(scope="module")
def orchestrator(shared_redis: RedisServer, root: Path) -> Iterator[OrchestratorProcess]:
    """One that takes documents. Points wait for an InfluxDB that is not there."""
    with shared_redis.client() as client:
        client.flushall()
    with OrchestratorProcess(
        root,
        shared_redis.url,
        root / "stored",
        HOSTBENCH_KEYS_FILE=str(root / "secrets/keys"),
        HOSTBENCH_HOST_KEYS_FILE=str(root / "secrets/host_keys"),
        HOSTBENCH_INFLUXDB_URL=f"http://127.0.0.1:{free_port()}",
        HOSTBENCH_INFLUXDB_PASSWORD="a password",
    ) as process:
        yield process


@pytest.fixture(scope="module")
def poster(root: Path, orchestrator: OrchestratorProcess) -> str:
    return make_key(root, "campaigns", "poster")


def post(orchestrator: OrchestratorProcess, content: bytes, key: str | None = None) -> Any:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return orchestrator.client.post("/documents", content=content, headers=headers)


def content_of(document: ResultDocument) -> bytes:
    return (document.model_dump_json(indent=1) + "\n").encode()


def test_a_posted_document_is_a_job_of_the_stack(
    orchestrator: OrchestratorProcess, shared_redis: RedisServer, poster: str
) -> None:
    document = of_host(7)
    content = content_of(document)
    first = post(orchestrator, content, poster)
    assert first.status_code == 201, first.text
    job = document.job.id
    assert first.headers["location"] == f"/jobs/{job}"
    assert first.json() == {"id": job, "host": "node7", "digest": document.digest, "is_new": True}
    # Again, also with other bytes of the same content: it is the same document.
    for again in (content, document.model_dump_json().encode()):
        answer = post(orchestrator, again)
        assert (answer.status_code, answer.json()["is_new"]) == (200, False)
    stored = orchestrator.results / job
    assert (stored / DOCUMENT).read_bytes() == content and (stored / CSV).stat().st_size
    assert orchestrator.result(job)["digest"] == document.digest
    view = orchestrator.job(job)
    assert (view["state"], view["hosts"], view["suite"]) == ("succeeded", ["node7"], "full")
    assert [one["id"] for one in orchestrator.client.get("/jobs").json()["jobs"]] == [job]
    assert "node7" in orchestrator.client.get("/hosts/node7/history").raise_for_status().text
    wait_until(
        lambda: 'host="node7"' in orchestrator.client.get("/metrics").text,
        lambda: orchestrator.log,
        seconds=60,
    )
    with shared_redis.client() as client:

        def measurements() -> set[str]:
            entries = client.xrange(STREAM)
            lines = [line for _, one in entries for line in one["lines"].splitlines()]
            assert all("node7" in line for line in lines)
            return {line.partition(",")[0] for line in lines}

        wait_until(
            lambda: measurements() >= {"result", "job", "decision"},
            lambda: f"{measurements()}\n{orchestrator.log}",
            seconds=60,
        )


def test_what_is_no_document_of_an_ended_job_is_refused(
    orchestrator: OrchestratorProcess, poster: str
) -> None:
    document = of_host(8)
    whole = json.loads(content_of(document))

    def with_job(**changes: Any) -> bytes:
        changed = document.model_copy(update={"job": replace(document.job, **changes)})
        return content_of(sealed(changed.model_copy(update={"digest": None})))

    for content, status, says in (
        (b"", 422, "is cut short or damaged: its 0 bytes are not one JSON document"),
        (b"{]", 422, "not one JSON document"),
        (b"[" * 100_000, 422, "not one JSON document"),
        (b"[]", 422, "is no JSON object"),
        (b'{"kind": "hostbench.fleet"}', 422, "is a 'hostbench.fleet' and not"),
        (json.dumps(whole | {"schema": 99}).encode(), 422, "read it with a newer hostbench"),
        (json.dumps(whole | {"suite": None}).encode(), 422, "was changed after it was written"),
        (with_job(id="../../etc"), 422, "'../../etc' for the id of its job"),
        (with_job(state=JobState.RUNNING), 422, "post its document when it has ended"),
        (with_job(created_unix_s=1e18), 422, "is of a time that is not possible"),
        (with_job(id="20991231T000000Z-quick-0000"), 422, "is of a time that is not possible"),
        (b" " * (DOCUMENT_BYTES_MOST + 1), 413, f"more than {DOCUMENT_BYTES_MOST} bytes"),
    ):
        details = problem(post(orchestrator, content, poster), status)
        assert says in details["detail"], details
    assert not (orchestrator.results / document.job.id).exists()
    # Of one job there is one document.
    first, other = of_host(9), of_host(9, factor=0.9)
    assert first.job.id == other.job.id
    assert post(orchestrator, content_of(first)).status_code == 201
    details = problem(post(orchestrator, content_of(other)), 409)
    assert details["code"] == "other_document" and first.job.id in details["detail"]
    assert orchestrator.result(first.job.id)["digest"] == first.digest


def test_which_keys_may_post(root: Path, orchestrator: OrchestratorProcess, poster: str) -> None:
    content = content_of(of_host(10))
    assert problem(post(orchestrator, content, "no key at all"), 401)["code"] == "unauthorized"
    viewer = make_key(root, "ann", "viewer")
    assert problem(post(orchestrator, content, viewer), 403)["code"] == "forbidden"
    other = make_key(root, "node11", "host")
    refused = problem(post(orchestrator, content, other), 403)
    assert refused["code"] == "other_host" and "'node10'" in refused["detail"]
    own = make_key(root, "node10", "host")
    assert post(orchestrator, content, own).status_code == 201
    # Nor may the key of a host post what is shown as another one's.
    found, key = of_host(12), make_key(root, "node12", "host")
    member = CampaignMember(campaign="c", engine="slurm", cluster="u", node="node10", lock="host")
    changes: tuple[dict[str, Any], ...] = (
        {"job": replace(found.job, hostname="node10")},
        {"member": member},
    )
    for change in changes:
        forged = sealed(found.model_copy(update={**change, "digest": None}))
        assert problem(post(orchestrator, content_of(forged), key), 403)["code"] == "other_host"
    # A poster does nothing else, and reads nothing.
    headers = {"Authorization": f"Bearer {poster}"}
    for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("POST", "/hosts")):
        answer = orchestrator.client.request(method, path, headers=headers, json={})
        assert problem(answer, 403)["code"] == "forbidden", path


def test_a_thousand_nodes_at_once_wait_their_turn(
    orchestrator: OrchestratorProcess, poster: str
) -> None:
    """Of many that are sent and not finished, the first have a place."""
    finish = threading.Event()
    content = content_of(of_host(20))

    def slowly() -> Iterator[bytes]:
        yield content[:1]
        assert finish.wait(30)
        yield content[1:]

    def call(_number: int) -> httpx.Response:
        return httpx.post(
            f"{orchestrator.url}/documents",
            content=slowly(),
            headers={"Authorization": f"Bearer {poster}"},
            timeout=60,
        )

    with ThreadPoolExecutor(AT_ONCE_MOST) as pool:
        calls = [pool.submit(call, number) for number in range(AT_ONCE_MOST)]
        try:
            refused = wait_until(
                lambda: (
                    answer
                    if (answer := post(orchestrator, b"{}", poster)).status_code == 503
                    else None
                ),
                lambda: "all have a place",
            )
        finally:
            finish.set()
        assert refused is not None and refused.headers["retry-after"]
        assert problem(refused, 503)["code"] == "busy"
        codes = sorted(one.result().status_code for one in calls)
    assert codes == [200] * (AT_ONCE_MOST - 1) + [201]


# ---- the command on a node ----


def measured(tmp_path: Path, node: str, *more: str) -> tuple[Digest, str]:
    """Run `fleet measure`; the digest in its message, and what it printed."""
    message = tmp_path / f"message-{node}"
    ended = Command(tmp_path).run(
        "fleet", "measure", f"--campaign-file={campaign_file(tmp_path, campaign())}",
        f"--node={node}", "--engine=slurm", f"--termination-message={message}", *more,
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    assert message.stat().st_size <= MESSAGE_BYTES_MOST
    digest = read_message(message.read_text())
    assert isinstance(digest, Digest), digest
    return digest, ended.errors


def test_a_node_posts_its_document(
    tmp_path: Path, orchestrator: OrchestratorProcess, poster: str
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    to = (f"--post={orchestrator.url}", f"--post-keys={keys}")
    # Without the key it is measured all the same, and says why the orchestrator lacks the document.
    digest, errors = measured(tmp_path, "node1", *to)
    assert digest.unposted is not None and f"{keys}/api_key" in digest.unposted
    assert f"the document is not posted: {digest.unposted}" in errors
    assert orchestrator.client.get(f"/jobs/{digest.job}").status_code == 404
    (keys / "api_key").write_text("a wrong key of tests\n")
    wrong, _ = measured(tmp_path, "node1", *to)
    assert wrong.unposted is not None and "--post-keys" in wrong.unposted
    assert replace(wrong, unposted=None) == replace(digest, unposted=None)
    # Started again, it measures nothing and posts what it has.
    (keys / "api_key").write_text(f"{poster}\n")
    posted, _ = measured(tmp_path, "node1", *to)
    assert posted == replace(digest, unposted=None)
    assert orchestrator.result(digest.job)["digest"] == digest.digest
    assert orchestrator.result(digest.job)["member"]["node"] == "node1"
    # Nodes that begin in the same second have jobs of their own.
    other, _ = measured(tmp_path, "node2", *to)
    parts = [one.job.rpartition("-")[0].partition("-")[2] for one in (digest, other)]
    assert parts[0] != parts[1] and all(one.startswith("small-") for one in parts)
    views = [orchestrator.job(one.job)["state"] for one in (digest, other)]
    assert views == ["succeeded", "succeeded"]
