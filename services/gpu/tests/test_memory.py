"""The workloads in device memory, on PoCL and on the stand-in for CUDA: what their figures must
have in common, what they count, and that a wrong word anywhere is seen."""

import json
from pathlib import Path

import pytest

from services.gpu.tests.cuda_stub import environment, read_report
from services.gpu.tests.program import (
    MOMENT,
    PROGRAM,
    WINDOWS,
    call,
    devices,
    measure,
    on_pocl,
)
from tests.benchmark import RESOURCE, UNSUPPORTED, USAGE, WRONG, Trial, refused

MIB, GIB = 1 << 20, 1 << 30
TILE = 32768
ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
SIZE = f"--size-bytes={4 * MIB}"
LONG_PASS = f"--size-bytes={32 * MIB}"
ON_STUB = ("--backend=cuda",)


def on_stub(
    workload: str, *arguments: str, time: tuple[str, ...] = MOMENT, **settings: str | int
) -> Trial:
    return measure(workload, *ON_STUB, *arguments, *time, env=environment(None, **settings))


on_both = pytest.mark.parametrize("backend", ["opencl", "cuda"])


def trial_on(backend: str, workload: str, *arguments: str, time: tuple[str, ...] = MOMENT) -> Trial:
    if backend == "cuda":
        return on_stub(workload, *arguments, time=time)
    return measure(workload, *on_pocl(), *arguments, *time)


# ---- read, write, copy, triad ----------------------------------------------------------------


@pytest.mark.parametrize("workload", list(ARRAYS))
@on_both
@pytest.mark.sampled(7)
def test_a_trial(backend: str, workload: str) -> None:
    trial = trial_on(backend, workload, SIZE, time=WINDOWS)
    metrics = trial.metrics
    assert metrics["bytes_per_second"] > 1e7
    assert metrics["rate_best"] >= metrics["bytes_per_second"] and metrics["windows"] >= 1
    # Whole passes over each array; each counts once.
    assert metrics["work_bytes"] % (ARRAYS[workload] * 4 * MIB) == 0
    assert trial.params["size_bytes"] == 4 * MIB
    assert trial.facts["kernel"].startswith(f"{workload}, ")


@on_both
def test_the_driver_copies_too(backend: str) -> None:
    trial = trial_on(backend, "copy", SIZE, "--path=driver")
    assert trial.metrics["bytes_per_second"] > 1e7
    assert trial.metrics["work_bytes"] % (2 * 4 * MIB) == 0
    assert "kernel" not in trial.facts


def test_the_work_is_what_the_device_did(tmp_path: Path) -> None:
    """Held against the launches that the stand-in counts: of the ramp, of calibration and of the
    timed region together there are more than of the latter alone, by less than as many again."""
    report = tmp_path / "report"
    arguments = ("copy", *ON_STUB, SIZE, "--duration-s=0.2", "--warmup-s=0")
    trial = measure(*arguments, env=environment(report=str(report)))
    (line,) = (one for one in report.read_text().splitlines() if "call cuLaunchKernel " in one)
    passes = trial.metrics["work_bytes"] / (2 * 4 * MIB)
    assert 0 < passes < int(line.rsplit(" ", 1)[1]) < 2 * passes + 200


@pytest.mark.parametrize("workload", list(ARRAYS))
@pytest.mark.sampled(3)
def test_the_core_clock(workload: str) -> None:
    """The stand-in's counter of cycles goes at a gigahertz."""
    trial = on_stub(workload, LONG_PASS, time=WINDOWS)
    assert trial.metrics["core_clock_hertz"] == pytest.approx(1e9, rel=0.0005)


@pytest.mark.parametrize("workload", list(ARRAYS))
@pytest.mark.sampled(3)
def test_no_group_on_the_first_multiprocessor(workload: str) -> None:
    """Then nothing was recorded, which says nothing against the card."""
    metrics = on_stub(workload, LONG_PASS, sm=3).metrics
    assert metrics["bytes_per_second"] > 0
    assert metrics["core_clock_hertz"] == metrics["nvml_clock_hertz"] == 1001e6


def test_a_pass_too_short_for_the_clock() -> None:
    """It takes less than one step; those that the host has interrupted take more than ten."""
    metrics = on_stub("copy", f"--size-bytes={TILE}", time=WINDOWS, grain=20000).metrics
    assert metrics["core_clock_hertz"] == pytest.approx(1e9, rel=0.12)


def test_passes_too_short_for_the_host() -> None:
    """The stub's passes are the host's: events that tell a tenth of the time keep them short on a
    loaded one, too."""
    short = on_stub("copy", f"--size-bytes={TILE}", time=WINDOWS, fast=10).warnings
    assert f"{TILE} bytes" in short["short_passes"]
    assert "short_passes" not in on_stub("copy", SIZE, time=WINDOWS).warnings


@pytest.mark.parametrize("size", [TILE, 3 * TILE, 65 * MIB + TILE])
@pytest.mark.parametrize("workload", list(ARRAYS))
@pytest.mark.sampled(7)
def test_any_number_of_groups(workload: str, size: int) -> None:
    """One alone, an odd number, and more than the host reads back in full."""
    trial = on_stub(workload, f"--size-bytes={size}", memory=512 * MIB)
    assert trial.metrics["work_bytes"] % (ARRAYS[workload] * size) == 0


def test_small_arrays_are_reported_as_cached() -> None:
    trial = on_stub("copy", f"--size-bytes={TILE}")
    assert f"{2 * TILE} bytes together" in trial.warnings["in_cache"]
    assert "in_cache" not in on_stub("copy", SIZE).warnings  # its L2 cache is 1 MiB


# ---- pointer_chase ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [128, 256, 4 * MIB])
@on_both
@pytest.mark.sampled(7)
def test_a_chase(backend: str, size: int) -> None:
    trial = trial_on(backend, "pointer_chase", f"--size-bytes={size}", time=WINDOWS)
    assert 1e-10 < trial.metrics["access_time_s"] < 1e-4
    assert trial.metrics["rate_best"] <= trial.metrics["access_time_s"]
    assert trial.metrics["work_operations"] % 16 == 0
    if backend == "opencl":
        assert trial.metrics["access_cycles"] is None
        assert "CUDA" in trial.end["reasons"]["metrics.access_cycles"]


def test_cycles_are_time_by_clock() -> None:
    metrics = on_stub("pointer_chase", "--size-bytes=l1", time=WINDOWS).metrics
    assert metrics["access_cycles"] == pytest.approx(metrics["access_time_s"] * 1e9, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "size", "cached_in"),
    [
        (("--size-bytes=l1",), 16384, "l1"),
        (("--size-bytes=l2",), MIB // 8, "l2"),
        (("--size-bytes=dram",), 512 * MIB, "l2"),
        ((), 512 * MIB, "l2"),
        (("--size-bytes=l1", "--cached-in=l2"), 16384, "l2"),
        (("--size-bytes=1048576", "--cached-in=l1"), MIB, "l1"),
    ],
)
@pytest.mark.sampled(2)
def test_levels(arguments: tuple[str, ...], size: int, cached_in: str) -> None:
    trial = on_stub("pointer_chase", *arguments, memory=1024 * MIB)
    assert trial.params["size_bytes"] == size and trial.params["cached_in"] == cached_in
    kernel = {"l1": "pointer_chase_ca", "l2": "pointer_chase_cg"}[cached_in]
    assert trial.facts["kernel"].startswith(kernel)


# ---- what is wrong is seen -------------------------------------------------------------------

# So large that a piece of work is one pass: two to calibrate, none in a ramp of no time, one then.
LARGE = 128 * MIB
LAST = 3
ONE_PASS = (f"--size-bytes={LARGE}", "--work=1", "--warmup-s=0")


def spoilt(workload: str, *arguments: str, **settings: str) -> str:
    env = environment(None, memory=1024 * MIB, **settings)
    result = call(workload, *ON_STUB, *(arguments or ONE_PASS), env=env)
    return refused(result, WRONG, "Stand-in 0", "do not trust")


def test_one_pass_is_one_pass() -> None:
    trial = measure("copy", *ON_STUB, *ONE_PASS, env=environment(memory=1024 * MIB))
    assert trial.metrics["work_bytes"] == 2 * LARGE


@pytest.mark.parametrize("workload", list(ARRAYS))
@pytest.mark.sampled(3)
def test_a_launch_that_does_nothing(workload: str) -> None:
    spoilt(workload, lazy=f"{workload}:{LAST}")


@pytest.mark.parametrize(
    ("workload", "argument"), [("read", 1), ("write", 0), ("copy", 1), ("triad", 0)]
)
@pytest.mark.sampled(3)
def test_a_wrong_bit(workload: str, argument: int) -> None:
    spoilt(workload, wrong=f"{workload}:{argument}:{LAST}")


@pytest.mark.parametrize(
    ("workload", "kernel"), [("write", "check"), ("copy", "check"), ("triad", "check_triad")]
)
@pytest.mark.sampled(3)
def test_the_host_looks_for_itself(workload: str, kernel: str) -> None:
    """A bit that changes right behind the check of the device."""
    assert "the result" in spoilt(workload, wrong=f"{kernel}:0:1")


def test_a_check_that_does_nothing() -> None:
    assert "groups count" in spoilt("write", lazy="check:1")


def test_a_copy_of_the_driver() -> None:
    spoilt("copy", *ONE_PASS, "--path=driver", lazy=f"memcpy:{LARGE}:{LAST}")
    spoilt("copy", *ONE_PASS, "--path=driver", wrong=f"memcpy:{LARGE}:{LAST}")


def test_a_walk_that_stops() -> None:
    """Launches go on where the last one ended: any of them shows. Where those that do nothing would
    have gone round the ring to the same place, their missing records do."""
    arguments = (SIZE, "--duration-s=0.1", "--warmup-s=0")
    for nth in (1, 9):
        line = spoilt("pointer_chase", *arguments, lazy=f"pointer_chase_cg:{nth}")
        assert "where the host's own walk ends" in line or (nth > 1 and "left no record" in line)


# What is done to the OpenCL source in a copy of the program: as long as what it replaces.
CHANGES = [
    ("read", "sum += v[k].x + v[k].y", "sum += v[k].x + v[k].x"),
    ("copy", "to[GLOBAL_ID] = from[GLOBAL_ID];", "to[GLOBAL_ID] = from[LOCAL_ID ];"),
    ("triad", "AS_FLOAT(v.w), AS_FLOAT(u.w)", "AS_FLOAT(u.w), AS_FLOAT(v.w)"),
    ("write", "EACH_VECTOR to[AT(k)] = pattern(seed, AT(k));\n    RECORD", None),
    ("pointer_chase", "CHASE4(load) CHASE4(load) CHASE4(load) CHASE4(load)", None),
]


@pytest.mark.parametrize(("workload", "before", "after"), CHANGES)
def test_another_kernel(tmp_path: Path, workload: str, before: str, after: str | None) -> None:
    """A kernel that does nearly what it should."""
    device = on_pocl()
    code = PROGRAM.read_bytes()
    if after is None:
        after = before.replace("CHASE4(load)", " " * len("CHASE4(load)"), 1)
        after = after.replace("pattern(seed, AT(k))", "pattern(seed, AT(0))")
    assert len(before) == len(after) and code.count(before.encode()) == 1
    changed = tmp_path / PROGRAM.name
    changed.write_bytes(code.replace(before.encode(), after.encode()))
    changed.chmod(0o755)
    refused(call(workload, *device, SIZE, *MOMENT, program=changed), WRONG, "do not trust")


# ---- sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "size", "parts"),
    [
        ("copy", "127", ['"127"', "128 to"]),
        ("copy", "65535", ["size_bytes 65535", "multiple of 32768", "use 32768"]),
        ("read", "1024", ["size_bytes 1024", "use 32768"]),
        ("pointer_chase", "1000", ["size_bytes 1000", "multiple of 128", "use 896"]),
        ("copy", "l2", ['"l2"', "auto"]),
    ],
)
def test_a_size_that_is_none(workload: str, size: str, parts: list[str]) -> None:
    refused(call(workload, *ON_STUB, f"--size-bytes={size}", env=environment()), USAGE, *parts)


@pytest.mark.parametrize("workload", [*ARRAYS, "pointer_chase"])
@pytest.mark.sampled(7)
def test_what_would_fit_does(workload: str) -> None:
    """More than the card has: the line says what would do, and that much is measured."""
    size = 1 << 40
    env = environment(memory=256 * MIB)
    line = refused(
        call(workload, *ON_STUB, f"--size-bytes={size}", env=env),
        RESOURCE,
        f"size_bytes {size}",
        "0.25 GiB",
        "nvidia-smi",
    )
    fits = int(line.split("--size-bytes=")[1].split()[0])
    arrays = ARRAYS.get(workload, 1)
    assert 0.5 * 256 * MIB < arrays * fits < 256 * MIB
    trial = measure(workload, *ON_STUB, f"--size-bytes={fits}", *MOMENT, env=env)
    assert trial.params["size_bytes"] == fits


@pytest.mark.parametrize("workload", list(ARRAYS))
@pytest.mark.sampled(7)
def test_auto_is_what_fits(workload: str) -> None:
    size = on_stub(workload, memory=256 * MIB).params["size_bytes"]
    assert size % MIB == 0 and 0.6 * 256 * MIB < ARRAYS[workload] * size < 256 * MIB


@pytest.mark.parametrize(
    ("memory", "taken", "size"),
    [
        (80 * GIB, 0, 2 * GIB),
        (16 * GIB, 0, 2 * GIB),
        (16 * GIB, 10 * GIB, 512 * MIB),  # three of 2 GiB would not fit
        (12 * GIB, 0, 512 * MIB),
    ],
)
def test_large_arrays_on_large_cards(tmp_path: Path, memory: int, taken: int, size: int) -> None:
    """Of the first of them, which then is not to be had: behind records and sums."""
    report = tmp_path / "report"
    env = environment(
        None, memory=memory, taken=taken, fail="cuMemAlloc_v2:3:2", report=str(report)
    )
    refused(call("triad", *ON_STUB, env=env), RESOURCE, "cuMemAlloc_v2")
    assert read_report(report).most["memory"] == size


def test_no_room_at_all() -> None:
    env = environment(memory=16 * MIB)
    refused(call("copy", *ON_STUB, env=env), RESOURCE, "too little for copy", "2 arrays")


def test_half_of_the_arrays_is_none() -> None:
    """The second one cannot be had, though it should fit."""
    env = environment(memory=1024 * MIB, fail="cuMemAlloc_v2:4:2")
    result = call("triad", *ON_STUB, SIZE, env=env)
    refused(result, RESOURCE, "cuMemAlloc_v2", "nvidia-smi")
    assert '"start"' not in result.stdout


def test_more_nodes_than_can_be_distinguished() -> None:
    arguments = ("pointer_chase", *ON_STUB, f"--size-bytes={(1 << 35) + 128}")
    line = refused(call(*arguments, env=environment(memory=1 << 45)), USAGE, "nodes")
    assert f"--size-bytes={1 << 35}" in line


def test_pocl_gives_no_more_than_it_has() -> None:
    device = on_pocl()
    (found,) = (one for one in devices() if f"--device={one['index']}" in device)
    size = found["memory_bytes"] // TILE * TILE
    refused(call("copy", *device, f"--size-bytes={size}"), RESOURCE, f"size_bytes {size}")


# ---- the table -------------------------------------------------------------------------------


def test_the_words_of_a_size() -> None:
    listed = json.loads(call("--list").stdout)["workloads"]
    words = {
        row["name"]: param["choices"]
        for row in listed
        for param in row["params"]
        if param["name"] == "size_bytes"
    }
    for workload in ARRAYS:
        assert words[workload] == ["auto"]
    assert words["pointer_chase"] == ["auto", "l1", "l2", "dram"]


def test_a_device_that_tells_no_cache() -> None:
    """What l2 stands for is unknown then."""
    for l2 in (0, 16384, 262143):
        result = call("pointer_chase", *ON_STUB, "--size-bytes=l2", env=environment(l2=l2))
        refused(result, UNSUPPORTED, "size_bytes l2", f"{l2} bytes", "262144", "give a number")
    assert on_stub("pointer_chase", "--size-bytes=l2", l2=262144).params["size_bytes"] == 32768


def test_the_l1_cache_of_what_opencl_alone_knows() -> None:
    trial = measure("pointer_chase", *on_pocl(), "--size-bytes=l1", *MOMENT)
    assert trial.params["size_bytes"] == 8192 and trial.params["cached_in"] == "l1"


def test_no_sample_while_a_trial_is_checked() -> None:
    """Looking at what is left takes longer than an interval here."""
    arguments = (f"--size-bytes={32 * MIB}", "--duration-s=0.35", "--sample-interval-s=0.1")
    trial = measure("copy", *ON_STUB, *arguments, "--warmup-s=0", env=environment())
    assert len(trial.samples) >= 2
    assert all(sample["t_s"] <= trial.end["elapsed_s"] + 1e-3 for sample in trial.samples)
