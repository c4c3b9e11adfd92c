"""The seed of a kernel: other numbers in its lanes, and a checksum that all CPUs have in common."""

import os

import pytest

from services.cpu.tests.kernels import x86_kernels_of_this_cpu
from tests.benchmark import OK, UNSUPPORTED, USAGE, Benchmark, refused
from tests.each import each

BENCHMARK = Benchmark("cpu-bench")
MOMENT = ("--duration-s=0.01", "--warmup-s=0")
KERNELS = list(
    {
        (one.workload, one.dtype, one.isa): one.arguments for one in x86_kernels_of_this_cpu()
    }.values()
)


def checksum(arguments: list[str], seed: int, cpu: int) -> str:
    trial = BENCHMARK.measure(*arguments, f"--seed={seed}", f"--cpus={cpu}", *MOMENT)
    return trial.facts["checksum"]


@each("arguments", KERNELS[::7])
def test_every_kernel_is_right_from_every_seed(arguments: list[str]) -> None:
    if BENCHMARK.call(*arguments, *MOMENT).returncode == UNSUPPORTED:
        pytest.skip("not on this CPU")
    cpus = sorted(os.sched_getaffinity(0))
    seeds = (0, 7, 10**15)
    found = {seed: {checksum(arguments, seed, cpu) for cpu in cpus[:2]} for seed in seeds}
    assert all(len(sums) == 1 for sums in found.values()), "two CPUs differ"
    assert len(set.union(*found.values())) == len(seeds), "two seeds give the same"


def test_without_a_seed_there_is_no_checksum() -> None:
    assert "checksum" not in BENCHMARK.measure("fma", *MOMENT).facts


@pytest.mark.parametrize("seed", ["-1", "1e3", "1000000000000001"])
def test_a_seed_out_of_range_is_refused(seed: str) -> None:
    assert BENCHMARK.call("fma", "--seed=0", *MOMENT).returncode == OK
    refused(BENCHMARK.call("fma", f"--seed={seed}", *MOMENT), USAGE, seed)
