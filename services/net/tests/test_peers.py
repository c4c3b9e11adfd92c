"""What peers of a network print, recorded from real versions, becomes their figure or a reason."""

import contextlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import UsageError
from hostbench.model.events import ParamValue
from hostbench.model.service import SessionPlace
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Command, Listens, Peer
from services.net.peers import TOOLS, peers, server
from services.net.peers.ends import NO_FAR_END
from services.net.peers.iperf3 import LIMITS, iperf3_command
from services.net.peers.iperf3_output import read_report
from services.net.peers.ping import MAY_NOT
from services.net.peers.qperf import OPEN_SERVER

Params = dict[str, ParamValue]
RECORDED = Path(__file__).with_name("recorded")
# Debian 12: iperf3 3.12, sockperf 3.7, qperf 0.4.11, iputils 20221126; and iperf3 3.21 of upstream.
OLD, NEW = "bookworm", "iperf3-3.21"
PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
ONE = Beside(cpus=(0,), rate=1e9, elapsed_s=1.0, far_cpus=(1,))
TWO = ONE.model_copy(update={"cpus": (0, 2), "far_cpus": (1, 3)})
FAR = ONE.model_copy(update={"far": SessionPlace(address="192.0.2.7", port=5201)})
# As a trial of ours resolves them.
BASE: Params = {"target": "loopback", "ip_version": "4", "duration_s": 1.0, "warmup_s": 0.1}
TCP: Params = BASE | {"streams": 1, "block_bytes": 131072, "direction": "send"}
UDP: Params = BASE | {"streams": 1, "block_bytes": 1472, "direction": "send"}
RR: Params = BASE | {"streams": 1, "block_bytes": 1, "wait": "block", "load_streams": 0}
BETWEEN: Params = {"target": "far_host"}
TWO_STREAMS: Params = TCP | {"streams": 2, "congestion": "cubic"}
# Tool, workload, parameters, the trial beside, recorded output.
Run = tuple[str, str, Params, Beside, str]
RUNS: list[Run] = [
    *(
        run
        for where in (OLD, NEW)
        for run in (
            ("iperf3", "tcp_stream", TWO_STREAMS, TWO, f"{where}/iperf3-tcp-2-streams"),
            ("iperf3", "tcp_stream", TCP | {"direction": "receive"}, ONE,
             f"{where}/iperf3-tcp-receive"),
            ("iperf3", "tcp_stream", TCP | {"direction": "both"}, ONE, f"{where}/iperf3-tcp-both"),
            ("iperf3", "udp_stream", UDP, ONE, f"{where}/iperf3-udp"),
            ("iperf3", "udp_stream", UDP | {"direction": "both", "ip_version": "6"}, ONE,
             f"{where}/iperf3-udp-both"),
            ("iperf3", "udp_stream", UDP | {"rate": 2e6, "streams": 2}, TWO,
             f"{where}/iperf3-udp-rate"),
        )
    ),
    ("iperf3", "udp_stream", UDP | {"udp_path": "gso"}, ONE, f"{NEW}/iperf3-gsro"),
    ("iperf3", "tcp_stream", TCP | {"streams": 128}, ONE, f"{OLD}/iperf3-128-streams"),
    ("sockperf", "tcp_rr", RR, ONE, f"{OLD}/sockperf-tcp"),
    ("sockperf", "udp_rr", RR | {"block_bytes": 1024}, ONE, f"{OLD}/sockperf-udp"),
    ("sockperf", "udp_rr", RR | {"wait": "spin"}, ONE, f"{OLD}/sockperf-udp-spin"),
    ("qperf", "tcp_rr", RR, ONE, f"{OLD}/qperf-tcp"),
    ("qperf", "udp_rr", RR | {"block_bytes": 1024}, ONE, f"{OLD}/qperf-udp"),
    ("ping", "tcp_rr", RR | BETWEEN, FAR, f"{OLD}/ping"),
]  # fmt: skip
by_name = pytest.mark.parametrize("run", RUNS, ids=[run[-1] for run in RUNS])


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def run_of(name: str) -> Run:
    return next(run for run in RUNS if run[-1] == name)


def peer(tool: str, workload: str, params: Params) -> Peer:
    return next(one for one in peers(workload, params) if one.tool == tool)


def figure(run: Run, output: str | None = None) -> float:
    tool, workload, params, beside, name = run
    return peer(tool, workload, params).parse(recorded(name) if output is None else output, beside)


def answers(known: dict[tuple[str, ...], str]) -> Callable[[Sequence[str]], str]:
    return lambda command: known.get(tuple(command), "")


VERSIONS = {
    ("iperf3", "--version"): recorded(f"{OLD}/iperf3-version"),
    ("sockperf", "--version"): recorded(f"{OLD}/sockperf-version"),
    ("qperf", "--version"): recorded(f"{OLD}/qperf-version"),
    ("ping", "-V"): recorded(f"{OLD}/ping-version"),
    ("ping", "-c", "1", "-w", "1", "127.0.0.1"): "1 packets transmitted, 1 received",
}
NEWER = VERSIONS | {("iperf3", "--version"): recorded(f"{NEW}/iperf3-version")}


@pytest.mark.parametrize(
    ("workload", "params", "expected"),
    [
        ("tcp_stream", {}, ["iperf3"]),
        ("tcp_stream", TCP | {"streams": 128}, ["iperf3"]),
        ("tcp_stream", TCP | {"streams": 129}, []),
        ("tcp_stream", TCP | {"send_path": "sendfile"}, ["iperf3"]),
        ("tcp_stream", TCP | {"send_path": "zerocopy"}, []),
        ("tcp_stream", TCP | {"send_buffer_bytes": 65536}, []),
        ("tcp_stream", TCP | {"send_buffer_bytes": 65536, "receive_buffer_bytes": 65536},
         ["iperf3"]),
        ("udp_stream", {}, ["iperf3"]),
        ("udp_stream", UDP | {"block_bytes": 16}, ["iperf3"]),
        ("udp_stream", UDP | {"block_bytes": 15}, []),
        ("udp_stream", UDP | BETWEEN, ["iperf3"]),
        ("tcp_rr", {}, ["sockperf", "qperf"]),
        ("tcp_rr", RR, ["sockperf", "qperf"]),
        ("tcp_rr", RR | BETWEEN, ["sockperf", "ping"]),
        ("udp_rr", RR | {"wait": "spin"}, ["sockperf"]),
        ("udp_rr", RR | {"streams": 2}, []),
        ("udp_rr", RR | {"load_streams": 1}, []),
        ("tcp_rr", RR | {"block_bytes": 65508}, []),
        ("tcp_crr", {}, []),
        ("nothing", {}, []),
    ],
)  # fmt: skip
def test_what_stands_beside_what(workload: str, params: Params, expected: list[str]) -> None:
    assert [one.tool for one in peers(workload, params)] == expected
    assert set(expected) <= set(TOOLS)


def test_an_open_server_is_only_run_when_it_is_named() -> None:
    light = {one.tool for run in RUNS for one in peers(*run[1:3]) if one.light}
    assert light == set(TOOLS) - {"qperf"}


# ---- their figures ----


def end_of(name: str) -> Any:
    return json.loads(recorded(name))["end"]


@pytest.mark.parametrize("where", [OLD, NEW])
def test_figures_of_iperf3_are_those_of_the_receiver(where: str) -> None:
    for name in ("iperf3-tcp-2-streams", "iperf3-tcp-receive", "iperf3-udp", "iperf3-udp-rate"):
        name = f"{where}/{name}"
        received = end_of(name)["sum_received"]
        assert figure(run_of(name)) == received["bits_per_second"] / 8
        assert figure(run_of(name)) == pytest.approx(received["bytes"] / received["seconds"])
    for name in ("iperf3-tcp-both", "iperf3-udp-both"):
        name = f"{where}/{name}"
        there, back = (end_of(name)[f"sum_received{which}"] for which in ("", "_bidir_reverse"))
        both = (there["bits_per_second"] + back["bits_per_second"]) / 8
        assert figure(run_of(name)) == pytest.approx(both)
    # What was lost on the way is in the sender's figure alone.
    sums = end_of(f"{where}/iperf3-udp")
    assert sums["sum_sent"]["bytes"] > sums["sum_received"]["bytes"]


def test_a_requested_rate_is_compared_with_no_limit() -> None:
    run = run_of(f"{OLD}/iperf3-udp-rate")
    assert figure(run) == pytest.approx(2e6, rel=0.01)
    assert peer(*run[:3]).metric is None and peer("iperf3", "udp_stream", UDP).metric is not None


def test_the_middle_of_a_long_report_may_be_missing() -> None:
    run = run_of(f"{OLD}/iperf3-128-streams")
    output = recorded(run[-1])
    assert "bytes are left out" in output
    sums = re.findall(r'"sum_received":\s*(\{[^}]*\})', output)
    assert figure(run) == json.loads(sums[-1])["bits_per_second"] / 8


def test_half_round_trips_are_doubled_and_whole_ones_are_not() -> None:
    def printed(name: str, pattern: str) -> float:
        found = re.search(pattern, recorded(name))
        assert found is not None
        return float(found[1])

    for which in ("tcp", "udp"):
        name = f"{OLD}/qperf-{which}"
        half_ns = printed(name, r"latency +=\s+(\d+) ns")
        assert figure(run_of(name)) == pytest.approx(2 * half_ns * 1e-9)
        assert "twice the latency" in peer(*run_of(name)[:3]).measures
    for which in ("tcp", "udp", "udp-spin"):
        name = f"{OLD}/sockperf-{which}"
        whole_us = printed(name, r"percentile 50\.000 = +([\d.]+)")
        assert "Round trip is" in recorded(name)
        assert figure(run_of(name)) == pytest.approx(whole_us * 1e-6)
        assert "whole round trip" in peer(*run_of(name)[:3]).measures
    mean_ms = printed(f"{OLD}/ping", r"rtt min/avg/max/mdev = [\d.]+/([\d.]+)/")
    assert figure(run_of(f"{OLD}/ping")) == pytest.approx(mean_ms * 1e-3)


@by_name
def test_output_cut_at_any_line_is_a_figure_or_a_reason(run: Run) -> None:
    lines = recorded(run[-1]).splitlines(keepends=True)
    whole = figure(run)
    for count in range(len(lines) - 200 if len(lines) > 500 else 0, len(lines)):
        with contextlib.suppress(BadOutput):
            assert figure(run, "".join(lines[:count])) == whole


@pytest.mark.parametrize(
    ("name", "old", "new", "part"),
    [
        ("iperf3-tcp-2-streams", '"num_streams":\t2', '"num_streams":\t1', "num_streams 1 instead"),
        ("iperf3-tcp-2-streams", '"cubic"', '"bbr"', "congestion control bbr instead of cubic"),
        ("iperf3-tcp-2-streams", '"protocol":\t"TCP"', '"protocol":\t"UDP"', "protocol UDP"),
        ("iperf3-tcp-2-streams", '"blksize":\t131072', '"blksize":\t1', "blksize 1 instead"),
        ("iperf3-tcp-receive", '"reverse":\t1', '"reverse":\t0', "reverse 0 instead of 1"),
        ("iperf3-tcp-both", "sum_received_bidir", "sum_bidir", "in one direction only"),
        ("iperf3-tcp-receive", '"sum_received"', '"sum"', "no sum_received"),
        ("iperf3-tcp-receive", '"bytes":', '"octets":', "sum_received is not iperf3's: KeyError"),
        ("sockperf-tcp", "# TCP", "# UDP", "protocol UDP instead of TCP"),
        ("sockperf-tcp", "Round trip is", "Latency is", "whole round trips False"),
        ("sockperf-tcp", "percentile 50.000", "percentile 49.000", "no median"),
        ("qperf-tcp", "tcp_lat", "udp_lat", "test udp_lat instead of tcp_lat"),
        ("qperf-tcp", " ns", " us", "no latency in ns"),
        ("qperf-udp", "1024 bytes", "1 bytes", "bytes 1 instead of 1024"),
        ("ping", " 16(44)", " 56(84)", "bytes 56 instead of 16"),
        ("ping", "rtt min", "round-trip min", "no mean round trip"),
    ],
)
def test_output_that_is_not_of_the_run_we_requested(
    name: str, old: str, new: str, part: str
) -> None:
    run = run_of(f"{OLD}/{name}")
    output = recorded(run[-1])
    assert old in output
    with pytest.raises(BadOutput, match=re.escape(part)):
        figure(run, output.replace(old, new))


@pytest.mark.parametrize("where", [OLD, NEW])
def test_a_server_that_is_not_there(where: str) -> None:
    # Version 3.12 ends with exit code 0 all the same.
    output = recorded(f"{where}/iperf3-refused")
    with pytest.raises(BadOutput, match=r"it says .unable to connect to server"):
        figure(run_of(f"{where}/iperf3-udp"), output)


def test_a_number_that_is_none() -> None:
    sums = '"sum_received": {"bytes": 1, "bits_per_second": nan}'
    with pytest.raises(BadOutput, match="sum_received is not JSON"):
        read_report(sums)


# ---- how they are run ----


def command_of(
    workload: str, params: Params, beside: Beside = ONE, tool: str = "iperf3"
) -> Command:
    return peer(tool, workload, params).command(beside)


def joined(command: Command) -> str:
    return shlex.join(command.arguments)


@pytest.mark.parametrize(
    ("workload", "change", "expected", "without"),
    [
        ("tcp_stream", {}, "--parallel 1 --length 131072", "--udp"),
        ("tcp_stream", {}, "--time 1 ", "--omit"),
        ("tcp_stream", {"warmup_s": 2.0}, "--omit 2", "--reverse"),
        ("tcp_stream", {"direction": "receive"}, "--reverse", "--bidir"),
        ("tcp_stream", {"direction": "both"}, "--bidir", "--reverse"),
        ("tcp_stream", {"send_path": "sendfile"}, "--zerocopy", "--bitrate"),
        ("tcp_stream", {"send_path": "copy"}, "--json", "--zerocopy"),
        ("tcp_stream", {"rate": 1e6, "streams": 4}, "--bitrate 2000000", "--udp"),
        ("tcp_stream", {"congestion": "reno"}, "--congestion reno", "--window"),
        ("tcp_stream", {"congestion": "system"}, "--interval 0", "--congestion"),
        ("tcp_stream", {"send_buffer_bytes": 65536, "receive_buffer_bytes": 65536},
         "--window 65536", "--udp"),
        ("udp_stream", {}, "--udp --bitrate 0", "--window"),
        ("udp_stream", {"send_buffer_bytes": 4194304, "receive_buffer_bytes": 4194304},
         "--udp --bitrate 0", "--window"),
        ("udp_stream", {"rate": 1e6, "streams": 4}, "--udp --bitrate 2000000", "--gsro"),
        ("udp_stream", {"congestion": "reno"}, "--udp", "--congestion"),
    ],
)  # fmt: skip
def test_iperf3_does_what_we_do(workload: str, change: Params, expected: str, without: str) -> None:
    whole = TCP if workload == "tcp_stream" else UDP
    found = joined(command_of(workload, whole | change))
    assert expected in found and without not in found


def test_gso_only_where_iperf3_knows_it() -> None:
    for version, knows in ((VERSIONS, False), (NEWER, True)):
        one = peer("iperf3", "udp_stream", UDP | {"udp_path": "gso"})
        survey = one.survey(answers(version), ONE)
        assert ("--gsro" in one.command(ONE).arguments) is knows
        conditions = "with GSO and GRO" if knows else "one datagram a call"
        assert conditions in (survey.conditions or "")
        assert ("one datagram a call; ours many, by GSO and GRO" in survey.differs) is not knows
    single = peer("iperf3", "udp_stream", UDP | {"udp_path": "single"})
    single.survey(answers(NEWER), ONE)
    assert "--gsro" not in single.command(ONE).arguments


def limits_of_buffers(text: str) -> dict[tuple[str, ...], str]:
    return NEWER | {("cat", *LIMITS): text}


@pytest.mark.parametrize("limits", ["212992\n4194304\n", "4194304\n212992\n", "4194304\n", ""])
def test_datagrams_with_smaller_buffers_are_no_equal(limits: str) -> None:
    one = peer("iperf3", "udp_stream", UDP)
    survey = one.survey(answers(limits_of_buffers(limits)), ONE)
    (differs,) = survey.differs
    assert "net.core.rmem_max" in differs and "ours of 4194304 B" in differs
    assert "--window" not in one.command(ONE).arguments


def test_datagrams_with_our_buffers_are() -> None:
    one = peer("iperf3", "udp_stream", UDP)
    survey = one.survey(answers(limits_of_buffers("4194304\n4194304\n")), ONE)
    assert survey.differs == ()
    assert "--window 4194304" in joined(one.command(ONE))


def test_buffers_that_a_case_asks_for_need_no_look() -> None:
    small = {"send_buffer_bytes": 65536, "receive_buffer_bytes": 65536}
    one = peer("iperf3", "udp_stream", UDP | small)
    assert one.survey(answers(limits_of_buffers("")), ONE).differs == ()
    assert "--window 65536" in joined(one.command(ONE))


@pytest.mark.parametrize(("tool", "workload"), [("iperf3", "tcp_stream"), ("sockperf", "tcp_rr")])
def test_where_a_far_server_runs_is_reported(tool: str, workload: str) -> None:
    base = (TCP if workload == "tcp_stream" else RR | {"block_bytes": 64}) | BETWEEN
    assert peer(tool, workload, base).survey(answers(VERSIONS), FAR).differs == ()
    unknown = FAR.model_copy(update={"far_cpus": ()})
    between = peer(tool, workload, base).survey(answers(VERSIONS), unknown)
    assert between.differs == ("a server on any CPU of the far host; ours on CPUs of its own",)
    alone = peer(tool, workload, base | {"target": "loopback"}).survey(answers(VERSIONS), ONE)
    assert alone.differs == ()


def test_threads_that_stand_elsewhere_than_ours_are_named() -> None:
    one = peer("iperf3", "tcp_stream", TWO_STREAMS)
    two = Beside(cpus=(0, 1), rate=1e9, elapsed_s=1, far_cpus=(2, 3, 4))
    assert one.survey(answers(VERSIONS), two).differs == (
        "all streams in one thread; ours in one each",
    )
    moving = "threads that move between 2 CPUs; each of ours stays on one"
    assert one.survey(answers(NEWER), two).differs == (moving,)
    assert one.survey(answers(NEWER), Beside(**(dict(two) | {"cpus": (0, 0)}))).differs == (moving,)
    both_on_one = Beside(cpus=(0, 0), rate=1e9, elapsed_s=1, far_cpus=(2,))
    assert one.survey(answers(NEWER), both_on_one).differs == ()


def test_the_server_stands_where_the_threads_of_our_far_end_do() -> None:
    many = Beside(cpus=(0,), rate=1e9, elapsed_s=1, far_cpus=(1, 2, 3))
    server = command_of("tcp_stream", {"streams": 1}, many, "iperf3").server
    assert server is not None and server.arguments[:3] == ("taskset", "--cpu-list", "1")


def test_messages_that_are_larger_than_ours_are_named() -> None:
    for size, differs in ((1, ("messages of 14 B, its smallest; ours 1 B",)), (14, ()), (64, ())):
        one = peer("sockperf", "tcp_rr", RR | {"block_bytes": size})
        assert one.survey(answers(VERSIONS), ONE).differs == differs


def test_a_receiver_that_drops_is_compared_with_one_that_drops() -> None:
    for version, path, knows in (
        (NEWER, "truncate", True), (NEWER, "copy", False), (VERSIONS, "truncate", False)
    ):  # fmt: skip
        one = peer("iperf3", "tcp_stream", TCP | {"receive_path": path})
        conditions = "dropped by the kernel" if knows else "received with copies"
        found = one.survey(answers(version), ONE)
        assert found.conditions == conditions
        assert bool(found.differs) is (path == "truncate" and not knows)
        assert ("--skip-rx-copy" in one.command(ONE).arguments) is knows


@pytest.mark.parametrize(
    ("tool", "workload", "protocol"),
    [
        ("iperf3", "tcp_stream", "tcp"),
        # Its streams of datagrams are agreed on over TCP.
        ("iperf3", "udp_stream", "tcp"),
        ("sockperf", "tcp_rr", "tcp"),
        ("sockperf", "udp_rr", "udp"),
        ("qperf", "udp_rr", "tcp"),
    ],
)
@pytest.mark.parametrize("version", ["4", "6"])
def test_on_one_host_a_peer_brings_its_server(
    tool: str, workload: str, protocol: str, version: str
) -> None:
    command = command_of(workload, {"ip_version": version, "streams": 1}, ONE, tool)
    assert command.arguments[:3] == ("taskset", "--cpu-list", "0")
    assert command.server is not None and command.server.listens is not None
    assert command.server.arguments[:4] == ("taskset", "--cpu-list", "1", tool)
    port = command.server.listens.port
    assert command.server.listens == Listens("udp" if protocol == "udp" else "tcp", port)
    address = {"4": "127.0.0.1", "6": "::1"}[version]
    assert {address, str(port)} <= set(command.arguments)
    # All but qperf's, which cannot: for this host alone.
    assert (address in command.server.arguments) is (tool != "qperf")
    other = command_of(workload, {"ip_version": version, "streams": 1}, ONE, tool)
    assert other.server is not None and other.server.listens is not None


def test_a_server_without_cpus_of_its_own_is_not_bound() -> None:
    command = command_of("tcp_stream", TCP, ONE.model_copy(update={"far_cpus": ()}))
    assert command.server is not None and command.server.arguments[0] == "iperf3"


@pytest.mark.parametrize("tool", ["iperf3", "sockperf"])
def test_between_two_hosts_the_server_is_the_session_s(tool: str) -> None:
    workload = "udp_stream" if tool == "iperf3" else "udp_rr"
    one = peer(tool, workload, BETWEEN)
    assert one.server == tool and not one.far_address_only
    assert one.survey(answers(VERSIONS), ONE).unsupported == NO_FAR_END
    assert one.survey(answers(VERSIONS), FAR).unsupported is None
    command = one.command(FAR)
    assert command.server is None
    assert {"192.0.2.7", "5201"} <= set(command.arguments)
    far = server(tool, workload, BETWEEN, "192.0.2.7", 5201)
    assert {"192.0.2.7", "5201"} <= set(far.arguments)
    assert far.listens == Listens("tcp" if tool == "iperf3" else "udp", 5201)


@pytest.mark.parametrize("tool", ["qperf", "ping", "nothing"])
def test_tools_whose_server_is_no_part_of_a_session(tool: str) -> None:
    with pytest.raises(UsageError, match="give iperf3 or sockperf"):
        server(tool, "tcp_rr", RR, "127.0.0.1", 5201)


def test_both_ends_of_sockperf_wait_in_the_same_way() -> None:
    for wait, spins in (("spin", True), ("block", False)):
        command = command_of("tcp_rr", RR | {"wait": wait}, ONE, "sockperf")
        assert command.server is not None
        for words in (command.arguments, command.server.arguments):
            assert ("--nonblocked" in words) is spins
            assert "--tcp" in words
    command = command_of("udp_rr", RR, ONE, "sockperf")
    assert "--tcp" not in command.arguments
    assert "-m 14" in joined(command) and "--full-rtt" in command.arguments
    assert "of 14 B, its smallest" in peer("sockperf", "udp_rr", RR).measures


def test_ping_takes_the_far_host_and_no_server() -> None:
    one = peer("ping", "tcp_rr", RR | BETWEEN)
    assert one.server is None and one.far_address_only and one.metric is None
    command = one.command(FAR)
    assert command.server is None and command.arguments[-1] == "192.0.2.7"
    assert "-s 16" in joined(command)


def test_what_cannot_run_here_says_why() -> None:
    ping = peer("ping", "tcp_rr", RR | BETWEEN)
    assert ping.survey(answers(VERSIONS), FAR).unsupported is None
    assert ping.survey(answers(VERSIONS), ONE).unsupported == NO_FAR_END
    mute = {command: version for command, version in VERSIONS.items() if "-c" not in command}
    assert ping.survey(answers(mute), FAR).unsupported == MAY_NOT
    sockperf = peer("sockperf", "udp_rr", RR | {"ip_version": "6"})
    assert sockperf.survey(answers(VERSIONS), ONE).unsupported == "sockperf 3.7 knows no IPv6"
    newer = answers({("sockperf", "--version"): "sockperf, version 3.10-no.git"})
    assert sockperf.survey(newer, ONE).unsupported is None
    qperf = peer("qperf", "tcp_rr", RR)
    assert qperf.survey(answers(VERSIONS), FAR).unsupported == OPEN_SERVER


def test_versions() -> None:
    found = {run[0]: peer(*run[:3]).survey(answers(VERSIONS), run[3]) for run in RUNS}
    assert {tool: survey.version for tool, survey in found.items()} == {
        "iperf3": "3.12",
        "sockperf": "3.7",
        "qperf": "0.4.11",
        "ping": "20221126",
    }
    assert peer("iperf3", "udp_stream", UDP).survey(answers(NEWER), ONE).version == "3.21"
    assert peer("iperf3", "udp_stream", UDP).survey(answers({}), ONE).version is None


@by_name
def test_how_long_they_take_can_be_planned_with(run: Run) -> None:
    assert 1 <= peer(*run[:3]).trial_time_s(1.0) < 5


def test_what_they_are_held_against() -> None:
    assert {run[0]: peer(*run[:3]).metric for run in RUNS if "rate" not in run[2]} == {
        "iperf3": "bytes_per_second",
        "sockperf": "round_trip_s",
        "qperf": "latency_mean_s",
        "ping": None,
    }


# ---- the command that is shown ----


def test_the_command_that_is_shown_is_what_a_peer_runs() -> None:
    shown = iperf3_command("tcp_stream", TWO_STREAMS)
    assert shown is not None
    words = shlex.split(shown)
    assert words[:3] == ["iperf3", "--client", "SERVER"]
    ran = joined(command_of("tcp_stream", TWO_STREAMS, TWO))
    assert shlex.join(words[3:]) in ran
    assert iperf3_command("tcp_rr", RR) is None
    assert iperf3_command("tcp_stream", TCP | {"send_path": "zerocopy"}) is None


def test_the_page_says_what_stands_beside_what() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    for tool in TOOLS:
        workload = "tcp_stream" if tool == "iperf3" else "tcp_rr"
        row = [line for line in rows if line.startswith(f"| {tool} ") and "net." in line]
        assert row, tool
        metric = peer(tool, workload, BETWEEN if tool == "ping" else {}).metric
        assert f"`{metric}`" in row[0] if metric else "nothing: context" in row[0]
