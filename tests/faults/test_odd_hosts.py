"""Hosts that tell little, or stop a trial in its middle: what is unknown is called so, and what was
stopped gives no figure."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.judge.trial import STOPPED, reason_codes
from hostbench.model.events import EVENT, EndEvent, Event, StartEvent
from hostbench.model.result import CaseResult, ConditionState, ResultDocument, Verdict
from tests.faults.command import PROGRAMS, Command
from tests.faults.hidden_files import hiding, planting
from tests.faults.test_cgroup_limits import MEMBERS, V2, group

RUN_QUEUE, PRESSURE = "/proc/thread-self/schedstat", "/proc/pressure"
REGISTERS = ("cpu.fma", "threads=1", "duration_s=0.2")
ROUND_TRIPS = ("net.tcp_rr", "target=loopback", "duration_s=0.2")
SPIN = "while True: pass"


def run(
    command: Command, workload: str, *params: str, trials: int = 2, prefix: tuple[str, ...] = ()
) -> CaseResult:
    """The only case of a job that succeeds."""
    options = [word for param in params for word in ("--param", param)]
    arguments = (
        *("run", "--workload", workload, *options, "--trials", str(trials)),
        *("--peers", "none", "--idle-policy", "force", "--json"),
    )
    ended = command.run(*arguments, prefix=prefix) if prefix else command.run(*arguments)
    return case_of(ended.code, ended.output, ended.errors)


def case_of(code: int, output: str, errors: str) -> CaseResult:
    assert code == ExitCode.OK, errors
    (case,) = ResultDocument.model_validate_json(output).cases
    return case


def ends_of(case: CaseResult) -> list[EndEvent]:
    return [trial.end for trial in case.trials if trial.end is not None]


@pytest.mark.parametrize("workload", [REGISTERS, ROUND_TRIPS], ids=["slices", "loop"])
def test_a_kernel_without_run_queue_statistics_and_pressure(
    tmp_path: Path, workload: tuple[str, ...]
) -> None:
    case = run(Command(tmp_path, PROGRAMS, **hiding(RUN_QUEUE, PRESSURE)), *workload)
    assert case.figure is not None and case.verdict is not Verdict.INVALID
    for end in ends_of(case):
        assert end.disturbance.wait_s is None and end.disturbance.psi_cpu_some_s is None
        assert "/proc/thread-self/schedstat" in end.reasons["disturbance.wait_s"]
        assert "/proc/pressure/cpu" in end.reasons["disturbance.psi_cpu_some_s"]
    # CPU time tells of the kernels; of what waits nothing is left, and the case says so.
    is_unknown = "disturbance_unknown" in {reason.code for reason in case.reasons}
    assert is_unknown == (workload == ROUND_TRIPS)


@pytest.mark.parametrize("workload", [REGISTERS, ROUND_TRIPS], ids=["slices", "loop"])
def test_a_masked_proc_is_no_quiet_host(tmp_path: Path, workload: tuple[str, ...]) -> None:
    hidden = (RUN_QUEUE, PRESSURE, "/proc/stat", "/proc/loadavg", "/proc/self/io", "/sys/")
    case = run(Command(tmp_path, PROGRAMS, **hiding(*hidden)), *workload)
    assert case.figure is not None and case.verdict is not Verdict.INVALID
    assert all(end.disturbance.steal_s is None for end in ends_of(case))
    # The threads may have been kept waiting by other tests.
    assert case.condition is not None
    assert case.condition.state in (ConditionState.UNKNOWN, ConditionState.SHARED)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this host has one CPU only")
@pytest.mark.exhaustive
def test_fast_cores_of_a_hybrid_processor_come_first(tmp_path: Path) -> None:
    """The first CPU that this process may use is a slow one here, the others are fast."""
    slow, *fast = sorted(os.sched_getaffinity(0))
    cores = {
        "/sys/devices/cpu_atom/cpus": f"{slow}\n",
        "/sys/devices/cpu_core/cpus": f"{','.join(map(str, fast))}\n",
    }
    command = Command(tmp_path, PROGRAMS, **planting(tmp_path / "planted", cores))
    for threads, used in ((1, fast[:1]), (len(fast) + 1, [*fast, slow])):
        case = run(command, "cpu.add_sub", f"threads={threads}", "duration_s=0.2")
        assert case.verdict is not Verdict.INVALID and case.figure is not None
        (placed,) = {trial.start.placement.cpus for trial in case.trials if trial.start}
        assert sorted(placed) == sorted(used) and placed[-1] == used[-1]
    document = command.run("show", "latest", "--json").document
    assert document["host"]["cpu"]["efficiency_cpus"] == [slow]


@contextlib.contextmanager
def hogs() -> Iterator[None]:
    """One on each CPU."""
    found = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for one in found:
            one.kill()
            one.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.parametrize("workload", [REGISTERS, ROUND_TRIPS], ids=["slices", "loop"])
@pytest.mark.sampled(2)
def test_a_container_that_does_not_see_the_hosts_processes(
    tmp_path: Path, workload: tuple[str, ...]
) -> None:
    with hogs():
        case = run(
            Command(tmp_path), *workload, prefix=("unshare", "--pid", "--fork", "--mount-proc")
        )
    assert case.condition is not None
    assert case.condition.state is ConditionState.SHARED
    assert case.condition.culprit == "processes outside this container"
    if workload == ROUND_TRIPS:
        assert case.verdict is Verdict.DISTURBED
        assert "host_in_use" in {reason.code for reason in case.reasons}


@pytest.mark.parametrize("workload", ["cpu.add_sub", "net.tcp_rr"])
@pytest.mark.sampled(2)
def test_a_trial_that_was_stopped_gives_no_figure(tmp_path: Path, workload: str) -> None:
    """As by a hypervisor that suspends its guest, or by a debugger."""
    command = Command(tmp_path)
    own = "threads=1" if workload.startswith("cpu") else "target=loopback"
    process = command.start(
        *("run", "--workload", workload, "--param", own, "--param", "duration_s=2.5"),
        *("--trials", "3", "--idle-policy", "force", "--peers", "none", "--json"),
    )
    pid = command.wait_for_program()
    time.sleep(1)  # it has warmed up
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(pid, signal.SIGCONT)
    output, errors = process.communicate(timeout=60)
    case = case_of(process.returncode, output, errors)
    stopped = case.trials[0]
    assert stopped.end is not None and stopped.end.disturbance.stopped_s is not None
    assert 0.6 < stopped.end.disturbance.stopped_s < 5
    assert STOPPED in reason_codes(stopped) and stopped.verdict is Verdict.DISTURBED
    rest = [trial for trial in case.trials if STOPPED not in reason_codes(trial)]
    assert rest, "the host was stopped in all of them"
    assert case.delivered is not None and case.delivered.n == len(rest)
    if any(trial.verdict is Verdict.CLEAN for trial in rest):
        assert 0 not in case.counted


def test_a_program_that_waited_for_a_cpu_was_not_stopped() -> None:
    """Beside hogs of more weight on its only CPU, all of it waits for longer than STOPPED_LEAST_S
    of harness/reporter.c."""
    cpu = str(max(os.sched_getaffinity(0)))
    program = [str(PROGRAMS / "cpu-bench"), "add_sub", "--threads=1", "--duration-s=3"]
    with subprocess.Popen(
        ["nice", "-n", "19", "taskset", "--cpu-list", cpu, *program],
        stdout=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stdout is not None
        assert isinstance(EVENT.validate_json(waiting.stdout.readline()), StartEvent)
        spin = ["taskset", "--cpu-list", cpu, sys.executable, "-c", SPIN]
        hogs = [subprocess.Popen(spin) for _ in range(4)]
        time.sleep(2.5)
        for hog in hogs:
            hog.kill()
            hog.wait()
        *_, last = waiting.stdout
    end = EVENT.validate_json(last)
    assert isinstance(end, EndEvent)
    assert (end.disturbance.wait_s or 0) > 1
    assert end.disturbance.stopped_s == 0


def test_a_quota_of_one_percent(tmp_path: Path) -> None:
    """The programs alone are in the control group: hostbench itself would take minutes to start."""
    quota = (
        {"cpu.max": "1000 100000"}
        if V2
        else {"cpu.cfs_quota_us": "1000", "cpu.cfs_period_us": "100000"}
    )
    programs = tmp_path / "programs"
    programs.mkdir()
    with group("cpu", quota) as hundredth:
        for real in PROGRAMS.glob("*-bench"):
            inside = programs / real.name
            inside.write_text(f'#!/bin/sh\necho $$ > "{hundredth}/{MEMBERS}"\nexec "{real}" "$@"\n')
            inside.chmod(0o755)
        case = run(Command(tmp_path, programs), "cpu.fma", "threads=2", "duration_s=0.3")
    assert case.figure is not None and case.verdict in (Verdict.DISTURBED, Verdict.NOISY)
    assert case.undisturbed is None and case.delivered is not None
    assert case.condition is not None and case.condition.state is ConditionState.QUOTA
    assert case.condition.culprit == "the CPU quota of 0.01 CPUs of this control group"


def trial_beside_a_hog(cpu: int, after_s: float | None) -> EndEvent:
    """A trial of a second on this CPU; a hog comes to it so long after its start."""
    words = ("add_sub", "--dtype=int64", "--isa=scalar", f"--cpus={cpu}", "--threads=1")
    command = [str(PROGRAMS / "cpu-bench"), *words, "--duration-s=1", "--warmup-s=0.1"]
    hog = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
    events: list[Event] = []
    with (
        contextlib.ExitStack() as beside,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program,
    ):
        assert program.stdout is not None
        for line in program.stdout:
            events.append(EVENT.validate_json(line))
            if isinstance(events[-1], StartEvent) and after_s is not None:
                time.sleep(after_s)
                beside.callback(beside.enter_context(subprocess.Popen(hog)).kill)
    assert program.returncode == 0
    end = events[-1]
    assert isinstance(end, EndEvent)
    return end


def test_a_hog_that_starts_in_the_last_slices() -> None:
    """The figure is that of all the clean ones before."""
    cpu = min(os.sched_getaffinity(0))
    ratios: list[float] = []
    quiet = 0
    for _ in range(20):  # other tests have the CPU, too
        alone = trial_beside_a_hog(cpu, None)
        if alone.basis != "clean_slices":
            continue
        quiet += 1
        late = trial_beside_a_hog(cpu, 1.09)
        if late.basis != "clean_slices":
            continue
        figures = [end.metrics["operations_per_second"] for end in (alone, late)]
        assert figures[0] and figures[1]
        ratios.append(figures[1] / figures[0])
        if abs(ratios[-1] - 1) < 0.02:
            return
    # Without any ratio, other work may as well have come with the hog.
    if quiet < (5 if ratios else 15):
        pytest.skip(f"other work has this CPU: {quiet} of 20 trials without the hog had it alone")
    pytest.fail(f"beside the hog over alone: {ratios}")
