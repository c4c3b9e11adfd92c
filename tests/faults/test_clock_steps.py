"""The clocks of a host are set, leap, go back or are coarse while something is measured: no figure,
duration, time limit or order of jobs goes wrong with them."""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.judge.condition import OUTSIDE_HOST, condition_of
from hostbench.judge.figure import Measured
from hostbench.judge.trial import STOPPED, measured_trial, reason_codes
from hostbench.model.events import EVENT, EndEvent, ErrorEvent, Event, StartEvent, WarningEvent
from hostbench.model.registry import find_subsystem
from hostbench.model.result import ConditionState, ResultDocument, TrialRecord, Verdict
from hostbench.programs.program import load_program
from tests.faults.command import PROGRAMS, Command, end_of
from tests.faults.stepped_clock import HOURS_S, SteppedClock
from tests.meanwhile import meanwhile
from tests.unit.records import bare_trial, planned

RUN = (
    "run", "--workload", "cpu.clock", "--param", "duration_s=0.2", "--trials", "4",
    "--idle-policy", "force",
)  # fmt: skip
NOTHING = ("--peers", "none", "--idle-policy", "force", "--json")


@pytest.mark.parametrize("step_s", [8 * HOURS_S, -8 * HOURS_S])
@pytest.mark.sampled(2)
def test_a_step_between_two_trials(tmp_path: Path, step_s: int) -> None:
    clock = SteppedClock(tmp_path / "step")
    command = Command(tmp_path, PROGRAMS, **clock.environment)
    process = command.start(*RUN)
    assert process.stderr is not None
    while "[1/4]" not in (line := process.stderr.readline()):
        assert line, "the first trial was not shown"
    clock.step(step_s)
    ended = end_of(process)
    assert ended.code == ExitCode.OK, ended.errors
    (job,) = command.jobs()
    document = json.loads((job / "result.json").read_text())
    (case,) = document["cases"]
    trials = [trial["value"] for trial in case["trials"]]
    # A trial of 0.2 s that counted the step would be off by a factor of 100,000; others on this
    # host may take most of one.
    assert len(trials) == 4 and max(trials) < 100 * min(trials)
    job_s = document["job"]["finished_unix_s"] - document["job"]["created_unix_s"]
    assert abs(job_s - step_s) < 60
    assert 0 < document["job"]["took_s"] < 60
    report = command.run("report", job.name, "--format", "markdown", "--output", "-")
    assert " h " not in next(line for line in report.output.splitlines() if " long" in line)
    # What comes next is measured, listed and found, though its time may be the earlier one.
    assert command.run(*RUN).code == ExitCode.OK
    listed = command.run("list", "--json").document["jobs"]
    assert sorted(one["state"] for one in listed) == ["succeeded", "succeeded"]
    # By its id and its time the second job is the first: the clock that cannot be set knows better.
    history = command.run("history", "cpu.clock", "--figure", "delivered", "--json").document
    (second,) = {one["id"] for one in listed} - {job.name}
    assert history["clock_went_back"] == ([second] if step_s < 0 else [])


SUITE = """
name: clocks
repeats: {min_trials: 2, max_trials: 2}
cases:
  - {workload: cpu.add_sub, params: {threads: 1, dtype: int64, isa: scalar, duration_s: 0.3}}
  - {workload: net.tcp_rr, params: {target: loopback, duration_s: 0.3}}
  - {workload: cpu.naive_operations, params: {threads: 1, dtype: int32, duration_s: 0.3}}
  - {workload: mem.naive_copy, params: {threads: 1, size_bytes: 4194304, duration_s: 0.3}}
  - {workload: disk.naive_write, params: {threads: 1, file_bytes: 4194304, duration_s: 0.3}}
  - {workload: net.naive_stream, params: {target: loopback, duration_s: 0.3}}
"""


def set_again_and_again(clock: SteppedClock) -> AbstractContextManager[None]:
    """Hours forward and back, many times in each trial."""

    def keep_setting(over: threading.Event) -> None:
        for step_s in itertools.cycle((8 * HOURS_S, 0.5, -8 * HOURS_S, 60)):
            clock.step(step_s)
            if over.wait(0.03):
                return

    return meanwhile(keep_setting)


@pytest.mark.exhaustive
def test_a_clock_that_is_set_all_the_time(tmp_path: Path) -> None:
    """Also of workloads that read the time of day, as measurements by hand do."""
    suite = tmp_path / "clocks.yaml"
    suite.write_text(SUITE)
    clock = SteppedClock(tmp_path / "step")
    command = Command(tmp_path, PROGRAMS, **clock.environment)
    alone = command.run("run", str(suite), *NOTHING)
    with set_again_and_again(clock):
        began_s = time.monotonic()
        ended = command.run("run", str(suite), *NOTHING)
        took_s = time.monotonic() - began_s
    assert (alone.code, ended.code) == (ExitCode.OK, ExitCode.OK), ended.errors
    before, after = (ResultDocument.model_validate_json(one.output) for one in (alone, ended))
    assert after.job.took_s is not None and 0 < after.job.took_s < took_s
    for quiet, case in zip(before.cases, after.cases, strict=True):
        assert case.verdict not in (Verdict.FAILED, Verdict.INVALID), (case.title, case.reasons)
        for trial in case.trials:
            assert trial.end is not None and 0.2 < trial.end.elapsed_s < 10
            assert 0.2 < trial.wall_s < 30
            # Other tests take a share of the host; a step would be a factor of 100,000.
            assert trial.value and quiet.figure
            assert 0.1 < trial.value / quiet.figure.value < 10, (case.title, trial.value)
            warned = "clock_set" in {warning.code for warning in trial.warnings}
            assert warned == case.naive, case.title


# ---- programs alone ---------------------------------------------------------------------------

REGISTERS = ("cpu", "add_sub", "--dtype=int64", "--isa=scalar", "--threads=1", "--duration-s=1")
SHORT = (*REGISTERS[:-1], "--duration-s=0.3")
ROUND_TRIPS = ("net", "tcp_rr", "--target=loopback", "--duration-s=1")
BLOCKS = (
    *("mem", "naive_copy", "--clock=each", "--threads=1", "--duration-s=1"),
    f"--size-bytes={4 << 20}",
)
HOUR_S = float(HOURS_S)
ATTEMPTS = 15


def trial(
    tmp_path: Path, words: tuple[str, ...], meanwhile: Callable[[SteppedClock], None] | None
) -> tuple[int, list[Event]]:
    """Its exit code and what it says; `meanwhile` is called in its timed region."""
    subsystem, *arguments = words
    clock = SteppedClock(tmp_path / "step")
    with subprocess.Popen(
        [str(PROGRAMS / f"{subsystem}-bench"), *arguments, "--warmup-s=0.1"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | clock.environment,
    ) as program:
        assert program.stdout is not None
        events: list[Event] = []
        for line in program.stdout:
            events.append(EVENT.validate_json(line))
            if isinstance(events[-1], StartEvent) and meanwhile is not None:
                time.sleep(0.5)  # halfway
                meanwhile(clock)
    return program.returncode, events


def judged(words: tuple[str, ...], events: list[Event]) -> TrialRecord:
    subsystem, name, *_ = words
    workload = load_program(subsystem).table.workload(name)
    assert workload is not None
    kept = tuple(one for one in events if isinstance(one, StartEvent | WarningEvent | EndEvent))
    sensitivity = find_subsystem(subsystem).sensitivity
    return measured_trial(bare_trial(events=kept), workload.metrics, {}, sensitivity)


@pytest.mark.parametrize("words", [REGISTERS, ROUND_TRIPS], ids=["slices", "loop"])
@pytest.mark.sampled(2)
def test_a_clock_that_leaps_is_a_machine_that_was_stopped(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """As it does where a hypervisor suspends its guest for an hour."""
    code, events = trial(tmp_path, words, lambda clock: clock.leap(HOUR_S))
    assert code == 0
    found = judged(words, events)
    assert found.end is not None and found.value is not None
    assert found.verdict is Verdict.DISTURBED and STOPPED in reason_codes(found)
    assert (found.end.disturbance.stopped_s or 0.0) == pytest.approx(HOUR_S, rel=0.01)
    workload = load_program(words[0]).table.workload(words[1])
    assert workload is not None
    condition = condition_of(Measured(planned(), workload.metrics, [found]))
    assert condition is not None and condition.state is ConditionState.STOLEN
    assert condition.culprit == OUTSIDE_HOST
    assert Measured(planned(), workload.metrics, [found]).delivered_values == []


@pytest.mark.parametrize("words", [REGISTERS, ROUND_TRIPS], ids=["slices", "loop"])
@pytest.mark.parametrize("back_s", [HOUR_S, 0.5])
@pytest.mark.sampled(3)
def test_a_clock_that_goes_back_ends_the_trial(
    tmp_path: Path, words: tuple[str, ...], back_s: float
) -> None:
    """An hour back would make a trial of a second last an hour; half a second would make it half as
    fast again."""
    began_s = time.monotonic()
    code, events = trial(tmp_path, words, lambda clock: clock.leap(-back_s))
    assert time.monotonic() - began_s < 30
    assert code == 1 and isinstance(events[-1], ErrorEvent), events[-1]
    message = re.match(r"CLOCK_MONOTONIC went back by ([\d.]+) s while", events[-1].message)
    # Other tests may hold the program up between its two looks at the clock.
    assert message and 0.9 * back_s - 0.4 < float(message[1]) <= back_s
    assert "hostbench doctor" in events[-1].message


def coarse_trial(tmp_path: Path, words: tuple[str, ...], step_s: float) -> EndEvent:
    """A trial by a clock that moves in such steps."""
    clock = SteppedClock(tmp_path / "step")
    clock.coarsen(step_s)
    subsystem, *arguments = words
    ended = subprocess.run(
        [str(PROGRAMS / f"{subsystem}-bench"), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | clock.environment,
        check=True,
    )
    events = [EVENT.validate_json(line) for line in ended.stdout.splitlines()]
    assert "coarse_clock" in {event.code for event in events if isinstance(event, WarningEvent)}
    end = events[-1]
    assert isinstance(end, EndEvent)
    return end


@pytest.mark.parametrize("step_s", [4e-3, 20e-6])
@pytest.mark.sampled(2)
def test_a_coarse_clock_tells_no_core_clock(tmp_path: Path, step_s: float) -> None:
    """As where a kernel counts ticks. A chain of 26 µs between two steps was 29 % too fast."""
    other = coarse_trial(tmp_path, REGISTERS, step_s)
    assert other.metrics["clock_hertz"] is None
    assert "too coarse" in other.reasons["metrics.clock_hertz"]
    rate = other.metrics["operations_per_second"]
    assert rate
    # Other tests may have most of the CPU in either, or the other thread of its core.
    fine = 0.0
    for _ in range(ATTEMPTS):
        *_, one = trial(tmp_path, SHORT, None)[1]
        assert isinstance(one, EndEvent)
        fine = max(fine, one.metrics["operations_per_second"] or 0.0)
        if rate < 1.2 * fine:
            break
    assert rate < 1.2 * fine


def test_a_round_trip_shorter_than_a_step_has_no_time(tmp_path: Path) -> None:
    """Instead of one of 0 s."""
    end = coarse_trial(tmp_path, ROUND_TRIPS, 4e-3)
    for name in ("round_trip_s", "latency_p50_s", "latency_min_s"):
        assert end.metrics[name] is None
        assert "shorter than a step" in end.reasons[f"metrics.{name}"]
    # Figures of many operations together are reported.
    assert end.metrics["operations_per_second"] and end.metrics["latency_mean_s"]


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
@pytest.mark.sampled(2)
def test_blocks_that_are_timed_one_by_one_hold_no_step(tmp_path: Path, step_s: float) -> None:
    code, events = trial(tmp_path, BLOCKS, lambda clock: clock.step(step_s))
    end = events[-1]
    assert code == 0 and isinstance(end, EndEvent)
    figure, whole = (
        end.metrics[name] for name in ("bytes_per_second", "bytes_per_second_makespan")
    )
    assert figure and whole
    assert 0.5 < figure / whole < 100


# ---- the command and its program ---------------------------------------------------------------


def test_a_machine_that_is_suspended_for_longer_than_a_trial_may_take(tmp_path: Path) -> None:
    """Both leap: no time limit is over, the trial gives no figure, and the job goes on."""
    clock = SteppedClock(tmp_path / "step")
    command = Command(tmp_path, PROGRAMS, **clock.environment)
    process = command.start(
        *("run", "--workload", "cpu.add_sub", "--param", "threads=1", "--param", "duration_s=2.5"),
        *("--trials", "3", *NOTHING),
    )
    pid = command.wait_for_program()
    time.sleep(1)  # it has warmed up
    for one in (pid, process.pid):
        os.kill(one, signal.SIGSTOP)
    clock.leap(HOUR_S)
    for one in (process.pid, pid):
        os.kill(one, signal.SIGCONT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK, errors
    document = ResultDocument.model_validate_json(output)
    (case,) = document.cases
    stopped, *rest = case.trials
    assert stopped.verdict is Verdict.DISTURBED and STOPPED in reason_codes(stopped)
    assert len(rest) == 2 and all(STOPPED not in reason_codes(one) for one in rest), rest
    assert case.delivered is not None and case.delivered.n == 2
