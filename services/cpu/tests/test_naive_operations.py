"""naive_operations does what loops without optimisation do, and its figure is what that gives."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.limit import NAIVE_REASON
from services.cpu.limits import trial_limits
from services.cpu.tests.identities import SAPPHIRE_RAPIDS_FLAGS, intel
from tests.builds import builds
from tests.machine_code import ROOT, Instruction, functions, loop, without

PROGRAM = ROOT / "build" / "release" / "cpu-bench"
WRONG, USAGE, UNSUPPORTED = 5, 2, 4
VARIANTS = builds("release", "clang", "aarch64")
DTYPES = ["int8", "int16", "int32", "int64", "fp32", "fp64"]
VECTORS = {"int32": ("vpaddd", 8), "fp32": ("vaddps", 8), "fp64": ("vaddpd", 4)}
# A pass of add_sub: six statements of five operations, on six variables each.
OPERATIONS, VARIABLES_READ, SUMS_WRITTEN = 30, 36, 6
ARITHMETIC = re.compile(r"f?(add|sub)(ss|sd|q|l|w|b)?|lea")
COMPARISON = re.compile(r"cmp[bwlq]?|u?comis[sd]|fcmpe?")
COUNTER = re.compile(r"[$#](0x)?1\b")


def body_of(variant: str, name: str) -> list[Instruction]:
    return loop(functions(variant, PROGRAM.name)[name])


def in_memory(body: list[Instruction]) -> int:
    return sum("(" in one.operands or "[" in one.operands for one in body)


def arithmetic(body: list[Instruction]) -> list[Instruction]:
    """Without the loop's own counter."""
    return [
        one
        for one in body
        if ARITHMETIC.fullmatch(one.mnemonic) and not COUNTER.search(one.operands)
    ]


def run(*arguments: str, program: Path = PROGRAM) -> subprocess.CompletedProcess[str]:
    command = [str(program), "naive_operations", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def events(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments)
    if result.returncode == UNSUPPORTED:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def metrics(*arguments: str) -> dict[str, float]:
    found: dict[str, float] = events(*arguments)[-1]["metrics"]
    return found


# ---- what the loops hold ----


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_additions_and_subtractions_are_of_variables_in_memory(variant: str, dtype: str) -> None:
    body = body_of(variant, f"naive_add_sub_{dtype}")
    assert len(arithmetic(body)) == OPERATIONS
    # And the counter: read to be compared, read and written to be counted.
    assert in_memory(body) >= VARIABLES_READ + SUMS_WRITTEN + 2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_comparison_counts_in_memory(variant: str, dtype: str) -> None:
    body = body_of(variant, f"naive_compare_{dtype}")
    # One of the operands, one of the counter.
    assert sum(bool(COMPARISON.fullmatch(one.mnemonic)) for one in body) == 2
    counting = [one for one in body if COUNTER.search(one.operands)]
    assert len(counting) == 2, "either branch counts"
    # Two operands, the counter and its end, and the counter again where it is counted.
    assert in_memory(body) >= 2 + 2 + 2


@pytest.mark.parametrize("variant", builds("release", "clang"))
@pytest.mark.parametrize("dtype", VECTORS)
def test_vectors_come_from_memory_and_go_back(variant: str, dtype: str) -> None:
    body = body_of(variant, f"naive_avx_{dtype}")
    addition, _ = VECTORS[dtype]
    assert sum(one.mnemonic == addition for one in body) == 1
    moves = [one for one in body if one.mnemonic.startswith("vmov")]
    reads = [one for one in moves if one.operands.endswith("%ymm0")]
    assert len(reads) >= 2 and len(moves) - len(reads) >= 1
    assert all("(" in one.operands for one in moves)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_empty_loop_has_its_counter_in_memory_too(variant: str) -> None:
    body = body_of(variant, "naive_empty_loop")
    assert len(arithmetic(body)) == 0
    assert sum(bool(COUNTER.search(one.operands)) for one in body) == 1
    assert in_memory(body) >= 3


# ---- what is verified ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sampled(5)
def test_each_missing_operation_is_an_error(dtype: str, tmp_path: Path) -> None:
    # Several passes: in the first, a sum that is not added is zero anyway.
    arguments = [f"--dtype={dtype}", "--work=90", "--threads=1", "--warmup-s=0"]
    broken = tmp_path / PROGRAM.name
    for position, victim in enumerate(arithmetic(body_of("release", f"naive_add_sub_{dtype}"))):
        without([victim], PROGRAM, broken)
        result = run(*arguments, program=broken)
        assert result.returncode == WRONG, f"operation {position} is not missed"
        assert f"add_sub {dtype} left a wrong result" in result.stderr


@pytest.mark.parametrize("dtype", VECTORS)
def test_a_missing_vector_addition_is_an_error(dtype: str, tmp_path: Path) -> None:
    arguments = ["--method=avx", f"--dtype={dtype}", "--work=100000", "--threads=1"]
    events(*arguments)
    broken = tmp_path / PROGRAM.name
    addition, _ = VECTORS[dtype]
    body = body_of("release", f"naive_avx_{dtype}")
    without([one for one in body if one.mnemonic == addition], PROGRAM, broken)
    result = run(*arguments, program=broken)
    assert result.returncode == WRONG
    assert f"avx {dtype} left a wrong result" in result.stderr


# ---- what is counted ----


@pytest.mark.parametrize(
    ("method", "dtype", "operations"),
    [
        *(("add_sub", dtype, OPERATIONS) for dtype in DTYPES),
        *(("compare", dtype, 1) for dtype in DTYPES),
        *(("avx", dtype, lanes) for dtype, (_, lanes) in VECTORS.items()),
    ],
)
@pytest.mark.sampled(4)
def test_a_fixed_work_is_done_to_the_pass(method: str, dtype: str, operations: int) -> None:
    passes = 100_003
    work = passes * operations - (operations > 1)
    found = metrics(
        f"--method={method}", f"--dtype={dtype}", f"--work={work}", "--threads=3", "--warmup-s=0"
    )
    assert found["work_operations"] == passes * operations


def test_all_of_the_time_is_counted() -> None:
    found = metrics("--duration-s=0.2", "--threads=2", "--warmup-s=0.02")
    elapsed_s = found["empty_loop_s"] / found["empty_loop_ratio"]
    assert 0.19 < elapsed_s < 2  # a busy host takes longer
    assert found["operations_per_second"] == pytest.approx(found["work_operations"] / elapsed_s)


def test_the_time_of_the_empty_loop_is_taken_off() -> None:
    """Of a pass of thirty operations something is always left."""
    found = metrics("--loop-time=subtracted", "--duration-s=0.2", "--threads=1", "--dtype=fp64")
    elapsed_s = found["empty_loop_s"] / found["empty_loop_ratio"]
    left_s = elapsed_s - found["empty_loop_s"]
    assert 0 < left_s < elapsed_s
    assert found["operations_per_second"] == pytest.approx(found["work_operations"] / left_s)


def test_the_samples_tell_the_same_rate() -> None:
    received = events("--duration-s=0.55", "--sample-interval-s=0.1", "--threads=2")
    samples = [event for event in received if event["event"] == "sample"]
    assert len(samples) >= 4
    rates = sorted(sample["metrics"]["operations_per_second"] for sample in samples)
    whole = received[-1]["metrics"]["operations_per_second"]
    assert rates[len(rates) // 2] == pytest.approx(whole, rel=0.5)


# ---- what is refused, and what there is no limit of ----


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--method=avx", "--dtype=int8"],
            "dtype int8 is not for method avx; give --dtype int32, fp32 or fp64",
        ),
        (
            ["--method=compare", "--loop-time=subtracted"],
            "loop_time subtracted is not for method compare, whose counter is the loop's own: "
            "nothing would be left; give --loop-time counted",
        ),
    ],
)
def test_what_makes_no_sense_together(arguments: list[str], reason: str) -> None:
    result = run(*arguments)
    assert result.returncode == USAGE
    assert reason in result.stderr


def test_there_is_no_limit_and_the_reason_is_reported() -> None:
    identity = intel(143, SAPPHIRE_RAPIDS_FLAGS)
    params = {"dtype": "int32", "method": "add_sub", "loop_time": "counted"}
    found = trial_limits(identity, "naive_operations", params, {"clock_hertz": 3e9}, 2)
    assert found["operations_per_second"].value is None
    assert found["operations_per_second"].reason == NAIVE_REASON


def test_the_table_says_that_it_is_naive() -> None:
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True)
    workloads = json.loads(listed.stdout)["workloads"]
    assert [one["name"] for one in workloads if one.get("naive")] == ["naive_operations"]
    assert "Naive: this workload measures in a way that is known to mislead" in run("--help").stdout
