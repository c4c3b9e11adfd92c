"""What every program answers to bad arguments: one line, the right exit code, no figure."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import SUBSYSTEMS
from tests.each import each
from tests.examples import examples

PROGRAMS = Path(__file__).parents[2] / "build" / "release"
# Words in braces below stand for these.
WORDS = {subsystem: examples(subsystem).OPTIONS for subsystem in SUBSYSTEMS}
WORKLOADS = {subsystem: examples(subsystem).WORKLOAD for subsystem in SUBSYSTEMS}
USAGE, UNSUPPORTED = 2, 4

BAD = [
    (["{count}", "0"], '"0"', "{threads}"),
    (["{count}", "-1"], '"-1"', "{threads}"),
    (["{count}", "abc"], '"abc"', "{threads}"),
    (["{count}", "1000000"], '"1000000"', "{threads}"),
    (["{count}", "2.5"], '"2.5"', "{threads}"),
    (["{count}", " 2"], '" 2"', "{threads}"),
    (["{count}", ""], '""', "{threads}"),
    (["{count}"], "needs a value", "{threads}"),
    (["{count}", "64", "{count}", "64"], "given twice", "once"),
    (["{choice}", "mmx"], '"mmx"', "{choices}"),
    (["--duration-s", "0"], '"0"', "0.01 to 604800"),
    (["--duration-s", "-1"], '"-1"', "0.01 to 604800"),
    (["--duration-s", "nan"], '"nan"', "0.01 to 604800"),
    (["--duration-s", "inf"], '"inf"', "0.01 to 604800"),
    (["--duration-s", "1e400"], '"1e400"', "0.01 to 604800"),
    (["--duration-s", "0x1"], '"0x1"', "0.01 to 604800"),
    (["--duration-s", "1s"], '"1s"', "0.01 to 604800"),
    (["{work}", "0"], '"0"', "1 to 1000000000000000000"),
    (["{work}", "18446744073709551616"], '"18446744073709551616"', "1 to 1000000000000000000"),
    (["{work}", "9000000000000000000"], '"9000000000000000000"', "1 to 1000000000000000000"),
    (["--cpus", "x"], '"x"', "0,2-5"),
    (["--cpus", "0,0"], '"0,0"', "once"),
    (["--cpus", "8000"], "CPU 8000", "out of"),
    (["--lifeline-fd", "900"], "900", "pipe"),
    (["--colour", "red"], '"--colour"', "{count}"),
    (["surplus"], '"surplus"', "{count}"),
]


def program(subsystem: str) -> Path:
    return PROGRAMS / f"{subsystem}-bench"


def run(subsystem: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(subsystem), *arguments], capture_output=True, text=True, timeout=20
    )


def table(subsystem: str) -> Any:
    return json.loads(run(subsystem, "--list").stdout)


def is_one_clear_line(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert len(result.stderr.splitlines()) == 1
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["error"]
    for part in parts:
        assert part in result.stderr
        assert part in events[0]["message"]


each_subsystem = pytest.mark.parametrize("subsystem", SUBSYSTEMS)


@each_subsystem
@each(("arguments", "value", "allowed"), BAD)
def test_bad_argument(subsystem: str, arguments: list[str], value: str, allowed: str) -> None:
    words = WORDS[subsystem]
    result = run(subsystem, WORKLOADS[subsystem], *(word.format(**words) for word in arguments))
    assert result.returncode == USAGE
    is_one_clear_line(result, value.format(**words), allowed.format(**words))


@pytest.mark.parametrize("subsystem", ["cpu", "mem"])
def test_work_and_time(subsystem: str) -> None:
    """Those of a disk end with the first of both."""
    result = run(subsystem, WORKLOADS[subsystem], "--work", "1000", "--duration-s", "1")
    assert result.returncode == USAGE
    is_one_clear_line(result, "--work and --duration-s", "give one of them")


def test_a_choice_of_its_own() -> None:
    result = run("cpu", "fma", "--dtype", "fp16")
    assert result.returncode == USAGE
    is_one_clear_line(result, '"fp16"', "fp64, fp32")


@each_subsystem
@each("name", ["", "nosuch", "FMA", "fma ", "TRIAD", "triad "])
def test_unknown_workload(subsystem: str, name: str) -> None:
    result = run(subsystem, name)
    assert result.returncode == USAGE
    known = " ".join(workload["name"] for workload in table(subsystem)["workloads"])
    is_one_clear_line(result, f'"{name}"', known)


@each_subsystem
def test_any_bytes_give_one_printable_line(subsystem: str) -> None:
    result = subprocess.run(
        [program(subsystem), WORKLOADS[subsystem], b"--isa=a\n\xff\x1b[31m"], capture_output=True
    )
    assert result.returncode == USAGE
    assert result.stderr.count(b"\n") == 1
    assert result.stderr.strip().decode("ascii").isprintable()
    json.loads(result.stdout)


@each_subsystem
def test_cpu_outside_the_affinity_mask(subsystem: str) -> None:
    call = ["taskset", "-c", "1", str(program(subsystem)), WORKLOADS[subsystem], "--cpus", "0"]
    result = subprocess.run(call, capture_output=True, text=True)
    assert result.returncode == USAGE
    is_one_clear_line(result, "CPU 0", "out of 1 ")


@pytest.mark.parametrize("subsystem", ["cpu", "mem"])
def test_missing_instruction_set_is_a_skip(subsystem: str) -> None:
    workloads = table(subsystem)["workloads"]
    workload = next(one for one in workloads if one["name"] == WORKLOADS[subsystem])
    isa = next(p for p in workload["params"] if p["name"] == "isa")
    assert isa["unsupported"], "no host has both x86-64 and Arm instructions"
    for choice, reason in isa["unsupported"].items():
        result = run(subsystem, WORKLOADS[subsystem], "--isa", choice)
        assert result.returncode == UNSUPPORTED
        assert json.loads(result.stdout) == {"event": "skip", "reason": reason}
        assert reason in result.stderr


@each_subsystem
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["--list"], ["WORKLOADS", "--help"]]
)
def test_asking_prints_no_events(subsystem: str, arguments: list[str]) -> None:
    workload = WORKLOADS[subsystem]
    result = run(subsystem, *(workload if word == "WORKLOADS" else word for word in arguments))
    assert result.returncode == 0
    assert '"event"' not in result.stdout
    assert not result.stderr


@each_subsystem
def test_help_names_every_workload_and_every_parameter(subsystem: str) -> None:
    overview = run(subsystem, "--help").stdout
    for workload in table(subsystem)["workloads"]:
        assert workload["name"] in overview
        page = run(subsystem, workload["name"], "--help").stdout
        for param in workload["params"]:
            assert f"--{param['name'].replace('_', '-')}" in page
        assert all(metric["name"] in page for metric in workload["metrics"])
