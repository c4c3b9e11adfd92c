"""Points are made of a running job and of its document by the same code."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from hostbench.base.units import human
from hostbench.model.events import ControlPlaneEvent, ProcessUsage, SampleEvent
from hostbench.model.job_events import CaseEndedEvent, SampleTakenEvent, TrialEndedEvent
from hostbench.model.result import (
    Condition,
    ConditionState,
    PeerResult,
    ResultDocument,
    Verdict,
)
from hostbench.results.document import Progress, case_result
from orchestrator.influx.points import (
    CaseTags,
    JobContext,
    case_points,
    document_points,
    line,
    sample_points,
    trial_points,
)
from orchestrator.influx.sink import PointSink
from tests.influx.real_job import Kept, RealJob
from tests.unit.records import bare_trial, done, end, planned, sampled, session, skipped, start

SHARED, THROTTLED = ConditionState.SHARED, ConditionState.THROTTLED


@pytest.fixture(scope="module")
def document(real: RealJob) -> ResultDocument:
    """Of a real job, as it stands on the disk."""
    return real.directory.load()


def test_a_running_job_and_its_document_give_the_same_points(
    real: RealJob, document: ResultDocument
) -> None:
    of_document = Counter(line(point) for point in document_points(document))
    assert real.lines == of_document
    assert max(of_document.values()) == 1


def test_the_job_had_everything_points_are_made_of(document: ResultDocument) -> None:
    points = list(document_points(document))
    assert {point.measurement for point in points} == {"result", "sample", "disturbance"}
    assert any(case.verdict is Verdict.SKIPPED for case in document.cases)
    assert {point.tags["role"] for point in points if point.measurement == "result"} == {
        "primary",
        "secondary",
        "peer",
    }


def test_results_hold_the_documents_figures(document: ResultDocument) -> None:
    points = {
        (point.tags["case"], point.tags["metric"]): point
        for point in document_points(document)
        if point.measurement == "result" and point.tags["tool"] == "hostbench"
    }
    for case in document.cases:
        for name, metric in case.metrics.items():
            point = points[case.case, name]
            assert point.retention is None
            assert point.time_ms == round(case.trials[0].time_unix_s * 1000)
            assert point.fields["value"] == metric.statistics.median
            assert point.fields["n"] == metric.statistics.n
            assert point.fields["low"] == metric.statistics.interval.low
            assert point.fields["high"] == metric.statistics.interval.high
            assert point.fields.get("spread") == metric.statistics.half_width_ratio
            assert point.fields.get("limit") == (metric.limit.value if metric.limit else None)
            assert point.fields.get("efficiency") == metric.efficiency
            assert point.fields["unit"] == metric.unit
            assert point.fields["verdict"] == case.verdict
            assert point.fields["job"] == document.job.id
            assert point.fields.get("best") == (case.best if name == case.primary else None)
            shown = human(metric.statistics.median, metric.unit)
            assert point.fields.get("figure") == (shown if name == case.primary else None)
        assert (case.best is None) == (case.primary not in case.metrics)


def test_a_job_makes_no_series_of_its_own(document: ResultDocument) -> None:
    """InfluxDB keeps an index of all series in memory."""
    points = list(document_points(document))
    assert {point.measurement for point in points} >= {"result", "sample", "disturbance"}
    for point in points:
        assert document.job.id not in point.tags.values(), point.measurement
        assert point.fields["job"] == document.job.id


def test_a_case_without_a_figure_says_so_under_its_primary_metric(
    document: ResultDocument,
) -> None:
    skipped = [case for case in document.cases if case.verdict is Verdict.SKIPPED]
    assert {case.primary for case in skipped} == {"operations_per_second", "bytes_per_second"}
    for case in skipped:
        (point,) = case_points(JobContext.of_document(document), case)
        assert point.tags["metric"] == case.primary
        assert point.fields["n"] == 0
        assert "value" not in point.fields
        assert ("pages" if "pages" in case.params else "CPU") in str(point.fields["reason"])


def test_the_chosen_instruction_set_is_the_tag(document: ResultDocument) -> None:
    case = document.cases[0]
    assert case.params["isa"] == "best"
    chosen = case.trials[0].start
    assert chosen is not None
    point = case_points(JobContext.of_document(document), case)[0]
    assert point.tags["isa"] == chosen.params["isa"] != "best"
    assert point.tags["threads"] == "1"
    # The tag is the same in each job, whatever `best` becomes.
    assert case.label == f"{point.tags['label']} {chosen.params['isa']}"


@pytest.mark.parametrize(
    ("store", "label"),
    [("nt", "2 threads avx512 nt 4 streams"), ("libc", "2 threads libc")],
)
def test_what_best_became_is_a_field_and_not_a_tag(store: str, label: str) -> None:
    left = dict.fromkeys(("isa", "store", "streams"), "best")
    case = planned(params={"threads": 2, **left})
    began = start(params={"threads": 2, "isa": "avx512", "store": store, "streams": 4})
    progress = Progress(session((case,)), 1.8e9)
    progress.take(bare_trial(events=(began, end())))
    progress.take(done())
    found = case_result(progress, case)
    assert found.label == label
    (point,) = case_points(JobContext.of_session(progress.session), found)
    assert point.tags["label"] == case.label == "2 threads"
    assert (point.fields["store"], point.fields["streams"]) == (store, 4.0)
    assert not {"store", "streams"} & set(point.tags)


@pytest.mark.parametrize(("rate", "paced"), [(None, "no"), (1e6, "yes")])
def test_network_cases_with_a_rate_are_distinguished(rate: float | None, paced: str) -> None:
    params = {"target": "loopback", "ip_version": "6", "receive_path": "copy"}
    resolved = params if rate is None else params | {"rate": rate}
    case = planned(workload="net.tcp_stream", params=resolved)
    metrics = {case.workload: session().workloads["cpu.fma"]}
    progress = Progress(session((case,), workloads=metrics), 1.8e9)
    progress.take(bare_trial(events=(start(workload="tcp_stream", params=resolved), end())))
    progress.take(done())
    context = JobContext.of_session(progress.session)
    (point, *_) = case_points(context, case_result(progress, case))
    assert point.tags["paced"] == paced
    assert (point.tags["ip_version"], point.tags["receive_path"]) == ("6", "copy")


def test_two_cards_of_one_name_and_two_ways_to_copy_are_distinguished() -> None:
    tags = [
        _of_a_card(requested, {"device": index, "path": path})
        for requested, index, path in (("auto", "0", "kernel"), ("1", "1", "driver"))
    ]
    assert [one["device"] for one in tags] == ["0: NVIDIA L4", "1: NVIDIA L4"]
    assert [one["path"] for one in tags] == ["kernel", "driver"]


def _of_a_card(requested: str, resolved: dict[str, Any]) -> Mapping[str, str]:
    """The tags of a case that requested a device, as the program understood it."""
    case = planned(workload="gpu.copy", params={**resolved, "device": requested})
    metrics = {case.workload: session().workloads["cpu.fma"]}
    began = start(workload="copy", params=resolved, facts={"device_name": "NVIDIA L4"})
    progress = Progress(session((case,), workloads=metrics), 1.8e9)
    progress.take(bare_trial(events=(began, end())))
    progress.take(done())
    context = JobContext.of_session(progress.session)
    (point, *_) = case_points(context, case_result(progress, case))
    return point.tags


def test_what_a_figure_may_be_drawn_over_stands_beside_it(
    document: ResultDocument,
) -> None:
    context = JobContext.of_document(document)
    measured = [case for case in document.cases if case.verdict is not Verdict.SKIPPED]
    # The first of each workload; maps of the memory have more.
    cases = {case.workload: case for case in reversed(measured)}
    chase, blocks, loaded = (
        case_points(context, cases[f"mem.{name}"])
        for name in ("pointer_chase", "read", "loaded_latency")
    )
    assert len(chase) > 1
    for point in chase:
        assert point.fields["size_bytes"] == 4 << 20 and "block_bytes" not in point.fields
        assert point.tags["pages"] == "huge" and "size_bytes" not in point.tags
    assert {point.fields["block_bytes"] for point in blocks} == {16384}
    taken = next(point for point in loaded if point.tags["metric"] == "load_bytes_per_second")
    for point in loaded:
        assert point.fields["intensity"] == 1
        assert point.fields["load_bytes_per_second"] == taken.fields["value"]
    assert not {"size_bytes", "intensity"} & set(case_points(context, cases["cpu.fma"])[0].fields)


def test_a_size_that_was_left_to_the_program_is_what_it_took(
    document: ResultDocument,
) -> None:
    measured_case = next(c for c in document.cases if c.workload == "mem.pointer_chase")
    left = {"params": {**measured_case.params, "size_bytes": "auto"}}
    for case, expected in (
        (measured_case.model_copy(update=left), 4 << 20),
        (measured_case.model_copy(update={**left, "trials": (skipped(),)}), None),
    ):
        point = case_points(JobContext.of_document(document), case)[0]
        assert point.fields.get("size_bytes") == expected


def test_peers_stand_beside_the_figure_they_are_held_against(
    document: ResultDocument,
) -> None:
    context = JobContext.of_document(document)
    with_ratio: list[PeerResult] = []
    for case in document.cases:
        points = {point.tags["tool"]: point for point in case_points(context, case)}
        primary = next(
            point for point in case_points(context, case) if point.tags["role"] == "primary"
        )
        for peer in case.peers:
            point = points[peer.tool]
            assert point.time_ms == primary.time_ms
            assert point.fields["verdict"] == peer.verdict
            if peer.statistics is not None:
                assert point.fields["value"] == peer.statistics.median
            if peer.ratio is not None:
                with_ratio.append(peer)
                assert point.fields["ratio"] == peer.ratio.median
                assert primary.fields["peer_ratio"] == peer.ratio.median
                assert primary.fields["peer"] == peer.tool
    if not with_ratio:
        pytest.skip("no peer has a ratio: none is installed (make peers), or it was disturbed")


def test_cpu_time_and_a_held_clock_stand_apart(document: ResultDocument) -> None:
    case = next(case for case in document.cases if case.figure is not None)
    shared = {"taken": "shared", "taken_share": 0.2}
    for condition, expected in (
        (Condition(state=SHARED, share=0.2, culprit="make, pid 7"), {"taken_by": "make, pid 7"}),
        (Condition(state=SHARED, share=0.2, also={THROTTLED: 0.1}), {"clock_held": 0.1}),
        (Condition(state=THROTTLED, share=1.0, also={SHARED: 0.2}), {"clock_held": 1.0}),
    ):
        found = case.model_copy(update={"condition": condition})
        point = case_points(JobContext.of_document(document), found)[0]
        names = ("taken", "taken_share", "taken_by", "clock_held")
        held = {name: point.fields[name] for name in names if name in point.fields}
        assert held == shared | expected


def test_samples_have_the_time_at_which_they_ended() -> None:
    context = JobContext.of_session(session())
    (one,) = sampled(1)
    (point,) = sample_points(context, CaseTags("aaaa", "cpu.fma", "fp64"), 3, 1_800_000_000.25, one)
    assert point.time_ms == 1_800_000_001_250
    job = session().job
    assert point.fields == {"value": 100.0, "t_s": 1.0, "trial": 3.0, "job": job}
    assert point.tags == {
        "host": "alpha",
        "suite": "quick",
        "workload": "cpu.fma",
        "case": "aaaa",
        "label": "fp64",
        "metric": "operations_per_second",
    }
    assert point.retention == "samples"


def test_what_the_kernel_could_not_tell_is_left_out() -> None:
    trial = bare_trial(events=(start(), end(steal_s=None)))
    context = JobContext.of_session(session())
    (point,) = trial_points(context, CaseTags("aaaa", "cpu.fma", ""), trial)
    assert "steal_s" not in point.fields
    assert "label" not in point.tags
    assert point.fields["involuntary_switches"] == 0.0
    assert all(isinstance(value, float | str) for value in point.fields.values())


def test_what_hostbench_itself_used_is_a_point_a_process() -> None:
    usage = ControlPlaneEvent(
        processes=(
            ProcessUsage(component="service", cpu_s=0.01, elapsed_s=2.0, written_bytes=None),
            ProcessUsage(component="redis", cpu_s=0.02, elapsed_s=2.0, written_bytes=4096),
        )
    )
    trial = bare_trial(events=(start(), usage))
    points = trial_points(JobContext.of_session(session()), CaseTags("aaaa", "cpu.fma", ""), trial)
    assert [point.tags["component"] for point in points] == ["service", "redis"]
    used = {"cpu_s": 0.01, "elapsed_s": 2.0, "cpu_ratio": 0.005}
    assert points[0].fields == {"job": session().job, **used}
    assert points[1].fields["written_bytes"] == 4096.0


def sample_taken(sample: SampleEvent) -> SampleTakenEvent:
    return SampleTakenEvent(case=session().cases[0].case, sample=sample, index=0, time_unix_s=1.8e9)


def test_samples_of_a_trial_go_out_at_most_once_in_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    outbox = Kept()
    sink = PointSink(session(), outbox)
    for one in sampled(22):
        now_s += 1.0
        sink.take(sample_taken(one))
    assert [len(points) for points in outbox.handed_over] == [10, 10]
    sink.take(TrialEndedEvent(trial=bare_trial(events=(start(), *sampled(22), end()))))
    assert [len(points) for points in outbox.handed_over] == [10, 10, 3]
    sink.take(CaseEndedEvent(record=done()))
    sink.close()
    assert [len(points) for points in outbox.handed_over] == [10, 10, 3, 1]


class Away(Kept):
    """Its Redis is not available for the first calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls
        self.left_out_count = 0

    def put(self, points: object) -> None:
        self.calls -= 1
        if self.calls >= 0:
            raise redis.ConnectionError("away")
        super().put(points)

    def leave_out(self, points: int) -> None:
        self.left_out_count += points


def test_points_wait_at_the_end_as_long_as_they_may_and_are_counted_then() -> None:
    for away_calls, waits, arrived, left_out in ((2, 9, 1, 0), (99, 2, 0, 1)):
        outbox = Away(away_calls)
        sink = PointSink(session(), outbox)
        sink.take(sample_taken(sampled(1)[0]))
        answers = iter([True] * waits + [False])
        sink.close(lambda answers=answers: next(answers))  # type: ignore[misc]
        assert sum(len(points) for points in outbox.handed_over) == arrived
        assert outbox.left_out_count == left_out


def test_what_earlier_sessions_measured_is_handed_over_again(
    real: RealJob, document: ResultDocument
) -> None:
    outbox = Kept()
    sink = PointSink(session(), outbox)
    sink.repeat(document)
    sink.close()
    assert outbox.lines == real.lines


def test_samples_of_an_interrupted_trial_are_not_lost(tmp_path: Path) -> None:
    outbox = Kept()
    sink = PointSink(session(), outbox)
    sink.take(sample_taken(sampled(1)[0]))
    assert not outbox.handed_over
    sink.close()
    assert [len(points) for points in outbox.handed_over] == [1]
