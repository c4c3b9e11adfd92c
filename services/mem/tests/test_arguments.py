"""Bad input to mem-bench: the exit code, and one line that names value, bound and remedy.

What every program answers alike is in tests/contract, limits of memory are in tests/faults.
"""

import os

import pytest

from services.mem.tests.program import LIBRARY, MOMENT, STREAM, TIMES, call, measure, moment, table
from tests.benchmark import MIB, RESOURCE, UNSUPPORTED, USAGE, refused

SIZE = f"--size-bytes={16 * MIB}"
GIB = 1024 * MIB
BAD = [
    # One value by itself.
    ("triad", ["--store=mmx"], ['"mmx"', "best, plain, nt"]),
    ("scale", ["--store=libc"], ['"libc"', "best, plain, nt"]),
    ("read", ["--store=plain"], ['"--store=plain"', "--isa"]),
    ("copy", ["--store=Plain"], ['"Plain"', "plain, nt, libc"]),
    ("copy", ["--pages=2M"], ['"2M"', "4k, huge, hugetlb"]),
    ("copy", ["--pattern=linear"], ['"linear"', "sequential, random"]),
    ("copy", ["--isa=avx3"], ['"avx3"', "avx512"]),
    ("copy", ["--block-bytes=0"], ['"0"', f"1 to {GIB}"]),
    ("copy", ["--block-bytes=-1"], ['"-1"', f"1 to {GIB}"]),
    ("copy", [f"--block-bytes={GIB + 1}"], [f'"{GIB + 1}"', f"1 to {GIB}"]),
    ("copy", ["--block-bytes=4K"], ['"4K"', f"1 to {GIB}"]),
    ("copy", ["--size-bytes=0"], ['"0"', "auto"]),
    ("copy", ["--size-bytes=-8"], ['"-8"', "auto"]),
    ("copy", ["--size-bytes=1e9x"], ['"1e9x"', "auto"]),
    ("copy", ["--size-bytes=all"], ['"all"', "auto"]),
    ("copy", ["--size-share=0"], ['"0"', "0.9"]),
    ("copy", ["--size-share=-0.5"], ['"-0.5"', "0.9"]),
    ("copy", ["--size-share=0.95"], ['"0.95"', "0.9"]),
    ("copy", ["--size-share=50%"], ['"50%"', "0.9"]),
    ("copy", ["--size-share=nan"], ['"nan"', "0.9"]),
    ("copy", ["--memory-node=near"], ['"near"', "local"]),
    ("copy", ["--memory-node=-1"], ['"-1"', "local"]),
    ("random_access", ["--operation=swap"], ['"swap"', "read, write, update"]),
    ("random_access", ["--index=rand"], ['"rand"', "precomputed, lcg"]),
    ("random_access", ["--block-bytes=0"], ['"0"', "1 to 64"]),
    ("random_access", ["--block-bytes=65"], ['"65"', "1 to 64"]),
    ("loaded_latency", ["--load=scale"], ['"scale"', "read, write, copy, triad"]),
    ("loaded_latency", ["--intensity=1.5"], ['"1.5"', "0 to 1"]),
    ("loaded_latency", ["--intensity=-0.1"], ['"-0.1"', "0 to 1"]),
    ("loaded_latency", ["--intensity=nan"], ['"nan"', "0 to 1"]),
    ("pointer_chase", ["--store=nt"], ['"--store=nt"', "--pages"]),
    ("read_write", ["--store=nt"], ['"--store=nt"', "--pattern"]),
    ("copy", ["--streams=2"], ['"2"', "best, 1, 4, 8"]),
    ("copy", ["--prefetch=lines"], ['"lines"', "best, none, pages"]),
    # Several together.
    ("copy", [SIZE, "--size-share=0.5"], ["--size-bytes", "--size-share", "one of them"]),
    ("copy", [SIZE, "--threads=1", f"--block-bytes={32 * MIB}"], [f"{32 * MIB}", "block"]),
    ("copy", [SIZE, "--threads=2", f"--block-bytes={12 * MIB}"], [f"{12 * MIB}", "block"]),
    ("read_write", [SIZE, "--threads=1", f"--block-bytes={32 * MIB}"], [f"{32 * MIB}", "block"]),
    ("copy", ["--size-bytes=1000001", "--threads=2"], ["1000001", "2 threads"]),
    ("triad", [f"--size-bytes={16 * MIB}", "--threads=7"], [f"{16 * MIB}", "7 threads"]),
    ("random_access", ["--block-bytes=3"], ["--block-bytes 3", "1, 2, 4, 8, 16, 32 or 64"]),
    ("copy", [SIZE, "--pattern=random"], ["--pattern random", "--block-bytes"]),
    ("triad", [SIZE, "--block-bytes=12"], ["--block-bytes 12", "multiple of 8"]),
    ("copy", [SIZE, "--store=nt", "--block-bytes=100"], ["--block-bytes 100", "multiple of 64"]),
    ("copy", [SIZE, "--streams=8", "--block-bytes=4096"], ["--streams 8", "65536"]),
    ("copy", [SIZE, "--prefetch=pages", "--streams=8"], ["--prefetch pages", "8", "--streams"]),
    ("copy", [SIZE, "--prefetch=pages", "--store=libc"], ["--prefetch pages", "C library"]),
    ("triad", [SIZE, "--prefetch=pages", "--block-bytes=4096"], ["--prefetch pages", "8192"]),
    ("triad", ["--size-bytes=1000001", "--threads=1"], ["1000001", "1000000", "1000008"]),
    ("pointer_chase", ["--size-bytes=100", "--threads=1"], ["100", "96", "104"]),
    ("pointer_chase", ["--chains=33"], ['"33"', "1 to 32"]),
    ("pointer_chase", ["--stride-bytes=100"], ["--stride-bytes 100", "64 or 128"]),
    ("pointer_chase", [SIZE, "--threads=1", f"--stride-bytes={32 * MIB}"], ["stride", "too small"]),
    (
        "pointer_chase",
        [f"--size-bytes={16 << 10}", "--threads=1", "--stride-bytes=4096", "--chains=8"],
        ["--chains 8", "4 nodes", f"--size-bytes {32 << 10}"],
    ),
    ("code_chase", ["--stride-bytes=100"], ["--stride-bytes 100", "blocks", "64 or 128"]),
    ("code_chase", [f"--stride-bytes={4 * MIB}"], [f"{4 * MIB}", "64 to 2097152"]),
    ("code_chase", ["--size-bytes=2000", "--threads=1"], ["2000", "32 blocks", "2048"]),
    ("code_chase", ["--pattern=zigzag"], ['"zigzag"', "sequential, random"]),
    ("random_access", ["--size-bytes=100", "--threads=3"], ["100", "3 threads"]),
    ("copy", ["--size-bytes=4096", "--threads=4096"], ["4096", "threads"]),
    ("read_write", [SIZE, "--threads=3", "--work=4096"], [f"{16 * MIB}", "3 threads"]),
]


@pytest.mark.parametrize(("workload", "arguments", "parts"), BAD)
def test_bad_argument(workload: str, arguments: list[str], parts: list[str]) -> None:
    refused(call(workload, *arguments), USAGE, *parts)


@pytest.mark.parametrize("workload", [*STREAM, *TIMES, *LIBRARY])
@pytest.mark.sampled(4)
def test_a_size_above_the_budget(workload: str) -> None:
    size = 960_000_000_000_000  # divides by whatever an element and a block are
    result = call(workload, f"--size-bytes={size}", *moment(workload))
    line = refused(result, RESOURCE, str(size), "TiB of memory")
    assert "MemAvailable" in line or "memory." in line or "RLIMIT" in line


@pytest.mark.parametrize(
    "workload", ["triad", "pointer_chase", "random_access", "code_chase", "read_write"]
)
def test_no_reserved_pages_are_a_skip(workload: str) -> None:
    (pages,) = (one for one in table()[workload]["params"] if one["name"] == "pages")
    if "hugetlb" not in pages["unsupported"]:
        pytest.skip("2 MiB pages are reserved here")
    reason = pages["unsupported"]["hugetlb"]
    refused(call(workload, "--pages=hugetlb", SIZE, *MOMENT), UNSUPPORTED, reason)


def test_load_needs_a_thread_of_its_own() -> None:
    result = call("loaded_latency", SIZE, "--threads=1")
    refused(result, UNSUPPORTED, "2 threads or more")


def test_another_architectures_instructions_are_a_skip() -> None:
    lacking = "neon" if os.uname().machine == "x86_64" else "avx512"
    line = refused(call("triad", f"--isa={lacking}", SIZE, *MOMENT), UNSUPPORTED)
    assert lacking in line


def test_more_threads_than_cpus_are_labelled() -> None:
    threads = 4 * len(os.sched_getaffinity(0))
    trial = measure(
        "triad", f"--size-bytes={threads * 3 * MIB}", f"--threads={threads}", *MOMENT[:2]
    )
    assert "oversubscribed" in trial.warnings
    assert len(trial.end["threads"]) == threads


@pytest.mark.parametrize("workload", ["triad", "read", "random_access"])
def test_a_size_that_the_caches_hold_is_labelled(workload: str) -> None:
    assert "cache_influenced" in measure(workload, SIZE, *MOMENT).warnings


def test_a_chase_is_meant_to_go_through_the_caches() -> None:
    assert "cache_influenced" not in measure("pointer_chase", "--size-bytes=4096", *MOMENT).warnings
