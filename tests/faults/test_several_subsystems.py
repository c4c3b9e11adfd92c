"""A run needs the programs of the subsystems that its suite names, and no others."""

import json
import shutil
from pathlib import Path

import pytest

from hostbench.exitcode import ExitCode
from hostbench.program import SUBSYSTEMS
from tests.faults.command import PROGRAMS, Command, scripted_programs

SMALL = {
    "cpu": "cpu.fma",
    "mem": "mem.triad",
    "disk": "disk.rand_read",
    "net": "net.tcp_rr",
    "gpu": "gpu.fma",
}
# What makes a trial of it short, besides its time.
SHORT = {
    "cpu": [],
    "mem": ["--param", "warmup_s=0"],
    "disk": ["--param", "warmup_s=0", "--param", "file_bytes=4194304"],
    "net": ["--param", "warmup_s=0"],
    "gpu": ["--param", "warmup_s=0"],
}
ALL = """
name: all
peers: none
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
cases:
  - workload: cpu.fma
    params: {duration_s: 0.05, threads: 1}
  - workload: mem.triad
    params: {duration_s: 0.05, threads: 1, warmup_s: 0}
  - workload: disk.rand_read
    params: {duration_s: 0.1, warmup_s: 0, file_bytes: 4194304}
  - workload: net.tcp_rr
    params: {duration_s: 0.1, warmup_s: 0}
  - workload: gpu.fma
    params: {duration_s: 0.1, warmup_s: 0}
"""
FORCE = ("--idle-policy", "force", "--json")


def programs_of(directory: Path, *subsystems: str) -> Path:
    """A programs directory with these alone."""
    programs = directory / "programs"
    programs.mkdir()
    for subsystem in subsystems:
        shutil.copy(PROGRAMS / f"{subsystem}-bench", programs)
    return programs


def suite_of_all(directory: Path) -> str:
    suite = directory / "all.yaml"
    suite.write_text(ALL)
    return str(suite)


@pytest.mark.parametrize("present", SUBSYSTEMS)
def test_the_program_of_another_subsystem_may_be_missing(tmp_path: Path, present: str) -> None:
    command = Command(tmp_path, programs_of(tmp_path, present))
    ended = command.run(
        "run", "--workload", SMALL[present], "--param", "duration_s=0.05", *SHORT[present],
        "--trials", "1", *FORCE,
    )  # fmt: skip
    skipped = {ExitCode.NOTHING_RAN} if present == "gpu" else set()
    assert ended.code in {ExitCode.OK, ExitCode.INVALID} | skipped, ended.errors
    assert [one["subsystem"] for one in ended.document["programs"]] == [present]
    listed = command.run("list", "workloads", "--json").document["programs"]
    assert [one["subsystem"] for one in listed] == [present]


@pytest.mark.parametrize("missing", SUBSYSTEMS)
def test_a_suite_of_all_needs_all(tmp_path: Path, missing: str) -> None:
    others = [subsystem for subsystem in SUBSYSTEMS if subsystem != missing]
    command = Command(tmp_path, programs_of(tmp_path, *others))
    ended = command.run("run", suite_of_all(tmp_path))
    assert ended.code == ExitCode.RESOURCE
    assert f"{missing}-bench" in ended.last_line and len(ended.errors.splitlines()) == 1
    assert not command.jobs(), "nothing was begun"


def test_a_suite_of_all_measures_all(tmp_path: Path) -> None:
    ended = Command(tmp_path).run("run", suite_of_all(tmp_path), "--json")
    assert ended.code in (ExitCode.OK, ExitCode.INVALID), ended.errors
    document = ended.document
    assert [case["workload"] for case in document["cases"]] == list(SMALL.values())
    assert [one["subsystem"] for one in document["programs"]] == sorted(SUBSYSTEMS)
    rate = "operations_per_second"
    metrics = (rate, "bytes_per_second", rate, rate, rate)
    for case, metric in zip(document["cases"], metrics, strict=True):
        if case["workload"] == "gpu.fma" and case["verdict"] == "skipped":
            continue
        assert case["metrics"][metric]["statistics"]["median"] > 0


def test_one_that_crashes_does_not_keep_another_from_its_figures(tmp_path: Path) -> None:
    programs = scripted_programs(tmp_path)
    shutil.copy(PROGRAMS / "mem-bench", programs)
    command = Command(tmp_path, programs, SCRIPT="crash")
    ended = command.run("run", suite_of_all(tmp_path), "--json")
    assert ended.code == ExitCode.CASE_FAILED
    verdicts = {case["workload"]: case["verdict"] for case in ended.document["cases"]}
    assert verdicts["cpu.fma"] == "failed" and verdicts["mem.triad"] != "failed"
    (document,) = (path for path in command.documents() if path.suffix == ".json")
    assert json.loads(document.read_text()) == ended.document
