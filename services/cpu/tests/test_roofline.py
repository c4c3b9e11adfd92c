"""What the loops of roofline hold, what the program makes of its options, and its part of the
report."""

import ctypes
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.host import Cache, Channels, Memory
from hostbench.model.result import ResultDocument
from hostbench.report.content import Chart, CurveChart, CurvePoint, Part, TimeChart
from services.cpu.limits import limits
from services.cpu.report import report
from services.cpu.roofline_report import Roof
from services.cpu.tests.kernels import accumulators, fused
from tests.builds import builds
from tests.machine_code import ROOT, functions
from tests.unit.records import end, host, start

PROGRAM = ROOT / "build" / "release" / "cpu-bench"
PR_SET_THP_DISABLE = 41
SUITE = """
name: two-maps
description: A short trial of each map.
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
cases:
  - workload: cpu.fixed_work
    params: {threads: 1, duration_s: 0.6, sample_interval_s: 0.1, warmup_s: 0.02}
  - workload: cpu.roofline
    params: {threads: 1, duration_s: 0.06, warmup_s: 0.02, size_bytes: 1048576}
    grid: {fmas: [1, 8, 64]}
"""

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs the x86-64 program")


@pytest.mark.parametrize("variant", builds("release", "clang"))
@pytest.mark.parametrize("dtype", ["fp64", "fp32"])
@pytest.mark.parametrize("isa", ["sse2", "avx2", "avx512"])
def test_a_unit_is_one_vector_and_one_further_fma_for_each_accumulator(
    variant: str, dtype: str, isa: str
) -> None:
    body = functions(variant, "cpu-bench")[f"roofline_{dtype}_{isa}_loop"]
    found = [one for one in body if one.mnemonic == fused("fmadd231", dtype, isa)]
    from_memory = [one for one in found if "(" in one.operands]
    assert len(from_memory) == len({one.operands for one in from_memory}) == accumulators(isa)
    assert len(found) == 2 * accumulators(isa)


def events_of(*options: str, preexec_fn: Callable[[], None] | None = None) -> list[dict[str, Any]]:
    command = [str(PROGRAM), "roofline", "--warmup-s=0", *options]
    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=preexec_fn)
    return [json.loads(line) for line in result.stdout.splitlines()]


def last_event(*options: str) -> dict[str, Any]:
    return events_of(*options)[-1]


@needs_x86
@pytest.mark.parametrize(("dtype", "lanes"), [("fp64", 24), ("fp32", 48)])
def test_figures_count_what_a_unit_does(dtype: str, lanes: int) -> None:
    small = ("--size-bytes=262144", f"--dtype={dtype}", "--isa=sse2")
    metrics = last_event("--threads=1", "--work=1", "--fmas=5", *small)["metrics"]
    assert metrics["work_operations"] == 2 * 5 * lanes
    assert metrics["operations_per_byte"] == 2 * 5 * lanes / (12 * 16)
    rate = metrics["operations_per_second"]
    assert metrics["bytes_per_second"] * metrics["operations_per_byte"] == pytest.approx(rate)


@needs_x86
@pytest.mark.parametrize("fmas", [1, 3, 4096])
def test_sums_are_right_beyond_the_end_of_the_array_and_of_exact_numbers(fmas: int) -> None:
    """The array has 1365 units, and fp32 is exact for some thousand of 4096 FMAs."""
    units = 20_000
    work = f"--work={units * 2 * fmas * 48}"
    options = ("--size-bytes=262144", "--dtype=fp32", "--isa=sse2", f"--fmas={fmas}")
    assert last_event("--threads=1", *options, work)["event"] == "end"


@needs_x86
def test_a_size_is_refused_that_leaves_a_thread_too_little_or_memory_too_small() -> None:
    little = last_event("--size-bytes=300000", "--threads=2")
    assert (little["event"], little["code"]) == ("error", "usage")
    assert "--size-bytes 300000 leaves each of 2 threads less than the 262144" in little["message"]
    large = last_event("--threads=1", "--size-bytes=900000000000000")
    assert (large["event"], large["code"]) == ("error", "resource")
    assert "--size-bytes 900000000000000 on 1 threads needs" in large["message"]


def test_an_array_that_memory_makes_small_is_no_roof_of_memory() -> None:
    """Less than four times the caches, on any host whose last one has 8 MiB or more."""
    options = ["roofline", "--threads=1", "--duration-s=0.02", "--warmup-s=0"]
    command = ["prlimit", f"--as={64 << 20}", str(PROGRAM), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    (message,) = [one["message"] for one in events if one.get("code") == "cache_influenced"]
    assert "RLIMIT_AS" in message and "GiB" not in message.partition(" is all")[0]


def without_huge_pages() -> None:
    """Forbid them for this process and the program that it turns into."""
    assert ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0


def test_huge_pages_that_are_not_there_are_reported_as_missing() -> None:
    options = ("--threads=1", "--work=1", "--size-bytes=8388608")
    *before, last = events_of(*options, preexec_fn=without_huge_pages)
    assert last["metrics"]["huge_page_ratio"] == 0
    (message,) = [one["message"] for one in before if one.get("code") == "huge_pages_missing"]
    assert "only 0 % of the working set" in message
    *before, last = events_of(*options)
    missing = any(one.get("code") == "huge_pages_missing" for one in before)
    assert missing == (last["metrics"]["huge_page_ratio"] < 0.99)


def test_the_slope_has_the_limit_of_the_memory() -> None:
    channels = Channels(count=8, transfers_per_second=4.8e9, width_bits=64)
    known = Memory(channels=(channels,), channels_source="SMBIOS type 17: 8 of 8")
    cache = Cache(level=3, type="Unified", size_bytes=32 << 20, shared_by_cpus=2, instances=1)
    trial = start(workload="roofline", params={"size_bytes": 1 << 30, "fmas": 1})
    found = limits(host(memory=known, caches=(cache,)), trial, end())
    assert (found["bytes_per_second"].value, found["bytes_per_second"].unit) == (307.2e9, "byte/s")
    unknown = limits(host(memory=None, caches=(cache,)), trial, end())["bytes_per_second"]
    assert unknown.value is None and unknown.reason


def test_a_roof_has_the_limits_that_are_known_and_else_what_was_reached() -> None:
    points = tuple(CurvePoint(x, y, y, y) for x, y in ((0.25, 10.0), (2, 70.0), (16, 100.0)))
    reached = Roof("all", points, bandwidth=40, peak=100, memory_limit=None, fma_limit=None)
    assert [(point.x, point.y) for point in reached.line] == [(0.25, 10), (2.5, 100), (16, 100)]
    limited = replace(reached, memory_limit=50, fma_limit=125)
    assert [(point.x, point.y) for point in limited.line] == [(0.25, 12.5), (2.5, 125), (16, 125)]


def test_the_report_draws_roofs_ridge_and_noise(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE, encoding="utf-8")
    command = [sys.executable, "-m", "hostbench", "run", str(suite), "--results", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*/result.json")
    document = ResultDocument.model_validate_json(path.read_text(encoding="utf-8"))
    parts = {
        block.title: block
        for block in report(document.cases, document).blocks
        if isinstance(block, Part)
    }
    (roofline,) = (one for one in parts["Roofline (cpu.roofline)"].blocks if isinstance(one, Chart))
    assert isinstance(roofline.drawing, CurveChart)
    measured, roof = roofline.drawing.curves
    assert [point.x for point in measured.points] == [0.25, 2, 16]
    assert roof.beside == 0
    reached = max(point.y / point.x for point in measured.points)
    assert roof.points[0].y == pytest.approx(0.25 * reached)
    (ridge,) = roofline.drawing.marks
    assert ridge.x == pytest.approx(max(point.y for point in measured.points) / reached)
    assert re.search(r"the roofs meet at [\d.]+ operations a byte", roofline.description)
    lengths, over_time = (
        one
        for one in parts["Time lost to others (cpu.fixed_work)"].blocks
        if isinstance(one, Chart)
    )
    assert isinstance(lengths.drawing, CurveChart)
    assert lengths.drawing.curves[0].points[0].x == 2e-6
    assert isinstance(over_time.drawing, TimeChart)
    assert len(over_time.drawing.panels) == 2
