"""Whatever a peer does: one clear reason, our case stays as it is, and nothing of it lives on."""

import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import (
    Command,
    Ended,
    end_of,
    ignores_signals,
    scripted_programs,
    write_program,
)
from tests.patience import SOON_S, wait_until

# On a loaded host a peer of a moment is noisy, and one of a second disturbed.
MEASURED = ("clean", "noisy", "disturbed")
SCRIPTED_PEER = Path(__file__).with_name("scripted_peer.py")
RUN = (
    "run", "--workload", "cpu.fma", "--param", "isa=avx2", "--param", "threads=1",
    "--peers", "likwid-bench", "--idle-policy", "force",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers' scratch directories of this test, and of no other."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)


def with_peer(tmp_path: Path, script: str, *, ours: str = "", **environment: str) -> Command:
    """Both are scripted: ours measures at once, the peer as `script` says."""
    tools = tmp_path / "tools"
    tools.mkdir()
    write_program(tools / "likwid-bench", SCRIPTED_PEER.read_text())
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", **environment}
    return Command(tmp_path, scripted_programs(tmp_path), PEER=script, SCRIPT=ours, **environment)


def case_and_peer(ended: Ended) -> tuple[Any, Any]:
    (case,) = ended.document["cases"]
    (peer,) = case["peers"]
    return case, peer


def stored_case_and_peer(command: Command) -> tuple[Any, Any]:
    """The same of a run that printed its table."""
    (job,) = command.jobs()
    (case,) = json.loads((job / "result.json").read_text())["cases"]
    (peer,) = case["peers"]
    return case, peer


def nothing_left(command: Command) -> bool:
    """Neither a process nor a scratch directory."""
    return command.is_gone_soon() and not list(
        (command.results.parent / "scratch").glob("hostbench-peer-*")
    )


def test_a_peer_is_measured_in_turn(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "")
    ended = command.run(*RUN, "--trials", "4", "--json")
    assert ended.code == ExitCode.OK
    case, peer = case_and_peer(ended)
    assert len(case["trials"]) == 4
    assert [trial["index"] for trial in peer["trials"]] == [0, 1, 2, 3]
    (job,) = command.jobs()
    records = [json.loads(line) for line in (job / "journal.ndjson").read_text().splitlines()]
    turns = [record["tool"] for record in records if record["record"] == "trial"]
    assert turns == ["hostbench", "likwid-bench"] * 4
    assert peer["version"] == "9.9.9" and peer["verdict"] in MEASURED
    # Ours says 1e9 operations a second and no makespan, the peer 1000 MFlops/s.
    assert peer["statistics"]["median"] == 1e9
    assert nothing_left(command)


@pytest.mark.parametrize(
    ("script", "code", "part"),
    [
        ("garbage", "malformed_output", "no Test in its output; its output: "),
        ("empty", "malformed_output", "it printed nothing"),
        ("exit_3", "exit_code", "exit code 3; its output: "),
        ("crash", "killed", "killed by signal 11"),
        ("nan", "no_figure", "figure nan is not a positive number"),
        ("zero", "no_figure", "figure 0 is not a positive number"),
        ("kills_its_group", "killed", "killed by signal 9"),
        ("other_cpus", "malformed_output", "its threads on CPUs"),
    ],
)
@pytest.mark.sampled(3)
def test_a_peer_without_a_figure(tmp_path: Path, script: str, code: str, part: str) -> None:
    command = with_peer(tmp_path, script)
    ended = command.run(*RUN, "--trials", "3")
    case, peer = stored_case_and_peer(command)
    assert ended.code == ExitCode.OK
    assert (case["verdict"], len(case["counted"])) == ("clean", 3)
    assert (peer["verdict"], peer["statistics"], peer["ratio"]) == ("failed", None, None)
    # It is not tried again beside the same case.
    (trial,) = peer["trials"]
    assert trial["failure"]["code"] == code
    assert part in trial["failure"]["message"]
    assert nothing_left(command)
    text = " ".join(ended.output.split())
    assert "likwid-bench 9.9.9, no ratio: cpu.fma avx2 1 thread failed: " in text
    assert "\x1b" not in ended.output


HANGING = """
name: hanging
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
peers: [likwid-bench]
cases:
  - {workload: cpu.fma, params: {isa: avx2, threads: 1, duration_s: 0.05}}
"""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A sitecustomize for the command: a peer has three seconds instead of half a minute."""
    place = tmp_path / "impatient"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "from hostbench.plan import estimate\n"
        "estimate.TIMEOUT_FACTOR, estimate.TIMEOUT_EXTRA_S = 0.0, 3.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(place))
    return str(place)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("script", ["hang", "hanging_grandchild", "flood"])
@pytest.mark.sampled(3)
def test_a_peer_that_hangs_is_ended_with_all_its_children(tmp_path: Path, script: str) -> None:
    command = with_peer(tmp_path, script)
    suite = tmp_path / "hanging.yaml"
    suite.write_text(HANGING)
    ended = command.run("run", str(suite), "--json")
    case, peer = case_and_peer(ended)
    assert case["verdict"] in MEASURED
    assert peer["trials"][0]["failure"]["code"] == "timeout"
    assert "did not finish within 3 s" in peer["trials"][0]["failure"]["message"]
    assert nothing_left(command)


@pytest.mark.exhaustive
def test_a_daemon_it_leaves_behind_does_not_disturb_us(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "leaves_a_daemon")
    ended = command.run(*RUN, "--trials", "2", "--json")
    _, peer = case_and_peer(ended)
    assert peer["verdict"] in MEASURED
    assert "left_behind" in [reason["code"] for reason in peer["reasons"]]
    assert all(trial["events"][-1]["left_behind"] >= 1 for trial in peer["trials"])
    assert nothing_left(command)


def test_long_output_is_kept_in_bounds_with_its_figure(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "long")
    _, peer = case_and_peer(command.run(*RUN, "--trials", "1", "--json"))
    end = peer["trials"][0]["events"][-1]
    assert end["output_bytes"] > 1_000_000
    assert len(end["output"]) < 80_000
    assert "bytes are left out" in end["output"]
    assert peer["statistics"]["median"] == 1e9


def test_what_a_peer_writes_is_removed(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "writes_files")
    _, peer = case_and_peer(command.run(*RUN, "--trials", "1", "--json"))
    assert peer["verdict"] in MEASURED
    assert nothing_left(command)
    assert not list(tmp_path.rglob("left"))


@pytest.mark.exhaustive
def test_a_version_that_hangs_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "impatient"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import hostbench.programs.peer_trial as peertrial\npeertrial.ASK_TIMEOUT_S = 3.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(place))
    command = with_peer(tmp_path, "silent_version")
    _, peer = case_and_peer(command.run(*RUN, "--trials", "1", "--json"))
    assert peer["version"] is None and peer["verdict"] in MEASURED
    assert nothing_left(command)


def test_a_peer_that_is_not_installed(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    command = Command(tmp_path, scripted_programs(tmp_path), PATH=str(tools))
    ended = command.run(*RUN, "--trials", "3")
    assert ended.code == ExitCode.OK
    case, peer = stored_case_and_peer(command)
    text = "likwid-bench is not installed; install it with: apt install likwid"
    assert (case["verdict"], peer["verdict"]) == ("clean", "skipped")
    assert [reason["text"] for reason in peer["reasons"]] == [text]
    assert len(peer["trials"]) == 1
    assert f"1 case: {text}." in " ".join(ended.output.split())


@pytest.mark.parametrize("numbers", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)])
@pytest.mark.parametrize("script", ["sleeps", "hang", "hanging_grandchild"])
@pytest.mark.sampled(5)
def test_an_interrupt_ends_a_peer(
    tmp_path: Path, script: str, numbers: tuple[signal.Signals, ...]
) -> None:
    command = with_peer(tmp_path, script)
    process = command.start(*RUN)
    wait_for_peer(command)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.1)
    ended = end_of(process, SOON_S)
    assert ended.code == {signal.SIGINT: 130, signal.SIGTERM: 143}[numbers[0]]
    assert nothing_left(command)
    (job,) = command.jobs()
    records = [json.loads(line) for line in (job / "journal.ndjson").read_text().splitlines()]
    kept = [record for record in records if record["record"] == "trial"]
    assert [trial["tool"] for trial in kept] == ["hostbench"]


@pytest.mark.parametrize("script", ["sleeps", "hang", "hanging_grandchild"])
@pytest.mark.sampled(3)
def test_kill_9_of_hostbench_ends_its_peer(tmp_path: Path, script: str) -> None:
    command = with_peer(tmp_path, script)
    process = command.start(*RUN)
    wait_for_peer(command)
    process.kill()
    end_of(process)
    assert command.is_gone_soon()
    assert nothing_left(command)


def test_kill_9_of_the_supervisor_ends_the_peer_and_the_trial(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "hang")
    process = command.start(*RUN, "--trials", "2", "--json")
    wait_for_peer(command)
    (supervisor,) = command.program_pids()
    os.kill(supervisor, signal.SIGKILL)
    case, peer = case_and_peer(end_of(process))
    assert case["verdict"] == "clean"
    assert peer["trials"][0]["failure"]["code"] == "supervisor"
    assert command.is_gone_soon()


@pytest.mark.exhaustive
def test_ours_never_runs_beside_a_peer(tmp_path: Path) -> None:
    """Not even beside what a peer left behind: when ours starts, it is gone."""
    command = with_peer(tmp_path, "leaves_a_daemon")
    ended = command.run(*RUN, "--trials", "3", "--json")
    case, peer = case_and_peer(ended)
    ends = [trial["time_unix_s"] + trial["wall_s"] for trial in peer["trials"]]
    starts = [trial["time_unix_s"] for trial in case["trials"]]
    assert all(end <= start + 0.01 for end, start in zip(ends, starts[1:], strict=False))


@pytest.mark.exhaustive
def test_a_resumed_job_keeps_what_peers_measured(tmp_path: Path) -> None:
    command = with_peer(tmp_path, "third_time", PEER_COUNT=str(tmp_path / "count"))
    suite = tmp_path / "two.yaml"
    suite.write_text(
        "name: two\nidle: {policy: force}\nrepeats: {min_trials: 1, max_trials: 2}\n"
        "peers: [likwid-bench]\ncases:\n"
        "  - {workload: cpu.fma, params: {isa: avx2, threads: 1}}\n"
        "  - {workload: cpu.fma, params: {isa: avx2, threads: 1, dtype: fp64, duration_s: 0.5}}\n"
    )
    process = command.start("run", str(suite), "--json")
    wait_until(lambda: _size(tmp_path / "count") >= 3)
    process.terminate()
    end_of(process)
    (job,) = command.jobs()
    command.environment["PEER"] = ""
    ended = command.run("run", "--resume", job.name, "--json")
    assert "1 of 2 cases kept" in ended.errors
    first, second = ended.document["cases"]
    # The peer's trial that was interrupted is lost, ours before it is not.
    assert [len(case["trials"]) for case in (first, second)] == [2, 2]
    assert [len(case["peers"][0]["trials"]) for case in (first, second)] == [2, 1]
    rebuilt = command.run("run", "--resume", job.name, "--json")
    assert rebuilt.document == ended.document


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def wait_for_peer(command: Command) -> None:
    """Until the peer itself runs, not only what checks it, and has got where it hangs."""
    hangs = command.environment["PEER"] != "sleeps"

    def there() -> bool:
        return any(
            not hangs or ignores_signals(pid)
            for pid in command.processes()
            if _is_peer(Path(f"/proc/{pid}/cmdline"))
        )

    wait_until(there, lambda: "no peer was started")


def _is_peer(command_line: Path) -> bool:
    try:
        arguments = command_line.read_bytes().split(b"\0")
    except OSError:
        return False
    return b"-W" in arguments and b"taskset" not in arguments[0]
