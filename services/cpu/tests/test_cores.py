"""The clock by the number of cores at work, and what the second thread of a core adds."""

import json
import os
import platform
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from services.cpu.limits import CLOCK_UNKNOWN, YIELD_UNKNOWN, trial_limits
from services.cpu.tests.identities import SAPPHIRE_RAPIDS_FLAGS, intel
from tests.benchmark import objects_of
from tests.compiled import STRICT
from tests.each import each
from tests.machine_code import ROOT, functions, loop, without

RUNG_PROBE = Path(__file__).with_name("rung_probe.c")
PAIR_PROBE = Path(__file__).with_name("pair_probe.c")
PROGRAM = ROOT / "build" / "release" / "cpu-bench"
UNSUPPORTED, WRONG = 4, 5
CPUS = sorted(os.sched_getaffinity(0))
SIBLINGS = Path("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list")
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs the x86-64 program")


def call(
    *arguments: str,
    duration_s: float = 0.1,
    before: tuple[str, ...] = (),
    program: Path = PROGRAM,
) -> subprocess.CompletedProcess[str]:
    brief = (f"--duration-s={duration_s}", "--warmup-s=0.02")
    command = [*before, str(program), *arguments, *brief]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def last(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return event


def ladder(*arguments: str, rungs: int, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """The end of a ladder with all its rungs; a loaded machine may keep one from its clock."""
    words = ("clock_ladder", "--isa=scalar", *arguments)
    tries = (last(call(*words, duration_s=0.4, before=before)) for _ in range(8))
    return next(end for end in tries if len(end["rungs"]) == rungs)


@two_cpus
def test_each_rung_has_one_cpu_more_and_a_clock() -> None:
    first, other = CPUS[-1], CPUS[0]
    end = ladder(f"--cpus={first},{other}", rungs=2)
    assert [rung["cpus"] for rung in end["rungs"]] == [[first], [first, other]]
    alone, both = (rung["value"] for rung in end["rungs"])
    metrics = end["metrics"]
    assert (metrics["clock_hertz_alone"], metrics["clock_hertz"]) == (alone, both)
    assert metrics["clock_hertz_lowest"] == min(alone, both)
    assert "clock_hertz_sum" not in metrics


@needs_x86
def test_the_clock_is_that_of_the_chain() -> None:
    """Within what the clock of a host in use may change by from one trial to the next."""
    alone = ladder("--threads=1", rungs=1)["metrics"]["clock_hertz"]
    # Other work may keep a chain from two readings that agree, too.
    chains = (last(call("clock", "--threads=1", duration_s=0.3)) for _ in range(8))
    best = next(filter(None, (chain["metrics"]["clock_hertz_best"] for chain in chains)))
    assert 0.7 * best < alone < 1.4 * best


CALL = "crew_call(thread->run, i);"


def linked(name: str, source: Path, folder: Path, *without: str) -> Path:
    """The program `name` of this source, and of the objects of cpu-bench without some."""
    left_out = {PROGRAM.parent / "services/cpu/bench" / f"{one}.o" for one in without}
    folders = [f"-I{ROOT / 'harness'}", f"-I{ROOT / 'services/cpu/bench'}"]
    objects = set(objects_of("cpu")) - left_out
    options = [*STRICT, "-pthread", *folders, "-o", str(folder / name)]
    subprocess.run(["gcc", *options, source, *objects, "-lm"], check=True)
    return folder / name


@two_cpus
def test_threads_that_get_no_cpu_leave_their_rung_out(tmp_path: Path) -> None:
    """As on a host whose CPUs others have: the second thread is never at work."""
    source = (ROOT / "services/cpu/bench/clock_ladder.c").read_text()
    assert source.count(CALL) == 1
    (tmp_path / "clock_ladder.c").write_text(source.replace(CALL, "(void)i;"))
    starved = linked("cpu-bench", tmp_path / "clock_ladder.c", tmp_path, "clock_ladder")
    cpus = f"--cpus={CPUS[0]},{CPUS[-1]}"
    result = call("clock_ladder", "--isa=scalar", cpus, program=starved)
    end = last(result)
    assert [rung["cpus"] for rung in end["rungs"]] == [[CPUS[0]]]
    assert end["metrics"]["clock_hertz"] == end["metrics"]["clock_hertz_alone"] > 0
    assert end["metrics"]["rungs_measured"] == 1
    assert [thread["clock_hertz"] for thread in end["threads"]] == [None, None]
    assert "no two readings in a row agreed" in end["reasons"]["threads.0.clock_hertz"]
    warnings = [json.loads(line) for line in result.stdout.splitlines() if '"warning"' in line]
    (message,) = (one["message"] for one in warnings if one["code"] == "top_rung_missing")
    assert message.endswith("clock_hertz is the clock with 1")


@pytest.fixture(scope="module")
def rung_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rungs")
    return linked("probe", RUNG_PROBE, folder, "clock_ladder", "main")


@each("threads", [1, 2, 33, 64, 192, 384])
def test_rungs_are_at_equal_distances_from_one_to_all(threads: int, rung_probe: Path) -> None:
    printed = subprocess.check_output([rung_probe, str(threads)], text=True)
    rungs = [int(line) for line in printed.split()]
    assert (rungs[0], rungs[-1], len(rungs)) == (1, threads, min(threads, 32))
    steps = [after - before for before, after in pairwise(rungs)]
    assert not steps or 1 <= min(steps) <= max(steps) <= min(steps) + 1


@pytest.fixture(scope="module")
def pair_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked("probe", PAIR_PROBE, tmp_path_factory.mktemp("pairs"), "core_to_core", "main")


@each("threads", [2, 3, 63, 64, 65, 96, 256, 384, 4096])
def test_of_many_cpus_some_pairs_are_played_and_each_cpu_as_often(
    threads: int, pair_probe: Path
) -> None:
    printed = subprocess.check_output([pair_probe, str(threads)], text=True)
    pairs = [sorted(map(int, line.split())) for line in printed.splitlines()]
    all_pairs = threads * (threads - 1) // 2
    assert len({tuple(pair) for pair in pairs}) == len(pairs)
    assert len(pairs) == all_pairs if threads <= 64 else 1000 < len(pairs) <= max(2016, threads)
    times = Counter(thread for pair in pairs for thread in pair)
    assert len(times) == threads and len(set(times.values())) == 1


def test_one_cpu_has_one_rung() -> None:
    end = ladder(rungs=1, before=("taskset", "-c", str(CPUS[0])))
    assert end["metrics"]["rungs_measured"] == 1
    assert end["rungs"][0]["cpus"] == [CPUS[0]]


def test_threads_that_share_a_cpu_are_no_step_of_a_ladder() -> None:
    result = call("clock_ladder", f"--threads={len(CPUS) + 1}")
    assert result.returncode == UNSUPPORTED
    assert "one thread per CPU" in last(result)["reason"]


@needs_x86
def test_a_class_of_another_architecture_is_skipped() -> None:
    result = call("clock_ladder", "--isa=sve")
    assert result.returncode == UNSUPPORTED
    assert last(result)["reason"] == "sve needs an aarch64 CPU"


@needs_x86
@each("workload", ["clock_ladder", "smt_yield"])
def test_a_missing_instruction_exits_5(workload: str, tmp_path: Path) -> None:
    kernel = {"clock_ladder": "fma_fp64_scalar", "smt_yield": "int_add_int64_avx2"}[workload]
    arguments = {"clock_ladder": ["--isa=scalar"], "smt_yield": ["--kernel=int_add"]}[workload]
    healthy = call(workload, *arguments)
    if healthy.returncode == UNSUPPORTED or last(healthy)["event"] == "skip":
        pytest.skip(f"not on this host: {healthy.stderr.strip()}")
    broken = tmp_path / "cpu-bench"
    without([loop(functions("release", PROGRAM.name)[f"{kernel}_loop"])[1]], PROGRAM, broken)
    result = call(workload, *arguments, program=broken)
    assert result.returncode == WRONG
    assert last(result)["code"] == "wrong_result"


def test_without_siblings_there_is_no_yield() -> None:
    result = call("smt_yield", before=("taskset", "-c", str(CPUS[0])))
    assert result.returncode == UNSUPPORTED
    assert "SMT is off, or a hypervisor or a cpuset hides" in last(result)["reason"]


@two_cpus
@each("kernel", ["fma", "int_add", "chain"])
def test_two_threads_of_a_core_are_found_and_measured(kernel: str, tmp_path: Path) -> None:
    """Two CPUs that the kernel's files call siblings, in a mount namespace of this test."""
    first, second = CPUS[:2]
    (tmp_path / "siblings").write_text(f"{first},{second}\n")
    mounts = " && ".join(
        f"mount --bind {tmp_path}/siblings {str(SIBLINGS).format(cpu)}" for cpu in (first, second)
    )
    space = (
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'{mounts} && exec "$@"',
        "-",
    )
    if subprocess.run([*space, "true"], capture_output=True).returncode:
        pytest.skip("no user namespace, or no topology in /sys")
    alone = call("smt_yield", f"--cpus={second}", before=space)
    assert alone.returncode == UNSUPPORTED
    assert f"the SMT sibling of CPU {second}" in last(alone)["reason"]
    cpus = f"--cpus={first},{second}"
    end = last(call("smt_yield", f"--kernel={kernel}", cpus, duration_s=0.4, before=space))
    metrics = end["metrics"]
    assert 0.5 < metrics["yield_ratio"] < 4
    alone, together = (metrics[f"operations_per_second_{name}"] for name in ("alone", "siblings"))
    assert together / alone == pytest.approx(metrics["yield_ratio"], rel=0.5)
    assert metrics["cores_ratio"] is None
    assert end["reasons"]["metrics.cores_ratio"] == "all threads of this trial run on one core"
    assert [thread["yield_ratio"] for thread in end["threads"]] == [metrics["yield_ratio"], None]
    reason = end["reasons"]["threads.1.yield_ratio"]
    assert reason == "the yield belongs to two threads together; the first thread reports it"


@each(
    ("workload", "metric", "reason"),
    [
        ("clock_ladder", "clock_hertz", CLOCK_UNKNOWN),
        ("smt_yield", "yield_ratio", YIELD_UNKNOWN),
    ],
)
def test_there_is_no_limit_and_a_reason(workload: str, metric: str, reason: str) -> None:
    limit = trial_limits(intel(143, SAPPHIRE_RAPIDS_FLAGS), workload, {}, {}, 2)[metric]
    assert (limit.value, limit.reason) == (None, reason)
