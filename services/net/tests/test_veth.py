"""Both ends in network namespaces of their own, a veth pair between them."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.net.tests.far_end import TOKEN, FarEnd, far_end
from services.net.tests.namespaces import Namespace, chain, pair, why_not
from services.net.tests.program import MOMENT, STREAMS, WORKLOADS, call, running, session_file
from tests.benchmark import FAILED, UNSUPPORTED, Trial, refused, trial_of

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def inside(namespace: Namespace) -> tuple[str, ...]:
    """What stands before a program that runs in there."""
    return ("nsenter", f"--net={namespace.path}")


@contextmanager
def session(far: Namespace, bind: str, allowed: str) -> Iterator[tuple[int, FarEnd]]:
    """A far end in there, and the file that names it."""
    with far_end(prefix=inside(far), bind=bind, allowed=allowed, duration_s=100) as end:
        end.listening()
        text = f"address={end.address} port={end.port} token={TOKEN.hex()}"
        with session_file(text) as fd:
            yield fd, end


def measure(near: Namespace, fd: int, *arguments: str) -> Trial:
    """A trial that must end well."""
    command: Sequence[str] = (*arguments, f"--session-fd={fd}")
    result = call(*command, prefix=inside(near), pass_fds=(fd,))
    assert result.returncode == 0, result.stderr
    return trial_of(result.stdout.splitlines())


@pytest.mark.parametrize(("near_at", "far_at"), [("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_the_way_is_in_the_result(workload: str, near_at: str, far_at: str) -> None:
    with pair() as (near, far), session(far, far_at, near_at) as (fd, end):
        trial = measure(near, fd, workload, *MOMENT, "--streams=2")
        end.ended("done")
    facts = trial.facts
    assert (facts["near_address"], facts["far_address"]) == (near_at, far_at)
    assert (facts["interface"], facts["far_interface"]) == ("near0", "far0")
    assert facts["network_mode"] == facts["far_network_mode"] == "veth"
    assert facts["interface_mtu"] == facts["far_interface_mtu"] == "1500"
    if workload in ("tcp_stream", "tcp_rr", "udp_stream"):
        assert trial.metrics["path_mtu_bytes"] == 1500
    if workload == "udp_stream" and ":" in near_at:
        # 48 bytes of headers: a block of 1472 is more than a packet.
        assert trial.params["udp_path"] == "mmsg" and "fragmented" in trial.warnings


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_loss_on_the_way_is_exact(direction: str) -> None:
    """A token bucket between the two drops what is over its rate, and counts it."""
    with chain() as (near, middle, far):
        device = "out0" if direction == "send" else "in0"
        bucket = ["tbf", "rate", "80mbit", "burst", "32kb", "limit", "64kb"]
        try:
            middle.call("tc", "qdisc", "add", "dev", device, "root", *bucket)
        except subprocess.CalledProcessError:
            pytest.skip("no token bucket here (tc, sch_tbf)")
        with session(far, "10.9.2.1", "10.9.1.1") as (fd, end):
            trial = measure(
                *(near, fd, "udp_stream", f"--direction={direction}", "--rate=20000000"),
                *("--duration-s=1", "--warmup-s=0", "--udp-path=mmsg", "--block-bytes=1000"),
            )
            end.ended("done")
        (queue,) = json.loads(middle.call("tc", "-s", "-j", "qdisc", "show", "dev", device))
    metrics = trial.metrics
    assert queue["drops"] > 0
    assert metrics["lost_datagrams"] == queue["drops"] + metrics["receiver_dropped_datagrams"]
    assert 0.3 < metrics["lost_ratio"] < 0.7


@pytest.mark.parametrize("direction", ["send", "receive"])
@pytest.mark.parametrize("workload", STREAMS)
def test_a_cable_that_is_pulled(workload: str, direction: str) -> None:
    """No end says good-bye: silence is what both ends have to notice."""
    with pair() as (near, far), session(far, "10.9.0.2", "10.9.0.1") as (fd, end):
        arguments = (f"--direction={direction}", "--rate=1000000", f"--session-fd={fd}")
        with running(workload, *arguments, prefix=inside(near), pass_fds=(fd,)) as (process, _):
            time.sleep(0.3)
            begun = time.monotonic()
            far.call("ip", "link", "set", "far0", "down")
            output, messages = process.communicate(timeout=20)
            assert time.monotonic() - begun < 5
        assert process.returncode == FAILED and len(messages.splitlines()) == 1
        assert json.loads(output.splitlines()[-1])["event"] == "error"
        assert end.process.wait(timeout=5) == 1


def test_a_far_end_that_cannot_be_reached() -> None:
    with pair() as (near, _), session_file(f"address=10.9.0.3 port=9 token={TOKEN.hex()}") as fd:
        begun = time.monotonic()
        result = call("tcp_rr", f"--session-fd={fd}", prefix=inside(near), pass_fds=(fd,))
        assert time.monotonic() - begun < 5
        refused(result, FAILED, "10.9.0.3")


def test_no_way_at_all() -> None:
    with pair() as (near, _), session_file(f"address=192.0.2.1 port=9 token={TOKEN.hex()}") as fd:
        result = call("tcp_rr", f"--session-fd={fd}", prefix=inside(near), pass_fds=(fd,))
        refused(result, FAILED, "no route", "192.0.2.1", "unreachable")


@pytest.mark.parametrize(
    ("workload", "arguments"),
    [
        ("tcp_stream", ("--direction=send",)),
        ("tcp_stream", ("--direction=receive",)),
        ("tcp_rr", ("--block-bytes=20000",)),
    ],
)
def test_a_path_that_drops_large_packets_without_a_word(
    workload: str, arguments: tuple[str, ...]
) -> None:
    """A link whose other side takes less than its MTU: heartbeats pass all the same."""
    with chain() as (near, middle, far):
        receives = "--direction=receive" in arguments
        end, device, hop = (far, "far0", "out0") if receives else (near, "near0", "in0")
        # Packets as they are on a wire: what the kernel would cut up later has no length to check.
        end.call("ip", "link", "set", device, "gso_max_segs", "1")
        middle.call("ip", "link", "set", hop, "mtu", "900")
        with session(far, "10.9.2.1", "10.9.1.1") as (fd, _):
            begun = time.monotonic()
            result = call(
                *(workload, *arguments, "--duration-s=20", "--warmup-s=0", f"--session-fd={fd}"),
                prefix=inside(near),
                pass_fds=(fd,),
            )
            assert time.monotonic() - begun < 9
            refused(result, FAILED, "MTU", "block_bytes")


def set_congestion(namespace: Namespace, word: str) -> None:
    """What `system` is in there."""
    path = "/proc/sys/net/ipv4/tcp_congestion_control"
    command = [*inside(namespace), "sh", "-c", f"echo {word} > {path}"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(f"this kernel has no {word}, or the namespace may not choose it")


def test_what_the_far_kernel_may_not_choose_is_skipped() -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    with pair() as (near, far):
        user = (
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        )
        address: dict[str, Any] = {"bind": "10.9.0.2", "allowed": "10.9.0.1", "duration_s": 100}
        with far_end(prefix=(*inside(far), *user), **address) as end:
            end.listening()
            text = f"address={end.address} port={end.port} token={TOKEN.hex()}"
            with session_file(text) as fd:
                command = ("tcp_stream", *MOMENT, "--congestion=cubic", f"--session-fd={fd}")
                result = call(*command, prefix=inside(near), pass_fds=(fd,))
    if "cubic" in allowed:
        assert result.returncode == 0, result.stderr
        pytest.skip("here everybody may take cubic")
    refused(result, UNSUPPORTED, "congestion cubic at the far end", "tcp_allowed")


@pytest.mark.parametrize(
    ("direction", "named"), [("send", "reno"), ("receive", "bbr"), ("both", "system")]
)
@pytest.mark.sampled(3)
def test_the_congestion_control_is_the_senders(direction: str, named: str) -> None:
    near_at, far_at = "10.9.0.1", "10.9.0.2"
    with pair() as (near, far):
        set_congestion(near, "reno")
        set_congestion(far, "bbr")
        with session(far, far_at, near_at) as (fd, end):
            trial = measure(near, fd, "tcp_stream", *MOMENT, f"--direction={direction}")
            end.ended("done")
    assert trial.params["congestion"] == named
    assert (trial.facts["congestion"], trial.facts["far_congestion"]) == ("reno", "bbr")
