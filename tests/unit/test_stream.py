"""A stream that breaks the protocol never becomes a figure."""

import json
import re
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.events import EVENT, ParamValue, StartEvent
from hostbench.model.table import Param, Workload
from hostbench.model.trial import Trial, TrialFailed
from hostbench.programs.stream import EventStream
from tests.unit.records import FMA, RATE, end, param, sampled, start

TRIAL = Trial(
    tool="hostbench",
    subsystem="cpu",
    workload="fma",
    params={"dtype": "fp64", "threads": 2, "duration_s": 0.5},
    timeout_s=10.0,
)
START = start().model_dump(mode="json")
SAMPLE = sampled(1)[0].model_dump(mode="json")
END = end().model_dump(mode="json")
SKIP = {"event": "skip", "reason": "no"}
CACHE_MODE = param(
    "cache_mode",
    type="choice",
    fallbacks={
        "direct": "buffered",
        "direct+dsync": "buffered+dsync",
        "direct+sync": "buffered+sync",
    },
)
WRONG = {"cpu": 1, "place": "lane 3", "expected": "0x13", "value": "0x1"}
ERROR = {"event": "error", "code": "resource", "message": "no memory; free some", "wrong": WRONG}
WARNING = {"event": "warning", "code": "odd", "message": "odd"}


def with_params(*params: Param) -> Workload:
    return FMA.model_copy(update={"params": (*FMA.params, *params)})


def stream_of(params: dict[str, ParamValue], *table: Param) -> EventStream:
    """Of a trial called with `params`; `table` says what those are that fma does not have."""
    trial = Trial(subsystem="cpu", workload="fma", params=params, timeout_s=1.0)
    return EventStream(trial, with_params(*table))


def fed(*events: dict[str, Any] | bytes) -> EventStream:
    stream = EventStream(TRIAL, FMA)
    for event in events:
        stream.take(event if isinstance(event, bytes) else json.dumps(event).encode())
    return stream


def refusal(*events: dict[str, Any] | bytes) -> TrialFailed:
    with pytest.raises(TrialFailed) as caught:
        fed(*events)
    assert "\n" not in caught.value.message
    return caught.value


def refused_end(*events: dict[str, Any] | bytes, exit_code: int, errors: str = "") -> TrialFailed:
    stream = fed(*events)
    with pytest.raises(TrialFailed) as caught:
        stream.finish(exit_code, errors)
    return caught.value


def test_good_streams() -> None:
    fed(WARNING, START, WARNING, SAMPLE, SAMPLE, END).finish(0, "")
    fed(SKIP).finish(4, "")
    fed(START, SKIP).finish(4, "")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"{",
        b"[]",
        b"null",
        b'{"event":"start"}',
        b'{"event":"nosuch"}',
        b"\xff\xfe",
        json.dumps(START | {"schema": 2}).encode(),
        json.dumps(START | {"extra": 1}).encode(),
        json.dumps(SAMPLE).replace("100.0", "NaN").encode(),
        json.dumps(SAMPLE).replace("100.0", "Infinity").encode(),
        json.dumps(SAMPLE).replace("100.0", "1e999").encode(),
        json.dumps(SAMPLE).replace("100.0", '"100"').encode(),
        json.dumps(SAMPLE).replace("100.0", "true").encode(),
        json.dumps(END | {"verified": False}).encode(),
        b'{"event":"skip","reason":""}',
    ],
)
def test_a_line_that_is_no_event(line: bytes) -> None:
    stream = EventStream(TRIAL, FMA)
    with pytest.raises(TrialFailed) as caught:
        stream.take(line)
    assert caught.value.code == "malformed_output"
    assert "broke the protocol" in caught.value.message


@pytest.mark.parametrize(
    ("events", "part"),
    [
        ((START, START), "second start"),
        ((SAMPLE,), "sample before the start"),
        ((END,), "end before the start"),
        ((START, END, SAMPLE), "sample after the last event end"),
        ((SKIP, SKIP), "skip after the last event skip"),
        ((START | {"workload": "clock"},), "cpu-bench clock answered for cpu-bench fma"),
        ((START | {"program": "mem-bench"},), "mem-bench fma answered"),
        (
            (START | {"params": START["params"] | {"threads": 3}},),
            "threads 3 measured, 2 requested",
        ),
        ((START | {"params": {"dtype": "fp64", "duration_s": 0.5}},), "threads None measured"),
        ((START | {"params": START["params"] | {"dtype": "fp32"}},), "'fp32' measured"),
    ],
)
def test_events_out_of_order_or_about_something_else(
    events: tuple[dict[str, Any], ...], part: str
) -> None:
    failure = refusal(*events)
    assert failure.code == "malformed_output"
    assert part in failure.message


@pytest.mark.parametrize(
    ("requested", "measured", "taken"),
    [
        ("direct", "direct", True),
        ("direct", "buffered", True),
        ("direct+dsync", "buffered+dsync", True),
        ("direct+sync", "buffered+sync", True),
        ("direct+dsync", "buffered", False),
        ("direct+sync", "buffered+dsync", False),
        ("buffered", "direct", False),
        ("direct", "direct+dsync", False),
    ],
)
def test_only_a_mode_of_the_file_system_may_fall_back(
    requested: str, measured: str, taken: bool
) -> None:
    stream = stream_of({"cache_mode": requested}, CACHE_MODE)
    begun = json.dumps(START | {"params": {"cache_mode": measured}}).encode()
    warning = WARNING | {"code": "direct_unavailable"}
    if taken:
        stream.take(json.dumps(warning).encode())
        assert isinstance(stream.take(begun), StartEvent)
        stream.take(json.dumps(END).encode())
    else:
        with pytest.raises(TrialFailed, match=f"cache_mode '{re.escape(measured)}' measured"):
            stream.take(begun)


UUID = "GPU-12345678-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("requested", "facts", "taken"),
    [
        (UUID, {"device_uuid": UUID}, True),
        (UUID.lower(), {"device_uuid": UUID}, True),
        ("0000:01:00.0", {"device_uuid": UUID, "pci": "0000:01:00.0"}, True),
        (UUID, {"device_uuid": UUID.replace("1", "2")}, False),
        (UUID, {}, False),
        ("0", {"device_uuid": UUID}, False),
    ],
)
def test_a_device_may_be_called_by_a_name_that_it_has(
    requested: str, facts: dict[str, str], taken: bool
) -> None:
    """What the program tells as the parameter is its number."""
    device = param("device", type="text", resolved=("auto",), facts=("device_uuid", "pci"))
    stream = stream_of({"device": requested}, device)
    begun = json.dumps(START | {"params": {"device": "1"}, "facts": facts}).encode()
    if taken:
        assert isinstance(stream.take(begun), StartEvent)
    else:
        with pytest.raises(TrialFailed, match="device '1' measured"):
            stream.take(begun)


def test_words_the_program_resolves_may_differ() -> None:
    requested: dict[str, ParamValue] = {"isa": "best", "cpus": "0-1", "node": "local"}
    resolved = START | {"params": {"isa": "avx2", "cpus": [0, 1], "node": 0}}
    line = json.dumps(resolved).encode()
    assert isinstance(
        stream_of(requested, param("node", resolved=("local",))).take(line), StartEvent
    )
    with pytest.raises(TrialFailed, match="node 0 measured, 'local' requested"):
        stream_of(requested, param("node")).take(line)


def test_an_end_without_its_figure_is_a_failure_that_says_why() -> None:
    nothing = END | {
        "metrics": {RATE: None},
        "reasons": {f"metrics.{RATE}": "no slice was measured"},
    }
    failure = refusal(START, nothing)
    assert failure.code == "no_figure"
    assert RATE in failure.message and "no slice was measured" in failure.message


def test_a_stream_without_last_event() -> None:
    for exit_code in (0, 1):
        failure = refused_end(START, SAMPLE, exit_code=exit_code, errors="it broke")
        assert failure.code == "no_last_event"
        assert f"exit code {exit_code}" in failure.message and "it broke" in failure.message
    assert refused_end(START, exit_code=-9).code == "killed"
    assert "signal 9" in refused_end(START, exit_code=-9).message


@pytest.mark.parametrize(
    ("event", "exit_code"),
    [(END, 1), (END, 4), (SKIP, 0), (SKIP, 2), (ERROR, 0), (ERROR, 4), (ERROR, 77)],
)
def test_an_exit_code_that_contradicts_the_last_event(
    event: dict[str, Any], exit_code: int
) -> None:
    failure = refused_end(START, event, exit_code=exit_code)
    assert failure.code == "exit_code_contradicts"
    assert str(exit_code) in failure.message


def test_killed_after_its_end_event_is_killed() -> None:
    assert refused_end(START, END, exit_code=-11).code == "killed"


@pytest.mark.parametrize(
    ("exit_code", "job"),
    [
        (1, ExitCode.CASE_FAILED),
        (2, ExitCode.USAGE),
        (3, ExitCode.RESOURCE),
        (5, ExitCode.CORRUPT),
    ],
)
def test_an_error_event_is_the_programs_own_word(exit_code: int, job: ExitCode) -> None:
    failure = refused_end(START, ERROR, exit_code=exit_code)
    assert (failure.code, failure.message) == ("resource", "no memory; free some")
    assert failure.exit_code is job
    assert failure.wrong is not None and failure.wrong.bits == (1, 4)


def test_what_is_written_is_what_is_read() -> None:
    for event in (START, SAMPLE, WARNING, END, SKIP, ERROR):
        line = json.dumps(event).encode()
        assert json.loads(EVENT.dump_json(EVENT.validate_json(line))) == event


@pytest.mark.parametrize("late", [False, True])
def test_a_fallback_that_the_program_does_not_warn_of(late: bool) -> None:
    begun = START | {"params": {"cache_mode": "buffered"}}
    lines = [json.dumps(one).encode() for one in (WARNING, begun, SAMPLE)]
    warning = json.dumps(WARNING | {"code": "direct_unavailable"}).encode()
    stream = stream_of({"cache_mode": "direct"}, CACHE_MODE)
    for line in [*lines, *([warning] if late else [])]:
        stream.take(line)
    end_line = json.dumps(END).encode()
    if late:
        stream.take(end_line)
        stream.finish(0, "")
        return
    with pytest.raises(TrialFailed, match="without the warning direct_unavailable") as caught:
        stream.take(end_line)
    assert caught.value.code == "malformed_output"
