"""What the programs answer to bad arguments: one line, the right exit code, no figure."""

import json
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "build" / "release" / "cpu-bench"
USAGE, UNSUPPORTED = 2, 4

BAD = [
    (["--threads", "0"], '"0"', "1 to 4096"),
    (["--threads", "-1"], '"-1"', "1 to 4096"),
    (["--threads", "abc"], '"abc"', "1 to 4096"),
    (["--threads", "1000000"], '"1000000"', "1 to 4096"),
    (["--threads", "2.5"], '"2.5"', "1 to 4096"),
    (["--threads", " 2"], '" 2"', "1 to 4096"),
    (["--threads", ""], '""', "1 to 4096"),
    (["--threads"], "needs a value", "1 to 4096"),
    (["--threads", "1", "--threads", "1"], "given twice", "once"),
    (["--dtype", "fp16"], '"fp16"', "fp64, fp32"),
    (["--isa", "mmx"], '"mmx"', "avx512"),
    (["--duration-s", "0"], '"0"', "0.01 to 604800"),
    (["--duration-s", "-1"], '"-1"', "0.01 to 604800"),
    (["--duration-s", "nan"], '"nan"', "0.01 to 604800"),
    (["--duration-s", "inf"], '"inf"', "0.01 to 604800"),
    (["--duration-s", "1e400"], '"1e400"', "0.01 to 604800"),
    (["--duration-s", "0x1"], '"0x1"', "0.01 to 604800"),
    (["--duration-s", "1s"], '"1s"', "0.01 to 604800"),
    (["--work", "0"], '"0"', "1 to 1000000000000000000"),
    (["--work", "18446744073709551616"], '"18446744073709551616"', "1 to 1000000000000000000"),
    (["--work", "9000000000000000000"], '"9000000000000000000"', "1 to 1000000000000000000"),
    (["--work", "1000", "--duration-s", "1"], "--work and --duration-s", "give one"),
    (["--cpus", "x"], '"x"', "0,2-5"),
    (["--cpus", "0,0"], '"0,0"', "once"),
    (["--cpus", "8000"], "CPU 8000", "out of"),
    (["--lifeline-fd", "900"], "900", "pipe"),
    (["--colour", "red"], '"--colour"', "--threads"),
    (["surplus"], '"surplus"', "--threads"),
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20)


def is_one_clear_line(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert len(result.stderr.splitlines()) == 1
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["error"]
    for part in parts:
        assert part in result.stderr
        assert part in events[0]["message"]


@pytest.mark.parametrize(("arguments", "value", "allowed"), BAD)
def test_bad_argument(arguments: list[str], value: str, allowed: str) -> None:
    result = run("fma", *arguments)
    assert result.returncode == USAGE
    is_one_clear_line(result, value, allowed)


@pytest.mark.parametrize("name", ["", "nosuch", "FMA", "fma "])
def test_unknown_workload(name: str) -> None:
    result = run(name)
    assert result.returncode == USAGE
    is_one_clear_line(
        result,
        f'"{name}"',
        "clock fma fma_add mul_add add_sub int_add int_mul int_mul_add dot compare",
    )


def test_any_bytes_give_one_printable_line() -> None:
    result = subprocess.run([PROGRAM, "fma", b"--dtype=a\n\xff\x1b[31m"], capture_output=True)
    assert result.returncode == USAGE
    assert result.stderr.count(b"\n") == 1
    assert result.stderr.strip().decode("ascii").isprintable()
    json.loads(result.stdout)


def test_cpu_outside_the_affinity_mask() -> None:
    result = subprocess.run(
        ["taskset", "-c", "1", PROGRAM, "fma", "--cpus", "0"], capture_output=True, text=True
    )
    assert result.returncode == USAGE
    is_one_clear_line(result, "CPU 0", "out of 1 ")


def test_missing_instruction_set_is_a_skip() -> None:
    table = json.loads(run("--list").stdout)
    fma = next(w for w in table["workloads"] if w["name"] == "fma")
    isa = next(p for p in fma["params"] if p["name"] == "isa")
    assert isa["unsupported"], "no host has both x86-64 and Arm instructions"
    for choice, reason in isa["unsupported"].items():
        result = run("fma", "--isa", choice)
        assert result.returncode == UNSUPPORTED
        assert json.loads(result.stdout) == {"event": "skip", "reason": reason}
        assert reason in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--list"], ["fma", "--help"]])
def test_asking_prints_no_events(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.returncode == 0
    assert '"event"' not in result.stdout
    assert not result.stderr
