"""The idle gate, over counters that a test writes."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.host.idle import (
    Counters,
    IdleGate,
    LocalWatch,
    ProcessTimes,
    read_counters,
    window_between,
)
from hostbench.model.result import IdleWindow
from hostbench.model.suite import IdleRules

TICKS_A_WINDOW = 100
NO_SYS = Path("/none")


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


class Proc:
    """A /proc whose counters advance by one second whenever `advance` is called."""

    def __init__(self, path: Path, cpus: int = 2) -> None:
        self.path = path
        self.cpus = [[0] * 10 for _ in range(cpus)]
        self.psi_us = 0
        (path / "pressure").mkdir(parents=True)
        self.write()

    def advance(self, busy: list[float], steal: float = 0.0, psi: float = 0.0) -> None:
        """`busy` and `steal` are shares of each CPU's time."""
        for cpu, share in zip(self.cpus, busy, strict=True):
            cpu[0] += round(share * TICKS_A_WINDOW)
            cpu[7] += round(steal * TICKS_A_WINDOW)
            cpu[3] += round((1 - share - steal) * TICKS_A_WINDOW)
        self.psi_us += round(psi * 1e6)
        self.write()

    def write(self) -> None:
        total = [sum(column) for column in zip(*self.cpus, strict=True)]
        lines = [f"cpu  {' '.join(map(str, total))}"]
        lines += [f"cpu{i} {' '.join(map(str, cpu))}" for i, cpu in enumerate(self.cpus)]
        (self.path / "stat").write_text("\n".join([*lines, "intr 1 2 3"]) + "\n")
        (self.path / "pressure" / "cpu").write_text(
            f"some avg10=99.00 avg60=0.00 avg300=0.00 total={self.psi_us}\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        )


def window(proc: Proc, seconds: float = 1.0, **use: Any) -> IdleWindow:
    before = read_counters(proc.path, NO_SYS)
    proc.advance(**use)
    after = read_counters(proc.path, NO_SYS)
    # The clock is the only thing a test cannot write.
    return window_between(before, dataclasses.replace(after, at_s=before.at_s + seconds))


def codes(one: IdleWindow) -> list[str]:
    return [reason.code for reason in one.reasons]


def test_shares_are_of_the_window_and_not_of_the_past(tmp_path: Path) -> None:
    proc = Proc(tmp_path / "proc")
    proc.advance([1.0, 1.0], psi=1.0)
    one = window(proc, busy=[0.5, 0.0], steal=0.1, psi=0.25)
    assert one.busy_ratio == pytest.approx(0.25)
    assert one.busiest_cpu_ratio == pytest.approx(0.5)
    assert one.steal_ratio == pytest.approx(0.1)
    assert one.psi_cpu_ratio == pytest.approx(0.25)


def test_disks_and_network_are_reported_and_not_judged() -> None:
    before = Counters(at_s=0.0, cpus={}, psi_cpu_some_s=None, disk_bytes=1000, network_bytes=None)
    after = Counters(at_s=2.0, cpus={}, psi_cpu_some_s=None, disk_bytes=10**10, network_bytes=5)
    one = window_between(before, after)
    assert one.disk_bytes_per_second == (10**10 - 1000) / 2 and one.reasons == ()
    assert one.network_bytes_per_second is None, "not known before"
    # A disk was taken out meanwhile, and its count with it.
    gone = window_between(after, dataclasses.replace(before, at_s=3.0))
    assert gone.disk_bytes_per_second == 0


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ({"busy": [0.0, 0.0]}, []),
        ({"busy": [0.01, 0.02]}, []),
        ({"busy": [0.02, 0.02]}, ["busy"]),
        ({"busy": [0.0, 0.0], "steal": 0.01}, ["stolen"]),
        ({"busy": [0.0, 0.0], "psi": 0.02}, ["cpu_pressure"]),
    ],
)
def test_thresholds(tmp_path: Path, use: dict[str, Any], expected: list[str]) -> None:
    assert codes(window(Proc(tmp_path / "proc"), **use)) == expected


def test_one_busy_cpu_of_many_is_seen(tmp_path: Path) -> None:
    proc = Proc(tmp_path / "proc", cpus=64)
    one = window(proc, busy=[1.0] + [0.0] * 63)
    assert one.busy_ratio == pytest.approx(1 / 64)
    assert codes(one) == ["busy_cpu"]


def test_what_cannot_be_read_is_none(tmp_path: Path, interrupt: Interrupt) -> None:
    counters = read_counters(tmp_path / "none", NO_SYS)
    one = window_between(counters, read_counters(tmp_path / "none", NO_SYS))
    assert (one.busy_ratio, one.steal_ratio, one.psi_cpu_ratio) == (None, None, None)
    watch = LocalWatch(tmp_path / "none", window_s=0.01)
    gate = IdleGate(IdleRules(policy="fail"), interrupt, watch)
    assert gate.ask(("aaaa",)).idle is None


def gate_over(
    proc: Proc, uses: list[dict[str, Any]], interrupt: Interrupt, **rules: Any
) -> tuple[IdleGate, list[IdleWindow]]:
    """A gate whose every window has the next use; the last one goes on for ever."""
    waits: list[IdleWindow] = []
    upcoming = itertools.chain(uses, itertools.repeat(uses[-1]))

    class Advancing(Interrupt):
        def wait(self, seconds: float) -> None:
            interrupt.wait(seconds)
            proc.advance(**next(upcoming))

    watch = LocalWatch(proc.path, window_s=0.02)
    gate = IdleGate(IdleRules(**rules), Advancing(), watch, on_wait=waits.append)
    return gate, waits


BUSY, QUIET = {"busy": [0.9, 0.9]}, {"busy": [0.0, 0.0]}


def test_opens_at_once_on_an_idle_host(tmp_path: Path, interrupt: Interrupt) -> None:
    gate, waits = gate_over(Proc(tmp_path / "proc"), [QUIET], interrupt, policy="fail")
    record = gate.ask(("aaaa", "bbbb"))
    assert record.idle is True
    assert record.cases == ("aaaa", "bbbb")
    assert waits == []


def test_waits_for_an_idle_host(tmp_path: Path, interrupt: Interrupt) -> None:
    gate, waits = gate_over(
        Proc(tmp_path / "proc"), [BUSY, BUSY, QUIET], interrupt, policy="fail", timeout_s=60.0
    )
    assert gate.ask(("aaaa",)).idle is True
    assert len(waits) == 2


@pytest.mark.parametrize("policy", ["fail", "flag"])
def test_gives_up_after_the_timeout(tmp_path: Path, interrupt: Interrupt, policy: str) -> None:
    gate, _ = gate_over(Proc(tmp_path / "proc"), [BUSY], interrupt, policy=policy, timeout_s=0.1)
    record = gate.ask(("aaaa",))
    assert record.idle is False
    assert 0.05 <= record.waited_s < 20
    assert record.window is not None and codes(record.window)[0] == "busy"


def test_a_timeout_of_0_still_looks_once(tmp_path: Path, interrupt: Interrupt) -> None:
    gate, _ = gate_over(Proc(tmp_path / "proc"), [QUIET], interrupt, policy="fail", timeout_s=0)
    assert gate.ask(("aaaa",)).idle is True


def test_force_neither_waits_nor_looks(tmp_path: Path, interrupt: Interrupt) -> None:
    gate = IdleGate(IdleRules(policy="force"), interrupt, LocalWatch(tmp_path / "none"))
    record = gate.ask(("aaaa",))
    assert (record.idle, record.waited_s, record.window) == (None, 0.0, None)


def test_a_signal_ends_the_wait(tmp_path: Path) -> None:
    import signal

    interrupt = Interrupt()
    interrupt.trip(signal.SIGTERM)
    watch = LocalWatch(Proc(tmp_path / "proc").path, window_s=60)
    gate = IdleGate(IdleRules(), interrupt, watch)
    with pytest.raises(Interrupted, match="SIGTERM"):
        gate.ask(("aaaa",))
    interrupt.close()


def test_the_busiest_processes_are_the_evidence(tmp_path: Path) -> None:
    proc = Proc(tmp_path / "proc").path

    def process(pid: int, command: str, ticks: int) -> None:
        (proc / str(pid)).mkdir(exist_ok=True)
        rest = " ".join(["S", *["0"] * 10, str(ticks), "0", *["0"] * 30])
        (proc / str(pid) / "stat").write_text(f"{pid} ({command}) {rest}\n")

    process(10, "cc1 (x) y", 100)
    process(11, "idle", 500)
    times = ProcessTimes(proc)
    process(10, "cc1 (x) y", 100000)
    process(12, "new", 90000)
    busiest = times.busiest_since()
    assert [(one.pid, one.command) for one in busiest] == [(10, "cc1 (x) y"), (12, "new")]
    assert busiest[0].cpu_ratio > busiest[1].cpu_ratio


def test_the_real_counters_can_be_read(interrupt: Interrupt) -> None:
    gate = IdleGate(IdleRules(timeout_s=0), interrupt, LocalWatch(window_s=0.2))
    record = gate.ask(("aaaa",))
    assert record.window is not None
    assert record.window.busy_ratio is not None
    assert 0 <= record.window.busy_ratio <= 1
