"""What peers print, recorded from real versions, becomes their figure or a clear reason."""

import contextlib
import itertools
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Peer
from hostbench.programs.tools.hpcc import MEMORY, blas_of, grid, is_reference_blas, lacking_memory
from hostbench.programs.tools.pages import SETTING, TUNABLE
from services.cpu.peers import TOOLS, peers
from services.cpu.peers.hpcc import dgemm_n, hpl_n_of_dgemm

Params = dict[str, ParamValue]
PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
RECORDED = Path(__file__).with_name("recorded")
# Debian 12: likwid 5.2.2, stress-ng 0.15.06, sysbench 1.0.20, hpcc 1.5.0. Debian 13: likwid 5.4.1,
# stress-ng 0.19.02, sysbench 1.0.20.
RELEASES = ("bookworm", "trixie")
TWO = Beside(cpus=(0, 1), rate=200e9, elapsed_s=0.5)
FMA: Params = {"dtype": "fp64", "isa": "avx512", "threads": 2}
ADDITIONS: Params = {"dtype": "fp64", "isa": "scalar", "threads": 2}
WIDE_ADDITIONS: Params = {"dtype": "fp64", "isa": "avx512", "threads": 2}
GETPPID: tuple[str, Params] = ("syscall", {"call": "getppid", "threads": 1})
TIMER: tuple[str, Params] = ("wakeup", {"by": "timer", "on": "same_cpu"})


def recorded(release: str, name: str) -> str:
    return (RECORDED / release / f"{name}.txt").read_text()


def peer(tool: str, workload: str, **params: ParamValue) -> Peer:
    return next(one for one in peers(workload, params) if one.tool == tool)


def tools(workload: str, **params: ParamValue) -> list[str]:
    return [one.tool for one in peers(workload, params)]


def answers(known: dict[tuple[str, ...], str]) -> Callable[[Sequence[str]], str]:
    return lambda command: known.get(tuple(command), "")


@pytest.mark.parametrize(
    ("workload", "params", "expected"),
    [
        ("clock", {}, ["stress-ng", "sysbench"]),
        ("fma", FMA, ["likwid-bench"]),
        ("fma", FMA | {"isa": "best"}, ["likwid-bench"]),
        ("fma", FMA | {"isa": "scalar"}, []),
        ("fma", FMA | {"isa": "sse2"}, []),
        ("fma", FMA | {"dtype": "fp16"}, []),
        ("mul_add", FMA | {"isa": "scalar"}, ["likwid-bench"]),
        ("mul_add", FMA | {"isa": "sse2", "dtype": "fp32"}, ["likwid-bench"]),
        ("add_sub", ADDITIONS, ["stress-ng"]),
        ("add_sub", ADDITIONS | {"isa": "avx2"}, []),
        ("add_sub", ADDITIONS | {"dtype": "int32"}, []),
        ("linpack", {"n": 8000, "threads": 2}, ["hpcc"]),
        ("gemm", {"n": 4096, "dtype": "fp64", "threads": 2}, ["hpcc"]),
        ("gemm", {"n": 4096, "dtype": "fp32", "threads": 2}, []),
        ("linpack", {"threads": 2}, []),
        ("syscall", {"call": "getppid", "threads": 1}, ["perf"]),
        ("syscall", {"call": "getppid", "threads": 2}, []),
        ("syscall", {"call": "read", "threads": 1}, []),
        ("context_switch", {"by": "pipe", "between": "threads"}, ["perf"]),
        ("context_switch", {"by": "futex", "between": "threads"}, []),
        ("wakeup", {"by": "timer", "on": "same_cpu"}, ["cyclictest"]),
        ("wakeup", {"by": "futex", "on": "same_cpu"}, []),
        ("nothing", {}, []),
    ],
)
def test_what_stands_beside_what(workload: str, params: Params, expected: list[str]) -> None:
    assert tools(workload, **params) == expected
    assert set(expected) <= set(TOOLS)


def test_only_hpcc_is_not_light() -> None:
    beside = (peers("clock", {}), peers("fma", FMA), peers(*GETPPID), peers(*TIMER))
    light = {one.tool for one in itertools.chain(*beside) if one.light}
    assert light == set(TOOLS) - {"hpcc"}
    assert not peer("hpcc", "linpack", n=100).light


@pytest.mark.parametrize(
    ("workload", "isa", "dtype", "kernel"),
    [
        ("fma", "avx2", "fp64", "peakflops_avx_fma"),
        ("fma", "avx2", "fp32", "peakflops_sp_avx_fma"),
        ("fma", "avx512", "fp64", "peakflops_avx512_fma"),
        ("fma", "avx512", "fp32", "peakflops_sp_avx512_fma"),
        ("mul_add", "scalar", "fp64", "peakflops"),
        ("mul_add", "scalar", "fp32", "peakflops_sp"),
        ("mul_add", "sse2", "fp64", "peakflops_sse"),
        ("mul_add", "sse2", "fp32", "peakflops_sp_sse"),
        ("mul_add", "avx2", "fp64", "peakflops_avx"),
        ("mul_add", "avx512", "fp32", "peakflops_sp_avx512"),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_likwid_has_every_kernel_that_is_requested(
    release: str, workload: str, isa: str, dtype: str, kernel: str
) -> None:
    one = peer("likwid-bench", workload, isa=isa, dtype=dtype)
    assert one.title == kernel
    ask = answers(
        {
            ("likwid-bench", "-v"): recorded(release, "likwid-version"),
            ("likwid-bench", "-a"): recorded(release, "likwid-kernels"),
        }
    )
    survey = one.survey(ask, TWO)
    assert survey.version == {"bookworm": "5.2.2", "trixie": "5.4.1"}[release]
    assert survey.unsupported is None


def test_a_kernel_that_this_likwid_lacks() -> None:
    one = peer("likwid-bench", "fma", isa="neon", dtype="fp64")
    ask = answers({("likwid-bench", "-a"): recorded("bookworm", "likwid-kernels")})
    unsupported = one.survey(ask, TWO).unsupported
    assert unsupported is not None and "has no kernel peakflops_neon_fma" in unsupported


def test_likwid_runs_as_long_as_ours_on_our_cpus() -> None:
    command = (
        peer("likwid-bench", "fma", **FMA)
        .command(Beside(cpus=(3, 1), rate=200e9, elapsed_s=0.5))
        .arguments
    )
    assert command[:5] == ("taskset", "--cpu-list", "1,3", "likwid-bench", "-t")
    assert command[-2:] == ("-W", "N:40kB:2")
    iterations = int(command[command.index("-i") + 1])
    # bench/x86-64/peakflops_avx512_fma.ptt: 30 operations on each of 2 x 2500 elements.
    assert iterations * 5000 * 30 == pytest.approx(200e9 * 0.5, rel=1e-3)


@pytest.mark.parametrize(("tool", "workload"), [("likwid-bench", "fma"), ("hpcc", "linpack")])
def test_more_threads_than_cpus_cannot_be_pinned(tool: str, workload: str) -> None:
    one = peer(tool, workload, **(FMA | {"n": 100}))
    crowded = Beside(cpus=(0, 1, 0, 1), rate=1e9, elapsed_s=1)
    unsupported = one.survey(answers({}), crowded).unsupported
    assert unsupported is not None and "4 threads on 2" in unsupported


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("tool", "workload", "params", "name", "low", "high"),
    [
        ("likwid-bench", "fma", FMA, "likwid-run", 1e10, 3e11),
        ("stress-ng", "add_sub", ADDITIONS, "stress-ng-fp", 1e9, 2e10),
        ("stress-ng", "add_sub", WIDE_ADDITIONS, "stress-ng-vecfp", 1e9, 1e11),
        ("stress-ng", "clock", {}, "stress-ng-cpu", 1e2, 1e5),
        ("sysbench", "clock", {}, "sysbench-run", 1e2, 1e5),
    ],
)
def test_recorded_output_has_its_figure(
    release: str,
    tool: str,
    workload: str,
    params: Params,
    name: str,
    low: float,
    high: float,
) -> None:
    one = peer(tool, workload, **params)
    value = one.parse(recorded(release, name), TWO)
    assert low < value < high


def test_the_figures_are_those_that_stand_there() -> None:
    likwid = recorded("bookworm", "likwid-run")
    (line,) = [line for line in likwid.splitlines() if line.startswith("MFlops/s")]
    one = peer("likwid-bench", "fma", **FMA)
    assert one.parse(likwid, TWO) == float(line.split()[1]) * 1e6
    wide = recorded("trixie", "stress-ng-vecfp")
    (printed,) = [line for line in wide.splitlines() if "Mfp-ops/sec" in line]
    # Its own figure is the mean of two instances, over the time inside its loops.
    own = 2e6 * float(printed.split()[4])
    assert peer("stress-ng", "add_sub", **WIDE_ADDITIONS).parse(wide, TWO) == pytest.approx(
        own, rel=0.05
    )


@pytest.mark.parametrize(
    ("tool", "workload", "params", "name", "old", "new", "part"),
    [
        ("likwid-bench", "fma", FMA, "likwid-run", "MFlops/s:", "MFlop:", "no MFlops/s"),
        ("likwid-bench", "fma", FMA, "likwid-run", "hwthread 1 ", "hwthread 0 ", "[0, 0]"),
        ("likwid-bench", "fma", FMA, "likwid-run", "Test: peak", "Test: leak", "leakflops"),
        ("stress-ng", "add_sub", ADDITIONS, "stress-ng-fp", "hogs: 2", "hogs: 1", "instances 1"),
        ("stress-ng", "add_sub", ADDITIONS, "stress-ng-fp", "double add", "float add", "no Mfp"),
        ("stress-ng", "clock", {}, "stress-ng-cpu", " cpu ", " gpu ", "bogo ops"),
        ("sysbench", "clock", {}, "sysbench-run", "threads: 2", "threads: 1", "threads 1"),
        ("sysbench", "clock", {}, "sysbench-run", "per second: ", "per second: x", "no events"),
    ],
)
def test_output_that_is_not_of_the_run_we_requested(
    tool: str,
    workload: str,
    params: Params,
    name: str,
    old: str,
    new: str,
    part: str,
) -> None:
    output = recorded("bookworm", name)
    assert old in output
    with pytest.raises(BadOutput, match=re.escape(part)):
        peer(tool, workload, **params).parse(output.replace(old, new), TWO)


@pytest.mark.parametrize("tool", TOOLS[:3])
def test_output_cut_at_any_line_is_a_figure_or_a_reason(tool: str) -> None:
    one, name = {
        "likwid-bench": (peer("likwid-bench", "fma", **FMA), "likwid-run"),
        "stress-ng": (peer("stress-ng", "add_sub", **ADDITIONS), "stress-ng-fp"),
        "sysbench": (peer("sysbench", "clock"), "sysbench-run"),
    }[tool]
    lines = recorded("trixie", name).splitlines(keepends=True)
    whole = one.parse("".join(lines), TWO)
    for count in range(len(lines)):
        with contextlib.suppress(BadOutput):
            assert one.parse("".join(lines[:count]), TWO) == whole


@pytest.mark.parametrize(("elapsed_s", "seconds"), [(0.05, 1), (0.5, 1), (1.6, 2), (600, 600)])
def test_whole_seconds_are_never_none(elapsed_s: float, seconds: int) -> None:
    """stress-ng runs forever when it gets 0."""
    beside = Beside(cpus=(0,), rate=1.0, elapsed_s=elapsed_s)
    assert f"{seconds}s" in peer("stress-ng", "clock").command(beside).arguments
    assert f"--time={seconds}" in peer("sysbench", "clock").command(beside).arguments


@pytest.mark.parametrize(
    ("tool", "workload", "question", "name", "versions"),
    [
        ("stress-ng", "clock", ("stress-ng", "--version"), "stress-ng-version", "0.15.06 0.19.02"),
        ("sysbench", "clock", ("sysbench", "--version"), "sysbench-version", "1.0.20 1.0.20"),
    ],
)
def test_versions(
    tool: str, workload: str, question: tuple[str, ...], name: str, versions: str
) -> None:
    for release, version in zip(RELEASES, versions.split(), strict=True):
        ask = answers({question: recorded(release, name)})
        assert peer(tool, workload).survey(ask, TWO).version == version
    assert peer(tool, workload).survey(answers({}), TWO).version is None


@pytest.mark.parametrize(
    ("between", "name", "rate", "loop_us"),
    [
        ("processes", "perf-pipe", 3e-6, 6.4275),
        ("threads", "perf-pipe-threads", 3e-6, 5.335),
    ],
)
def test_half_a_round_trip_of_perf_is_a_hand_over(
    between: str, name: str, rate: float, loop_us: float
) -> None:
    one = peer("perf", "context_switch", by="pipe", between=between)
    beside = Beside(cpus=(1,), rate=rate, elapsed_s=2000 * 2 * rate)
    flag = ("-T",) if between == "threads" else ()
    assert one.command(beside).arguments == (
        *("taskset", "--cpu-list", "1", "perf", "bench", "sched", "pipe", *flag, "-l", "2000"),
    )
    output = recorded("bookworm", name)
    assert one.parse(output, beside) == pytest.approx(loop_us * 1e-6 / 2)
    other = recorded(
        "bookworm", {"processes": "perf-pipe-threads", "threads": "perf-pipe"}[between]
    )
    longer = beside.model_copy(update={"elapsed_s": beside.elapsed_s * 2})
    for text, at in ((other, beside), (output, longer), (output.replace("usecs", "secs"), beside)):
        with pytest.raises(BadOutput):
            one.parse(text, at)


def test_perf_calls_getppid_as_often_as_ours() -> None:
    one = peer("perf", GETPPID[0], **GETPPID[1])
    beside = Beside(cpus=(0,), rate=2e-7, elapsed_s=0.02)
    assert one.command(beside).arguments[3:] == (
        "perf",
        "bench",
        "syscall",
        "basic",
        "-l",
        "100000",
    )
    assert one.parse(recorded("bookworm", "perf-syscall"), beside) == pytest.approx(0.16972e-6)
    for elapsed_s, rate, loops in (
        (3600.0, 2e-7, 2**31 - 1),
        (0.1, 0.0, 2**31 - 1),
        (0.0, 0.0, 100),
    ):
        other = Beside(cpus=(0,), rate=rate, elapsed_s=elapsed_s)
        assert one.command(other).arguments[-1] == str(loops)
    ask = answers({("perf", "version"): recorded("bookworm", "perf-version")})
    assert one.survey(ask, beside).version == "6.1.187"
    unsupported = one.survey(answers({}), beside).unsupported
    assert unsupported is not None and "this kernel" in unsupported


def test_cyclictest_waits_for_as_many_timers_as_fit() -> None:
    one = peer("cyclictest", TIMER[0], **TIMER[1])
    beside = Beside(cpus=(1,), rate=5e-5, elapsed_s=0.1)
    arguments = one.command(beside).arguments
    assert arguments[:4] == ("taskset", "--cpu-list", "1", "sh") and arguments[-1] == "--loops=100"
    output = recorded("bookworm", "cyclictest")
    assert one.parse(output, beside) == 68260e-9
    for text, part in ((output.replace("C:    100", "C:     99"), "99"), ("", "thread 0")):
        with pytest.raises(BadOutput, match=part):
            one.parse(text, beside)
    ask = answers({("cyclictest", "--help"): recorded("bookworm", "cyclictest-help")})
    assert one.survey(ask, beside).version == "2.40"


def test_hpl_and_dgemm_from_recorded_reports() -> None:
    hpl = peer("hpcc", "linpack", n=600)
    assert hpl.parse(recorded("bookworm", "hpcc-2-ranks"), TWO) == 0.00875783 * 1e12
    dgemm = peer("hpcc", "gemm", n=345, dtype="fp64")
    assert dgemm.parse(recorded("bookworm", "hpcc-1-rank"), TWO) == 51.5283e9


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("Success=1", "Success=0", "Success 0 instead of 1"),
        ("HPL_N=600", "HPL_N=500", "n 500 instead of 600"),
        ("CommWorldProcs=2", "CommWorldProcs=1", "ranks 1 instead of 2"),
        ("HPL_Tflops=", "HPL_T=", "no HPL_Tflops"),
        ("HPL_Tflops=0.00875783", "HPL_Tflops=1.2.3", "'1.2.3' is not a number"),
    ],
)
def test_a_report_of_another_run(old: str, new: str, part: str) -> None:
    report = recorded("bookworm", "hpcc-2-ranks")
    assert old in report
    with pytest.raises(BadOutput, match=re.escape(part)):
        peer("hpcc", "linpack", n=600).parse(report.replace(old, new), TWO)


def test_hpl_has_one_rank_a_thread_and_dgemm_one_for_all() -> None:
    four = Beside(cpus=(4, 5, 6, 7), rate=1e11, elapsed_s=3)
    hpl = peer("hpcc", "linpack", n=8000).command(four)
    assert hpl.arguments[-10:-7] == ("-np", "4", "sh")
    assert hpl.arguments[-4:] == ("4", "5", "6", "7")
    assert "OPENBLAS_NUM_THREADS=1" in hpl.arguments
    lines = hpl.files["hpccinf.txt"].splitlines()
    assert [lines[i].split()[0] for i in (5, 7, 10, 11)] == ["8000", "192", "2", "2"]
    dgemm = peer("hpcc", "gemm", n=2048, dtype="fp64").command(four)
    assert "OPENBLAS_NUM_THREADS=4" in dgemm.arguments
    assert dgemm.arguments[-7:-4] == ("-np", "1", "sh")
    assert dgemm.arguments[-1] == "4,5,6,7"


@pytest.mark.parametrize("rank", [0, 1])
def test_each_rank_of_hpcc_runs_on_its_cpus(tmp_path: Path, rank: int) -> None:
    hpcc = tmp_path / "hpcc"
    hpcc.write_text("#!/bin/sh\nexec taskset --cpu-list --pid $$\n")
    hpcc.chmod(0o755)
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    arguments = (
        peer("hpcc", "linpack", n=500)
        .command(Beside(cpus=(first, last), rate=1e9, elapsed_s=1))
        .arguments
    )
    printed = subprocess.check_output(
        arguments[arguments.index("sh") :],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "OMPI_COMM_WORLD_RANK": str(rank)},
        text=True,
    )
    assert printed.split()[-1] == str((first, last)[rank])


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (7, (1, 7)), (96, (8, 12))]
)
def test_grids_are_as_square_as_can_be(ranks: int, expected: tuple[int, int]) -> None:
    assert grid(ranks) == expected


def test_dgemm_gets_exactly_the_size_that_is_requested() -> None:
    for n in [*range(1, 3000), 4096, 8192, 20000, 46341]:
        assert dgemm_n(hpl_n_of_dgemm(n)) == n
    # As recorded: HPL of 600 had a DGEMM of 345.
    assert dgemm_n(600) == 345


def _ldd(tmp_path: Path, directory: str, names: Sequence[str]) -> str:
    place = tmp_path / directory
    place.mkdir(parents=True)
    lines = []
    for name in names:
        target, _, link = name.partition("<-")
        (place / target).write_text("")
        linked = tmp_path / (link or target)
        linked.unlink(missing_ok=True)
        linked.symlink_to(place / target)
        lines.append(f"\t{linked.name} => {linked} (0x00007f864432a000)\n")
    return "".join(lines)


def test_openblas_is_reported_with_its_version(tmp_path: Path) -> None:
    names = ["libblas.so.3", "libopenblasp-r0.3.21.so<-libopenblas.so.0"]
    library = blas_of(_ldd(tmp_path, "openblas-pthread", names))
    assert library == f"OpenBLAS 0.3.21 ({tmp_path}/openblas-pthread/libblas.so.3)"
    assert not is_reference_blas(library)


def test_the_reference_blas_is_not_measured_with(tmp_path: Path) -> None:
    ldd = _ldd(tmp_path, "blas", ["libblas.so.3.11.0<-libblas.so.3"])
    library = blas_of(ldd)
    assert library is not None and is_reference_blas(library)
    ask = answers({("sh", "-c", 'ldd "$(command -v hpcc)"'): ldd})
    unsupported = peer("hpcc", "linpack", n=100).survey(ask, TWO).unsupported
    assert unsupported is not None
    assert "reference BLAS" in unsupported and "apt install libopenblas0-pthread" in unsupported


def test_a_matrix_that_does_not_fit() -> None:
    meminfo = "MemTotal:       24684084 kB\nMemAvailable:     1000000 kB\n"
    assert lacking_memory(meminfo, 9000) is None
    assert lacking_memory("", 10**9) is None
    reason = lacking_memory(meminfo, 20000)
    assert reason is not None and "4.47 GiB" in reason and "976.6 MiB are" in reason
    assert lacking_memory(f"{meminfo}max\n", 9000) is None
    limited = lacking_memory(f"{meminfo}500000000\n", 9000)
    assert limited is not None and "476.8 MiB are available" in limited
    ask = answers({MEMORY: meminfo})
    assert peer("hpcc", "linpack", n=20000).survey(ask, TWO).unsupported == reason


def test_the_page_says_what_stands_beside_what() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    isas = ("scalar", "sse2", "avx2", "avx512", "neon")
    grid_of_params: list[Params] = [
        {"isa": isa, "dtype": dtype, "n": 100} for isa in isas for dtype in ("fp64", "fp32")
    ]
    grid_of_params += [GETPPID[1], TIMER[1], {"by": "pipe", "between": "processes"}]
    workloads = ("clock", "fma", "mul_add", "add_sub", "linpack", "gemm")
    for workload in (*workloads, "syscall", "context_switch", "wakeup"):
        for params in grid_of_params:
            for one in peers(workload, params):
                row = [line for line in rows if one.tool in line and f"`cpu.{workload}`" in line]
                assert any(one.metric is None or one.metric in line for line in row), one.title
                if workload in ("fma", "mul_add", "add_sub"):
                    assert any(str(params["isa"]) in line for line in row), one.title


def test_a_blas_that_nothing_tells_of() -> None:
    assert blas_of("\tlibc.so.6 => /lib/libc.so.6 (0x0)\n") is None
    assert blas_of("") is None


def test_what_differs_from_our_conditions_is_named() -> None:
    one_cpu = Beside(cpus=(0,), rate=1e11, elapsed_s=0.5, libraries=("OpenBLAS 0.3.21",))
    two_cpus = one_cpu.model_copy(update={"cpus": (0, 1)})
    moving = "threads that move between 2 CPUs; each of ours stays on one"
    own = "instructions that its build chooses; ours those of the case"
    likwid = peer("likwid-bench", "fma", dtype="fp64", isa="avx2")
    additions, wide = (peer("stress-ng", "add_sub", **one) for one in (ADDITIONS, WIDE_ADDITIONS))
    for tool, beside, differs in (
        (likwid, two_cpus, ()),
        (additions, one_cpu, ()),
        (additions, two_cpus, (moving,)),
        (wide, one_cpu, (own,)),
    ):
        assert tool.survey(answers({}), beside).differs == differs


def test_hpcc_is_compared_over_our_library_in_our_pages(tmp_path: Path) -> None:
    names = ["libblas.so.3", "libopenblasp-r0.3.21.so<-libopenblas.so.0"]
    library = _ldd(tmp_path, "openblas-pthread", names)
    hpl, dgemm = peer("hpcc", "linpack", n=100), peer("hpcc", "gemm", n=100, dtype="fp64")
    ask = answers({("sh", "-c", 'ldd "$(command -v hpcc)"'): library, SETTING: "[always] never"})
    ours = Beside(cpus=(0, 1), rate=1e11, elapsed_s=0.5, libraries=("OpenBLAS 0.3.21",))
    assert hpl.survey(ask, ours).differs == ()
    newer = ours.model_copy(update={"libraries": ("OpenBLAS 0.3.34",)})
    assert hpl.survey(ask, newer).differs == ("OpenBLAS 0.3.21; ours OpenBLAS 0.3.34",)
    assert hpl.command(ours).arguments[:2] == ("env", TUNABLE)
    assert dgemm.survey(ask, ours).differs == (
        "threads that move between 2 CPUs; each of ours stays on one",
    )
