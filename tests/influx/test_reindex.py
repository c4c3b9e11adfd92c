"""InfluxDB can be filled again from the documents alone."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hostbench.results.journal import JournalWriter
from hostbench.results.store import JobDirectory, ResultsStore
from orchestrator.influx.client import InfluxClient
from orchestrator.influx.points import document_points
from orchestrator.influx.reindex import Reindexed, reindex
from tests.influx.real_job import RealJob
from tests.stack.influx_server import WRITER_PASSWORD, InfluxServer
from tests.stack.stored_points import DECISIONS, MEASUREMENTS, STATES, meant, stored
from tests.unit.records import bare_trial, done, end, planned, sampled, session, start


@pytest.fixture(scope="module")
def job(real: RealJob) -> JobDirectory:
    """A real job."""
    return real.directory


def filled(results: Path, influx: InfluxClient) -> Reindexed:
    return reindex(ResultsStore(results), influx, lambda *_: None)


@pytest.mark.exhaustive
def test_the_database_holds_the_document_and_twice_changes_nothing(
    job: JobDirectory, influx_server: InfluxServer, database: str
) -> None:
    document = job.load()
    with influx_server.client(database=database) as influx:
        first = filled(job.path.parent, influx)
        once, others = stored(influx), stored(influx, (*DECISIONS, *STATES))
        second = filled(job.path.parent, influx)
        assert (stored(influx), stored(influx, (*DECISIONS, *STATES))) == (once, others)
    assert first == second
    assert (first.jobs, first.too_old, first.rejected, first.unreadable) == (1, 0, [], [])
    assert once == meant(document)
    # What is decided of the job is counted, too, and how it ended.
    assert first.points == once.total() + others.total()


def big_job(results: Path, number: int, time_unix_s: float) -> None:
    """A job of 5 cases with 3 trials of 60 samples, as its journal."""
    job_id = f"20261120T{number:06d}Z-quick-3f2a"
    cases = tuple(planned(f"{i:012x}", label=f"case {i}") for i in range(5))
    path = results / job_id
    path.mkdir(parents=True)
    with JournalWriter(path / "journal.ndjson", create=True) as journal:
        journal.append(session(cases, job=job_id, time_unix_s=time_unix_s))
        for position, case in enumerate(cases):
            for index in range(3):
                moment = time_unix_s + 200 * position + 61 * index
                events = (start(time_unix_s=moment), *sampled(60), end(elapsed_s=60.0))
                journal.append(
                    bare_trial(index, case.case, time_unix_s=moment, events=events, value=100.0)
                )
            journal.append(done(case.case))


@pytest.mark.exhaustive
def test_ten_thousand_points_take_seconds(
    tmp_path: Path, influx_server: InfluxServer, database: str
) -> None:
    now_s = time.time()
    for number in range(12):
        big_job(tmp_path, number, now_s - 2000 * (number + 1))
    begun_s = time.monotonic()
    with influx_server.client(database=database) as influx:
        found = filled(tmp_path, influx)
        took_s = time.monotonic() - begun_s
        assert stored(influx, (*MEASUREMENTS, *STATES)).total() == found.points
    assert found.jobs == 12
    assert found.points > 10_000
    assert not found.rejected
    assert took_s < 60


def test_samples_older_than_their_retention_are_left_out(
    tmp_path: Path, influx_server: InfluxServer, database: str
) -> None:
    big_job(tmp_path, 1, time.time() - 45 * 86_400)
    with influx_server.client(database=database) as influx:
        found = filled(tmp_path, influx)
        assert stored(influx, (*MEASUREMENTS, *STATES)).total() == found.points
    # 5 cases with 15 trials: the disturbance of each and their samples are too old.
    assert found.too_old == 5 * 3 * (60 + 1)
    # A result each, and how the job ended.
    assert found.points == 5 + 1
    assert "915 left out" in found.sentence


def command(*arguments: str, results: Path, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.influx.reindex", *arguments],
        env=os.environ | {"HOSTBENCH_RESULTS": str(results), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command(
    job: JobDirectory, influx_server: InfluxServer, database: str, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text(f"{WRITER_PASSWORD}\n")
    options = ["--url", influx_server.url, "--database", database]
    ended = command(*options, "--password-file", str(password), results=job.path.parent)
    assert ended.returncode == 0, ended.stderr
    assert " points of 1 job written\n" in ended.stderr
    by_environment = command(
        results=job.path.parent,
        HOSTBENCH_INFLUXDB_URL=influx_server.url,
        HOSTBENCH_INFLUXDB_DATABASE=database,
        HOSTBENCH_INFLUXDB_PASSWORD_FILE=str(password),
    )
    assert by_environment.stderr == ended.stderr


def test_a_damaged_job_costs_a_line_and_the_others_are_written(
    job: JobDirectory, influx_server: InfluxServer, database: str, tmp_path: Path
) -> None:
    damaged = tmp_path / "20261120T000000Z-quick-0000"
    damaged.mkdir()
    (damaged / "result.json").write_text('{"schema": 1')
    whole = tmp_path / job.id
    whole.mkdir()
    (whole / "result.json").write_text(job.document.read_text())
    with influx_server.client(database=database) as influx:
        found = filled(tmp_path, influx)
        assert stored(influx) == meant(job.load())
    assert found.jobs == 1
    assert len(found.unreadable) == 1 and "cut short" in found.unreadable[0]


def test_points_that_are_refused_are_shown(
    job: JobDirectory, influx_server: InfluxServer, database: str
) -> None:
    with influx_server.client(database=database) as influx:
        influx.write(['result,host=other efficiency="much"'])
    ended = command(
        results=job.path.parent,
        HOSTBENCH_INFLUXDB_URL=influx_server.url,
        HOSTBENCH_INFLUXDB_DATABASE=database,
        HOSTBENCH_INFLUXDB_PASSWORD=WRITER_PASSWORD,
    )
    with_efficiency = sum("efficiency" in point.fields for point in document_points(job.load()))
    if not with_efficiency:
        pytest.skip("the limits of this CPU are unknown")
    assert ended.returncode == 1
    assert "InfluxDB refuses result,case=" in ended.stderr
    assert "field type conflict" in ended.stderr
    assert f"{with_efficiency} rejected" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("environment", "code", "message"),
    [
        ({}, 2, "the address of InfluxDB is missing; give it"),
        ({"HOSTBENCH_INFLUXDB_URL": "localhost:8086"}, 2, "write it like http://name:port"),
        ({"HOSTBENCH_INFLUXDB_URL": "http://127.0.0.1:1"}, 1, "does not answer at"),
        (
            {
                "HOSTBENCH_INFLUXDB_URL": "http://127.0.0.1:1",
                "HOSTBENCH_INFLUXDB_PASSWORD_FILE": "/nowhere",
            },
            3,
            "cannot read HOSTBENCH_INFLUXDB_PASSWORD_FILE /nowhere",
        ),
    ],
)
def test_what_is_wrong_is_reported_in_one_line(
    tmp_path: Path, environment: dict[str, str], code: int, message: str
) -> None:
    ended = command(results=tmp_path, **environment)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_no_results_directory(tmp_path: Path) -> None:
    ended = command(results=tmp_path / "none", HOSTBENCH_INFLUXDB_URL="http://127.0.0.1:1")
    assert ended.returncode == 2
    assert "there is no directory" in ended.stderr
