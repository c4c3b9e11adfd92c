"""gemm and linpack over a BLAS: which one, any order, wrong results, threads, endings.

A stand-in for the system's library, which hands on to the real one and misbehaves on request, is
found by the program through LD_LIBRARY_PATH.
"""

import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.machine_code import ROOT

PROGRAM = ROOT / "build" / "release" / "cpu-bench"
SHIM = Path(__file__).with_name("openblas_shim.c")
OK, FAILED, RESOURCE, UNSUPPORTED, WRONG = 0, 1, 3, 4, 5
MOMENT = ("--duration-s", "0.02", "--warmup-s", "0")
SYSTEM = ("--library", "system")
RATES = {name: f"operations_per_second_{name}" for name in ("pinned", "system", "blis")}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program; the choice of kernels is its own unless `environment` makes it."""
    return run_program(PROGRAM, *arguments, **environment)


def run_program(
    program: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a copy of the program, which looks for the pinned library beside itself."""
    inherited = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        env={**inherited, **environment},
    )


def events(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == OK, result.stderr
    return {event["event"]: event for event in map(json.loads, result.stdout.splitlines())}


def refused(result: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    """One line that holds all parts, and no figure."""
    assert result.returncode == code, result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["event"] == ("skip" if code == UNSUPPORTED else "error")
    assert len(result.stderr.splitlines()) == 1
    for part in parts:
        assert part in result.stderr


@pytest.fixture(scope="module")
def openblas() -> str:
    """The system's real library, as the program names it."""
    (library,) = events(run("gemm", "--n", "8", *SYSTEM, *MOMENT))["start"]["libraries"]
    return str(library["path"])


@pytest.fixture(scope="module")
def shim(openblas: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment in which the program finds the stand-in."""
    if platform.machine() != "x86_64":
        pytest.skip("the stand-in is written for x86-64")
    directory = tmp_path_factory.mktemp("openblas")
    target = directory / "libopenblas.so.0"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", target, SHIM], check=True)
    return {"LD_LIBRARY_PATH": str(directory), "REAL_OPENBLAS": openblas}


# One thread, a grid of one row, and one of two rows, whose panels are factored together.
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 400])
@pytest.mark.parametrize("workload", ["gemm", "linpack"])
@pytest.mark.sampled(11)
def test_any_order_is_right(workload: str, n: int, threads: int) -> None:
    end = events(run(workload, "--n", str(n), "--threads", str(threads), *SYSTEM, *MOMENT))["end"]
    assert end["verified"] is True
    assert 0 <= end["metrics"]["residual"] < 16
    assert len(end["threads"]) == threads


def test_order_1000_and_its_operations() -> None:
    n = 1000
    metrics = events(run("linpack", "--n", str(n), "--work", "1", "--threads", "1", *SYSTEM))["end"]
    assert metrics["metrics"]["work_operations"] == int(2 / 3 * n**3 + 3 / 2 * n**2)
    # A residual of exactly zero would mean that nothing was compared.
    assert 0 < metrics["metrics"]["residual"] < 1
    end = events(run("gemm", "--n", str(n), "--work", "1", "--threads", "1", *SYSTEM))["end"]
    assert end["metrics"]["work_operations"] == 2 * n**3
    assert 0 < end["metrics"]["residual"] < 8


def test_orders_are_right_with_blis() -> None:
    probe = run("gemm", "--n", "8", "--library", "blis", *MOMENT)
    if probe.returncode == UNSUPPORTED:
        pytest.skip(probe.stderr.strip())
    for workload, n, threads in itertools.product(("gemm", "linpack"), (1, 65, 400), (1, 2, 4)):
        size = ("--n", str(n), "--threads", str(threads))
        found = events(run(workload, *size, "--library", "blis", *MOMENT))
        assert found["start"]["libraries"][0]["name"] == "BLIS"
        assert found["end"]["verified"] is True


@pytest.mark.parametrize("nb", [1, 7, 64, 1000])
@pytest.mark.sampled(2)
def test_any_block_size_is_right(nb: int) -> None:
    start_and_end = events(run("linpack", "--n", "150", "--nb", str(nb), *SYSTEM, *MOMENT))
    assert start_and_end["start"]["params"]["nb"] == nb
    assert start_and_end["end"]["verified"] is True


def test_the_library_is_named(openblas: str) -> None:
    (library,) = events(run("linpack", "--n", "8", *SYSTEM, *MOMENT))["start"]["libraries"]
    assert library["name"] == "OpenBLAS"
    assert library["version"][0].isdigit()
    assert Path(openblas).is_file()
    assert " kernels; OpenBLAS " in library["detail"]


@pytest.mark.parametrize("workload", ["gemm", "linpack"])
def test_best_is_the_fastest_of_those_that_are_there(workload: str) -> None:
    found = events(run(workload, "--n", "8", *MOMENT))
    chosen, metrics = found["start"]["params"]["library"], found["end"]["metrics"]
    rates = {name: metrics[rate] for name, rate in RATES.items() if metrics.get(rate)}
    assert rates["system"] > 1e8
    # Two that are within 2 % are equal, and the first of them is taken.
    assert rates[chosen] > 0.97 * max(rates.values())
    given = events(run(workload, "--n", "8", "--library", chosen, *MOMENT))
    assert given["start"]["libraries"] == found["start"]["libraries"]
    assert given["end"]["metrics"][RATES[chosen]] is None


def test_the_pinned_library_is_the_one_of_the_lock_file() -> None:
    if not (ROOT / "build/openblas/installed").exists():
        pytest.skip("its wheel could not be had when the programs were built")
    locked = (ROOT / "requirements/openblas.txt").read_text()
    for workload in ("gemm", "linpack"):
        found = events(run(workload, "--n", "300", "--library", "pinned", *MOMENT))
        (library,) = found["start"]["libraries"]
        assert f"scipy-openblas32=={library['version']} " in locked
        assert Path(library["path"]).is_relative_to(ROOT / "build" / "openblas")
        assert found["end"]["verified"] is True


def test_without_the_pinned_library_the_system_s_is_taken_and_named(
    tmp_path: Path, openblas: str
) -> None:
    program = tmp_path / "bin" / "cpu-bench"
    program.parent.mkdir()
    shutil.copy(PROGRAM, program)
    found = events(run_program(program, "gemm", "--n", "8", *MOMENT))
    assert found["start"]["params"]["library"] in ("system", "blis")
    refused(
        run_program(program, "gemm", "--library", "pinned"),
        UNSUPPORTED,
        "libscipy_openblas.so",
        "make programs",
    )


def test_a_wheel_that_cannot_be_had_is_no_failure(tmp_path: Path) -> None:
    result = subprocess.run(
        [ROOT / "scripts" / "openblas.sh", tmp_path / "openblas"],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0
    last = result.stderr.splitlines()[-1]
    assert "the system's library (libopenblas0-pthread)" in last and "OPENBLAS=none" in last
    assert not (tmp_path / "openblas" / "installed").exists(), "the next make tries again"


def test_make_with_openblas_none_fetches_no_library() -> None:
    def commands(*words: str) -> str:
        call = ["make", "--dry-run", "--always-make", *words, "programs-release"]
        return subprocess.check_output(call, cwd=ROOT, text=True)

    assert "scripts/openblas.sh" in commands()
    assert "scripts/openblas.sh" not in commands("OPENBLAS=none")
    assert "scripts/openblas.sh" not in commands("SUBSYSTEMS=mem")


def test_kernels_chosen_by_the_environment_are_named() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("these kernels are for x86-64")
    found = events(run("gemm", "--n", "8", *SYSTEM, *MOMENT, OPENBLAS_CORETYPE="NEHALEM"))
    assert found["start"]["libraries"][0]["detail"].startswith(
        "Nehalem kernels chosen by OPENBLAS_CORETYPE=NEHALEM; "
    )
    assert "warning" not in found


def test_kernels_that_leave_the_cpu_unused_are_mended(shim: Mapping[str, str]) -> None:
    flags = Path("/proc/cpuinfo").read_text()
    if "avx2" not in flags:
        pytest.skip("a Prescott's kernels are the right ones here")
    found = events(run("gemm", "--n", "8", *SYSTEM, *MOMENT, **shim, SHIM_CORE="Prescott"))
    core = "SKYLAKEX" if "avx512bw" in flags else "HASWELL"
    (library,) = found["start"]["libraries"]
    wide = ("SkylakeX", "Haswell")
    assert library["detail"].startswith(
        tuple(
            f"{kernels} kernels chosen by OPENBLAS_CORETYPE={core} instead of its own choice, "
            "Prescott; "
            for kernels in wide
        )
    )
    assert found["warning"]["code"] == "blas_kernels"
    assert f"OPENBLAS_CORETYPE={core}" in found["warning"]["message"]
    own = events(run("gemm", "--n", "8", *SYSTEM, *MOMENT, **shim, OPENBLAS_CORETYPE="NEHALEM"))[
        "start"
    ]["libraries"][0]
    assert own["detail"].startswith("Nehalem kernels chosen by OPENBLAS_CORETYPE=NEHALEM; ")


def test_a_library_that_crashes_gives_no_figure(shim: Mapping[str, str]) -> None:
    result = run("gemm", "--n", "8", *SYSTEM, *MOMENT, **shim, SHIM_CRASH="1")
    refused(result, WRONG, "crashes on this CPU (Illegal instruction)", "use another --library")
    named = run(
        "gemm", "--n", "8", *SYSTEM, *MOMENT, **shim, SHIM_CRASH="1", OPENBLAS_CORETYPE="HASWELL"
    )
    refused(named, WRONG, "another OPENBLAS_CORETYPE than HASWELL")


@pytest.mark.parametrize("fault", [{"SHIM_CRASH": "1"}, {"SHIM_ERROR": "1e-9"}])
@pytest.mark.sampled(2)
def test_best_passes_over_a_library_that_does_not_work(
    shim: Mapping[str, str], fault: Mapping[str, str]
) -> None:
    if not (ROOT / "build/openblas/installed").exists():
        pytest.skip("there is no other library")
    found = events(run("gemm", "--n", "8", *MOMENT, **shim, **fault))
    assert found["start"]["params"]["library"] != "system"
    assert found["warning"]["code"] == "blas_broken"
    assert "passed over: OpenBLAS " in found["warning"]["message"]


def test_more_threads_than_one_library_can_be_called_by() -> None:
    """OpenBLAS is built for so many callers at once; hosts have more CPUs."""
    for library in ("system", "pinned"):
        arguments = ("--n", "400", "--threads", "384", "--library", library, *MOMENT)
        for workload in ("gemm", "linpack"):
            result = run(workload, *arguments)
            if result.returncode != UNSUPPORTED:
                assert events(result)["end"]["verified"] is True
                assert not [line for line in result.stderr.splitlines() if "OpenBLAS" in line]


def test_an_order_that_takes_the_time() -> None:
    def order(*arguments: str) -> int:
        found = events(run("linpack", "--n", "auto", "--warmup-s", "0", *arguments))["start"]
        return int(found["params"]["n"])

    short, long = (order("--threads", "1", "--duration-s", time_s) for time_s in ("0.02", "0.4"))
    # Twenty times the time is 2.7 times the order.
    assert short % 100 == long % 100 == 0
    assert 1.4 * short < long < 6 * short


def test_the_stand_in_alone_does_no_harm(shim: Mapping[str, str]) -> None:
    for workload in ("gemm", "linpack"):
        found = events(run(workload, "--n", "300", *SYSTEM, *MOMENT, **shim))
        assert found["end"]["verified"] is True


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("linpack", "--n", "400", "--threads", "1"), "1e-3"),
        (("linpack", "--n", "400", "--threads", "2"), "1e-3"),
        (("linpack", "--n", "400", "--threads", "2"), "nan"),
        (("linpack", "--n", "400", "--threads", "4"), "nan"),
        (("gemm", "--n", "300", "--threads", "1"), "1e-9"),
        (("gemm", "--n", "300", "--threads", "2"), "1e-9"),
        (("gemm", "--n", "300", "--threads", "2"), "nan"),
        (("gemm", "--n", "300", "--dtype", "fp32"), "0.1"),
        (("gemm", "--n", "40"), "1e-9"),
    ],
)
def test_one_wrong_element_exits_5(
    shim: Mapping[str, str], arguments: tuple[str, ...], error: str
) -> None:
    result = run(*arguments, *SYSTEM, *MOMENT, **shim, SHIM_ERROR=error)
    refused(result, WRONG, "is wrong", f"n {arguments[2]}", "do not trust")
    assert '"end"' not in result.stdout


@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.sampled(2)
def test_threads_are_ours_whatever_the_environment_says(variable: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this host has one CPU only")
    arguments = ("linpack", "--n", "2000", "--threads", "2", "--duration-s", "0.3")
    found = events(run(*arguments, "--warmup-s", "0", **{variable: "8"}))["end"]
    first, second = (thread["cpu_s"] for thread in found["threads"])
    assert min(first, second) > 0.2 * max(first, second), "one thread did all the work"


def test_threads_of_the_library_are_noticed(shim: Mapping[str, str]) -> None:
    result = run("gemm", "--threads", "1", "--n", "1500", *SYSTEM, **shim, SHIM_THREADS="1")
    refused(result, FAILED, "1 threads were requested and 2 have worked", "libopenblas0-pthread")


def test_a_library_for_one_thread(shim: Mapping[str, str]) -> None:
    build = {**shim, "SHIM_CONFIG": "OpenBLAS 0.3.21 DYNAMIC_ARCH SINGLE_THREADED"}
    result = run("linpack", "--threads", "2", "--n", "100", *SYSTEM, *MOMENT, **build)
    refused(result, RESOURCE, "2 threads", "one thread only", "--threads 1")
    assert events(run("linpack", "--threads", "1", "--n", "100", *SYSTEM, *MOMENT, **build))["end"]


def test_a_library_with_wide_integers(shim: Mapping[str, str]) -> None:
    result = run("gemm", "--n", "8", *SYSTEM, **shim, SHIM_CONFIG="OpenBLAS 0.3.21 USE64BITINT")
    refused(result, UNSUPPORTED, "64-bit integers", "libopenblas0-pthread")


def test_no_library_is_a_skip_that_names_the_package(tmp_path: Path) -> None:
    for name in ("libopenblas.so.0", "libopenblas.so", "libblis.so.4"):
        (tmp_path / name).write_bytes(b"no library")
    program = tmp_path / "cpu-bench"
    shutil.copy(PROGRAM, program)
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    result = run_program(program, "linpack", **environment)
    refused(result, UNSUPPORTED, "libopenblas.so.0", "libopenblas0-pthread", "make programs")
    listed = json.loads(run_program(program, "--list", **environment).stdout)
    reasons = {workload["name"]: workload["unsupported"] for workload in listed["workloads"]}
    assert "libopenblas0-pthread" in reasons["gemm"]
    assert reasons["fma"] is None


def test_no_memory_for_this_order() -> None:
    result = run("linpack", "--n", "1000000")
    refused(result, RESOURCE, "--n 1000000 needs 7.", "TiB of memory", "n that fits is ")


def test_more_threads_than_cpus_share_them() -> None:
    found = events(run("linpack", "--n", "300", "--threads", "5", *SYSTEM, *MOMENT))
    assert found["start"]["placement"]["oversubscribed"] == (len(os.sched_getaffinity(0)) < 5)
    assert found["end"]["verified"] is True


def test_samples_follow_a_long_factorisation() -> None:
    # Some seconds of work on one core of today, in 70 parts; its samples come while it runs.
    with subprocess.Popen(
        [PROGRAM, "linpack", "--n", "7000", "--nb", "100", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        events = map(json.loads, process.stdout)
        assert next(events)["event"] == "start"
        samples = (event["metrics"] for event in events if event["event"] == "sample")
        # On a loaded machine nothing may be finished in the first interval, and none of its slices
        # may tell the clock.
        figures = ("operations_per_second", "clock_hertz")
        sample = next(one for one in samples if None not in map(one.get, figures))
        process.terminate()
    assert all(sample[figure] > 1e8 for figure in figures)
    assert sample["clean_slice_ratio"] is None


@pytest.mark.parametrize("workload", ["gemm", "linpack"])
@pytest.mark.parametrize("after_s", [0.3, 1.0])
@pytest.mark.sampled(3)
def test_sigterm_ends_it_in_mid_step(workload: str, after_s: float) -> None:
    with subprocess.Popen(
        [PROGRAM, workload, "--n", "9000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGTERM)
        signalled_s = time.monotonic()
        output, _ = process.communicate(timeout=60)
        # Within a second where it has its CPUs; a step takes many.
        assert time.monotonic() - signalled_s < 5
    assert process.returncode == FAILED
    assert json.loads(output.splitlines()[-1])["code"] == "interrupted"
