"""What peers print, recorded from real versions, becomes their figure or a clear reason."""

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Peer, Survey
from hostbench.programs.tools.hpcc import MEMORY
from hostbench.programs.tools.pages import GLIBC, SETTING
from services.mem.peers import TOOLS, peers

Params = dict[str, ParamValue]
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "peers.md"
# Debian 12: likwid 5.2.2, mbw 1.2.2, sysbench 1.0.20, hpcc 1.5.0.
RECORDED = Path(__file__).with_name("recorded") / "bookworm"
# What likwid-bench says of itself.
LIKWID = ROOT / "services" / "cpu" / "tests" / "recorded"
MIB = 1 << 20
SIZE = 640_000_000
TWO = Beside(cpus=(0, 1), rate=10e9, elapsed_s=0.5)
ONE = Beside(cpus=(0,), rate=8e9, elapsed_s=0.5)
HUGE: Params = {"threads": 2, "size_bytes": SIZE, "pages": "huge", "isa": "avx512", "store": "nt"}
SINGLE = HUGE | {"threads": 1}
SMALL = HUGE | {"pages": "4k"}
STREAM = HUGE | {"size_bytes": 8_000_000}
RANDOM: Params = {"threads": 2, "size_bytes": 64_000_000, "pages": "4k", "operation": "read"}
# Workload, parameters, recorded output and tool.
RUNS: list[tuple[str, str, Params, str]] = [
    ("likwid-bench", "copy", HUGE, "likwid-copy-mem"),
    ("likwid-bench", "read", SMALL, "likwid-load"),
    ("mbw", "copy", SINGLE, "mbw"),
    ("sysbench", "read", HUGE, "sysbench-read"),
    ("sysbench", "write", SMALL, "sysbench-write"),
    ("sysbench", "random_access", RANDOM, "sysbench-random"),
    ("hpcc", "triad", STREAM, "hpcc-2-ranks"),
]


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def peer(tool: str, workload: str, params: Params) -> Peer:
    return next(one for one in peers(workload, params) if one.tool == tool)


def tools(workload: str, params: Params) -> list[str]:
    return [one.tool for one in peers(workload, params)]


def answers(known: dict[tuple[str, ...], str]) -> Callable[[Sequence[str]], str]:
    return lambda command: known.get(tuple(command), "")


def beside(tool: str) -> Beside:
    return ONE if tool == "mbw" else TWO


@pytest.mark.parametrize(
    ("workload", "params", "expected"),
    [
        ("read", HUGE, ["likwid-bench", "sysbench"]),
        ("write", SINGLE, ["likwid-bench", "sysbench"]),
        ("copy", HUGE, ["likwid-bench", "hpcc"]),
        ("copy", SINGLE, ["likwid-bench", "mbw", "hpcc"]),
        ("scale", HUGE, ["hpcc"]),
        ("add", HUGE, ["hpcc"]),
        ("triad", HUGE, ["likwid-bench", "hpcc"]),
        ("triad", HUGE | {"block_bytes": 4096}, []),
        ("read", HUGE | {"pattern": "random"}, []),
        ("read", HUGE | {"pattern": "sequential"}, ["likwid-bench", "sysbench"]),
        ("copy", SINGLE | {"block_bytes": 4096}, []),
        ("read_write", SINGLE | {"block_bytes": 4096}, ["mbw"]),
        ("read_write", SINGLE | {"pattern": "random"}, []),
        ("read_write", HUGE, []),
        ("random_access", RANDOM, ["sysbench"]),
        ("random_access", RANDOM | {"operation": "update"}, []),
        ("random_access", RANDOM | {"block_bytes": 1}, []),
        ("random_access", RANDOM | {"block_bytes": 8}, ["sysbench"]),
        ("pointer_chase", HUGE, []),
        ("loaded_latency", HUGE, []),
        ("memset_write", HUGE, []),
        ("nothing", {}, []),
    ],
)
def test_what_stands_beside_what(workload: str, params: Params, expected: list[str]) -> None:
    assert tools(workload, params) == expected
    assert set(expected) <= set(TOOLS)


def test_what_takes_long_is_not_light() -> None:
    light = {(one.tool, one.title) for _, w, p, _ in RUNS for one in peers(w, p) if one.light}
    assert {tool for tool, _ in light} == set(TOOLS) - {"hpcc"}
    assert ("sysbench", "memory read rnd") not in light


@pytest.mark.parametrize(
    ("workload", "isa", "store", "kernel"),
    [
        ("copy", "avx512", "nt", "copy_mem_avx512"),
        ("copy", "avx512", "plain", "copy_avx512"),
        ("copy", "avx2", "nt", "copy_mem_avx"),
        ("copy", "sse2", "nt", "copy_mem_sse"),
        ("copy", "scalar", "nt", "copy_mem"),
        ("copy", "scalar", "plain", "copy"),
        # Before a trial it is unknown what the best will be.
        ("copy", "best", "best", "copy_mem_avx512"),
        ("copy", "avx512", "libc", "copy_mem_avx512"),
        ("write", "avx2", "nt", "store_mem_avx"),
        ("write", "scalar", "nt", "store_mem"),
        ("write", "avx512", "plain", "store_avx512"),
        ("triad", "avx512", "nt", "stream_mem_avx512"),
        ("triad", "sse2", "nt", "stream_mem_sse"),
        ("triad", "scalar", "plain", "stream"),
        ("read", "avx512", None, "load_avx512"),
        ("read", "best", None, "load_avx512"),
        ("read", "scalar", None, "load"),
    ],
)
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_likwid_has_every_kernel_that_is_requested(
    release: str, workload: str, isa: str, store: str | None, kernel: str
) -> None:
    params = {name: value for name, value in {"isa": isa, "store": store}.items() if value}
    one = peer("likwid-bench", workload, {**HUGE, **params})
    assert one.title == kernel
    ask = answers(
        {
            ("likwid-bench", "-v"): (LIKWID / release / "likwid-version.txt").read_text(),
            ("likwid-bench", "-a"): (LIKWID / release / "likwid-kernels.txt").read_text(),
        }
    )
    survey = one.survey(ask, TWO)
    assert survey.version == {"bookworm": "5.2.2", "trixie": "5.4.1"}[release]
    assert survey.unsupported is None


def test_what_likwid_says_of_its_stores() -> None:
    plain = peer("likwid-bench", "copy", HUGE | {"store": "plain"}).measures
    non_temporal = peer("likwid-bench", "copy", HUGE).measures
    assert "plain stores" in plain and "non-temporal stores" in non_temporal
    assert "stores" not in peer("likwid-bench", "read", HUGE).measures


def test_a_kernel_that_this_likwid_lacks() -> None:
    one = peer("likwid-bench", "read", HUGE | {"isa": "neon"})
    kernels = (LIKWID / "bookworm" / "likwid-kernels.txt").read_text()
    unsupported = one.survey(answers({("likwid-bench", "-a"): kernels}), TWO).unsupported
    assert unsupported is not None and "has no kernel load_neon" in unsupported
    assert tools("write", HUGE | {"isa": "neon", "store": "nt"}) == ["sysbench"]
    assert tools("triad", HUGE | {"isa": "neon"}) == ["hpcc"]


@pytest.mark.parametrize(("tool", "workload", "params", "name"), RUNS)
def test_recorded_output_has_its_figure(
    tool: str, workload: str, params: Params, name: str
) -> None:
    value = peer(tool, workload, params).parse(recorded(name), beside(tool))
    assert 1e9 < value < 1e11 or (name == "sysbench-random" and 1e6 < value < 1e9)


def test_the_figures_are_those_that_stand_there() -> None:
    def printed(name: str, pattern: str) -> float:
        found = re.search(pattern, recorded(name), re.MULTILINE)
        assert found is not None
        return float(found[1])

    likwid = printed("likwid-copy-mem", r"^MByte/s:\s+([\d.]+)$")
    assert peer("likwid-bench", "copy", HUGE).parse(recorded("likwid-copy-mem"), TWO) == (
        likwid * 1e6
    )
    # Data volume over time, both printed: it counts what is read and what is written.
    volume = printed("likwid-copy-mem", r"^Data volume \(Byte\):\s+(\d+)$")
    time_s = printed("likwid-copy-mem", r"^Time:\s+([\d.e+-]+) sec$")
    assert volume / time_s == pytest.approx(likwid * 1e6, rel=1e-4)
    # mbw counts a byte that it copies once.
    elapsed_s = printed("mbw", r"^AVG\t.*Elapsed: ([\d.]+)")
    mebibytes = printed("mbw", r"^AVG\t.*MiB: ([\d.]+)")
    assert peer("mbw", "copy", SINGLE).parse(recorded("mbw"), ONE) == pytest.approx(
        2 * mebibytes * MIB / elapsed_s, rel=1e-3
    )
    transferred = printed("sysbench-read", r"^([\d.]+) MiB transferred")
    total_s = printed("sysbench-read", r"total time: +([\d.]+)s")
    assert peer("sysbench", "read", HUGE).parse(recorded("sysbench-read"), TWO) == pytest.approx(
        transferred * MIB / total_s, rel=1e-2
    )
    accesses = printed("sysbench-random", r"^([\d.]+) MiB transferred") * MIB / 8
    total_s = printed("sysbench-random", r"total time: +([\d.]+)s")
    random = peer("sysbench", "random_access", RANDOM)
    assert random.parse(recorded("sysbench-random"), TWO) == pytest.approx(
        accesses / total_s, rel=1e-2
    )
    # Of each rank; there are two.
    triad = printed("hpcc-2-ranks", r"^StarSTREAM_Triad=([\d.]+)$")
    assert peer("hpcc", "triad", STREAM).parse(recorded("hpcc-2-ranks"), TWO) == 2e9 * triad


@pytest.mark.parametrize(
    ("run", "old", "new", "part"),
    [
        (0, "MByte/s:", "MByt:", "no MByte/s"),
        (0, "hwthread 1 ", "hwthread 0 ", "[0, 0]"),
        (0, "Test: copy_mem", "Test: copy", "copy_avx512 instead of copy_mem_avx512"),
        (0, "Size (Byte):\t\t640000000", "Size (Byte):\t\t320000000", "3.2e+08 instead of 6.4e+08"),
        (2, "MiB: 305.00000", "MiB: 300.00000", "MiB 300 instead of 305"),
        (2, "AVG", "avg", "no AVG"),
        (3, "operation: read", "operation: none", "operation False"),
        (3, "block size: 262144KiB", "block size: 1KiB", "1 instead of 262144"),
        (3, "threads: 2", "threads: 1", "threads 1"),
        (3, "MiB/sec)", "MB/sec)", "no MiB/sec"),
        (6, "Success=1", "Success=0", "Success 0"),
        (6, "STREAM_VectorSize=166666", "STREAM_VectorSize=1", "1 instead of 166666"),
        (6, "StarSTREAM_Triad=", "StarSTREAM_T=", "no StarSTREAM_Triad"),
        (6, "CommWorldProcs=2", "CommWorldProcs=1", "ranks 1"),
    ],
)
def test_output_that_is_not_of_the_run_we_requested(
    run: int, old: str, new: str, part: str
) -> None:
    tool, workload, params, name = RUNS[run]
    output = recorded(name)
    assert old in output
    with pytest.raises(BadOutput, match=re.escape(part)):
        peer(tool, workload, params).parse(output.replace(old, new), beside(tool))


@pytest.mark.parametrize(("tool", "workload", "params", "name"), RUNS)
def test_output_cut_at_any_line_is_a_figure_or_a_reason(
    tool: str, workload: str, params: Params, name: str
) -> None:
    one = peer(tool, workload, params)
    lines = recorded(name).splitlines(keepends=True)
    whole = one.parse("".join(lines), beside(tool))
    for count in range(len(lines)):
        with contextlib.suppress(BadOutput):
            assert one.parse("".join(lines[:count]), beside(tool)) == whole


# ---- how they are run ----


def test_likwid_goes_over_our_working_set_as_long_as_we_did() -> None:
    aside = Beside(cpus=(3, 1), rate=40e9, elapsed_s=2.0)
    command = peer("likwid-bench", "copy", HUGE).command(aside).arguments
    assert command[-2:] == ("-W", "N:640000kB:2")
    assert "1,3" in command
    iterations = int(command[command.index("-i") + 1])
    assert iterations == 40e9 * 2.0 / SIZE
    short = peer("likwid-bench", "copy", HUGE).command(TWO).arguments
    assert short[short.index("-i") + 1] == "10"


def test_mbw_has_two_arrays_and_one_thread() -> None:
    one = peer("mbw", "copy", SINGLE)
    command = one.command(Beside(cpus=(3,), rate=8e9, elapsed_s=2.0)).arguments
    assert command[-4:] == ("-t0", "-n", "25", "305")
    assert one.survey(answers({}), ONE).unsupported is None
    crowd = one.survey(answers({}), TWO).unsupported
    assert crowd is not None and "mbw has one thread" in crowd
    host = answers({("dpkg-query", "--show", "--showformat", "${Version}", "mbw"): "1.2.2-1.1"})
    assert one.survey(host, ONE).version == "1.2.2-1.1"


def test_memcpy_of_small_blocks_is_another_quantity() -> None:
    assert peer("mbw", "read_write", SINGLE | {"block_bytes": 64}).metric is None
    assert peer("mbw", "read_write", SINGLE).metric == "bytes_per_second_makespan"


@pytest.mark.parametrize(
    ("size", "threads", "block"),
    [(SIZE, 2, 1 << 28), (1 << 30, 1, 1 << 30), (SIZE, 8, 1 << 26), (4096, 64, 1024)],
)
def test_blocks_of_sysbench_are_powers_of_two(size: int, threads: int, block: int) -> None:
    many = Beside(cpus=tuple(range(threads)), rate=1e9, elapsed_s=0.2)
    params = HUGE | {"size_bytes": size, "threads": threads}
    arguments = peer("sysbench", "read", params).command(many).arguments
    assert f"--memory-block-size={block}" in arguments
    assert "--time=1" in arguments and "--memory-scope=local" in arguments
    assert 0.7 < block * threads / size < 1.5 or block == 1024


def test_hpcc_has_a_matrix_of_our_working_set() -> None:
    one = peer("hpcc", "scale", HUGE)
    command = one.command(TWO)
    lines = command.files["hpccinf.txt"].splitlines()
    n = int(lines[5].split()[0])
    assert 8 * n * n <= SIZE < 8 * (n + 1) ** 2
    assert command.arguments[-3:] == ("hpcc", "0", "1")
    assert "OPENBLAS_NUM_THREADS=1" in command.arguments


def test_no_memory_for_hpcc() -> None:
    one = peer("hpcc", "add", HUGE)
    host = answers({MEMORY: "MemAvailable: 600000 kB\n"})
    unsupported = one.survey(host, TWO).unsupported
    assert unsupported is not None and "585.9 MiB are available" in unsupported


@pytest.mark.parametrize("tool", ["likwid-bench", "hpcc"])
def test_more_threads_than_cpus_cannot_be_pinned(tool: str) -> None:
    crowd = Beside(cpus=(0, 1, 0, 1), rate=1e9, elapsed_s=1)
    unsupported = peer(tool, "triad", HUGE).survey(answers({}), crowd).unsupported
    assert unsupported is not None and "4 threads on 2" in unsupported


def test_a_size_left_to_the_program_can_be_planned_with() -> None:
    for workload in ("read", "write", "copy", "triad", "random_access"):
        for one in peers(workload, {"size_bytes": "auto", "threads": 2, "isa": "best"}):
            assert 0.5 < one.trial_time_s(0.5) < 300


# ---- their conditions ----

SMALL_PAGES, NO_POOL = "4 KiB pages; ours huge", "transparent huge pages; ours of the hugetlb pool"
SMALL_NO_POOL = "4 KiB pages; ours of the hugetlb pool"


def survey(pages: str, setting: str, glibc: str = "glibc 2.36\n") -> Survey:
    ask = answers({SETTING: setting, GLIBC: glibc})
    return peer("likwid-bench", "read", HUGE | {"pages": pages}).survey(ask, TWO)


@pytest.mark.parametrize(
    ("pages", "setting", "glibc", "conditions", "differs"),
    [
        ("4k", "always madvise [never]", "", "in 4 KiB pages", None),
        ("4k", "[always] madvise never", "", "in 4 KiB pages", None),
        ("huge", "[always] madvise never", "", "in transparent huge pages", None),
        ("huge", "always [madvise] never", "glibc 2.36\n", "in transparent huge pages", None),
        (
            "huge",
            "always [madvise] never",
            "glibc 2.31\n",
            "in 4 KiB pages, as this C",
            SMALL_PAGES,
        ),
        ("huge", "always [madvise] never", "", "in 4 KiB pages, as this C", SMALL_PAGES),
        # Then ours are small too.
        ("huge", "always madvise [never]", "glibc 2.36\n", "in 4 KiB pages, as trans", None),
        ("huge", "", "glibc 2.36\n", "in 4 KiB pages, as trans", None),
        ("hugetlb", "always [madvise] never", "glibc 3.0", "in transparent huge pages", NO_POOL),
        ("hugetlb", "always madvise [never]", "", "in 4 KiB pages, as trans", SMALL_NO_POOL),
    ],
)
def test_pages_are_named_and_compared_when_equal(
    pages: str, setting: str, glibc: str, conditions: str, differs: str | None
) -> None:
    found = survey(pages, setting, glibc)
    assert (found.conditions or "").startswith(conditions)
    assert found.differs == (() if differs is None else (differs,))


FOUR: Params = {"pages": "huge", "size_bytes": 4 << 28}


@pytest.mark.parametrize(
    ("tool", "workload", "params", "cpus", "differs"),
    [
        ("likwid-bench", "read", {}, (0, 1), ()),
        ("likwid-bench", "copy", {"store": "nt", "isa": "avx2"}, (0,), ()),
        ("likwid-bench", "copy", {"store": "plain", "isa": "avx2"}, (0,), ()),
        ("likwid-bench", "copy", {"store": "libc", "isa": "avx2"}, (0,), (
            "non-temporal stores; ours stores that the C library chooses by size",)),
        ("hpcc", "add", {"store": "plain"}, (0,), ()),
        ("hpcc", "add", {"store": "nt"}, (0,), ("plain stores; ours non-temporal stores",)),
        ("mbw", "copy", {"store": "libc"}, (0,), ()),
        ("mbw", "copy", {"store": "nt"}, (0,), (
            "stores that the C library chooses by size; ours non-temporal stores",)),
        ("sysbench", "read", {}, (0,), ()),
        ("sysbench", "write", {"store": "plain"}, (0,), ()),
        ("sysbench", "write", {"store": "nt"}, (0,), ("plain stores; ours non-temporal stores",)),
        ("sysbench", "read", {"size_bytes": 900_000_000}, (0,), (
            "a working set of 1.074 GB; ours 900.0 MB",)),
        ("sysbench", "read", {}, (0, 1), (
            "threads that move between 2 CPUs; each of ours stays on one",)),
    ],
)  # fmt: skip
def test_stores_sizes_and_places_that_differ_are_named(
    tool: str, workload: str, params: Params, cpus: tuple[int, ...], differs: tuple[str, ...]
) -> None:
    ask = answers({SETTING: "[always] madvise never"})
    case = FOUR | {"threads": len(cpus)} | params
    there = Beside(cpus=cpus, rate=1e10, elapsed_s=0.5)
    assert peer(tool, workload, case).survey(ask, there).differs == differs


@pytest.mark.parametrize(("tool", "workload", "params", "name"), RUNS)
def test_every_tool_has_the_pages_of_ours(
    tool: str, workload: str, params: Params, name: str
) -> None:
    del name
    small = peer(tool, workload, params | {"pages": "4k"}).command(beside(tool)).arguments
    huge = peer(tool, workload, params | {"pages": "huge"}).command(beside(tool)).arguments
    assert small[3].endswith("/small_pages.py")
    assert huge[:2] == ("env", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
    assert small[4:] == huge[2:]


def test_the_page_says_what_stands_beside_what() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    seen = set()
    for workload in ("read", "write", "copy", "scale", "add", "triad", "read_write"):
        for one in peers(workload, SINGLE):
            row = [line for line in rows if one.tool in line and f"`mem.{workload}`" in line]
            assert any(one.metric is None or one.metric in line for line in row), one.title
            seen.add(one.tool)
    assert any("`mem.random_access`" in line and "sysbench" in line for line in rows)
    assert seen == set(TOOLS)
