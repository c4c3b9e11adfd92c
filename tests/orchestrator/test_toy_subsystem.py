"""A subsystem of another package (tests/toy_subsystem) is measured like ours: embedded and through
the stack. No file of hostbench knows it."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.results.store import ResultsStore
from tests.faults.command import CHECKOUT, Command, Ended, WithReport
from tests.stack.influx_server import InfluxServer, newest_influx
from tests.stack.orchestrator_process import SERVICE_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess
from tests.stack.stored_points import meant, stored

SOURCE = CHECKOUT / "tests" / "toy_subsystem"
METRIC = "steps_per_second"
PROGRAM = Path("hostbench_toy") / "toy-bench"
SHORT = {"threads": 1, "duration_s": 0.2, "warmup_s": 0, "sample_interval_s": 0.1}
OPTIONS = [part for name, value in SHORT.items() for part in ("--param", f"{name}={value}")]
RUN = ("run", "--workload", "toy.steps", *OPTIONS, "--trials", "1", "--idle-policy", "force")
REMEDY = "install the package of its subsystem again"
GARBAGE = "#!/bin/sh\necho 'no table'\n"


def install(source: Path, site: Path) -> None:
    """As docs/architecture.md says, but into a directory of the test."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    offline = ["--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, *offline, "--target", site, source], check=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package outside of the tree, with its program."""
    copy = tmp_path_factory.mktemp("elsewhere") / "toy"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    program = [f"FROM={copy / 'bench'}", f"TO={copy / PROGRAM}"]
    subprocess.run(["make", "program", *program], cwd=CHECKOUT, check=True)
    return copy


@pytest.fixture(scope="module")
def site(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is installed."""
    directory = tmp_path_factory.mktemp("site")
    install(source, directory)
    return directory


def command(tmp_path: Path, site: Path) -> Command:
    """The command line, which finds what is installed there."""
    return WithReport(tmp_path, PYTHONPATH=f"{CHECKOUT}:{site}")


def test_no_file_of_hostbench_knows_it() -> None:
    kinds = ("*.py", "*.c", "*.h", "*.yaml", "*.toml", "*.lua", "Makefile")
    listed = ["git", "ls-files", "--", *kinds]
    names = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    own = [name for name in names.splitlines() if not name.startswith("tests/")]
    assert len(own) > 300
    known = re.compile(r"\btoy\b|hostbench_toy|steps_per_second")
    named = [name for name in own if known.search((CHECKOUT / name).read_text("utf-8"))]
    assert named == []


@pytest.fixture(scope="module")
def embedded(site: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, Ended]:
    """A command that measured it, and how that ended."""
    one = command(tmp_path_factory.mktemp("embedded"), site)
    return one, one.run(*RUN)


def test_embedded(embedded: tuple[Command, Ended]) -> None:
    one, ended = embedded
    assert ended.code == ExitCode.OK, ended.errors
    assert "steps" in ended.output and "step/s" in ended.output
    (path,) = one.results.rglob("result.json")
    document = json.loads(path.read_text())
    (case,) = document["cases"]
    figure = case["metrics"][METRIC]["statistics"]["median"]
    assert figure > 1e6
    assert case["metrics"][METRIC]["limit"]["factors"][0]["source"] == "made up"
    assert document["programs"][0]["name"] == "toy-bench"
    (row,) = [row for row in rows(one) if row["metric"] == METRIC]
    assert row["workload"] == "toy.steps" and float(row["median"]) == figure
    (page,) = one.results.rglob("report.html")
    assert "<h2>Toy</h2>" in page.read_text() or ">Toy</h2>" in page.read_text()
    assert "toy.steps" in one.run("list", "workloads").output
    assert '"toy"' in one.run("doctor", "--subsystem", "toy", "--json").output


def rows(one: Command) -> list[dict[str, str]]:
    """Of the newest job's CSV."""
    return list(csv.DictReader(io.StringIO(one.run("show", "latest", "--csv").output)))


@pytest.fixture(scope="module")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    with newest_influx(tmp_path_factory.mktemp("influx")) as server:
        server.set_up()
        yield server


def test_through_the_stack(tmp_path: Path, site: Path, influx: InfluxServer) -> None:
    environment = {"PYTHONPATH": str(site), **influx.settings}
    results = tmp_path / "results"
    with (
        RedisServer(tmp_path / "redis") as redis,
        OrchestratorProcess(tmp_path / "orchestrator", redis.url, results, **environment) as one,
        ServiceProcess(
            tmp_path / "service",
            subsystem="toy",
            key=SERVICE_KEY,
            HOSTBENCH_ORCHESTRATOR_URL=one.url,
            PYTHONPATH=str(site),
        ) as service,
    ):
        one.wait_for_host(service.host, subsystem="toy")
        schema = one.client.get("/openapi.json").json()["components"]["schemas"]
        assert "toy" in schema["Registration"]["properties"]["subsystem"]["enum"]
        job = one.submit(workload="toy.steps", params=SHORT, trials=1, idle_policy="force")
        assert one.wait_for(job)["state"] == "succeeded"
        (case,) = one.result(job)["cases"]
        assert case["metrics"][METRIC]["limit"]["value"] == 1e12
        page = one.client.get(f"/jobs/{job}/report").text
        assert ">Toy</h2>" in page
        until = time.monotonic() + 60
        while not one.client.get("/healthz").json()["parts"]["influxdb"]["detail"].startswith("0 "):
            assert time.monotonic() < until, one.log
            time.sleep(0.1)
        document = ResultsStore(results).job(job).load()
    with influx.client() as client:
        points = stored(client)
    # Made here, where the package is not installed.
    assert points == meant(document)
    figure = case["metrics"][METRIC]["statistics"]["median"]
    assert any(f"'{METRIC}'" in point and repr(float(figure)) in point for point in points)


# ---- what may be wrong with one ----


@pytest.fixture
def own_site(site: Path, tmp_path: Path) -> Path:
    """A copy of what is installed, to be spoilt."""
    return Path(shutil.copytree(site, tmp_path / "site"))


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (
            None,
            ["toy-bench is not an executable file", "install the package", "HOSTBENCH_PROGRAMS"],
        ),
        (GARBAGE, ["toy-bench --list is not a workload table", "install the package"]),
        ("#!/bin/sh\nexit 1\n", ["toy-bench --list ended with exit code 1", "install the package"]),
        ("#!/bin/sh\nkill -SEGV $$\n", ["--list was killed by signal 11", "its output: none"]),
        ("#!/bin/sh\nexec yes\n", ["--list prints more than 4 MiB", "install the package"]),
    ],
)
@pytest.mark.sampled(4)
def test_a_program_that_cannot_be_used(
    tmp_path: Path, own_site: Path, program: str | None, parts: list[str]
) -> None:
    if program is None:
        (own_site / PROGRAM).unlink()
    else:
        (own_site / PROGRAM).write_text(program)
    one = command(tmp_path, own_site)
    ended = one.run(*RUN)
    assert ended.code == ExitCode.RESOURCE
    (line,) = ended.errors.splitlines()
    assert all(part in line for part in parts), line
    listed = one.run("list", "workloads")
    assert (listed.code, "cpu.fma" in listed.output) == (ExitCode.OK, True)
    doctor = one.run("doctor", "--json").document
    (check,) = [found for found in doctor["findings"] if found["check"] == "programs"]
    assert check["state"] == "problem" and parts[0] in check["text"]
    assert REMEDY in check["text"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (('name="toy"', 'name="cpu"'), ["there is a subsystem 'cpu' already"]),
        (("SUBSYSTEM = Toy(", "raise OSError('no licence')  # ("), ["OSError: no licence"]),
    ],
)
@pytest.mark.sampled(2)
def test_a_declaration_that_cannot_be_used(
    tmp_path: Path, own_site: Path, change: tuple[str, str], parts: list[str]
) -> None:
    """It is named and skipped, and the rest works."""
    module = own_site / "hostbench_toy" / "subsystem.py"
    module.write_text(module.read_text().replace(*change))
    one = command(tmp_path, own_site)
    ended = one.run("run", "--workload", "cpu.clock", *OPTIONS, "--trials", "1", "--json")
    assert ended.code == ExitCode.OK and ended.document["cases"][0]["workload"] == "cpu.clock"
    (line,) = [line for line in ended.errors.splitlines() if "skipped the subsystem" in line]
    assert "package hostbench-toy 1.0, entry point toy = hostbench_toy.subsystem:SUBSYSTEM" in line
    assert all(part in line for part in parts), line
    refused = one.run(*RUN)
    assert refused.code == ExitCode.USAGE and "there is no subsystem 'toy'" in refused.last_line


def test_a_document_is_readable_where_its_subsystem_is_not_installed(
    embedded: tuple[Command, Ended],
) -> None:
    one, ended = embedded
    assert ended.code == ExitCode.OK
    without = Command(one.results.parent)
    assert METRIC in without.run("show", "latest", "--csv").output
    page: Any = without.run("report", "latest", "--output", "-")
    assert page.code == ExitCode.OK and ">toy</h2>" in page.output
