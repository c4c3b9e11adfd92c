"""What peers of a disk print, recorded from real versions, becomes their figure or a reason."""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Peer
from hostbench.programs.tools.pages import GLIBC, SETTING, TUNABLE
from services.disk.peers import TOOLS, peers
from services.disk.peers.case import NO_FILE
from services.disk.peers.fio import fio_command
from services.disk.peers.fio_output import read_report

Params = dict[str, ParamValue]
# Debian 12: fio 3.33, coreutils 9.1, sysbench 1.0.20, ioping 1.3.
RECORDED = Path(__file__).with_name("recorded") / "bookworm"
PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
MIB = 1 << 20
# A file as large as any that is requested here; it has no blocks.
DESCRIPTOR = os.memfd_create("scratch")
os.ftruncate(DESCRIPTOR, 1 << 30)
ONE = Beside(cpus=(0,), rate=4e8, elapsed_s=0.5, scratch_fd=DESCRIPTOR)
TWO = Beside(cpus=(0, 1), rate=1e4, elapsed_s=0.5, scratch_fd=DESCRIPTOR)
FOUR = Beside(cpus=(0, 1, 0, 1), rate=1e4, elapsed_s=0.5, scratch_fd=DESCRIPTOR)
BASE: Params = {
    "file_bytes": 64 * MIB,
    "threads": 1,
    "queue_depth": 1,
    "engine": "io_uring",
    "cache_mode": "direct",
    "duration_s": 0.5,
    "warmup_s": 0.1,
}
SEQ: Params = BASE | {"block_bytes": MIB}
RAND: Params = BASE | {"block_bytes": 4096}
MIX: Params = RAND | {"engine": "libaio", "queue_depth": 32, "read_share": 0.7}
SYNCED: Params = SEQ | {"engine": "psync", "cache_mode": "buffered+fsync_end"}
# It has neither an engine nor a cache mode to choose.
COMMIT: Params = {"file_bytes": 64 * MIB, "block_bytes": 4096, "threads": 1, "warmup_s": 0.1}
FOUR_THREADS: Params = RAND | {"engine": "psync", "threads": 4}
# Tool, workload, parameters, the trial beside, recorded output.
Run = tuple[str, str, Params, Beside, str]
RUNS: list[Run] = [
    ("fio", "seq_read", SEQ | {"queue_depth": 32}, ONE, "fio-seq-read"),
    ("fio", "seq_write", SYNCED, ONE, "fio-seq-write-fsync-end"),
    ("fio", "rand_read", RAND, ONE, "fio-rand-read"),
    ("fio", "rand_read", FOUR_THREADS, FOUR, "fio-rand-read-4-threads"),
    ("fio", "rand_rw", MIX, ONE, "fio-rand-rw"),
    ("fio", "rand_write", RAND | {"cache_mode": "direct+dsync"}, ONE, "fio-rand-write-dsync"),
    ("fio", "fsync_latency", COMMIT, ONE, "fio-fsync"),
    ("dd", "seq_read", SEQ, ONE, "dd-read"),
    ("sysbench", "rand_read", RAND | {"threads": 2}, TWO, "sysbench-rndrd"),
    ("ioping", "rand_read", RAND, ONE, "ioping-direct"),
]
by_name = pytest.mark.parametrize("run", RUNS, ids=[run[-1] for run in RUNS])


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def fio_job(name: str) -> Any:
    (job,) = json.loads(recorded(name))["jobs"]
    return job


def peer(tool: str, workload: str, params: Params) -> Peer:
    return next(one for one in peers(workload, params) if one.tool == tool)


def tools(workload: str, params: Params) -> list[str]:
    return [one.tool for one in peers(workload, params)]


def figure(run: Run, output: str | None = None) -> float:
    tool, workload, params, beside, name = run
    text = recorded(name) if output is None else output
    return peer(tool, workload, params).parse(text, beside)


def answers(known: dict[tuple[str, ...], str]) -> Callable[[Sequence[str]], str]:
    return lambda command: known.get(tuple(command), "")


@pytest.mark.parametrize(
    ("workload", "params", "expected"),
    [
        ("seq_read", SEQ, ["fio", "dd"]),
        ("seq_read", {}, ["fio", "dd"]),
        ("seq_read", SEQ | {"engine": "auto"}, ["fio", "dd"]),
        ("seq_read", SEQ | {"queue_depth": 2}, ["fio"]),
        ("seq_read", SEQ | {"threads": 2}, ["fio"]),
        ("seq_read", SEQ | {"cache_mode": "buffered"}, ["fio"]),
        # What dd and sysbench write are zeros, and they stay.
        ("seq_write", SEQ, ["fio"]),
        ("seq_rw", SEQ, ["fio"]),
        ("rand_read", RAND, ["fio", "sysbench", "ioping"]),
        ("rand_read", RAND | {"threads": 2}, ["fio", "sysbench"]),
        ("rand_read", RAND | {"queue_depth": 2}, ["fio"]),
        ("rand_read", RAND | {"distribution": "uniform"}, ["fio", "sysbench", "ioping"]),
        ("rand_read", RAND | {"distribution": "zipf"}, ["fio"]),
        ("rand_read", RAND | {"rate": 100}, ["fio"]),
        ("rand_read", RAND | {"cache_mode": "buffered"}, ["fio"]),
        ("rand_read", RAND | {"cache_mode": "buffered", "engine": "mmap"}, ["fio"]),
        ("rand_write", RAND, ["fio"]),
        ("rand_write", RAND | {"cache_mode": "buffered+dsync", "engine": "mmap"}, []),
        ("rand_rw", RAND, ["fio"]),
        ("rand_rw", RAND | {"read_share": 0.333}, []),
        ("rand_read", RAND | {"verify": "on"}, []),
        ("rand_rw", RAND | {"verify": "on"}, []),
        ("rand_rw", RAND | {"verify": "off"}, ["fio"]),
        ("fsync_latency", COMMIT, ["fio"]),
        ("nothing", {}, []),
    ],
)
def test_what_stands_beside_what(workload: str, params: Params, expected: list[str]) -> None:
    assert tools(workload, params) == expected
    assert set(expected) <= set(TOOLS)


def test_all_of_them_are_light() -> None:
    assert {one.tool for run in RUNS for one in peers(*run[1:3]) if one.light} == set(TOOLS)


# ---- their figures ----


def test_the_figures_are_those_that_stand_there() -> None:
    def printed(name: str, pattern: str) -> float:
        found = re.search(pattern, recorded(name), re.MULTILINE)
        assert found is not None
        return float(found[1])

    by_output = {run[-1]: figure(run) for run in RUNS}
    for name, side in (("fio-seq-read", "read"), ("fio-seq-write-fsync-end", "write")):
        assert by_output[name] == fio_job(name)[side]["bw_bytes"]
    # One at a time, what is submitted and what is completed are the same.
    for name, side in (("fio-rand-read", "read"), ("fio-rand-write-dsync", "write")):
        assert by_output[name] == pytest.approx(fio_job(name)[side]["iops"], rel=2e-3)
    mix = fio_job("fio-rand-rw")
    together = (mix["read"]["bw_bytes"] + mix["write"]["bw_bytes"]) / 4096
    assert by_output["fio-rand-rw"] == pytest.approx(together)
    commit = fio_job("fio-fsync")
    sides = (commit[side]["lat_ns"]["percentile"]["50.000000"] for side in ("write", "sync"))
    assert by_output["fio-fsync"] == pytest.approx(sum(sides) * 1e-9)
    copied = printed("dd-read", r"^(\d+) bytes") / printed("dd-read", r"copied, ([\d.]+) s")
    assert by_output["dd-read"] == pytest.approx(copied)
    events = printed("sysbench-rndrd", r"total number of events: +(\d+)")
    total_s = printed("sysbench-rndrd", r"total time: +([\d.]+)s")
    assert by_output["sysbench-rndrd"] == pytest.approx(events / total_s, rel=1e-2)
    requests, serving_ns, *_ = map(float, recorded("ioping-direct").split())
    assert by_output["ioping-direct"] == pytest.approx(serving_ns / requests * 1e-9, rel=1e-3)


def test_what_was_under_way_at_the_end_of_the_ramp_counts() -> None:
    report = read_report(recorded("fio-seq-read"))
    read = fio_job("fio-seq-read")["read"]
    # fio's own count leaves out what was submitted before, though it was completed after.
    assert read["total_ios"] < report.read.operations == read["io_bytes"] / MIB
    assert report.read.operations_per_second * MIB == pytest.approx(read["bw_bytes"])


def test_time_of_the_processor_is_that_of_all_jobs() -> None:
    job = fio_job("fio-rand-read-4-threads")
    busy_ratio = (job["usr_cpu"] + job["sys_cpu"]) / 100
    # Four times half a second.
    assert 1900 < job["job_runtime"] < 2200
    cpu_s = read_report(recorded("fio-rand-read-4-threads")).cpu_s
    assert cpu_s == pytest.approx(busy_ratio * job["job_runtime"] / 1000)


def test_flushes_are_distinguished_from_writes() -> None:
    report = read_report(recorded("fio-fsync"))
    assert report.sync.operations == report.write.operations == report.operations > 0
    assert report.sync.latency_p50_s is not None and report.write.latency_p50_s is not None
    assert report.sync.latency_p50_s > report.write.latency_p50_s
    assert report.read.latency_p50_s is None and report.read.operations_per_second == 0


@by_name
def test_output_cut_at_any_line_is_a_figure_or_a_reason(run: Run) -> None:
    lines = recorded(run[-1]).splitlines(keepends=True)
    whole = figure(run)
    for count in range(len(lines)):
        with contextlib.suppress(BadOutput):
            assert figure(run, "".join(lines[:count])) == whole


def test_a_remark_of_fio_before_its_report() -> None:
    run = RUNS[0]
    remark = "fio: this platform does not support process shared mutexes {really}\n"
    assert figure(run, remark + recorded(run[-1])) == figure(run)


@pytest.mark.parametrize(
    ("number", "old", "new", "part"),
    [
        (0, '"error" : 0', '"error" : 28', "it ended with error 28"),
        (0, '"iodepth" : "32"', '"iodepth" : "1"', "iodepth 1 instead of 32"),
        (0, '"direct" : "1"', '"direct" : "0"', "direct 0 instead of 1"),
        (0, '"rw" : "read"', '"rw" : "write"', "rw write instead of read"),
        (0, '"jobs"', '"jops"', "its JSON is not fio's: KeyError 'jobs'"),
        (0, '"bw_bytes" : ', '"bw_bytes" : "x", "b" : ', "its JSON is not fio's: ValueError"),
        (0, '"fio version"', "fio version", "its JSON is not fio's: JSONDecodeError"),
        (2, '"N" : ', '"N" : 1, "n" : ', "blocks in bytes of"),
        (3, '"numjobs" : "4"', '"numjobs" : "1"', "numjobs 1 instead of 4"),
        (6, '"50.000000"', '"51.000000"', "no percentiles of writes and of sync"),
        (7, "67108864 bytes", "1048576 bytes", "bytes 1048576 instead of 67108864"),
        (7, "copied", "koperet", "no bytes copied"),
        (8, "threads: 2", "threads: 1", "threads 1 instead of 2"),
        (8, "random read", "random write", "random reads False"),
        (8, "reads/s:", "read/s:", "no reads/s"),
    ],
)
def test_output_that_is_not_of_the_run_we_requested(
    number: int, old: str, new: str, part: str
) -> None:
    output = recorded(RUNS[number][-1])
    assert old in output
    with pytest.raises(BadOutput, match=re.escape(part)):
        figure(RUNS[number], output.replace(old, new))


def test_output_without_any_operation() -> None:
    silent = re.sub(r'"(N|io_bytes|bw_bytes)" : \d+', r'"\1" : 0', recorded("fio-rand-read"))
    with pytest.raises(BadOutput, match="it did no operation"):
        figure(RUNS[2], silent)
    with pytest.raises(BadOutput, match="no JSON in its output"):
        figure(RUNS[2], "fio: failed to open\n")


def test_ioping_of_another_block_size() -> None:
    tool, workload, params, beside, name = RUNS[9]
    with pytest.raises(BadOutput, match=r"blocks in bytes of .* instead of 8192"):
        peer(tool, workload, params | {"block_bytes": 8192}).parse(recorded(name), beside)


# ---- how they are run ----


def command_of(workload: str, params: Params, beside: Beside = ONE, tool: str = "fio") -> list[str]:
    """From taskset on: what stands before it decides about pages."""
    command = list(peer(tool, workload, params).command(beside).arguments)
    return command[command.index("taskset") :]


def options_of(command: Sequence[str]) -> dict[str, str]:
    given = (word[2:].partition("=") for word in command if word.startswith("--"))
    return {name: value for name, _, value in given}


def test_fio_runs_in_our_file_and_makes_none() -> None:
    command = command_of("rand_read", RAND)
    assert command[:3] == ["taskset", "--cpu-list", "0"] and command[3] == "fio"
    options = options_of(command)
    assert options["filename"] == f"/proc/self/fd/{DESCRIPTOR}"
    assert options["allow_file_create"] == "0" and "thread" in options
    assert options["runtime"] == "500ms" and options["ramp_time"] == "100ms"
    assert options["size"] == str(64 * MIB) and "offset_increment" not in options
    assert "cpus_allowed" not in options


@pytest.mark.parametrize(
    ("workload", "change", "expected"),
    [
        ("seq_read", {"engine": "io_uring_fixed"}, {"ioengine": "io_uring", "fixedbufs": "1"}),
        ("seq_read", {"engine": "auto"}, {"ioengine": "io_uring", "fixedbufs": None}),
        ("seq_read", {"engine": "libaio"}, {"ioengine": "libaio", "iodepth": "1"}),
        ("seq_write", {"cache_mode": "direct"}, {"direct": "1", "sync": None, "end_fsync": None}),
        ("seq_write", {"cache_mode": "direct+dsync"}, {"direct": "1", "sync": "dsync"}),
        ("seq_write", {"cache_mode": "buffered"}, {"direct": "0", "sync": None, "end_fsync": None}),
        ("seq_write", {"cache_mode": "buffered+fsync_end"}, {"direct": "0", "end_fsync": "1"}),
        ("seq_write", {"cache_mode": "buffered+dsync"}, {"direct": "0", "sync": "dsync"}),
        ("seq_write", {"cache_mode": "direct+sync"}, {"direct": "1", "sync": "sync"}),
        ("seq_write", {"cache_mode": "buffered+sync"}, {"ramp_time": "100ms"}),
        # A ramp would leave in the page cache what is to be measured.
        ("seq_read", {"cache_mode": "buffered"}, {"ramp_time": None}),
        ("seq_write", {"cache_mode": "buffered+fsync_end"}, {"ramp_time": None}),
        ("seq_write", {"cache_mode": "buffered+dsync"}, {"ramp_time": "100ms"}),
        ("rand_rw", {"cache_mode": "buffered+dsync"}, {"ramp_time": None}),
        ("rand_rw", {"cache_mode": "buffered+dsync", "read_share": 0}, {"ramp_time": "100ms"}),
        ("rand_read", {"cache_mode": "buffered+dsync"}, {"ramp_time": None}),
        ("rand_rw", {"cache_mode": "direct+dsync"}, {"ramp_time": "100ms"}),
        ("seq_write", {"warmup_s": 0}, {"ramp_time": None}),
        ("seq_rw", {"read_share": 0.3}, {"rw": "rw", "rwmixread": "30"}),
        ("rand_rw", {"read_share": 0.29}, {"rw": "randrw", "rwmixread": "29"}),
        ("rand_rw", {}, {"rwmixread": "50"}),
        ("rand_read", {}, {"rw": "randread", "rwmixread": None, "random_distribution": None}),
        ("rand_write", {"distribution": "zipf"}, {"random_distribution": "zipf:1.2"}),
        ("rand_write", {"distribution": "zipf", "zipf_theta": 0.8},
         {"random_distribution": "zipf:0.8"}),
        ("rand_write", {"compressible": 0.25}, {"buffer_compress_percentage": "25"}),
        ("rand_read", {"rate": 1000, "threads": 4}, {"rate_iops": "250"}),
        ("fsync_latency", {}, {"rw": "write", "fdatasync": "1", "ramp_time": "100ms"}),
        ("fsync_latency", {}, {"ioengine": "psync", "direct": "0", "iodepth": "1"}),
        # Whole blocks of the file, and of the part of each thread.
        ("seq_read", {"block_bytes": 10 * MIB}, {"size": str(60 * MIB)}),
        ("seq_read", {"block_bytes": 10 * MIB, "threads": 4},
         {"size": str(10 * MIB), "offset_increment": str(10 * MIB), "numjobs": "4"}),
        ("rand_read", {"threads": 4}, {"size": str(64 * MIB), "offset_increment": None}),
        # A total in a time ends at the first of both.
        ("seq_read", {"total_bytes": 64 * MIB, "duration_s": 0.5},
         {"io_size": str(64 * MIB), "runtime": "500ms", "time_based": None}),
        # Fixed work has no time.
        ("seq_read", {"total_bytes": 64 * MIB, "threads": 2, "duration_s": 0},
         {"io_size": str(32 * MIB), "runtime": None, "time_based": None, "ramp_time": None}),
    ],
)  # fmt: skip
def test_fio_does_what_we_do(
    workload: str, change: Params, expected: dict[str, str | None]
) -> None:
    whole = {"rand": RAND, "seq_": SEQ, "fsyn": COMMIT}[workload[:4]]
    params = whole | change
    options = options_of(command_of(workload, params))
    assert {name: options.get(name) for name in expected} == expected


def test_threads_of_fio_stand_on_cpus_of_their_own_as_ours() -> None:
    command = command_of("rand_read", FOUR_THREADS, FOUR)
    assert command[2] == "0,1"
    options = options_of(command)
    assert options["cpus_allowed"] == "0,1" and options["cpus_allowed_policy"] == "split"
    assert options["numjobs"] == "4"


@pytest.mark.parametrize(
    ("change", "huge"),
    [
        # Ours have huge pages where the buffers of a thread fill half of one.
        ({"block_bytes": 4096, "queue_depth": 32}, False),
        ({"block_bytes": 4096, "queue_depth": 255}, False),
        ({"block_bytes": 4096, "queue_depth": 256}, True),
        ({"block_bytes": MIB}, True),
        ({"block_bytes": MIB, "queue_depth": 32, "engine": "libaio"}, True),
        ({"block_bytes": 512 * 1024}, False),
    ],
)
def test_buffers_of_fio_have_pages_like_ours(change: Params, huge: bool) -> None:
    one = peer("fio", "seq_read", SEQ | change)
    command = one.command(ONE).arguments
    assert (command[:2] == ("env", TUNABLE)) is huge
    assert any(word.endswith("/small_pages.py") for word in command) is not huge
    assert ("--iomem_align=2097152" in command) is huge
    for setting, glibc, differs in (
        ("always [madvise] never", "glibc 2.36\n", False),
        ("always [madvise] never", "glibc 2.31\n", huge),
        ("always madvise [never]", "glibc 2.36\n", False),
    ):
        found = one.survey(answers({SETTING: setting, GLIBC: glibc}), ONE)
        assert bool(found.differs) is differs


@pytest.mark.parametrize(
    ("tool", "workload", "params", "beside", "differs"),
    [
        ("dd", "seq_read", RAND | {"engine": "psync"}, ONE, ()),
        ("dd", "seq_read", RAND, ONE, ("reads by system calls; ours by io_uring",)),
        ("dd", "seq_read", SEQ | {"engine": "psync"}, ONE, (
            "a buffer in 4 KiB pages; ours in huge ones",)),
        ("ioping", "rand_read", RAND | {"engine": "psync"}, ONE, ()),
        ("ioping", "rand_read", RAND | {"engine": "libaio"}, ONE, (
            "reads by system calls; ours by libaio",)),
        ("sysbench", "rand_read", RAND | {"engine": "psync"}, ONE, ()),
        ("sysbench", "rand_read", RAND | {"engine": "psync", "threads": 2}, TWO, (
            "threads that move between 2 CPUs; each of ours stays on one",)),
    ],
)  # fmt: skip
def test_small_tools_are_compared_beside_plain_reads(
    tool: str, workload: str, params: Params, beside: Beside, differs: tuple[str, ...]
) -> None:
    assert peer(tool, workload, params).survey(answers({}), beside).differs == differs


def test_what_fio_is_held_against() -> None:
    metrics = {run[1]: peer("fio", *run[1:3]).metric for run in RUNS if run[0] == "fio"}
    assert metrics == {
        "seq_read": "bytes_per_second",
        "seq_write": "bytes_per_second",
        "rand_read": "operations_per_second",
        "rand_rw": "operations_per_second",
        "rand_write": "operations_per_second",
        "fsync_latency": "commit_time_s",
    }
    # Where so many operations a second were requested, so many are done.
    assert peer("fio", "rand_read", RAND | {"rate": 1000}).metric is None
    _, _, params, beside, name = RUNS[0]
    paced = peer("fio", "seq_read", params | {"rate": 1000})
    assert paced.metric is None and paced.unit == "byte/s"
    assert paced.parse(recorded(name), beside) == figure(RUNS[0])


def test_dd_reads_as_much_as_we_did_or_the_whole_file() -> None:
    short = command_of(
        "seq_read",
        SEQ,
        Beside(cpus=(0,), rate=10 * MIB, elapsed_s=2.0, scratch_fd=DESCRIPTOR),
        "dd",
    )
    assert short[3:] == ["dd", f"if=/proc/self/fd/{DESCRIPTOR}", "of=/dev/null", "iflag=direct",
                         f"bs={MIB}", "count=20"]  # fmt: skip
    assert command_of("seq_read", SEQ, tool="dd")[-1] == "count=64"
    slow = Beside(cpus=(0,), rate=1.0, elapsed_s=0.1, scratch_fd=DESCRIPTOR)
    assert command_of("seq_read", SEQ, slow, "dd")[-1] == "count=1"


def test_sysbench_finds_our_file_under_its_own_name() -> None:
    command = peer("sysbench", "rand_read", RAND | {"threads": 2}).command(TWO)
    assert command.links == {"test_file.0": f"/proc/self/fd/{DESCRIPTOR}"}
    for option in ("--threads=2", "--file-num=1", "--file-total-size=67108864", "--time=1",
                   "--file-extra-flags=direct", "--rand-type=uniform"):  # fmt: skip
        assert option in command.arguments
    assert not any("write" in word or "prepare" in word for word in command.arguments)


def test_ioping_reads_without_a_pause_and_does_not_write() -> None:
    command = command_of("rand_read", RAND, tool="ioping")
    assert command[3:] == ["ioping", "-D", "-B", "-i", "0", "-w", "500ms", "-s", "4096",
                           "-S", "67108864", f"/proc/self/fd/{DESCRIPTOR}"]  # fmt: skip


@by_name
def test_without_a_file_of_ours_none_runs(run: Run) -> None:
    tool, workload, params, beside, _ = run
    one = peer(tool, workload, params)
    alone = Beside(cpus=beside.cpus, rate=beside.rate, elapsed_s=beside.elapsed_s)
    assert one.survey(answers({}), alone).unsupported == NO_FILE
    assert one.survey(answers({}), beside).unsupported is None
    # One that no trial has filled as far as it would go.
    shorter = os.memfd_create("shorter")
    os.ftruncate(shorter, 60 * MIB)
    handed = beside.model_copy(update={"scratch_fd": shorter})
    assert one.survey(answers({}), handed).unsupported == NO_FILE
    os.close(shorter)
    assert one.survey(answers({}), handed).unsupported == NO_FILE, "none is open there"


@by_name
def test_how_long_they_take_can_be_planned_with(run: Run) -> None:
    assert 0.5 <= peer(*run[:3]).trial_time_s(0.5) < 3
    for one in peers(run[1], {}):
        assert 1 <= one.trial_time_s(1.0) < 3


def test_versions() -> None:
    ask = answers(
        {
            ("fio", "--version"): recorded("fio-version"),
            ("fio", "--enghelp"): recorded("fio-engines"),
            ("dd", "--version"): recorded("dd-version"),
            ("ioping", "-v"): recorded("ioping-version"),
            ("sysbench", "--version"): "sysbench 1.0.20\n",
        }
    )
    found = {run[0]: peer(*run[:3]).survey(ask, run[3]) for run in RUNS}
    versions = {tool: survey.version for tool, survey in found.items()}
    assert versions == {"fio": "3.33", "dd": "9.1", "sysbench": "1.0.20", "ioping": "1.3"}
    assert all(survey.unsupported is None for survey in found.values())


@pytest.mark.parametrize("engine", ["io_uring", "io_uring_fixed", "libaio", "psync"])
def test_a_fio_without_an_engine(engine: str) -> None:
    name = engine.removesuffix("_fixed")
    engines = recorded("fio-engines")
    without = "\n".join(line for line in engines.splitlines() if line.strip() != name)
    one = peer("fio", "rand_read", RAND | {"engine": engine})
    unsupported = one.survey(answers({("fio", "--enghelp"): without}), ONE).unsupported
    assert unsupported is not None and f"has no engine {name}" in unsupported
    assert one.survey(answers({("fio", "--enghelp"): engines}), ONE).unsupported is None


# ---- the command that is shown ----


def test_the_command_that_is_shown_is_what_a_peer_runs() -> None:
    shown = fio_command("rand_read", FOUR_THREADS)
    assert shown is not None
    words = shlex.split(shown)
    assert words[0] == "fio"
    large = fio_command("seq_read", SEQ)
    assert large is not None and large.startswith(f"env {TUNABLE} fio ")
    ran = options_of(command_of("rand_read", FOUR_THREADS, FOUR))
    shown_options = options_of(words)
    assert shown_options["filename"] == "FILE"
    # The rest of what is run keeps it to our file and our CPUs, and is for programs to read.
    beyond = {"allow_file_create", "output-format", "cpu-list", "cpus_allowed",
              "cpus_allowed_policy"}  # fmt: skip
    assert set(ran) - set(shown_options) == beyond
    same = set(shown_options) - {"filename"}
    assert {name: shown_options[name] for name in same} == {name: ran[name] for name in same}


def test_a_case_that_fio_has_no_equal_of_has_no_command() -> None:
    assert fio_command("rand_read", RAND | {"verify": "on"}) is None
    assert fio_command("rand_rw", RAND | {"read_share": 0.125}) is None
    assert fio_command("nothing", {}) is None


def test_the_page_says_what_stands_beside_what() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    for tool, workload, params, _, _ in RUNS:
        row = [line for line in rows if line.startswith(f"| {tool} ") and "disk" in line]
        assert row, tool
        metric = peer(tool, workload, params).metric
        assert metric is not None and f"`{metric}`" in row[0]
