"""Every workload of every program, run for a moment in every build, keeps the protocol.

The events are held against the published JSON schema, not against the models it comes from.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hostbench.docs import SCHEMA_PAGE, WORKLOADS_PAGE, schema_page, workloads_page
from hostbench.model.events import EVENT
from hostbench.model.registry import subsystem_names
from hostbench.model.table import Table
from hostbench.model.trial import Trial, TrialFailed
from hostbench.programs.program import load_program
from hostbench.programs.stream import EventStream
from tests.contract.conftest import SUBSYSTEMS, Variant

MOMENTS = 3
MOMENT = {"duration_s": 0.03, "warmup_s": 0, "sample_interval_s": 0.1}
WITH_SAMPLES = {"duration_s": 0.35, "warmup_s": 0, "sample_interval_s": 0.1}
# Whatever a workload takes as its problem's size, for a moment's work. A working set splits over
# one thread a CPU, over five, and each thread's part over three arrays; a file has a block for each
# of them.
SMALL = {
    "n": 100,
    "size_bytes": len(os.sched_getaffinity(0)) * 5 * 3 * (128 << 10),
    "file_bytes": 8 << 20,
}
# Numbers that make another trial of it, where a workload takes them.
OTHERS = {"block_bytes": (8, 8192), "intensity": (0, 0.5)}
# What a choice means nothing without.
COMPANIONS = {"pattern": {"block_bytes": 4096}}
# Chosen where another parameter is tried: trying out what is best here takes longer than a moment,
# and through the page cache every block and every engine goes.
CHOSEN = {"store": "plain", "streams": "1", "cache_mode": "buffered"}
# Threads without which a workload is skipped.
FEWEST = {"loaded_latency": 2}
# What takes two hosts.
ELSEWHERE = {"far_host"}
# Divides by the threads and whatever block they work in.
HUGE_FAULTS = ("page_fault", "huge")
FIXED_WORK = 5 << 20
# Of operations that each wait for another process.
FIXED_ROUND_TRIPS = 5000
# qemu and the sanitizers are slow; a hang is what this is for.
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    published = json.loads(SCHEMA_PAGE.read_text())
    Draft202012Validator.check_schema(published)
    return Draft202012Validator(published)


@cache
def table_of(variant: Variant, subsystem: str) -> Table:
    answer = subprocess.run(
        [*variant.command(subsystem), "--list"], capture_output=True, timeout=TIMEOUT_S
    )
    assert answer.returncode == 0, answer.stderr
    return Table.model_validate_json(answer.stdout)


def tables(variant: Variant) -> Iterator[tuple[str, Table]]:
    yield from ((subsystem, table_of(variant, subsystem)) for subsystem in SUBSYSTEMS)


def calls(variant: Variant, table: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every workload with its defaults, with each other value of each of its choices, and with some
    of its numbers."""
    for workload in table.workloads:
        names = {param.name for param in workload.params}
        choices = {param.name for param in workload.params if param.type == "choice"}
        chosen: dict[str, Any] = {name: word for name, word in CHOSEN.items() if name in choices}
        # Threads that wait for each other spin, which takes time of other tests: ThreadSanitizer
        # alone looks at what they do to each other.
        if variant.name != "tsan" and "threads" in names:
            chosen["threads"] = FEWEST.get(workload.name, 1)
        tried: list[dict[str, Any]] = [{}]
        for param in workload.params:
            if param.type == "choice":
                companions = COMPANIONS.get(param.name, {}).items()
                beside = chosen | {name: value for name, value in companions if name in names}
                others = [word for word in param.words if word not in (param.default, *ELSEWHERE)]
                tried += [{**beside, param.name: word} for word in others]
            for number in OTHERS.get(param.name, ()):
                if param.min is None or param.max is None or param.min <= number <= param.max:
                    tried.append({**chosen, param.name: number})
        # Two choices in CHOSEN are the same call.
        yield from ((workload.name, one) for i, one in enumerate(tried) if one not in tried[:i])


def promised(table: Table, workload: str, params: dict[str, Any]) -> str:
    """The last event of one of these calls: a skip where the table says unsupported."""
    found = table.workload(workload)
    assert found is not None
    lacking = [
        param.unsupported.get(str(value))
        for name, value in params.items()
        if (param := found.param(name)) and param.type == "choice"
    ]
    return "skip" if any(lacking or [found.unsupported]) else "end"


def trial_of(subsystem: str, table: Table, workload: str, params: dict[str, Any]) -> Trial:
    found = table.workload(workload)
    assert found is not None
    small = {
        name: max(value, int(param.min or 0))
        for name, value in SMALL.items()
        if (param := found.param(name))
    }
    return Trial(
        tool="hostbench",
        subsystem=subsystem,
        workload=workload,
        params=small | params,
        timeout_s=TIMEOUT_S,
    )


def run(variant: Variant, trial: Trial) -> tuple[int, list[bytes], str]:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in trial.params.items()]
    answer = subprocess.run(
        [*variant.command(trial.subsystem), trial.workload, *options],
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert answer.stdout.endswith(b"\n")
    return answer.returncode, answer.stdout.splitlines(), answer.stderr.decode()


def keeps_the_protocol(
    variant: Variant, trial: Trial, table: Table, schema: Draft202012Validator
) -> list[Any]:
    """Run the trial; its events as plain values."""
    exit_code, lines, errors = run(variant, trial)
    workload = table.workload(trial.workload)
    assert workload is not None
    stream = EventStream(trial, workload)
    events = []
    for line in lines:
        event = json.loads(line, parse_constant=_refuse)
        schema.validate(event)
        assert json.loads(EVENT.dump_json(stream.take(line), exclude_unset=True)) == event
        events.append(event)
    stream.finish(exit_code, errors)
    _reports_its_metrics(events, table, trial)
    return events


def with_a_figure(
    variant: Variant, trial: Trial, table: Table, schema: Draft202012Validator
) -> list[Any]:
    """The same; in a moment on a loaded machine a receiver may get too little to tell a rate."""
    for _ in range(MOMENTS - 1):
        with contextlib.suppress(TrialFailed):
            return keeps_the_protocol(variant, trial, table, schema)
    return keeps_the_protocol(variant, trial, table, schema)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not allowed in an event")


def _reports_its_metrics(events: list[Any], table: Table, trial: Trial) -> None:
    """The end event has exactly the metrics the table promises, and says why one is null."""
    end = events[-1]
    if end["event"] != "end":
        return
    workload = table.workload(trial.workload)
    assert workload is not None
    assert set(end["metrics"]) == {metric.name for metric in workload.metrics}
    nulls = {f"metrics.{name}" for name, value in end["metrics"].items() if value is None}
    nulls |= {
        f"threads.{i}.{name}"
        for i, thread in enumerate(end["threads"])
        for name, value in thread.items()
        if value is None
    }
    nulls |= {f"disturbance.{name}" for name, value in end["disturbance"].items() if value is None}
    if end["sentinel"] is None:
        nulls.add("sentinel")
    else:
        assert all(value > 0 for value in end["sentinel"].values())
    nulls |= {name for name in ("counted", "energy") if end[name] is None}
    if end["counted"] is not None:
        assert end["counted"]["cycles"] > 0 and end["counted"]["instructions"] > 0
    if end["energy"] is not None:
        assert end["energy"]["package_joules"] >= 0
        nulls |= {f"energy.{name}" for name, value in end["energy"].items() if value is None}
    assert nulls == set(end["reasons"])
    requestable = {param.name for param in workload.params if param.scope == "request"}
    assert set(events[0]["params"]) == requestable
    assert len(end["threads"]) == _threads(events[0]["params"])


def _threads(params: dict[str, Any]) -> int:
    """One a stream where that is what there is, and in each direction; one feeds a GPU."""
    directions = 2 if params.get("direction") == "both" else 1
    return int(params.get("threads") or params.get("streams", 1) * directions)


def test_what_is_naive_is_called_so(variant: Variant) -> None:
    """Boards know it by its name alone."""
    for subsystem, table in tables(variant):
        for workload in table.workloads:
            named = workload.name.startswith("naive_")
            assert workload.naive is named, f"{subsystem}.{workload.name}"


@pytest.mark.timeout(600)
@pytest.mark.exhaustive
def test_every_workload_and_choice(variant: Variant, schema: Draft202012Validator) -> None:
    ended = set()
    for subsystem, table in tables(variant):
        for workload, params in calls(variant, table):
            trial = trial_of(subsystem, table, workload, {**MOMENT, **params})
            events = with_a_figure(variant, trial, table, schema)
            last = promised(table, workload, params)
            if variant.name == "aarch64" and (workload, params.get("pages")) == HUGE_FAULTS:
                last = "skip"  # qemu does not hand on the request for huge pages
            assert events[-1]["event"] == last, (workload, params)
            ended.add((workload, events[-1]["event"]))
    anywhere = {"fma", "clock", "add_sub", "read", "triad", "pointer_chase", "random_access"}
    assert {(workload, "end") for workload in anywhere} <= ended
    blas = "skip" if variant.name == "aarch64" else "end"
    assert {("gemm", blas), ("linpack", blas)} <= ended


def first_of_each_kind(variant: Variant) -> Iterator[tuple[str, Table, str]]:
    """The first workload of every kind and unit that can run here."""
    for subsystem, table in tables(variant):
        able = [workload for workload in table.workloads if workload.unsupported is None]
        firsts = {(one.kind, one.primary.unit): one.name for one in reversed(able)}
        yield from ((subsystem, table, name) for name in firsts.values())


def threads_param(table: Table, name: str) -> list[str]:
    """The parameter that says how many threads a workload has, if it has one."""
    workload = table.workload(name)
    assert workload is not None
    return [param for param in ("threads", "streams") if workload.param(param)][:1]


def test_samples(variant: Variant, schema: Draft202012Validator) -> None:
    for subsystem, table, first in first_of_each_kind(variant):
        alone = dict.fromkeys(threads_param(table, first), 1)
        trial = trial_of(subsystem, table, first, WITH_SAMPLES | alone)
        samples = [
            event
            for event in keeps_the_protocol(variant, trial, table, schema)
            if event["event"] == "sample"
        ]
        assert len(samples) >= 2
        assert [s["t_s"] for s in samples] == sorted(s["t_s"] for s in samples)


def test_fixed_work_and_more_threads_than_cpus(
    variant: Variant, schema: Draft202012Validator
) -> None:
    for subsystem, table, first in first_of_each_kind(variant):
        workload = table.workload(first)
        assert workload is not None
        work = next((name for name in ("work", "total_bytes") if workload.param(name)), None)
        if work is None:
            continue  # its least work is a round, such as over all numbers of threads
        round_trips = workload.kind == "loop" and work == "work"
        amount = FIXED_ROUND_TRIPS if round_trips else FIXED_WORK
        params = {work: amount, "warmup_s": 0, **dict.fromkeys(threads_param(table, first), 5)}
        trial = trial_of(subsystem, table, first, params)
        start, *_, end = keeps_the_protocol(variant, trial, table, schema)
        (done,) = end["metrics"].keys() & {"work_operations", "work_bytes"}
        counts_blocks = work == "total_bytes" and done == "work_operations"
        unit = start["params"]["block_bytes"] if counts_blocks else 1
        assert end["metrics"][done] * unit >= amount
        assert start["params"]["duration_s"] is None


@pytest.mark.parametrize("arguments", [["nosuch"], ["--threads", "0"], []])
def test_bad_arguments_are_error_events_too(
    variant: Variant, schema: Draft202012Validator, arguments: list[str]
) -> None:
    for subsystem, table in tables(variant):
        name = table.workloads[0].name
        call = ["nosuch"] if arguments == ["nosuch"] else [name, *arguments, "--surplus"]
        answer = subprocess.run(
            [*variant.command(subsystem), *call], capture_output=True, timeout=TIMEOUT_S
        )
        (line,) = answer.stdout.splitlines()
        event = json.loads(line)
        schema.validate(event)
        assert (answer.returncode, event["event"]) == (2, "error")


def test_the_published_schema_is_that_of_the_models() -> None:
    assert SCHEMA_PAGE.read_text() == schema_page(), "write it anew: python -m hostbench.docs"


def test_the_page_of_workloads_is_that_of_the_programs() -> None:
    page = workloads_page(load_program(subsystem).table for subsystem in subsystem_names())
    assert WORKLOADS_PAGE.read_text() == page, "write it anew: python -m hostbench.docs"


@pytest.mark.parametrize(
    "event",
    [
        {"event": "skip"},
        {"event": "skip", "reason": ""},
        {"event": "nosuch", "reason": "x"},
        {"event": "error", "code": "Bad Code", "message": "x"},
        {"event": "sample", "t_s": 1, "dt_s": 0, "metrics": {}},
        {"event": "sample", "t_s": 1, "dt_s": 1, "metrics": {"Rate": 1}},
        {"event": "sample", "t_s": 1, "dt_s": 1, "metrics": {"rate": "1"}},
        {"event": "sample", "t_s": 1, "dt_s": 1, "metrics": {}, "extra": 1},
    ],
)
def test_the_schema_refuses_what_the_protocol_does(
    schema: Draft202012Validator, event: dict[str, Any]
) -> None:
    assert not schema.is_valid(event)
