"""A run needs the programs of the subsystems that its suite names, and no others."""

import json
import shutil
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.model.registry import subsystem_names
from tests.examples import examples
from tests.faults.command import PROGRAMS, Command, scripted_programs

CASES = {subsystem: examples(subsystem).SHORT_CASE for subsystem in subsystem_names()}
ALL = {
    "name": "all",
    "peers": "none",
    "idle": {"policy": "force"},
    "repeats": {"min_trials": 1, "max_trials": 1},
    "cases": list(CASES.values()),
}
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
    suite.write_text(json.dumps(ALL))
    return str(suite)


@pytest.mark.parametrize("present", subsystem_names())
@pytest.mark.sampled(4)
def test_the_program_of_another_subsystem_may_be_missing(tmp_path: Path, present: str) -> None:
    command = Command(tmp_path, programs_of(tmp_path, present))
    given = CASES[present]["params"].items()
    params = [part for name, value in given for part in ("--param", f"{name}={value}")]
    ended = command.run(
        "run", "--workload", CASES[present]["workload"], *params, "--trials", "1", *FORCE,
    )  # fmt: skip
    skipped = {ExitCode.NOTHING_RAN} if present == "gpu" else set()
    assert ended.code in {ExitCode.OK, ExitCode.INVALID} | skipped, ended.errors
    assert [one["subsystem"] for one in ended.document["programs"]] == [present]
    listed = command.run("list", "workloads", "--json").document["programs"]
    assert [one["subsystem"] for one in listed] == [present]


@pytest.mark.parametrize("missing", subsystem_names())
@pytest.mark.sampled(4)
def test_a_suite_of_all_needs_all(tmp_path: Path, missing: str) -> None:
    others = [subsystem for subsystem in subsystem_names() if subsystem != missing]
    command = Command(tmp_path, programs_of(tmp_path, *others))
    ended = command.run("run", suite_of_all(tmp_path))
    assert ended.code == ExitCode.RESOURCE
    assert f"{missing}-bench" in ended.last_line and len(ended.errors.splitlines()) == 1
    assert not command.jobs(), "nothing was begun"


def test_a_suite_of_all_measures_all(tmp_path: Path) -> None:
    ended = Command(tmp_path).run("run", suite_of_all(tmp_path), "--json")
    assert ended.code in (ExitCode.OK, ExitCode.INVALID), ended.errors
    document = ended.document
    assert [case["workload"] for case in document["cases"]] == [
        case["workload"] for case in CASES.values()
    ]
    assert [one["subsystem"] for one in document["programs"]] == sorted(subsystem_names())
    for case in document["cases"]:
        if case["workload"] == "gpu.fma" and case["verdict"] == "skipped":
            continue
        (primary,) = [one for one in document["workloads"][case["workload"]] if one["primary"]]
        assert case["metrics"][primary["name"]]["statistics"]["median"] > 0


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
