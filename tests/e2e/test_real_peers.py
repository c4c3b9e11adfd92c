"""The real tools, where they are installed, under the real supervisor."""

import contextlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pages import huge_bytes
from hostbench.base.errors import ResourceError
from hostbench.base.interrupt import Interrupt
from hostbench.host.gpu import ListedDevice, list_devices
from hostbench.model.events import SkipEvent
from hostbench.model.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.model.service import SessionEvent, SessionPlace, SessionRequest
from hostbench.model.trial import Beside, Trial
from hostbench.programs.peer import Params
from hostbench.programs.program import find_program
from hostbench.programs.subsystem import peers_of
from hostbench.programs.tools.pages import _knows_tunable
from hostbench.run.local import LocalTransport
from hostbench.service.toolserver import ToolServerWork
from tests.faults.command import Command

pytestmark = pytest.mark.exhaustive  # `make test` installs no peers

MIB = 1 << 20
CPUS = tuple(sorted(os.sched_getaffinity(0)))
TWO, FIRST, LAST = CPUS[:2], CPUS[:1], CPUS[-1:]


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture
def transport() -> Iterator[LocalTransport]:
    interrupt = Interrupt()
    yield LocalTransport({}, interrupt, None)
    interrupt.close()


def run(
    transport: LocalTransport,
    tool: str,
    workload: str,
    params: Params,
    beside: Beside,
    subsystem: str = "cpu",
) -> tuple[list[TrialEvent], float]:
    (peer,) = [one for one in peers_of(subsystem, workload, params) if one.tool == tool]
    trial = Trial(
        tool=tool,
        subsystem=subsystem,
        workload=workload,
        params=dict(params),
        timeout_s=100.0,
        beside=beside,
    )
    events = list(transport.run(trial))
    last = events[-1]
    assert isinstance(last, PeerEndEvent), events
    assert last.exit_code == 0, last.output
    return events, peer.parse(last.output, beside)


FMA: Params = {"dtype": "fp64", "isa": "avx2", "threads": 2}
SCALAR: Params = {"dtype": "fp64", "isa": "scalar"}
WIDE: Params = {"dtype": "fp32", "isa": "avx512"}
GETPPID: Params = {"call": "getppid", "threads": 1}
PIPE: Params = {"by": "pipe", "between": "processes"}
PIPE_OF_THREADS: Params = {"by": "pipe", "between": "threads"}
TIMER: Params = {"by": "timer", "on": "same_cpu"}


@pytest.mark.parametrize(
    ("tool", "workload", "params", "cpus"),
    [
        pytest.param("likwid-bench", "fma", FMA, TWO, marks=needs("likwid-bench")),
        pytest.param("likwid-bench", "fma", FMA, LAST, marks=needs("likwid-bench")),
        pytest.param("likwid-bench", "mul_add", SCALAR, FIRST, marks=needs("likwid-bench")),
        pytest.param("stress-ng", "add_sub", SCALAR, TWO, marks=needs("stress-ng")),
        pytest.param("stress-ng", "add_sub", WIDE, LAST, marks=needs("stress-ng")),
        pytest.param("stress-ng", "clock", {}, FIRST, marks=needs("stress-ng")),
        pytest.param("sysbench", "clock", {}, TWO, marks=needs("sysbench")),
    ],
)
def test_a_light_peer(
    transport: LocalTransport, tool: str, workload: str, params: Params, cpus: tuple[int, ...]
) -> None:
    if tool == "likwid-bench" and workload == "fma" and not _has("avx2"):
        pytest.skip("this CPU has no AVX2")
    beside = Beside(cpus=cpus, rate=20e9 * len(cpus), elapsed_s=0.1)
    (start, end), value = run(transport, tool, workload, params, beside)
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.version and start.version[0].isdigit()
    assert start.command[:3] == ("taskset", "--cpu-list", ",".join(map(str, cpus)))
    assert value > 100
    assert end.cpu_s > 0 and end.left_behind == 0


def _has(flag: str) -> bool:
    return flag in Path("/proc/cpuinfo").read_text().split()


@pytest.mark.parametrize(
    ("tool", "workload", "params", "rate_s"),
    [
        pytest.param("perf", "syscall", GETPPID, 2e-7, marks=needs("perf")),
        pytest.param("perf", "context_switch", PIPE, 4e-6, marks=needs("perf")),
        pytest.param("perf", "context_switch", PIPE_OF_THREADS, 4e-6, marks=needs("perf")),
        pytest.param("cyclictest", "wakeup", TIMER, 1e-4, marks=needs("cyclictest")),
    ],
)
def test_a_peer_that_times_the_kernel(
    transport: LocalTransport, tool: str, workload: str, params: Params, rate_s: float
) -> None:
    """As long as ours: 0.1 s."""
    beside = Beside(cpus=LAST, rate=rate_s, elapsed_s=0.1)
    (start, end), value = run(transport, tool, workload, params, beside)
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.version and start.version[0].isdigit()
    assert start.command[:3] == ("taskset", "--cpu-list", str(LAST[0]))
    assert 2e-8 < value < 0.1
    assert end.elapsed_s < 10 and end.left_behind == 0


SMALL: Params = {"pages": "4k", "isa": "sse2", "size_bytes": 64_000_000}
HUGE: Params = {"pages": "huge", "isa": "scalar", "size_bytes": 64_000_000}


@pytest.mark.parametrize(
    ("tool", "workload", "params", "cpus"),
    [
        pytest.param("likwid-bench", "read", SMALL, TWO, marks=needs("likwid-bench")),
        pytest.param("likwid-bench", "copy", HUGE, LAST, marks=needs("likwid-bench")),
        pytest.param("likwid-bench", "triad", SMALL, FIRST, marks=needs("likwid-bench")),
        pytest.param("mbw", "copy", SMALL, LAST, marks=needs("mbw")),
        pytest.param("mbw", "copy", HUGE, FIRST, marks=needs("mbw")),
        pytest.param("sysbench", "write", SMALL, TWO, marks=needs("sysbench")),
        pytest.param("sysbench", "read", HUGE, LAST, marks=needs("sysbench")),
    ],
)
def test_a_light_peer_of_memory(
    transport: LocalTransport, tool: str, workload: str, params: Params, cpus: tuple[int, ...]
) -> None:
    beside = Beside(cpus=cpus, rate=5e9 * len(cpus), elapsed_s=0.1)
    given = {**params, "threads": len(cpus)}
    (start, end), value = run(transport, tool, workload, given, beside, "mem")
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.version and start.version[0].isdigit()
    assert re.search(r"; in (4 KiB|transparent huge) pages", start.measures)
    pinned = start.command.index("taskset")
    assert start.command[pinned + 2] == ",".join(map(str, cpus))
    assert value > 1e7
    assert end.cpu_s > 0 and end.left_behind == 0


STREAM: Params = {"pages": "huge", "size_bytes": 2_000_000, "threads": len(TWO)}


@needs("hpcc", "mpirun.openmpi")
def test_stream_of_hpcc(transport: LocalTransport) -> None:
    beside = Beside(cpus=TWO, rate=1e10, elapsed_s=0.1)
    (start, end), value = run(transport, "hpcc", "add", STREAM, beside, "mem")
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.metric in ("bytes_per_second_best", None)
    assert value > 1e7 and end.left_behind == 0


HPL: Params = {"n": 500}
DGEMM: Params = {"n": 300, "dtype": "fp64"}


@needs("hpcc", "mpirun.openmpi")
@pytest.mark.parametrize(
    ("workload", "params", "ranks"), [("linpack", HPL, len(TWO)), ("gemm", DGEMM, 1)]
)
def test_hpcc(transport: LocalTransport, workload: str, params: Params, ranks: int) -> None:
    beside = Beside(cpus=TWO, rate=1e10, elapsed_s=0.1)
    before = set(Path("/dev/shm").iterdir())
    (start, end), value = run(transport, "hpcc", workload, params, beside)
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert value > 1e7
    assert start.library is not None and "blas" in start.library
    assert f"CommWorldProcs={ranks}" in end.output
    assert set(Path("/dev/shm").iterdir()) <= before


@needs("likwid-bench", "stress-ng", "sysbench")
def test_a_run_with_all_light_peers(tmp_path: Path) -> None:
    command = Command(tmp_path)
    suite = tmp_path / "peers.yaml"
    suite.write_text(
        "name: peers\nidle: {policy: force}\npeers: auto\n"
        "repeats: {min_trials: 1, max_trials: 1}\n"
        "cases:\n"
        "  - {workload: cpu.clock, params: {duration_s: 0.1, threads: 1}}\n"
        "  - {workload: cpu.add_sub, params: {duration_s: 0.1, dtype: fp64, isa: scalar, "
        "threads: 1}}\n"
    )
    ended = command.run("run", str(suite), "--json")
    assert ended.code == 0, ended.errors
    assert "2 cases, 2 trials and 3 of peers" in ended.errors
    peers: list[Any] = [peer for case in ended.document["cases"] for peer in case["peers"]]
    assert [peer["tool"] for peer in peers] == ["stress-ng", "sysbench", "stress-ng"]
    assert all(peer["statistics"]["n"] == 1 for peer in peers)
    assert [peer["metric"] is None for peer in peers] == [True, True, False]
    has_a_ratio_where_it_may(peers[2])
    assert command.is_gone_soon()


def has_a_ratio_where_it_may(peer: dict[str, Any]) -> None:
    """Under equal conditions, unless something disturbed it meanwhile."""
    fair = not peer["differs"] and peer["verdict"] in ("clean", "noisy")
    assert (peer["ratio"] is not None) is fair, peer
    assert peer["ratio"] is None or peer["ratio"]["median"] > 0


@needs("fio")
@pytest.mark.parametrize(
    ("block_bytes", "depth", "threads", "huge"),
    [(MIB, 1, 1, True), (MIB, 8, 1, True), (MIB, 2, 2, True), (4096, 32, 1, False)],
)
def test_buffers_of_fio_are_in_pages_like_ours(
    tmp_path: Path, block_bytes: int, depth: int, threads: int, huge: bool
) -> None:
    if not gives_huge_pages():
        pytest.skip("this host gives no huge pages")
    params: Params = {"block_bytes": block_bytes, "queue_depth": depth, "threads": threads}
    params = {**params, "engine": "libaio", "cache_mode": "direct", "file_bytes": 32 * MIB}
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(os.urandom(32 * MIB))
        file.flush()
        fd = file.fileno()
        beside = Beside(cpus=TWO[:threads], rate=1e8, elapsed_s=0.4, scratch_fd=fd)
        (fio,) = [one for one in peers_of("disk", "seq_read", params) if one.tool == "fio"]
        options = (f"--{name.replace('_', '-')}={value}" for name, value in params.items())
        ours = (str(find_program("disk")), "seq_read", *options, "--duration-s=0.4")
        found = [
            huge_bytes(command, fd)
            for command in (fio.command(beside).arguments, (*ours, f"--scratch-fd={fd}"))
        ]
    least = threads * depth * block_bytes
    assert all(one >= least for one in found) if huge else found == [0, 0], found


def gives_huge_pages() -> bool:
    """Whether a peer's buffers can have them here: its survey looks at the same."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    glibc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return setting.exists() and "[never]" not in setting.read_text() and _knows_tunable(glibc)


@needs("fio", "sysbench", "ioping", "dd")
def test_peers_of_a_disk_measure_in_the_file_of_our_trial(tmp_path: Path) -> None:
    command = Command(tmp_path)
    suite = tmp_path / "disk.yaml"
    small = "file_bytes: 33554432, duration_s: 0.2"
    suite.write_text(
        "name: disk\nidle: {policy: force}\npeers: auto\n"
        "repeats: {min_trials: 1, max_trials: 1}\n"
        "cases:\n"
        f"  - {{workload: disk.rand_read, params: {{{small}}}}}\n"
        f"  - {{workload: disk.seq_read, params: {{{small}, block_bytes: 65536}}}}\n"
        f"  - {{workload: disk.rand_rw, params: {{{small}, queue_depth: 8, engine: libaio}}}}\n"
        f"  - {{workload: disk.seq_write, params: {{{small}, threads: 2, engine: psync}}}}\n"
        f"  - {{workload: disk.fsync_latency, params: {{{small}}}}}\n"
    )
    ended = command.run("run", str(suite), "--json")
    assert ended.code == 0, ended.errors
    cases = ended.document["cases"]
    tools = [[peer["tool"] for peer in case["peers"]] for case in cases]
    assert tools == [["fio", "sysbench", "ioping"], ["fio", "dd"], ["fio"], ["fio"], ["fio"]]
    for peer in (peer for case in cases for peer in case["peers"]):
        assert peer["statistics"]["n"] == 1 and peer["version"][0].isdigit(), peer
        has_a_ratio_where_it_may(peer)
        assert bool(peer["differs"]) is (peer["tool"] != "fio"), peer
    # One file for all, and each of our trials after the first finds it filled.
    ends = [
        event for case in cases for event in case["trials"][0]["events"] if event["event"] == "end"
    ]
    filled = [end["metrics"]["prefilled_bytes"] for end in ends]
    assert filled[0] == 33554432 and not any(filled[1:]), filled
    assert command.is_gone_soon()


TCP: Params = {"streams": 2, "block_bytes": 131072, "ip_version": "4", "target": "loopback"}
UDP: Params = {"block_bytes": 1472, "ip_version": "6", "direction": "both", "target": "loopback"}
ECHO: Params = {"block_bytes": 1, "wait": "block", "target": "loopback"}
SPIN: Params = {"block_bytes": 1, "wait": "spin", "target": "loopback"}


@pytest.mark.parametrize(
    ("tool", "workload", "params", "least", "most"),
    [
        pytest.param("iperf3", "tcp_stream", TCP, 1e7, 1e11, marks=needs("iperf3")),
        pytest.param("iperf3", "udp_stream", UDP, 1e5, 1e11, marks=needs("iperf3")),
        pytest.param("sockperf", "tcp_rr", ECHO, 1e-6, 1e-1, marks=needs("sockperf")),
        pytest.param("sockperf", "udp_rr", SPIN, 1e-6, 1e-1, marks=needs("sockperf")),
        pytest.param("qperf", "tcp_rr", ECHO, 1e-6, 1e-1, marks=needs("qperf")),
        pytest.param("qperf", "udp_rr", ECHO, 1e-6, 1e-1, marks=needs("qperf")),
    ],
)
def test_a_peer_of_the_network_brings_its_server(
    transport: LocalTransport,
    tool: str,
    workload: str,
    params: Params,
    least: float,
    most: float,
) -> None:
    beside = Beside(cpus=FIRST, rate=1e9, elapsed_s=0.5, far_cpus=LAST)
    (start, end), value = run(transport, tool, workload, params, beside, "net")
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.version and start.version[0].isdigit()
    assert least < value < most
    assert end.cpu_s > 0 and end.left_behind == 0
    port = next(
        int(value)
        for option, value in itertools.pairwise(start.command)
        if option in ("-p", "--port", "--listen_port")
    )
    assert port not in _listening(), "its server is gone"


def _listening() -> set[int]:
    """The ports of this host at which somebody listens, or takes datagrams."""
    lines = [
        line.split()
        for name in ("tcp", "tcp6", "udp", "udp6")
        for line in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] in ("0A", "07")}


PAGEABLE: Params = {"host_memory": "pageable", "size_bytes": 1 << 26}


def _devices() -> list[ListedDevice]:
    try:
        return list(list_devices(find_program("gpu")).devices)
    except ResourceError as error:
        pytest.skip(error.message)


@needs("clpeak")
def test_clpeak_beside_a_device_of_opencl(transport: LocalTransport) -> None:
    """Any will do: Debian's PoCL makes one of the processor."""
    by_opencl = [one for one in _devices() if "opencl" in one.backends]
    if not by_opencl:
        pytest.skip("no device of OpenCL: pocl-opencl-icd makes one of the processor")
    beside = Beside(cpus=TWO, rate=1e9, elapsed_s=0.5)
    params: Params = {**PAGEABLE, "device": str(by_opencl[0].index)}
    (start, end), value = run(transport, "clpeak", "host_to_device", params, beside, "gpu")
    assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
    assert start.version and start.metric is None
    assert start.differs == ("copies of a size that it chooses; ours of the case's",)
    assert end.output.startswith(f"our device: {by_opencl[0].name}\n")
    assert 1e8 < value < 1e12 and end.left_behind == 0


@pytest.mark.parametrize("tool", ["nvbandwidth", "cublaslt", "pytorch"])
def test_peers_of_nvidias_cards_are_skipped_elsewhere(transport: LocalTransport, tool: str) -> None:
    by_cuda = [one for one in _devices() if one.backend == "cuda"]
    if by_cuda:
        pytest.skip(f"{by_cuda[0].name} is a card of NVIDIA's")
    cases = {"nvbandwidth": "copy", "cublaslt": "tensor", "pytorch": "gemm"}
    params: Params = {"dtype": "bf16", "n": 8192, "device": "0"}
    beside = Beside(cpus=FIRST, rate=1e9, elapsed_s=0.5)
    trial = Trial(
        tool=tool,
        subsystem="gpu",
        workload=cases[tool],
        params=dict(params),
        timeout_s=100.0,
        beside=beside,
    )
    start, skip = transport.run(trial)
    assert isinstance(start, PeerStartEvent) and isinstance(skip, SkipEvent)
    assert re.search(r"not installed|has no|NVIDIA's cards alone|no GPU", skip.reason), skip


@needs("ping")
def test_ping_of_a_far_host(transport: LocalTransport) -> None:
    params: Params = {"target": "far_host", "block_bytes": 1}
    beside = Beside(cpus=FIRST, rate=1e-5, elapsed_s=0.5)
    place = SessionPlace(address="127.0.0.1", port=1)
    trial = Trial(
        tool="ping",
        subsystem="net",
        workload="tcp_rr",
        params=dict(params),
        timeout_s=100.0,
        beside=beside,
        session=place,
    )
    events = list(transport.run(trial))
    if isinstance(events[-1], SkipEvent):
        pytest.skip(events[-1].reason)
    assert isinstance(events[-1], PeerEndEvent)
    (peer,) = [one for one in peers_of("net", "tcp_rr", params) if one.tool == "ping"]
    assert 0 < peer.parse(events[-1].output, beside) < 0.1


@pytest.mark.parametrize(
    ("tool", "workload"),
    [
        pytest.param("iperf3", "udp_stream", marks=needs("iperf3")),
        pytest.param("sockperf", "tcp_rr", marks=needs("sockperf")),
        pytest.param("sockperf", "udp_rr", marks=needs("sockperf")),
    ],
)
def test_a_peer_talks_to_the_server_of_a_session(
    transport: LocalTransport, tool: str, workload: str
) -> None:
    params: Params = {"target": "far_host", "streams": 1}
    request = SessionRequest(
        id="s1",
        allowed_address="127.0.0.1",
        duration_s=30,
        tool=tool,
        workload=workload,
        params=dict(params),
    )
    beside = Beside(cpus=FIRST, rate=1e9, elapsed_s=0.5)
    with (
        contextlib.closing(Interrupt()) as interrupt,
        Path("/dev/null").open() as lock,
        contextlib.closing(
            ToolServerWork(request, "net", "127.0.0.1").run(interrupt, lock.fileno())
        ) as session,
    ):
        opened = next(session)
        assert isinstance(opened, SessionEvent)
        trial = Trial(
            tool=tool,
            subsystem="net",
            workload=workload,
            params=dict(params),
            timeout_s=100.0,
            beside=beside,
            session=opened.place,
        )
        start, end = transport.run(trial)
        assert isinstance(start, PeerStartEvent) and isinstance(end, PeerEndEvent)
        assert str(opened.port) in start.command
        (peer,) = [one for one in peers_of("net", workload, params) if one.tool == tool]
        assert peer.parse(end.output, beside) > 0
    assert opened.port not in _listening()


@needs("iperf3", "sockperf")
def test_peers_of_the_network_beside_our_trials(tmp_path: Path) -> None:
    command = Command(tmp_path)
    suite = tmp_path / "net.yaml"
    suite.write_text(
        "name: net\nidle: {policy: force}\npeers: auto\n"
        "repeats: {min_trials: 1, max_trials: 1}\n"
        "cases:\n"
        "  - {workload: net.tcp_stream, params: {duration_s: 0.3, streams: 2}}\n"
        "  - {workload: net.udp_stream, params: {duration_s: 0.3, udp_path: single}}\n"
        "  - {workload: net.udp_rr, params: {duration_s: 0.3}}\n"
    )
    ended = command.run("run", str(suite), "--json")
    assert ended.code == 0, ended.errors
    peers: list[Any] = [peer for case in ended.document["cases"] for peer in case["peers"]]
    assert [peer["tool"] for peer in peers] == ["iperf3", "iperf3", "sockperf"]
    for peer in peers:
        has_a_ratio_where_it_may(peer)
    assert peers[2]["differs"] == ["messages of 14 B, its smallest; ours 1 B"]
    assert ended.document["cases"][0]["equivalent_command"].startswith("iperf3 --client SERVER ")
    network = ended.document["host"]["network"]
    assert "lo" in [one["name"] for one in network["interfaces"]]
    (limit,) = ended.document["cases"][0]["trials"][0]["limits"].values()
    assert limit["value"] is None and "loopback" in limit["reason"]
    assert command.is_gone_soon()
