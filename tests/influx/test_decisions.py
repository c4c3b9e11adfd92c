"""Points of what is decided of each job, and the boards that show them."""

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grafana.queries import BoardQuery, Chosen, annotation_queries, panel_queries
from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.job import JobDecider
from hostbench.model.baseline import HEADLINES_MOST
from hostbench.model.result import ResultDocument
from hostbench.results.store import JobDirectory, ResultsStore
from orchestrator.influx.client import InfluxClient
from orchestrator.influx.points import Point, decision_points, line
from orchestrator.influx.reindex import reindex
from tests.stack.board_values import difference, is_of_several_jobs, rows_of
from tests.stack.influx_server import InfluxServer
from tests.unit.baseline_documents import of_host, of_hosts
from tests.unit.decided import stored_job

BEFORE, AFTER = 13, 6
DAY_MS = 86_400_000
# Long before and after every job.
ALWAYS = Chosen(0, 4_000_000_000_000, {})


@dataclass(frozen=True)
class Fleet:
    """Jobs of a host that became slower, of one that became faster, and one job each of five hosts
    of a model and of a slow one, with the points that each job gave when it was the newest."""

    results: Path
    live: dict[tuple[str, str, int], Point]

    @property
    def documents(self) -> list[ResultDocument]:
        """Those of all jobs."""
        store = ResultsStore(self.results)
        return [store.job(job).load() for job in store.ids()]


def as_it_is_stored(root: Path, job: JobDirectory) -> list[Point]:
    """What a running stack hands over of the newest job."""
    with FigureIndex(root) as index:
        document = job.load()
        return list(decision_points(document, JobDecider(index, os.environ).of(document)))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    root = tmp_path_factory.mktemp("fleet")
    results, folder = root / "results", root / "data/hostbench/baselines"
    folder.mkdir(parents=True)
    sound = of_hosts((0.99, 1.0, 1.005, 0.995, 1.01))
    (folder / "model.json").write_bytes(content_of(made_of([measured_job(one) for one in sound])))
    live: dict[tuple[str, str, int], Point] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(root / "data"))
        patch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        for job in stored_jobs(results, sound):
            for point in as_it_is_stored(results, job):
                live[point.measurement, repr(point.tags), point.time_ms] = point
        yield Fleet(results, live)


def stored_jobs(results: Path, sound: list[ResultDocument]) -> Iterator[JobDirectory]:
    rng = random.Random(6)
    for number in range(BEFORE + AFTER):
        for host, then in (("slower", 0.93), ("faster", 1.08)):
            factor = (1.0 if number < BEFORE else then) * (1 + rng.gauss(0, 0.003))
            yield stored_job(results, 2 * number + (host == "faster"), factor, host=host)
    for document in (*sound, of_host(50, 0.8)):
        job = JobDirectory(results / document.job.id)
        job.path.mkdir()
        job.store(document)
        yield job


@pytest.fixture
def influx(fleet: Fleet, influx_server: InfluxServer, database: str) -> Iterator[InfluxClient]:
    """A client of a database that `reindex` has filled."""
    with influx_server.client(database=database) as client:
        done = reindex(ResultsStore(fleet.results), client, lambda *_: None)
        assert not done.rejected and not done.unreadable
        yield client


def rows(influx: InfluxClient, text: str) -> list[dict[str, Any]]:
    return rows_of(influx.query(text))


def test_reindex_makes_what_the_running_stack_wrote(fleet: Fleet, influx: InfluxClient) -> None:
    found = {
        name: rows(influx, f'SELECT * FROM "{name}" GROUP BY *') for name in ("decision", "change")
    }
    for name, stored in found.items():
        meant = [
            {**point.tags, **point.fields, "time": float(point.time_ms)}
            for point in fleet.live.values()
            if point.measurement == name
        ]
        # Of changes that are seen no more only the word counts, which is written over.
        assert difference(stored, meant) is None
    again = reindex(ResultsStore(fleet.results), influx, lambda *_: None)
    assert again.points > len(fleet.live)
    for name, stored in found.items():
        assert rows(influx, f'SELECT * FROM "{name}" GROUP BY *') == stored


def test_points_written_by_the_running_stack_show_the_same(
    fleet: Fleet, influx: InfluxClient, influx_server: InfluxServer, database: str
) -> None:
    """In the order in which they came, and none of them twice in what the boards ask."""
    influx_server.make_database(f"{database}_live")
    with influx_server.client(database=f"{database}_live") as live:
        live.write([line(point) for point in fleet.live.values()])
        for query in itertools.chain(queries(), annotation_queries(ALWAYS)):
            assert difference(rows(live, query.text), rows(influx, query.text)) is None, query


def queries() -> list[BoardQuery]:
    """Those of all panels that ask for decisions."""
    return [one for one in panel_queries(ALWAYS) if is_of_several_jobs(one)]


def test_a_job_says_what_it_changed_and_one_that_is_slow_is_low(
    fleet: Fleet, influx: InfluxClient
) -> None:
    newest = rows(
        influx,
        'SELECT last("jobs") AS "jobs", "change", "baseline", "ratio", "value", "expected", '
        '"usual", "of_usual" FROM "decision" GROUP BY "host", "case"',
    )
    by_host: dict[str, list[dict[str, Any]]] = {}
    for row in newest:
        by_host.setdefault(row["host"], []).append(row)
    assert all(len(found) == HEADLINES_MOST for found in by_host.values())
    for host, word, ratio in (("slower", "worse", 0.93), ("faster", "better", 1.08)):
        for row in by_host[host]:
            assert (row["change"], row["jobs"]) == (word, BEFORE + AFTER)
            assert row["ratio"] == pytest.approx(ratio, rel=0.01)
            # This one is of another model.
            assert row["baseline"] == "no reference" and "expected" not in row
    for row in by_host["node50"]:
        assert (row["change"], row["baseline"]) == ("undecided", "low")
        assert row["value"] < row["expected"] < row["usual"]
        assert row["of_usual"] == pytest.approx(0.8, rel=0.01)
    assert {row["baseline"] for row in by_host["node0"]} == {"as expected"}


def test_marks_stand_where_figures_changed(fleet: Fleet, influx: InfluxClient) -> None:
    marks = {(one.board, one.panel): rows(influx, one.text) for one in annotation_queries(ALWAYS)}
    subsystems = {board for board, _ in marks}
    assert subsystems == {f"hostbench-{name}" for name in ("cpu", "mem", "disk", "net", "gpu")}
    began = {job.job.id: job.job.created_unix_s * 1000 for job in fleet.documents}
    for word, host, sign in (("worse", "slower", "−"), ("better", "faster", "+")):
        found = marks["hostbench-cpu", f"changes: {word}"]
        assert len(found) == HEADLINES_MOST
        first = sorted(time for job, time in began.items() if job in names(fleet, host))[BEFORE]
        for mark in found:
            assert abs(mark["time"] - first) <= 2 * DAY_MS
            assert mark["title"].startswith("cpu.fma ")
            assert mark["text"].startswith(f"{word} {sign}")
        assert not marks["hostbench-mem", f"changes: {word}"]


def names(fleet: Fleet, host: str) -> set[str]:
    return {one.job.id for one in fleet.documents if one.host.hostname == host}


def test_a_change_that_is_seen_no_more_is_taken_back(
    tmp_path: Path, influx_server: InfluxServer, database: str
) -> None:
    """Of three slow jobs, and then the old figures again for long."""
    text = 'SELECT "word" FROM "change" WHERE "word" != \'none\' AND "case" = {!r}'
    rng = random.Random(1)
    seen = []
    with influx_server.client(database=database) as influx:
        for number in range(30):
            factor = (0.97 if 12 <= number < 15 else 1.0) * (1 + rng.gauss(0, 0.004))
            job = stored_job(tmp_path, number, factor)
            points = as_it_is_stored(tmp_path, job)
            influx.write([line(point) for point in points])
            case = next(point.tags["case"] for point in points)
            seen.append(len(rows(influx, text.format(case))))
    # InfluxDB has as many marks as the newest history, however many there were between.
    now = [
        point for point in points if point.tags["case"] == case and point.measurement == "change"
    ]
    assert max(seen) >= 1
    assert seen[-1] == sum(point.fields["word"] != "none" for point in now)


def test_the_fleet_board_answers(fleet: Fleet, influx: InfluxClient) -> None:
    found: dict[str, list[dict[str, Any]]] = {
        one.panel: rows(influx, one.text) for one in queries() if one.board == "hostbench-fleet"
    }
    hosts = {"slower", "faster", *(f"node{number}" for number in range(5)), "node50"}
    assert [row["count"] for row in found["Hosts"]] == [len(hosts)]
    for word, count in (("worse", 1), ("better", 1), ("low", 1), ("suspect", 0)):
        told = [row["count"] for row in found[f"Hosts with a {word} figure"]]
        assert told == [count] * bool(count), word
    for panel, field in (
        ("Did it change?", "change"),
        ("Does it do what hosts of its model do?", "baseline"),
    ):
        cells = {(row["host"], row["title"]): row[field] for row in found[panel]}
        assert {host for host, _ in cells} == hosts
        assert len(cells) == len(found[panel]) == len(hosts) * HEADLINES_MOST
        wanted = {"change": ("slower", "worse"), "baseline": ("node50", "low")}[field]
        assert {word for (host, _), word in cells.items() if host == wanted[0]} == {wanted[1]}
    changes = found["Changes"]
    assert {(row["host"], row["word"]) for row in changes} == {
        ("slower", "worse"),
        ("faster", "better"),
    }
    assert all(row["low"] < row["ratio"] < row["high"] and row["job"] for row in changes)
    assert len(found["Newest headline figures"]) == len(hosts) * HEADLINES_MOST
    assert {row["host"] for row in found["Headline figures beside what is usual"]} == {
        host for host in hosts if host.startswith("node")
    }


def test_the_series_boards_have_what_is_expected(fleet: Fleet, influx: InfluxClient) -> None:
    (query,) = [
        one for one in queries() if one.board == "hostbench-cpu" and one.panel.endswith("history")
    ]
    found = rows(influx, query.text)
    assert {row["host"] for row in found} == {*(f"node{number}" for number in range(5)), "node50"}
    assert all(row["expected"] < row["usual"] for row in found)


def test_choices_choose(fleet: Fleet, influx: InfluxClient) -> None:
    for name, value in (("host", "other"), ("workload", "cpuXfma")):
        chosen = Chosen(ALWAYS.from_ms, ALWAYS.to_ms, {name: [value]})
        for query in (*panel_queries(chosen), *annotation_queries(chosen)):
            if is_of_several_jobs(query):
                assert not rows(influx, query.text), query
