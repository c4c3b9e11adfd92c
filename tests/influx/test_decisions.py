"""Points of what is decided of each job, and the boards that show them."""

import functools
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grafana.queries import BoardQuery, Chosen, annotation_queries, panel_queries
from hostbench.base.units import human
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
from tests.stack.boards.answers import difference, is_of_several_jobs, rows_of
from tests.stack.influx_server import InfluxServer
from tests.unit.baseline_documents import of_host, of_hosts
from tests.unit.decided import stored_job

BEFORE, AFTER = 13, 5
SOUND = (0.99, 1.0, 1.005, 0.995, 1.01, 1.002)
CASE = "e180bf2aad1e"  # cpu.fma fp64 scalar 1 thread
DAY_MS = 86_400_000
# Long before and after every job.
ALWAYS = Chosen(0, 4_000_000_000_000, {})


@dataclass(frozen=True)
class Fleet:
    """Jobs of a host that became slower, of one that became faster, and one job each of six sound
    hosts and of a slow one, all of one model; with the points that each job gave when it was the
    newest, in the order in which they came."""

    results: Path
    live: list[Point]

    @property
    def last(self) -> list[Point]:
        """Those that are left where each is written over by the next one at its place."""
        places = {(one.measurement, repr(one.tags), one.time_ms): one for one in self.live}
        return list(places.values())

    @functools.cached_property
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
    sound = of_hosts(SOUND)
    (folder / "model.json").write_bytes(content_of(made_of([measured_job(one) for one in sound])))
    live: list[Point] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(root / "data"))
        patch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        for job in stored_jobs(results, sound):
            live += as_it_is_stored(results, job)
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


@pytest.fixture(scope="module")
def influx(fleet: Fleet, influx_server: InfluxServer) -> Iterator[InfluxClient]:
    """A client of a database that `reindex` has filled."""
    influx_server.make_database("decisions")
    with influx_server.client(database="decisions") as client:
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
            for point in fleet.last
            if point.measurement == name
        ]
        assert difference(stored, meant) is None
    again = reindex(ResultsStore(fleet.results), influx, lambda *_: None)
    assert again.points > len(fleet.last)
    for name, stored in found.items():
        assert rows(influx, f'SELECT * FROM "{name}" GROUP BY *') == stored


@pytest.mark.exhaustive
def test_nothing_is_left_of_a_baseline_that_was_removed(
    fleet: Fleet, influx_server: InfluxServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """InfluxDB keeps those fields of a point that a new one at its place does not have."""
    with influx_server.client(database=database) as one:
        one.write([line(point) for point in fleet.live])
        monkeypatch.setenv("XDG_DATA_HOME", str(fleet.results / "no baselines"))
        done = reindex(ResultsStore(fleet.results), one, lambda *_: None)
        assert not done.kept
        found = rows(one, 'SELECT * FROM "decision" GROUP BY *')
    assert len(found) == HEADLINES_MOST * len(fleet.documents)
    assert {row["baseline"] for row in found} == {"no reference"}
    assert not {"expected", "expected_figure", "usual", "of_usual"} & {
        name for row in found for name in row
    }


def test_points_written_by_the_running_stack_show_the_same(
    fleet: Fleet, influx: InfluxClient, influx_server: InfluxServer, database: str
) -> None:
    """Also of changes that were seen for a while."""
    influx_server.make_database(f"{database}_live")
    with influx_server.client(database=f"{database}_live") as live:
        live.write([line(point) for point in fleet.live])
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
        '"expected_figure", "unit", "usual", "of_usual" FROM "decision" GROUP BY "host", "case"',
    )
    by_host: dict[str, list[dict[str, Any]]] = {}
    for row in newest:
        by_host.setdefault(row["host"], []).append(row)
    assert all(len(found) == HEADLINES_MOST for found in by_host.values())
    for host, word, ratio in (("slower", "worse", 0.93), ("faster", "better", 1.08)):
        for row in by_host[host]:
            assert (row["change"], row["jobs"]) == (word, BEFORE + AFTER)
            assert row["ratio"] == pytest.approx(ratio, rel=0.01)
    for row in by_host["node50"]:
        assert (row["change"], row["baseline"]) == ("undecided", "low")
        assert row["value"] < row["expected"] < row["usual"]
        assert row["expected_figure"] == human(row["expected"], row["unit"])
        assert row["of_usual"] == pytest.approx(0.8, rel=0.01)
    for host in ("node0", "faster"):
        assert {row["baseline"] for row in by_host[host]} == {"as expected"}


def test_marks_stand_where_figures_changed(fleet: Fleet, influx: InfluxClient) -> None:
    marks = {(one.board, one.panel): rows(influx, one.text) for one in annotation_queries(ALWAYS)}
    subsystems = {board for board, _ in marks}
    assert subsystems == {f"hostbench-{name}" for name in ("cpu", "mem", "disk", "net", "gpu")}
    for word, host, sign in (("worse", "slower", "−"), ("better", "faster", "+")):
        found = marks["hostbench-cpu", f"changes: {word}"]
        assert len(found) == HEADLINES_MOST
        own = [one.job for one in fleet.documents if one.host.hostname == host]
        first = sorted(job.created_unix_s * 1000 for job in own)[BEFORE]
        for mark in found:
            assert abs(mark["time"] - first) <= 2 * DAY_MS
            assert mark["title"].startswith("cpu.fma ")
            assert mark["text"].startswith(f"{word} {sign}")
        assert not marks["hostbench-mem", f"changes: {word}"]


def test_a_change_that_is_seen_no_more_is_taken_back(
    tmp_path: Path, influx_server: InfluxServer, database: str
) -> None:
    """Of a host whose figures wander, where changes come and go with every job."""
    rng, walk = random.Random(33), 1.0
    now: set[int] = set()
    ever: set[int] = set()
    with influx_server.client(database=database) as influx:
        for number in range(24):
            walk *= 1 + rng.gauss(0, 0.02)
            job = stored_job(tmp_path, number, walk)
            points = [one for one in as_it_is_stored(tmp_path, job) if one.tags["case"] == CASE]
            influx.write([line(point) for point in points if point.measurement == "change"])
            found = rows(influx, 'SELECT "word" FROM "change" WHERE "word" != \'none\'')
            now = {point.time_ms for point in points if point.fields.get("word", "none") != "none"}
            assert {row["time"] for row in found} == now
            ever |= now
    assert ever - now


def test_the_fleet_board_answers(fleet: Fleet, influx: InfluxClient) -> None:
    found: dict[str, list[dict[str, Any]]] = {
        one.panel: rows(influx, one.text) for one in queries() if one.board == "hostbench-fleet"
    }
    hosts = {"slower", "faster", *(f"node{number}" for number in range(len(SOUND))), "node50"}
    assert [row["count"] for row in found["Hosts"]] == [len(hosts)]
    # What became slower is below the others, too.
    for word, count in (("worse", 1), ("better", 1), ("low", 2), ("suspect", 0)):
        counts = [row["count"] for row in found[f"Hosts with a {word} figure"]]
        assert counts == [count] * bool(count), word
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
    figures = found["Newest headline figures"]
    assert len(figures) == len(hosts) * HEADLINES_MOST
    (slow,) = [one for one in fleet.documents if one.host.hostname == "node50"]
    metrics = {one.case: one.metrics[one.primary] for one in slow.cases if one.metrics}
    for row in figures:
        if row["host"] == "node50":
            metric = metrics[row["case"]]
            assert row["figure"] == human(metric.statistics.median, metric.unit)
    assert {row["host"] for row in found["Headline figures beside what is usual"]} == hosts


def test_the_fleet_board_has_a_line_for_each_host(fleet: Fleet, influx: InfluxClient) -> None:
    found = {
        one.ref: {row["host"]: row for row in rows(influx, one.text)}
        for one in panel_queries(ALWAYS)
        if one.board == "hostbench-fleet" and one.panel == "Each host in a line"
    }
    # Of each host the newest result of every case counts.
    newest = {one.host.hostname: one for one in fleet.documents}
    assert found["A"].keys() == newest.keys() and found.keys() == set("ABCDEF")
    for host, document in newest.items():
        cases = [one for one in document.cases if one.verdict is not None and not one.naive]
        ends = [
            trial.time_unix_s + trial.wall_s
            for one in cases
            for trial in (*one.trials, *(trial for peer in one.peers for trial in peer.trials))
        ]
        line = found["A"][host]
        assert line["cases"] == len(cases)
        assert line["until_ms"] == pytest.approx(1e3 * max(ends), abs=1)
        reached = [
            one.metrics[one.primary].efficiency for one in cases if one.primary in one.metrics
        ]
        assert line["efficiency"] == pytest.approx(min(one for one in reached if one is not None))
    slow, sound = (found["A"][host]["efficiency"] for host in ("node50", "node1"))
    assert slow < 0.85 * sound


def test_the_series_boards_have_what_is_expected(fleet: Fleet, influx: InfluxClient) -> None:
    (query,) = [
        one for one in queries() if one.board == "hostbench-cpu" and one.panel.endswith("history")
    ]
    found = rows(influx, query.text)
    assert {row["host"] for row in found} == {one.host.hostname for one in fleet.documents}
    assert all(row["expected"] < row["usual"] for row in found)


def test_choices_choose(fleet: Fleet, influx: InfluxClient) -> None:
    for name, value in (("host", "other"), ("workload", "cpuXfma")):
        chosen = Chosen(ALWAYS.from_ms, ALWAYS.to_ms, {name: [value]})
        for query in (*panel_queries(chosen), *annotation_queries(chosen)):
            if is_of_several_jobs(query):
                assert not rows(influx, query.text), query
