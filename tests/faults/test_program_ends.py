"""However a program is ended, it ends at once, says so, and leaves nothing running.

Within a second, docs/kernel-protocol.md says; here something else may have the CPUs meanwhile.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.patience import SOON_S, comes_true

PROGRAMS = Path(__file__).parents[2] / "build" / "release"
PROGRAM = PROGRAMS / "cpu-bench"
# A workload of every program, small enough to have begun at once.
CALLS = {
    "cpu-bench": ["fma"],
    "mem-bench": ["triad", f"--size-bytes={48 << 20}", "--store=plain", "--streams=1"],
    "disk-bench": ["rand_rw", f"--file-bytes={4 << 20}"],
}
FAILED = 1


each_program = pytest.mark.parametrize("name", CALLS)


def start(name: str, *arguments: str, pass_fds: Sequence[int] = ()) -> subprocess.Popen[str]:
    """A long trial that has reached its timed region."""
    program = subprocess.Popen(
        [PROGRAMS / name, *CALLS[name], "--duration-s", "60", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=pass_fds,
    )
    assert program.stdout is not None
    assert json.loads(program.stdout.readline())["event"] == "start"
    time.sleep(0.2)  # into its timed region
    return program


def ends_interrupted(program: subprocess.Popen[str], why: str) -> None:
    output, errors = program.communicate(timeout=SOON_S)
    assert program.returncode == FAILED
    last = json.loads(output.splitlines()[-1])
    assert (last["event"], last["code"]) == ("error", "interrupted")
    assert why in last["message"]
    assert len(errors.splitlines()) == 1


@each_program
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("arguments", [[], ["--warmup-s", "30"], ["--threads", "64"]])
@pytest.mark.sampled(7)
def test_signal(name: str, number: signal.Signals, times: int, arguments: list[str]) -> None:
    program = start(name, *arguments)
    for _ in range(times):
        program.send_signal(number)
    ends_interrupted(program, number.name)


@each_program
def test_closed_lifeline(name: str) -> None:
    read_end, write_end = os.pipe()
    program = start(name, "--lifeline-fd", str(read_end), pass_fds=[read_end])
    os.close(read_end)
    assert program.poll() is None
    os.close(write_end)
    ends_interrupted(program, "parent is gone")


def test_parent_killed() -> None:
    """The pipe closes with its last holder, however that one died."""
    script = (
        "import os, subprocess, sys, time\n"
        "r, w = os.pipe()\n"
        "p = subprocess.Popen([sys.argv[1], 'fma', '--duration-s', '60',"
        " '--lifeline-fd', str(r)], pass_fds=[r], stdout=subprocess.DEVNULL)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        ["python3", "-c", script, PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.4)
    assert Path(f"/proc/{pid}").exists()
    parent.kill()
    parent.communicate()
    assert comes_true(lambda: not running(pid))


def running(pid: int) -> bool:
    """Whether the process still runs; an orphan that is not reaped yet has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@each_program
def test_reader_gone(name: str) -> None:
    program = start(name, "--sample-interval-s", "0.1")
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    assert program.wait(timeout=SOON_S) == FAILED
    assert "output cannot be written" in program.stderr.read()
    program.stderr.close()


@each_program
def test_full_output_is_a_failure(name: str) -> None:
    call = [str(PROGRAMS / name), *CALLS[name], "--duration-s", "0.05"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(call, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == FAILED


def test_too_few_threads_to_be_had() -> None:
    """Room for 20 stacks of 256 KiB or so: the rest cannot start."""
    result = subprocess.run(
        ["prlimit", "--as=40000000", PROGRAM, "fma", "--threads", "4000"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 3
    assert "use fewer threads" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert json.loads(result.stdout.splitlines()[-1])["code"] == "resource"
