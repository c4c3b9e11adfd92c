"""The boards: what is committed is what the code says, and every query answers the truth."""

import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grafana import generate
from grafana.influxql import SOURCE_UID
from grafana.queries import Chosen, boards, filled, panel_queries, variable_queries
from hostbench.base.units import plus_minus
from hostbench.model.events import ControlPlaneEvent, ProcessUsage, SampleEvent, StartEvent
from hostbench.model.jobs import JobView, StackState
from hostbench.model.limit import Limit
from hostbench.model.peer import TrialEvent
from hostbench.model.registry import subsystem_names
from hostbench.model.result import (
    CaseResult,
    Condition,
    ConditionState,
    MetricResult,
    ResultDocument,
    TrialRecord,
    Verdict,
)
from hostbench.model.table import Metric
from orchestrator.influx.client import InfluxClient
from orchestrator.influx.points import document_points, job_point, line
from tests.influx.jobs import measured
from tests.influx.real_job import RealJob
from tests.stack.boards.answers import difference, is_of_several_jobs, rows_of
from tests.stack.boards.expected import Expected, variable_values
from tests.stack.influx_server import InfluxServer
from tests.unit.gpu_documents import gpu_run
from tests.unit.memory_documents import planned_memory, run_of

AROUND_MS = 600_000
# What no device tells that OpenCL makes of a CPU.
SENSORS = (
    "core_clock_hertz",
    "nvml_clock_hertz",
    "power_watts",
    "temperature_celsius",
    "throttled_ratio",
    "operations_per_cycle",
)
ANY_TIME = Chosen(0, 1, {})
# What the workloads begin with that a board shows when all are chosen.
BOARDS_OF = {
    "": {"hostbench-overview", "hostbench-live", "hostbench-fleet", "hostbench-maps"},
    **{f"{name}.": {f"hostbench-{name}"} for name in subsystem_names()},
}


def with_usage(trial: TrialRecord, cpu_s: float) -> TrialRecord:
    """The trial as one that ran through a service."""
    usage = ControlPlaneEvent(
        processes=(
            ProcessUsage(component="service", cpu_s=cpu_s, elapsed_s=0.5, written_bytes=0),
            ProcessUsage(component="redis", cpu_s=cpu_s / 7, elapsed_s=0.5, written_bytes=512),
        )
    )
    return trial.model_copy(update={"events": (*trial.events, usage)})


def with_limit(case: CaseResult) -> CaseResult:
    """The case as on a host that says what its memory could do."""
    name = "bytes_per_second"
    if name not in case.metrics:
        return case
    found = case.metrics[name]
    limit = Limit(value=2 * found.statistics.median, unit=found.unit)
    known = found.model_copy(update={"limit": limit, "efficiency": 0.5})
    return case.model_copy(update={"metrics": {**case.metrics, name: known}})


def with_sensors(case: CaseResult, metrics: tuple[Metric, ...]) -> CaseResult:
    """The case as on a card that tells its clock, power and temperature, as far as it has such
    metrics."""
    figure = case.metrics.get(case.primary)
    if not case.workload.startswith("gpu.") or figure is None:
        return case
    known = {metric.name for metric in metrics}
    sensed = {
        name: sensor(figure, place + 1.0) for place, name in enumerate(SENSORS) if name in known
    }
    trials = tuple(
        trial.model_copy(update={"events": tuple(map(with_sensed, trial.events))})
        for trial in case.trials
    )
    return case.model_copy(update={"metrics": {**case.metrics, **sensed}, "trials": trials})


def sensor(like: MetricResult, value: float) -> MetricResult:
    """A metric of as many trials, without a limit."""
    statistics = like.statistics.model_copy(update={"median": value})
    return like.model_copy(update={"statistics": statistics, "limit": None, "efficiency": None})


def with_sensed(event: TrialEvent) -> TrialEvent:
    """A sample with what the card says."""
    if not isinstance(event, SampleEvent):
        return event
    sensed = {name: 10.0 + place for place, name in enumerate(SENSORS)}
    return event.model_copy(update={"metrics": {**event.metrics, **sensed}})


def on_a_second_card(case: CaseResult) -> CaseResult:
    """The case as on another card of the same name, twice as fast."""
    changed = {
        "case": f"{case.case[:-1]}-",
        "label": f"{case.label} device 1",
        "params": {**case.params, "device": "1"},
        "metrics": {name: twice(metric) for name, metric in case.metrics.items()},
        "trials": tuple(map(of_a_second_card, case.trials)),
    }
    return case.model_copy(update=changed)


def twice(metric: MetricResult) -> MetricResult:
    statistics = metric.statistics.model_copy(update={"median": 2 * metric.statistics.median})
    return metric.model_copy(update={"statistics": statistics})


def of_a_second_card(trial: TrialRecord) -> TrialRecord:
    """The trial a second later, as the program tells the other device."""
    events = tuple(
        event.model_copy(update={"params": {**event.params, "device": "1"}})
        if isinstance(event, StartEvent)
        else event
        for event in trial.events
    )
    changed = {"events": events, "time_unix_s": trial.time_unix_s + 1.0}
    return trial.model_copy(update=changed)


def with_all_usage(case: CaseResult) -> CaseResult:
    """The case as one whose trials all ran through a service."""
    trials = tuple(with_usage(trial, 0.001 * (1 + trial.index)) for trial in case.trials)
    return case.model_copy(update={"trials": trials})


# The first test of either document measures it: on a busy host that takes minutes.
pytestmark = pytest.mark.timeout(400)
ALL = pytest.param("measured_all", id="all", marks=pytest.mark.exhaustive)


@pytest.fixture(scope="session")
def measured_few(real: RealJob) -> ResultDocument:
    """A case of each kind."""
    return real.directory.load()


@pytest.fixture(scope="session")
def measured_all(tmp_path_factory: pytest.TempPathFactory) -> ResultDocument:
    """All cases, measured once for both servers."""
    _, document = measured(tmp_path_factory.mktemp("results"))
    return document


@pytest.fixture(scope="module", params=[pytest.param("measured_few", id="few"), ALL])
def document(request: pytest.FixtureRequest) -> ResultDocument:
    """That of a real job, as if a service had run its trials where all limits are known."""
    found: ResultDocument = request.getfixturevalue(request.param)
    cases = [
        with_all_usage(with_sensors(with_limit(case), found.workloads[case.workload]))
        for case in found.cases
    ]
    return found.model_copy(update={"cases": tuple(cases)})


def ended(document: ResultDocument) -> JobView:
    """Its job, as the API shows it in the end."""
    job = document.job
    return JobView(
        id=job.id,
        state=StackState.SUCCEEDED,
        since_unix_s=job.finished_unix_s,
        reason=None,
        suite=job.suite,
        hosts=[job.hostname],
        priority=0,
        spec=None,
        submitted_unix_s=job.created_unix_s,
        started_unix_s=job.created_unix_s,
        ended_unix_s=job.finished_unix_s,
    )


def write(client: InfluxClient, document: ResultDocument) -> None:
    """Write all points of a document."""
    for retention in (None, "samples"):
        points = [p for p in document_points(document) if p.retention == retention]
        client.write([line(point) for point in points], retention)


@pytest.fixture
def influx(
    document: ResultDocument, influx_server: InfluxServer, database: str
) -> Iterator[InfluxClient]:
    """A client that may only read, of a database that holds the document's points."""
    with influx_server.client(database=database) as writer:
        write(writer, document)
        writer.write([line(job_point(ended(document)))])
    with influx_server.client("grafana", "reader-password", database) as reader:
        yield reader


def chosen(document: ResultDocument, **variables: list[str]) -> Chosen:
    now_ms = int(document.job.created_unix_s * 1000)
    return Chosen(now_ms - AROUND_MS, now_ms + AROUND_MS, variables)


def test_what_is_committed_is_what_the_code_says() -> None:
    committed = {path.name: path.read_text() for path in generate.DIRECTORY.glob("*.json")}
    assert committed == generate.generated(), "run make docs"
    assert {f"{name}.json" for name in subsystem_names()} < set(committed)


def test_every_panels_query_answers_the_documents_values(
    document: ResultDocument, influx: InfluxClient
) -> None:
    expected = Expected(document)
    wrong = []
    for query in panel_queries(chosen(document)):
        found = difference(rows_of(influx.query(query.text)), expected.rows(query))
        if found is not None:
            wrong.append(f"{query.board}, {query.panel} {query.ref}: {found}")
    assert not wrong, "\n".join(wrong)


def test_two_cards_of_one_name_are_two_and_the_drivers_copy_is_none_of_ours(
    influx_server: InfluxServer, database: str
) -> None:
    alone = gpu_run()
    second = map(on_a_second_card, alone.cases)
    document = alone.model_copy(update={"cases": (*alone.cases, *second)})
    with influx_server.client(database=database) as client:
        write(client, document)
        began_ms = int(document.cases[0].trials[0].time_unix_s * 1000)
        around = Chosen(began_ms - AROUND_MS, began_ms + AROUND_MS, {})
        queries = [one for one in panel_queries(around) if one.board == "hostbench-gpu"]
        found = {(one.panel, one.ref): rows_of(client.query(one.text)) for one in queries}
    expected = Expected(document)
    for query in queries:
        assert difference(found[query.panel, query.ref], expected.rows(query)) is None, query.panel
    bars = found["Highest bandwidth by workload and device", "A"]
    copies = [row["rate"] for row in bars if row["workload"] == "gpu.copy"]
    (ours,) = [one for one in alone.cases if one.params.get("path") == "kernel"]
    figure = ours.metrics["bytes_per_second"].statistics.median
    assert sorted(copies) == pytest.approx([figure, 2 * figure], rel=1e-9)
    lines = {row["device"] for row in found["Access time over the working set", "A"]}
    assert lines == {"0: A card for tests", "1: A card for tests"}


def test_nodes_of_a_host_that_has_several(influx_server: InfluxServer, database: str) -> None:
    document = run_of((planned_memory("numa"),), random.Random(1))
    with influx_server.client(database=database) as client:
        write(client, document)
        queries = [
            one
            for one in panel_queries(chosen(document))
            if (one.board, one.panel) == ("hostbench-maps", "From NUMA node to NUMA node")
        ]
        found = [rows_of(client.query(one.text)) for one in queries]
    expected = Expected(document)
    for query, rows in zip(queries, found, strict=True):
        assert difference(rows, expected.rows(query)) is None, query.ref
    nearest, median, farthest = (row["value"] for (row,) in found)
    assert 0 < nearest < median < farthest


def test_the_fleet_board_counts_corrupt_cases_and_held_clocks_apart(
    influx_server: InfluxServer, database: str
) -> None:
    sound = gpu_run()
    verdicts = (Verdict.CORRUPT, Verdict.FAILED, Verdict.CORRUPT)
    conditions = (
        Condition(state=ConditionState.SHARED, share=0.2, culprit="make, pid 7"),
        Condition(state=ConditionState.THROTTLED, share=1.0, also={ConditionState.SHARED: 0.4}),
        None,
    )
    wrong = [
        case.model_copy(update={"verdict": verdict, "condition": condition})
        for case, verdict, condition in zip(sound.cases, verdicts, conditions, strict=False)
    ]
    document = sound.model_copy(update={"cases": (*wrong, *sound.cases[len(wrong) :])})
    with influx_server.client(database=database) as client:
        write(client, document)
        began_ms = int(document.cases[0].trials[0].time_unix_s * 1000)
        found = {
            one.ref: rows_of(client.query(one.text))
            for one in panel_queries(Chosen(began_ms - AROUND_MS, began_ms + AROUND_MS, {}))
            if one.board == "hostbench-fleet" and one.panel == "Each host in a line"
        }
    counted = {
        name: row[name]
        for (row,) in (found["C"], found["D"])
        for name in row.keys() - {"host", "time"}
    }
    assert counted == {"corrupt": 2, "unusable": 1}
    ((taken,), (held,)) = (found["B"], found["F"])
    assert (taken["condition"], taken["share"], taken.get("culprit")) == ("shared", 0.4, None)
    assert held["held"] == 1.0


@pytest.mark.parametrize("document", [ALL], indirect=True)
def test_the_document_leaves_no_panel_untried(
    document: ResultDocument, influx: InfluxClient
) -> None:
    """A panel that is empty for every document would always be right."""
    expected = Expected(document)
    filled_panels = {
        (query.board, query.panel)
        for query in panel_queries(chosen(document))
        if expected.rows(query)
    }
    all_panels = {
        (query.board, query.panel)
        for query in panel_queries(ANY_TIME)
        if not is_of_several_jobs(query)
    }
    beside_peers = {
        (f"hostbench-{board}", panel)
        for board in subsystem_names()
        for panel in ("Ours / peer", "Ours over the peer's")
    }
    # A virtual machine often shows no two threads of one core, and one NUMA node.
    of_hardware = {
        ("hostbench-maps", panel)
        for panel in ("Two threads over one", "From NUMA node to NUMA node")
    }
    assert all_panels - filled_panels <= beside_peers | of_hardware


def test_variables_offer_what_there_is(document: ResultDocument, influx: InfluxClient) -> None:
    expected = variable_values(document)
    for query in variable_queries(chosen(document)):
        # Grafana takes the second column of each row.
        values = {str(row[1]) for series in influx.query(query.text) for row in series.values}
        assert values == expected[query.board, query.panel], query


def test_the_live_board_follows_the_newest_job(
    document: ResultDocument, influx_server: InfluxServer, influx: InfluxClient, database: str
) -> None:
    later = [
        dataclasses.replace(
            point,
            fields={**point.fields, "job": "20991231T235959Z-later-0000"},
            time_ms=point.time_ms + 60_000,
        )
        for point in document_points(document)
        if point.retention == "samples" and point.measurement == "sample"
    ]
    (text,) = [one.text for one in variable_queries(chosen(document)) if one.panel == "newest"]
    for expected in (document.job.id, "20991231T235959Z-later-0000"):
        ((row,),) = [one.values for one in influx.query(text)]
        assert row[1] == expected
        with influx_server.client(database=database) as writer:
            writer.write([line(point) for point in later], "samples")


@pytest.mark.parametrize("document", [ALL], indirect=True)
def test_choices_choose(document: ResultDocument, influx: InfluxClient) -> None:
    host, suite = document.host.hostname, document.suite.name
    workloads = {case.workload for case in document.cases}
    everything = panel_queries(chosen(document))
    variables = {
        board["uid"]: {one["name"] for one in board["templating"]["list"]} for board in boards()
    }
    for subsystem, uids in BOARDS_OF.items():
        right = chosen(
            document,
            host=[host, "other"],
            suite=[suite],
            workload=sorted(name for name in workloads if name.startswith(subsystem)),
            **dict.fromkeys(
                ("kernel", "stream", "access", "trip", "mover"),
                sorted(name for name in workloads if name.startswith(subsystem)),
            ),
            job=[document.job.id, "x"],
        )
        for query, all_of_it in zip(panel_queries(right), everything, strict=True):
            if query.board in uids:
                found, expected = influx.query(query.text), influx.query(all_of_it.text)
                assert rows_of(found) == rows_of(expected), query
    for name, values in {
        "host": ["other", "another"],
        "suite": [f"{suite}x"],
        "workload": ["cpuXfma"],
        "job": ["x"],
    }.items():
        for query in panel_queries(chosen(document, **{name: values})):
            known = variables[query.board]
            own_use = "control_plane" in query.text and name != "host"
            states = 'FROM "job"' in query.text and name == "workload"
            if name in known and not (own_use and name != "job") and not states:
                assert not rows_of(influx.query(query.text)), query
    past = Chosen(0, 1000, {})
    for query in panel_queries(past):
        assert not rows_of(influx.query(query.text)), query


def test_special_characters_of_values_are_escaped() -> None:
    board = {"templating": {"list": [{"name": "host", "allValue": ".*"}]}}
    text = '"host" =~ /^${host:regex}$/'
    for values, expected in [
        (["a.b/c"], r'"host" =~ /^a\.b\/c$/'),
        (["a", "b(1)"], r'"host" =~ /^(a|b\(1\))$/'),
    ]:
        assert filled(text, Chosen(0, 1, {"host": values}), board) == expected
    assert filled(text, ANY_TIME, board) == '"host" =~ /^.*$/'


def test_an_empty_database_answers_every_query(influx_server: InfluxServer, database: str) -> None:
    with influx_server.client("grafana", "reader-password", database) as reader:
        for query in [*panel_queries(ANY_TIME), *variable_queries(ANY_TIME)]:
            assert rows_of(reader.query(query.text)) == [], query


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_every_panel_says_what_it_shows(board: dict[str, Any]) -> None:
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    titles = [panel["title"] for panel in panels]
    assert panels
    assert len(set(titles)) >= len(titles) - 1
    for panel in panels:
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["datasource"]["uid"] == SOURCE_UID
        assert panel["type"] != "piechart"
        assert [target["datasource"]["uid"] for target in panel["targets"]] == [
            SOURCE_UID for _ in panel["targets"]
        ]


def test_a_figure_in_a_table_is_one_readable_value() -> None:
    """Its unit stands in the same cell."""
    tables = {
        (board["uid"], panel["title"]): target["query"]
        for board in boards()
        for panel in board["panels"]
        if panel["type"] == "table"
        for target in panel["targets"]
    }
    assert ("hostbench-fleet", "Newest headline figures") in tables
    assert not [where for where, text in tables.items() if '"unit"' in text]


def properties_of(column: str) -> list[dict[str, Any]]:
    """What the boards' columns of this name have, a dictionary for each."""
    return [
        {one["id"]: one["value"] for one in override["properties"]}
        for board in boards()
        for panel in board["panels"]
        for override in panel.get("fieldConfig", {}).get("overrides", [])
        if override["matcher"]["options"] == column
    ]


def test_the_best_rate_has_a_column_without_a_colour() -> None:
    """It is no limit: nothing may be good or bad beside it."""
    found = properties_of("best")
    assert len(found) >= 6
    colours = {"thresholds", "color", "mappings", "custom.cellOptions"}
    assert not any(colours & properties.keys() for properties in found)


def test_half_an_interval_is_a_share_and_never_wider_than_its_figure() -> None:
    found = [*properties_of("± within"), *properties_of("widest spread")]
    assert len(found) >= 7
    for properties in found:
        assert (properties["unit"], properties["decimals"]) == ("percentunit", 2)
        wider, missing = properties["mappings"]
        assert (wider["options"]["from"], wider["options"]["to"]) == (1, None)
        assert f"± {wider['options']['result']['text']}" == plus_minus(1.5)
        assert missing["options"]["match"] == "null"


def test_a_job_leads_to_its_pages_in_the_console() -> None:
    links = [link for one in properties_of("job") for link in one.get("links", [])]
    urls = {link["url"] for link in links if "${api}" in link["url"]}
    assert urls == {f"${{api}}/ui/jobs/${{__value.text}}{path}" for path in ("", "/report")}


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_panels_do_not_overlap(board: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, (panel["title"], taken.get((x, y)))
                taken[x, y] = panel["title"]


def test_charts_of_the_live_board_stand_exactly_above_one_another() -> None:
    live = next(board for board in boards() if board["uid"] == "hostbench-live")
    charts = [panel for panel in live["panels"] if panel["type"] == "timeseries"]
    assert len(charts) >= 4
    assert {
        (
            chart["gridPos"]["x"],
            chart["gridPos"]["w"],
            chart["fieldConfig"]["defaults"]["custom"]["axisWidth"],
            chart["options"]["legend"]["placement"],
        )
        for chart in charts
    } == {(0, 24, 90, "bottom")}


def test_links_lead_to_boards_that_are_there() -> None:
    uids = {board["uid"] for board in boards()}
    text = json.dumps(boards())
    linked = {part.split("?")[0].split('"')[0] for part in text.split("/d/")[1:]}
    assert linked and linked <= uids


def test_the_source_of_the_boards_is_provisioned() -> None:
    import yaml

    directory = Path(generate.__file__).parent / "provisioning"
    (source,) = yaml.safe_load((directory / "datasources/hostbench.yaml").read_text())[
        "datasources"
    ]
    assert source["uid"] == SOURCE_UID
    assert source["jsonData"]["version"] == "InfluxQL"
    assert not source["editable"]
    (provider,) = yaml.safe_load((directory / "dashboards/hostbench.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/etc/grafana/dashboards"
