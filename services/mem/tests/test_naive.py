"""naive_copy and naive_set do what the course's programs did, and what they did is right."""

import itertools
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from services.mem.tests.program import (
    NAIVE,
    NAME,
    PROGRAM,
    call,
    measure,
    running,
    status_bytes,
    table,
)
from tests.benchmark import MIB, OK, RESOURCE, UNSUPPORTED, USAGE, WRONG, Trial, refused, trial_of
from tests.machine_code import functions, without

SHIM = Path(__file__).with_name("calls_shim.c")
ROUTINES = {"naive_copy": "memcpy", "naive_set": "memset"}
WAYS = list(itertools.product(("sequential", "random"), ("once", "each"), ("none", "each")))
BRIEF = ("--duration-s=0.05", "--warmup-s=0.01")
SIZE = 16 * MIB


def way_of(pattern: str, clock: str, lock: str) -> list[str]:
    return [f"--pattern={pattern}", f"--clock={clock}", f"--lock={lock}"]


def measured(workload: str, *arguments: str, size: int = SIZE) -> Trial:
    return measure(workload, f"--size-bytes={size}", *arguments)


# ---- what the table says -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAIVE)
def test_it_is_called_naive_and_is_like_the_reports_by_default(name: str) -> None:
    workload = table()[name]
    assert workload["naive"] is True and workload["kind"] == "loop"
    found = {param["name"]: param for param in workload["params"]}
    assert {one: found[one]["default"] for one in ("pattern", "clock", "lock", "pages")} == {
        "pattern": "sequential", "clock": "once", "lock": "none", "pages": "4k",
    }  # fmt: skip
    assert (found["block_bytes"]["min"], found["block_bytes"]["max"]) == (1, 1024 * MIB)
    (primary,) = (one for one in workload["metrics"] if one.get("primary"))
    assert (primary["name"], primary["unit"]) == ("bytes_per_second", "byte/s")


def test_nothing_else_of_memory_is_naive() -> None:
    assert {name for name, one in table().items() if one.get("naive")} == set(NAIVE)


# ---- what is done --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.sampled(5)
def test_every_way_is_right_with_blocks_of_any_size(name: str, way: tuple[str, str, str]) -> None:
    for block in (1, 8, 1000, 4096, 3 * MIB):
        found = measured(name, "--threads=2", f"--block-bytes={block}", *way_of(*way), *BRIEF)
        assert found.metrics["work_bytes"] > 0
        assert found.metrics["work_bytes"] % block == 0
        assert found.metrics["huge_page_ratio"] == 0


@pytest.mark.parametrize("pages", ["4k", "huge"])
@pytest.mark.parametrize("name", NAIVE)
def test_the_memory_is_there(name: str, pages: str) -> None:
    """All of it, and of a copy the temporary places of two threads beside it."""
    size, block = 96 * MIB, 8 * MIB
    arguments = [f"--size-bytes={size}", f"--block-bytes={block}", f"--pages={pages}"]
    with running(name, *arguments, "--threads=2") as (process, start):
        resident = status_bytes(process.pid, "VmRSS")
    assert start["params"]["size_bytes"] == size
    least = size + (2 * block if name == "naive_copy" else 0)
    assert least <= resident < least + 12 * MIB


@pytest.mark.parametrize("lock", ["none", "each"])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.sampled(5)
def test_a_fixed_work_is_split_and_done_and_no_more(name: str, threads: int, lock: str) -> None:
    work = 48 * MIB
    arguments = [f"--work={work}", f"--threads={threads}", "--block-bytes=1024", f"--lock={lock}"]
    found = measured(name, *arguments, "--warmup-s=0")
    assert found.metrics["work_bytes"] == work
    assert {one["operations"] for one in found.end["threads"]} == {work / threads}


@pytest.mark.parametrize("work", [1, 8193, 1000001])
@pytest.mark.parametrize("name", NAIVE)
def test_a_fixed_work_is_rounded_up_to_blocks(name: str, work: int) -> None:
    found = measured(name, f"--work={work}", "--threads=2", "--block-bytes=512", "--warmup-s=0")
    assert found.metrics["work_bytes"] == -(-work // 512) * 512


@pytest.fixture(scope="module")
def calls_shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("shim") / "calls_shim.so"
    options = ["-shared", "-fPIC", "-O1", "-fno-builtin"]
    subprocess.run(["gcc", *options, "-o", library, SHIM], check=True)
    return str(library)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.sampled(5)
def test_each_block_is_the_calls_that_its_name_says(
    name: str, way: tuple[str, str, str], calls_shim: str
) -> None:
    """Counted from outside."""
    block, blocks, threads = 776, 20_000, 2
    result = call(
        name, *way_of(*way), f"--size-bytes={SIZE}", f"--block-bytes={block}",
        f"--work={block * blocks}", f"--threads={threads}", "--warmup-s=0",
        env={**os.environ, "LD_PRELOAD": calls_shim, "SHIM_BYTES": str(block)},
    )  # fmt: skip
    assert result.returncode == OK, result.stderr
    assert trial_of(result.stdout.splitlines()).metrics["work_bytes"] == block * blocks
    lines = [line.split() for line in result.stderr.splitlines()]
    counts = {words[0]: int(words[1]) for words in lines if len(words) == 2}
    pattern, clock, lock = way
    other = "memset" if name == "naive_copy" else "memcpy"
    assert counts[ROUTINES[name]] == blocks and counts[other] < 10
    assert counts["rand"] == (blocks if pattern == "random" else 0)
    # The harness before all; two phases, the ramp and the region, each twice a thread. A thread
    # that loses its CPU beside one of these readings repeats it.
    readings = 1 + 2 * 2 * threads + (2 * blocks if clock == "each" else 0)
    assert readings <= counts["gettimeofday"] <= readings + 10 * threads
    assert (counts["pthread_mutex_lock"] >= blocks) == (lock == "each")


# ---- how it misleads -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAIVE)
def test_the_figure_is_all_bytes_over_the_time_of_its_clock(name: str) -> None:
    arguments = ("--threads=2", "--block-bytes=65536", "--duration-s=0.3", "--warmup-s=0")
    metrics = (found := measured(name, *arguments)).metrics
    assert metrics["bytes_per_second"] == pytest.approx(
        metrics["bytes_per_second_makespan"], rel=0.05
    )
    makespan = metrics["work_bytes"] / found.end["elapsed_s"]
    assert metrics["bytes_per_second_makespan"] == pytest.approx(makespan, rel=1e-6)


@pytest.mark.parametrize("name", NAIVE)
def test_a_clock_for_each_block_leaves_out_what_lies_between_and_slows_it_down(name: str) -> None:
    small = ("--threads=1", "--block-bytes=8", "--warmup-s=0", "--duration-s=0.2")
    once = measured(name, "--clock=once", *small).metrics
    each = measured(name, "--clock=each", *small).metrics
    assert each["bytes_per_second"] > each["bytes_per_second_makespan"]
    assert each["bytes_per_second_makespan"] < 0.7 * once["bytes_per_second_makespan"]


@pytest.mark.parametrize("name", NAIVE)
def test_a_random_number_for_each_small_block_is_what_is_measured(name: str) -> None:
    """In memory that every cache holds: the place makes no difference there."""
    small = ("--threads=1", "--block-bytes=8", "--warmup-s=0", "--duration-s=0.2")

    def rate(pattern: str) -> float:
        found = measured(name, f"--pattern={pattern}", *small, size=16384).metrics
        return float(found["bytes_per_second"])

    # Pairs: a loaded machine may hold up either, and for a while.
    assert any(rate("random") < 0.7 * rate("sequential") for _ in range(8))


@pytest.mark.parametrize("name", NAIVE)
def test_samples_are_timed_by_the_same_clock(name: str) -> None:
    arguments = ["--threads=1", "--block-bytes=8", "--clock=each", "--sample-interval-s=0.1"]
    brief = ["--duration-s=0.5", "--warmup-s=0"]

    def agree() -> bool:
        result = call(name, f"--size-bytes={SIZE}", *arguments, *brief)
        metrics = trial_of(result.stdout.splitlines()).metrics
        events = [json.loads(line) for line in result.stdout.splitlines()]
        samples = [one["metrics"] for one in events if one["event"] == "sample"]
        rates = [one["bytes_per_second"] for one in samples if one["bytes_per_second"] is not None]
        return (
            len(rates) >= 3
            and min(rates) < 1.2 * metrics["bytes_per_second"]
            and max(rates) > metrics["bytes_per_second_makespan"]
        )

    # What others take between two samples lies in one and not in the other.
    assert any(agree() for _ in range(8))


# ---- wrong results -------------------------------------------------------------------------------


@pytest.mark.skipif(platform.machine() != "x86_64", reason="changes the x86-64 program")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.sampled(5)
def test_a_call_that_is_left_out_exits_5(
    name: str, way: tuple[str, str, str], tmp_path: Path
) -> None:
    pattern, clock, lock = way
    loop = "copy" if name == "naive_copy" else "set"
    loop += "_in_order" if pattern == "sequential" else "_anywhere"
    loop += ("_clocked" if clock == "each" else "") + ("_locked" if lock == "each" else "")
    calls = [
        one
        for one in functions("release", NAME)[loop]
        if one.mnemonic.startswith("call") and f"<{ROUTINES[name]}" in one.operands
    ]
    assert calls
    without(calls, PROGRAM, tmp_path / NAME)
    arguments = [*way_of(*way), f"--size-bytes={MIB}", "--threads=2", *BRIEF]
    assert call(name, *arguments).returncode == OK
    refused(call(name, *arguments, program=tmp_path / NAME), WRONG, "do not trust")


# ---- bad input -----------------------------------------------------------------------------------


BAD: list[tuple[list[str], list[str]]] = [
    (["--pattern=linear"], ['"linear"', "sequential, random"]),
    (["--clock=twice"], ['"twice"', "once, each"]),
    (["--lock=all"], ['"all"', "none, each"]),
    (["--block-bytes=0"], ['"0"', f"1 to {1024 * MIB}"]),
    (["--store=nt"], ['"--store=nt"', "--pattern"]),
    (["--size-bytes=1000001", "--threads=2"], ["1000001", "2 threads"]),
    ([f"--size-bytes={SIZE}", "--threads=2", f"--block-bytes={12 * MIB}"],
     [f"{12 * MIB}", "block", f"--size-bytes {24 * MIB}"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "parts"), BAD)
@pytest.mark.parametrize("name", NAIVE)
def test_bad_argument(name: str, arguments: list[str], parts: list[str]) -> None:
    refused(call(name, *arguments), USAGE, *parts)


def test_the_temporary_places_count_into_the_budget() -> None:
    """2⁴⁰ bytes of memory of a thousand threads, and as much again beside them."""
    arguments = ["--threads=1024", f"--block-bytes={1024 * MIB}", f"--size-bytes={1 << 40}"]
    lines: dict[str, Any] = {
        name: refused(call(name, *arguments), RESOURCE, str(1 << 40)) for name in NAIVE
    }
    assert "1 TiB of it temporary blocks" in lines["naive_copy"]
    assert "temporary" not in lines["naive_set"]


def test_no_reserved_pages_are_a_skip() -> None:
    (pages,) = (one for one in table()["naive_copy"]["params"] if one["name"] == "pages")
    if "hugetlb" not in pages["unsupported"]:
        pytest.skip("2 MiB pages are reserved here")
    result = call("naive_copy", "--pages=hugetlb", f"--size-bytes={SIZE}", *BRIEF)
    refused(result, UNSUPPORTED, pages["unsupported"]["hugetlb"])
