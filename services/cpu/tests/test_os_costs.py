"""What the kernel and the way between cores cost: plausible figures, and what is skipped where."""

import ctypes
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from services.cpu.limits import TIME_UNKNOWN, TIMED_WORKLOADS, trial_limits
from services.cpu.tests.identities import SAPPHIRE_RAPIDS_FLAGS, intel
from tests.each import each
from tests.machine_code import ROOT

PROGRAM = ROOT / "build" / "release" / "cpu-bench"
FAILED, UNSUPPORTED = 1, 4
PR_SET_THP_DISABLE = 41
BRIEF = ("--duration-s", "0.1", "--warmup-s", "0.02")
CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


def call(*arguments: str, cpus: str | None = None) -> subprocess.CompletedProcess[str]:
    allowed = ["taskset", "-c", cpus] if cpus else []
    command = [*allowed, str(PROGRAM), *arguments, *BRIEF]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def end_of(*arguments: str, cpus: str | None = None) -> dict[str, Any]:
    result = call(*arguments, cpus=cpus)
    assert result.returncode == 0, result.stderr
    event: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return event


def time_s(*arguments: str, name: str) -> float:
    value = end_of(*arguments)["metrics"][name]
    assert isinstance(value, float)
    return value


# Between the fastest CPU there is and a slow one under load.
@each(
    ("arguments", "name", "least_s", "most_s"),
    [
        (("syscall", "--threads", "1"), "call_time_s", 10e-9, 10e-6),
        (("wakeup",), "wakeup_time_s", 100e-9, 10e-3),
        (("wakeup", "--by", "timer"), "wakeup_time_s", 100e-9, 10e-3),
        (("page_fault",), "fault_time_s", 20e-9, 1e-3),
        (("process_start",), "start_time_s", 10e-6, 0.1),
        (("process_start", "--how", "exec"), "start_time_s", 50e-6, 1.0),
    ],
)
def test_times_are_plausible(
    arguments: tuple[str, ...], name: str, least_s: float, most_s: float
) -> None:
    assert least_s < time_s(*arguments, name=name) < most_s


@each("means", ["pipe", "futex"])
def test_a_switch_takes_longer_than_its_calls_and_these_longer_than_one(means: str) -> None:
    def in_order() -> bool:
        metrics = end_of("context_switch", "--by", means)["metrics"]
        call_s = end_of("syscall", "--threads", "1")["metrics"]["call_time_s_best"]
        # None: others had the CPU in every slice.
        return call_s is not None and metrics["hand_over_time_s"] > metrics["calls_time_s"] > call_s

    # A loaded machine may hold up any of them.
    assert any(in_order() for _ in range(8))


def test_an_exec_takes_longer_than_a_fork() -> None:
    fork, execute = (
        end_of("process_start", "--how", how)["metrics"]["latency_min_s"]
        for how in ("fork", "exec")
    )
    assert execute > fork


@two_cpus
def test_a_pair_of_cpus_has_its_figure() -> None:
    """In a cpuset of two CPUs, given in either order."""
    first, last = CPUS[0], CPUS[-1]
    end = end_of("core_to_core", "--cpus", f"{last},{first}", cpus=f"{first},{last}")
    (pair,) = end["pairs"]
    assert pair["cpus"] == [last, first]
    assert 5e-9 < pair["value"] < 100e-6
    assert end["metrics"]["hand_over_time_s"] == pair["value"]
    assert end["metrics"]["pairs_measured"] == 1


@each("arguments", [("core_to_core",), ("wakeup", "--on", "other_cpu")])
def test_on_one_cpu_what_needs_two_is_skipped(arguments: tuple[str, ...]) -> None:
    result = call(*arguments, cpus=str(CPUS[0]))
    assert result.returncode == UNSUPPORTED
    assert "one CPU alone" in json.loads(result.stdout)["reason"]


def test_a_timer_has_no_other_cpu() -> None:
    result = call("wakeup", "--by", "timer", "--on", "other_cpu")
    assert result.returncode == UNSUPPORTED
    assert "use --on same_cpu" in json.loads(result.stdout)["reason"]


def test_timers_are_a_millisecond_apart() -> None:
    command = [str(PROGRAM), "wakeup", "--by=timer", "--work=40", "--warmup-s=0"]
    output = subprocess.check_output(command, text=True, timeout=60)
    end = json.loads(output.splitlines()[-1])
    assert end["metrics"]["work_operations"] == 40
    assert end["elapsed_s"] > 0.039


def test_a_thread_that_is_awake_before_its_timer_has_no_figure(tmp_path: Path) -> None:
    """As in a sandbox that returns from the call at once."""
    shim = tmp_path / "shim.so"
    source = "int clock_nanosleep() { return 0; }"
    gcc = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", "-o", str(shim)]
    subprocess.run(gcc, input=source, text=True, check=True)
    command = ["env", f"LD_PRELOAD={shim}", str(PROGRAM), "wakeup", "--by=timer", *BRIEF]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == FAILED
    message = json.loads(result.stdout.splitlines()[-1])["message"]
    assert "ns before its timer was due" in message


def test_without_huge_pages_their_fault_is_skipped() -> None:
    command = [str(PROGRAM), "page_fault", "--pages=huge", *BRIEF]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60, preexec_fn=without_huge_pages
    )
    assert result.returncode == UNSUPPORTED
    reason = json.loads(result.stdout)["reason"]
    assert "PR_SET_THP_DISABLE" in reason or "write madvise to /sys" in reason


def without_huge_pages() -> None:
    """Forbid them for this process and the program that it turns into."""
    assert ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0


def test_threads_that_share_a_cpu_hand_no_line_over() -> None:
    result = call("core_to_core", "--threads", str(len(CPUS) + 1))
    assert result.returncode == UNSUPPORTED
    assert "one thread per CPU" in json.loads(result.stdout)["reason"]


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@each("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_second_process_ends_with_the_program(how: signal.Signals) -> None:
    arguments = ["context_switch", "--by", "futex", "--duration-s", "60"]
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert json.loads(program.stdout.readline())["event"] == "start"
        (child,) = children_of(program.pid)
        program.send_signal(how)
        program.wait(10)
    until_s = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and not is_zombie(child):
        assert time.monotonic() < until_s, "the second process has outlived the program"


@each("means", ["pipe", "futex"])
def test_without_the_second_process_the_trial_ends(means: str) -> None:
    arguments = ["context_switch", "--by", means, "--duration-s", "60"]
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert json.loads(program.stdout.readline())["event"] == "start"
        (child,) = children_of(program.pid)
        os.kill(child, signal.SIGKILL)
        output, _ = program.communicate(timeout=10)
    assert program.returncode == FAILED
    assert "does not answer" in json.loads(output.splitlines()[-1])["message"]


def test_a_process_whose_end_is_hidden_is_no_wrong_result() -> None:
    command = ["env", "--ignore-signal=CHLD", str(PROGRAM), "process_start", *BRIEF]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == FAILED
    assert "No child processes" in json.loads(result.stdout.splitlines()[-1])["message"]


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


@each("workload", sorted(TIMED_WORKLOADS))
def test_there_is_no_limit_and_a_reason(workload: str) -> None:
    found = trial_limits(intel(143, SAPPHIRE_RAPIDS_FLAGS), workload, {}, {}, 2)
    (limit,) = found.values()
    assert limit.value is None
    assert limit.reason == TIME_UNKNOWN
