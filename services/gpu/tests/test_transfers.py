"""Copies between host and device and between devices, on PoCL and on the stand-in for CUDA."""

from pathlib import Path

import pytest

from services.gpu.tests.cuda_stub import environment, read_report
from services.gpu.tests.program import MOMENT, WINDOWS, call, measure, on_pocl, table
from tests.benchmark import RESOURCE, UNSUPPORTED, USAGE, WRONG, Trial, refused

MIB = 1 << 20
SIZE = f"--size-bytes={4 * MIB}"
ON_STUB = ("--backend=cuda",)
TRANSFERS = ("host_to_device", "device_to_host", "bidirectional")
MEMORIES = ("pinned", "pageable")
on_both = pytest.mark.parametrize("backend", ["opencl", "cuda"])


def trial_on(
    backend: str,
    workload: str,
    *arguments: str,
    time: tuple[str, ...] = MOMENT,
    cards: int = 1,
) -> Trial:
    if backend == "opencl":
        return measure(workload, *on_pocl(), *arguments, *time)
    return measure(workload, *ON_STUB, *arguments, *time, env=environment(cards=cards))


# ---- host and device -------------------------------------------------------------------------


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("workload", TRANSFERS[:2])
@on_both
@pytest.mark.sampled(7)
def test_a_trial(backend: str, workload: str, memory: str) -> None:
    trial = trial_on(backend, workload, SIZE, f"--host-memory={memory}", time=WINDOWS)
    metrics = trial.metrics
    assert metrics["bytes_per_second"] > 1e7 and metrics["work_bytes"] % (4 * MIB) == 0
    assert metrics["rate_best"] >= metrics["bytes_per_second"]
    timed_by = {"pinned": "events of the device", "pageable": "clock of the host"}
    assert trial.facts["timed_by"] == timed_by[memory]
    elapsed_s = trial.end["elapsed_s"]
    busy = metrics["device_busy_ratio"] * elapsed_s * metrics["bytes_per_second_sum"]
    assert metrics["work_bytes"] == pytest.approx(busy, rel=0.1)


@on_both
def test_both_directions(backend: str) -> None:
    metrics = trial_on(backend, "bidirectional", SIZE).metrics
    both = [metrics[f"{way}_bytes_per_second"] for way in TRANSFERS[:2]]
    assert min(both) > 1e7
    assert metrics["bytes_per_second_sum"] == pytest.approx(sum(both), rel=1e-9)
    assert 0 < metrics["device_busy_ratio"] <= 1.05


def test_both_directions_are_at_work_together() -> None:
    """Each of them all the time: the copies of the two overlap. One behind the other is a half at
    most, every time; a machine that others load too may keep them apart now and then."""
    size = f"--size-bytes={32 * MIB}"
    trials = (trial_on("cuda", "bidirectional", size, time=WINDOWS) for _ in range(3))
    assert any(trial.metrics["device_busy_ratio"] > 0.7 for trial in trials)


def test_pageable_memory_has_no_two_directions() -> None:
    arguments = ("bidirectional", *ON_STUB, "--host-memory=pageable")
    line = refused(call(*arguments, env=environment()), UNSUPPORTED, "pageable", "use host_memory")
    listed = table(env=environment())["bidirectional"]
    assert listed["unsupported"] is None
    (memory,) = (one for one in listed["params"] if one["name"] == "host_memory")
    assert memory["unsupported"]["pageable"] in line and "pinned" not in memory["unsupported"]


@pytest.mark.parametrize("size", [4, 4096, 16 * MIB + 4])
@pytest.mark.parametrize("workload", TRANSFERS)
@pytest.mark.sampled(7)
def test_any_size(workload: str, size: int) -> None:
    trial = trial_on("cuda", workload, f"--size-bytes={size}")
    assert trial.metrics["work_bytes"] % size == 0


# ---- what is wrong is seen -------------------------------------------------------------------

# So large that a piece of work is one copy: two to calibrate, none in a ramp of no time, one then.
LARGE = 128 * MIB
LAST = 3
ONE_COPY = (f"--size-bytes={LARGE}", "--work=1", "--warmup-s=0")


@pytest.mark.parametrize("what", ["lazy", "wrong"])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    ("workload", "where"),
    [
        ("host_to_device", "what arrived on the device"),
        ("device_to_host", "what arrived on the host"),
    ],
)
@pytest.mark.sampled(7)
def test_a_copy_that_fails_to_copy(workload: str, where: str, memory: str, what: str) -> None:
    """Not at all, or all but the last bit."""
    settings = {what: f"memcpy:{LARGE}:{LAST}"}
    env = environment(None, memory=1024 * MIB, **settings)
    result = call(workload, *ON_STUB, *ONE_COPY, f"--host-memory={memory}", env=env)
    line = refused(result, WRONG, where, "do not trust")
    word = 0 if what == "lazy" else LARGE // 4 - 1
    assert f"word {word} of" in line


@pytest.mark.parametrize("nth", [3, 4, 5])
@pytest.mark.sampled(2)
def test_one_of_two_directions(nth: int) -> None:
    """The other direction's one before the warm-up, and of the two of the timed region either."""
    env = environment(None, memory=1024 * MIB, lazy=f"memcpy:{LARGE}:{nth}")
    arguments = (f"--size-bytes={LARGE}", "--work=1", "--warmup-s=0")
    refused(call("bidirectional", *ON_STUB, *arguments, env=env), WRONG, "what arrived on the ")


def test_a_warm_up_of_no_time() -> None:
    """Nothing is copied in it, and nothing is missed behind it."""
    arguments = (SIZE, "--warmup-s=0", "--duration-s=0.1")
    for workload in TRANSFERS:
        measure(workload, *ON_STUB, *arguments, env=environment())
    measure("peer_to_peer", *ON_STUB, *arguments, "--direction=both", env=environment(cards=2))


# ---- between devices -------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["write", "read", "both"])
def test_peers(direction: str) -> None:
    trial = trial_on("cuda", "peer_to_peer", SIZE, f"--direction={direction}", cards=2)
    metrics = trial.metrics
    assert metrics["bytes_per_second"] > 1e7 and metrics["work_bytes"] % (4 * MIB) == 0
    assert trial.params["device"] == "0" and trial.params["peer_device"] == "1"
    assert trial.facts["device_name"] == "Stand-in 0"
    assert trial.facts["peer_device_name"] == "Stand-in 1"
    for way in ("write", "read"):
        rate = metrics[f"{way}_bytes_per_second"]
        if direction in (way, "both"):
            assert rate > 1e7
        else:
            assert rate is None


@pytest.mark.parametrize(("device", "peer"), [("0", "2"), ("2", "0"), ("1", "auto")])
def test_which_peer(device: str, peer: str) -> None:
    arguments = (SIZE, f"--device={device}", f"--peer-device={peer}")
    trial = trial_on("cuda", "peer_to_peer", *arguments, cards=3)
    meant = "2" if peer == "auto" else peer
    assert trial.params["peer_device"] == meant
    assert trial.facts["peer_device_name"] == f"Stand-in {meant}"


def test_the_last_one_has_the_first_one_as_its_peer() -> None:
    trial = trial_on("cuda", "peer_to_peer", SIZE, "--device=1", cards=2)
    assert trial.facts["peer_device_name"] == "Stand-in 0"


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--peer-device=0"], USAGE, ["--peer-device 0", "the device itself", "--list-devices"]),
        (["--peer-device=7"], USAGE, ["--peer-device", "7", "Stand-in 1"]),
        (["--direction=up"], USAGE, ['"up"', "write, read, both"]),
        (["--size-bytes=6"], USAGE, ["size_bytes 6", "multiple of 4"]),
        ([f"--size-bytes={1 << 40}"], RESOURCE, [f"size_bytes {1 << 40}", "Stand-in"]),
    ],
)
def test_peers_that_are_none(arguments: list[str], code: int, parts: list[str]) -> None:
    refused(call("peer_to_peer", *ON_STUB, *arguments, env=environment(cards=2)), code, *parts)


def test_one_card_has_no_peer() -> None:
    result = call("peer_to_peer", *ON_STUB, env=environment())
    refused(result, UNSUPPORTED, "needs two devices", "Stand-in 0 is the only one")


def test_opencl_has_no_peers() -> None:
    refused(call("peer_to_peer", *on_pocl()), UNSUPPORTED, "opencl", "cuda has")


@pytest.mark.parametrize("direction", ["write", "read"])
def test_a_peer_copy_that_does_nothing(direction: str) -> None:
    env = environment(None, cards=2, memory=512 * MIB, lazy=f"memcpy:{LARGE}:{LAST}")
    result = call("peer_to_peer", *ON_STUB, *ONE_COPY, f"--direction={direction}", env=env)
    refused(result, WRONG, "what arrived on the other device")


def test_both_cards_are_given_back(tmp_path: Path) -> None:
    report = tmp_path / "report"
    env = environment(cards=2, report=str(report))
    measure("peer_to_peer", *ON_STUB, SIZE, "--direction=both", *MOMENT, env=env)
    left = read_report(report).left
    assert left["memory"] == left["stream"] == left["context"] == 0


# ---- sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", TRANSFERS)
@pytest.mark.sampled(7)
def test_what_would_fit_does(workload: str) -> None:
    env = environment(memory=256 * MIB)
    size = f"--size-bytes={1 << 30}"
    line = refused(
        call(workload, *ON_STUB, size, env=env), RESOURCE, "size_bytes 1073741824", "0.25 GiB"
    )
    fits = int(line.split("--size-bytes=")[1].split()[0])
    arrays = 2 if workload == "bidirectional" else 1
    assert 0.5 * 256 * MIB < arrays * fits < 256 * MIB
    trial = measure(workload, *ON_STUB, f"--size-bytes={fits}", *MOMENT, env=env)
    assert trial.params["size_bytes"] == fits


@pytest.mark.parametrize(
    ("workload", "arrays"), [("host_to_device", 2), ("device_to_host", 2), ("bidirectional", 4)]
)
def test_memory_that_is_the_hosts_holds_both_ends(workload: str, arrays: int) -> None:
    env = environment(memory=256 * MIB, integrated=1)
    result = call(workload, *ON_STUB, f"--size-bytes={1 << 30}", env=env)
    line = refused(result, RESOURCE, f"needs {arrays} arrays", "0.25 GiB")
    fits = int(line.split("--size-bytes=")[1].split()[0])
    assert 0.5 * 256 * MIB < arrays * fits < 256 * MIB


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_host_has_no_room(memory: str) -> None:
    """Before anything is allocated: locked memory cannot be swapped out."""
    env = environment(memory=1 << 45)
    size = f"--size-bytes={1 << 42}"
    result = call("host_to_device", *ON_STUB, size, f"--host-memory={memory}", env=env)
    line = refused(result, RESOURCE, "on the host", "4096.00 GiB", "use --size-bytes=")
    fits = int(line.split("--size-bytes=")[1].split()[0])
    assert 0 < fits < 1 << 42
