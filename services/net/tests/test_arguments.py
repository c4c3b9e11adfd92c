"""Bad input to net-bench: the exit code, and one line that names value, bound and remedy.

What every program answers alike is in tests/contract.
"""

import os
import time

import pytest

from services.net.tests.program import (
    MOMENT,
    WORKLOADS,
    call,
    measure,
    session_file,
    small_loopback,
    table,
)
from tests.benchmark import UNSUPPORTED, USAGE, refused

TOKEN = "ab" * 32
BAD = [
    # One value by itself.
    ("tcp_stream", ["--streams=0"], ['"0"', "1 to 512"]),
    ("tcp_stream", ["--streams=513"], ['"513"', "1 to 512"]),
    ("tcp_stream", ["--threads=2"], ["--threads", "--streams"]),
    ("tcp_stream", ["--work=5"], ["--work", "--total-bytes"]),
    ("tcp_stream", ["--block-bytes=0"], ['"0"', "1 to 1048576"]),
    ("tcp_stream", ["--block-bytes=1048577"], ['"1048577"', "1 to 1048576"]),
    ("udp_stream", ["--block-bytes=65508"], ['"65508"', "1 to 65507"]),
    ("udp_rr", ["--block-bytes=65508"], ['"65508"', "1 to 65507"]),
    ("tcp_stream", ["--direction=up"], ['"up"', "send, receive, both"]),
    ("tcp_stream", ["--rate=0"], ['"0"', "byte/s"]),
    ("tcp_stream", ["--send-path=splice"], ['"splice"', "auto, copy, sendfile, zerocopy"]),
    ("udp_stream", ["--udp-path=batch"], ['"batch"', "auto, single, mmsg, gso"]),
    ("udp_stream", ["--send-path=copy"], ["--send-path", "--udp-path"]),
    ("udp_stream", ["--congestion=cubic"], ["--congestion", "allowed:"]),
    ("tcp_stream", ["--congestion=warp"], ['"warp"', "system, reno, cubic"]),
    ("tcp_stream", ["--ip-version=5"], ['"5"', "auto, 4, 6"]),
    ("tcp_stream", ["--target=mars"], ['"mars"', "auto, loopback, far_host"]),
    ("tcp_stream", ["--send-buffer-bytes=1073741825"], ['"1073741825"', "0 to 1073741824"]),
    ("tcp_stream", ["--load-streams=1"], ["--load-streams", "allowed:"]),
    ("tcp_rr", ["--load-streams=65"], ['"65"', "0 to 64"]),
    ("tcp_rr", ["--wait=sleep"], ['"sleep"', "block, spin"]),
    ("tcp_rr", ["--direction=both"], ["--direction", "allowed:"]),
    ("tcp_stream", ["--session-fd=2"], ['"2"', "3 to"]),
    ("naive_stream", ["--protocol=sctp"], ['"sctp"', "tcp, udp"]),
    ("naive_stream", ["--mode=receive"], ['"receive"', "send, echo"]),
    ("naive_stream", ["--block-bytes=1048577"], ['"1048577"', "1 to 1048576"]),
    ("naive_stream", ["--rate=5"], ["--rate", "allowed:"]),
    ("naive_stream", ["--threads=2"], ["--threads", "--streams"]),
    ("naive_stream", ["--work=5"], ["--work", "--total-bytes"]),
    # Several together, and what is outside of the program.
    ("tcp_stream", ["--target=far_host"], ["target far_host", "two hosts", "--far-host"]),
    ("tcp_stream", ["--far-cpus=8000"], ["--far-cpus", "CPU 8000", "out of"]),
    ("tcp_stream", ["--session-fd=900"], ["--session-fd 900"]),
    (
        "naive_stream",
        ["--protocol=udp", "--block-bytes=65508"],
        ["block_bytes 65508", "protocol udp", "65507 at most", "protocol tcp"],
    ),
]


@pytest.mark.parametrize(("workload", "arguments", "parts"), BAD)
def test_bad_argument(workload: str, arguments: list[str], parts: list[str]) -> None:
    refused(call(workload, *arguments), USAGE, *parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["token"]),
        ("port=1 token=" + TOKEN, ["address"]),
        ("address=127.0.0.1 port=1", ["token"]),
        ("address=localhost port=1 token=" + TOKEN, ["address"]),
        ("address=127.0.0.1 port=99999 token=" + TOKEN, ["port"]),
        ("address=127.0.0.1 port=1 token=xyz", ["token"]),
        ("address=224.0.0.1 port=1 token=" + TOKEN, ["multicast"]),
    ],
)
def test_a_session_that_is_none(text: str, parts: list[str]) -> None:
    with session_file(text) as fd:
        result = call("tcp_stream", f"--session-fd={fd}", pass_fds=(fd,))
    line = refused(result, USAGE, f"--session-fd {fd}", *parts)
    assert TOKEN not in line


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_far_end_that_is_not_there(workload: str) -> None:
    begun = time.monotonic()
    with session_file(f"address=127.0.0.1\nport=1\ntoken={TOKEN}\n") as fd:
        result = call(workload, f"--session-fd={fd}", pass_fds=(fd,))
    line = refused(result, 1, "127.0.0.1")
    assert TOKEN not in line
    assert time.monotonic() - begun < 5


def test_both_a_loopback_and_a_session() -> None:
    with session_file(f"address=127.0.0.1 port=1 token={TOKEN}") as fd:
        result = call("tcp_rr", "--target=loopback", f"--session-fd={fd}", pass_fds=(fd,))
    refused(result, USAGE, "target loopback", "session")


def test_an_address_of_the_other_version() -> None:
    with session_file(f"address=127.0.0.1 port=1 token={TOKEN}") as fd:
        result = call("tcp_rr", "--ip-version=6", f"--session-fd={fd}", pass_fds=(fd,))
    refused(result, USAGE, "ip_version 6", "127.0.0.1")


def test_a_congestion_control_that_the_kernel_lacks() -> None:
    words = next(p for p in table()["tcp_stream"]["params"] if p["name"] == "congestion")
    lacking = words["unsupported"]
    if not lacking:
        pytest.skip("this kernel has all of them")
    word = next(iter(lacking))
    refused(call("tcp_stream", f"--congestion={word}"), UNSUPPORTED, word)


def test_segments_larger_than_a_packet() -> None:
    prefix = small_loopback(1500)
    result = call("udp_stream", "--udp-path=gso", "--block-bytes=1473", prefix=prefix)
    refused(result, USAGE, "block_bytes 1473", "udp_path gso", "MTU of 1500", "1472", "mmsg")
    trial = measure("udp_stream", *MOMENT, "--block-bytes=1473", prefix=prefix)
    assert trial.params["udp_path"] == "mmsg" and "fragmented" in trial.warnings
    assert trial.facts["interface_mtu"] == "1500"


@pytest.mark.parametrize("workload", WORKLOADS)
def test_defaults(workload: str) -> None:
    params = {param["name"]: param["default"] for param in table()[workload]["params"]}
    blocks = {"tcp_stream": 131072, "udp_stream": 1472, "naive_stream": 32768}
    assert params["block_bytes"] == blocks.get(workload, 1)
    assert params["streams"] == 1 and params["target"] == "auto"
    udp = workload.startswith("udp")
    assert params["receive_buffer_bytes"] == (4194304 if udp else None)
    assert "threads" not in params and "session_fd" in params


def test_what_a_session_is_handed_by_is_no_request() -> None:
    for workload in table().values():
        scopes = {param["name"]: param["scope"] for param in workload["params"]}
        assert scopes["session_fd"] == "host" and scopes["far_cpus"] == "request"


def test_the_ends_share_no_cpu_where_there_are_others() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU alone")
    trial = measure("tcp_rr", *MOMENT)
    (near,) = trial.start["placement"]["cpus"]
    far = trial.params["far_cpus"]
    assert far and near not in far
    assert trial.facts["far_cpus"]


def test_the_ends_can_be_placed() -> None:
    cpu = min(os.sched_getaffinity(0))
    trial = measure("tcp_rr", *MOMENT, f"--cpus={cpu}", f"--far-cpus={cpu}")
    assert trial.start["placement"]["cpus"] == [cpu] == trial.params["far_cpus"]
    assert trial.facts["far_cpus"] == str(cpu)
