"""A stack is upgraded: what the version before has left in its volumes is there under this one, and
goes on."""

import contextlib
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.jobs import StackState
from hostbench.results.store import ResultsStore
from orchestrator.influx.reindex import run as reindex
from tests.faults.stack import SHORT, SHORT_THEN_LONG
from tests.patience import wait_until
from tests.stack.influx_server import newest_influx
from tests.stack.orchestrator_process import SERVICE_KEY, OrchestratorProcess
from tests.stack.redis_server import REPOSITORY, RedisServer
from tests.stack.service_process import PROGRAMS, ServiceProcess
from tests.stack.stored_points import meant, stored

# Nothing was released yet. This one shipped Redis 8.2.4 and InfluxDB 2.7.12; its documents have
# schema 1, its modules other places, and its leases and registrations a time to live in Redis.
BEFORE = "8b02bce206af5be711fb3575c509d08ba4e574b4"
FIGURES = ("value", "median", "n")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the version before, with its program."""
    git = ["git", "-C", str(REPOSITORY)]
    if subprocess.run([*git, "cat-file", "-e", BEFORE], capture_output=True).returncode:
        pytest.skip(f"this checkout has no history back to {BEFORE[:7]}: git fetch --unshallow")
    sources = tmp_path_factory.mktemp("before")
    packed = subprocess.run([*git, "archive", BEFORE], check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract", "--directory", sources], input=packed, check=True)
    made = ["make", "--directory", str(sources), "OPENBLAS=none", "build/release/cpu-bench"]
    ended = subprocess.run(made, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return sources


class Volumes:
    """What an upgrade keeps: Redis', InfluxDB's and the results, and who works with them."""

    def __init__(self, root: Path, stack: contextlib.ExitStack) -> None:
        self.root = root
        self.redis = stack.enter_context(RedisServer(root / "redis"))
        self.influx = stack.enter_context(newest_influx(root / "influx"))
        self.influx.set_up()
        self.results = root / "results"

    @contextlib.contextmanager
    def version(self, name: str, sources: Path | None) -> Iterator[OrchestratorProcess]:
        """Orchestrator and cpu service of one version; `sources`: of another than this one."""
        prefix: tuple[str, ...] = ()
        programs = PROGRAMS
        if sources is not None:
            prefix = ("env", f"--chdir={sources}", f"PYTHONPATH={sources}")
            programs = sources / "build/release"
        orchestrator = OrchestratorProcess(
            self.root / name,
            self.redis.url,
            self.results,
            prefix=prefix,
            **self.influx.settings,
        )
        with orchestrator:
            service = ServiceProcess(
                self.root / name / "cpu",
                key=SERVICE_KEY,
                programs=programs,
                prefix=prefix,
                lock=self.root / "hostbench.lock",
                HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url,
            )
            with service:
                orchestrator.wait_for_host(service.host)
                yield orchestrator

    def restart(self) -> None:
        """As the containers of third parties are replaced."""
        self.redis.restart()
        self.influx.restart()

    def wait_for_points(self, orchestrator: OrchestratorProcess) -> None:
        """Until nothing waits in the outbox."""
        health = orchestrator.client.get
        wait_until(
            lambda: health("/healthz").json()["parts"]["influxdb"]["detail"].startswith("0 entries")
        )


def figures(document: dict[str, Any]) -> list[Any]:
    """What was measured, whichever schema the document has."""
    return [
        [{name: trial.get(name) for name in FIGURES} for trial in case["trials"]]
        for case in document["cases"]
    ]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_the_volumes_of_the_version_before_start_with_all_results(
    tmp_path: Path, before: Path
) -> None:
    with contextlib.ExitStack() as stack:
        volumes = Volumes(tmp_path, stack)
        with volumes.version("before", before) as old:
            done = [old.submit(**SHORT) for _ in range(2)]
            for job in done:
                assert old.wait_for(job)["state"] == "succeeded"
            measured = {job: figures(old.result(job)) for job in done}
            cancelled = old.submit(**SHORT_THEN_LONG)
            old.wait_for(cancelled, StackState.RUNNING)
            old.client.delete(f"/jobs/{cancelled}").raise_for_status()
            assert old.wait_for(cancelled)["state"] == "cancelled"
            running = old.submit(**SHORT_THEN_LONG)
            old.wait_for(running, StackState.RUNNING)
            queued = old.submit(**SHORT)
            volumes.wait_for_points(old)
            old.stop()  # before the services, as Compose does
        volumes.restart()
        with volumes.version("now", None) as new:
            # All results are there, and what was queued is measured.
            assert new.wait_for(queued)["state"] == "succeeded"
            listed = {job["id"]: job["state"] for job in new.client.get("/jobs").json()["jobs"]}
            states = dict.fromkeys(done, "succeeded") | {queued: "succeeded"}
            assert listed == states | {cancelled: "cancelled", running: "lost"}
            for job in done:
                assert figures(new.result(job)) == measured[job]
                for path in ("result?format=csv", "report"):
                    assert new.client.get(f"/jobs/{job}/{path}").status_code == 200, path
            # What ran can be resumed.
            assert new.client.post(f"/jobs/{running}/resume").status_code == 202
            new.wait_for(running, StackState.RUNNING)
            new.client.delete(f"/jobs/{running}").raise_for_status()
            assert new.wait_for(running)["state"] == "cancelled"
            volumes.wait_for_points(new)
        # Every point of every document is in InfluxDB, those of before too.
        results = ResultsStore(volumes.results)
        with volumes.influx.client() as influx:
            reindex(volumes.results, influx)
            wanted = sum((meant(results.job(job).load()) for job in results.ids()), Counter())
            assert not wanted - stored(influx)
