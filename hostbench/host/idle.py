"""The idle gate: does anybody else use this host right now?

It compares kernel counters over one second, so it does not remember our own last trial, as PSI's
avg10 would. A share that the kernel does not report is not judged.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hostbench.base.cpu_times import CpuTimes, parse_cpu_times
from hostbench.base.interrupt import Interrupt
from hostbench.base.units import bound, percent
from hostbench.host.processes import BUSIEST_SHOWN, BUSY_RATIO_LEAST, read_processes
from hostbench.model.result import Busy, IdleRecord, IdleWindow, Reason
from hostbench.model.service import IdleAnswer
from hostbench.model.suite import IdleRules

WINDOW_S = 1.0
BUSY_RATIO_MOST = 0.02
STEAL_RATIO_MOST = 0.01
PSI_RATIO_MOST = 0.02
# On a host of 64 CPUs, one CPU that is always busy is 1.6 % of the whole, yet a thread that shares
# it loses half its speed.
BUSIEST_CPU_RATIO_MOST = 0.50


@dataclass(frozen=True)
class Counters:
    """The kernel's counters at one moment: CPU times by name, PSI in seconds, bytes."""

    at_s: float
    cpus: dict[str, CpuTimes]
    psi_cpu_some_s: float | None
    disk_bytes: int | None = None
    network_bytes: int | None = None


def read_counters(proc: Path, sys: Path = Path("/sys")) -> Counters:
    """Return the present counters; those that cannot be read are missing."""
    return Counters(
        at_s=time.monotonic(),
        cpus=_cpu_times(proc),
        psi_cpu_some_s=_psi_cpu_some_s(proc),
        disk_bytes=disk_bytes(sys),
        network_bytes=network_bytes(proc, sys),
    )


def _cpu_times(proc: Path) -> dict[str, CpuTimes]:
    try:
        return parse_cpu_times((proc / "stat").read_text())
    except OSError:
        return {}


def _psi_cpu_some_s(proc: Path) -> float | None:
    try:
        match = re.search(r"^some .*total=(\d+)", (proc / "pressure/cpu").read_text())
    except OSError:
        return None
    return int(match[1]) / 1e6 if match else None


def window_between(before: Counters, after: Counters) -> IdleWindow:
    """Return how busy the host was between two readings. Disks and network are reported, not
    judged."""
    seconds = after.at_s - before.at_s
    shares = {
        name: ratios
        for name, times in after.cpus.items()
        if name in before.cpus and (ratios := times.ratios(before.cpus[name])) is not None
    }
    busy, steal = shares.pop("cpu", (None, None))
    busiest = max((ratios[0] for ratios in shares.values()), default=None)
    psi = _rate(before.psi_cpu_some_s, after.psi_cpu_some_s, seconds)
    return IdleWindow(
        seconds=seconds,
        busy_ratio=busy,
        steal_ratio=steal,
        busiest_cpu_ratio=busiest,
        psi_cpu_ratio=psi,
        reasons=_reasons(busy, steal, busiest, psi),
        disk_bytes_per_second=_rate(before.disk_bytes, after.disk_bytes, seconds),
        network_bytes_per_second=_rate(before.network_bytes, after.network_bytes, seconds),
    )


def _rate(before: float | None, after: float | None, seconds: float) -> float | None:
    """Return the rate, or None if a value is unknown. It is 0 if a device has gone with its
    count."""
    if before is None or after is None:
        return None
    return max(0.0, after - before) / seconds


def _reasons(
    busy: float | None, steal: float | None, busiest: float | None, psi: float | None
) -> tuple[Reason, ...]:
    judged = (
        (busy, BUSY_RATIO_MOST, "busy", "its CPUs were busy for {} of the time"),
        (busiest, BUSIEST_CPU_RATIO_MOST, "busy_cpu", "one CPU was busy for {} of the time"),
        (steal, STEAL_RATIO_MOST, "stolen", "the hypervisor gave {} of the CPU time to others"),
        (psi, PSI_RATIO_MOST, "cpu_pressure", "a task waited for a CPU {} of the time"),
    )
    return tuple(
        Reason(
            code=code,
            text=f"{text.format(percent(ratio))} (an idle host stays below {bound(most)})",
        )
        for ratio, most, code, text in judged
        if ratio is not None and ratio >= most
    )


class ProcessTimes:
    """The CPU time of every other process at one moment, to find the busiest processes of a
    second."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._at_s = time.monotonic()
        self._before = read_processes(proc)

    def busiest_since(self) -> tuple[Busy, ...]:
        """Return the processes that used most CPU time since this was made, largest first."""
        seconds = max(1e-9, time.monotonic() - self._at_s)
        found = [
            Busy(pid=one.pid, command=one.command, cpu_ratio=ratio)
            for one in read_processes(self._proc).values()
            if one.pid != os.getpid()
            and (ratio := one.used_since(self._before) / seconds) >= BUSY_RATIO_LEAST
        ]
        return tuple(sorted(found, key=lambda busy: -busy.cpu_ratio)[:BUSIEST_SHOWN])


class HostWatch(Protocol):
    """Watches a host: this one, or through a service."""

    def look(self, interrupt: Interrupt) -> IdleAnswer:
        """Return how busy the host is over about the next second. Raise Interrupted, or what
        prevents the look."""
        ...


class LocalWatch:
    """Watches this host, for `window_s` seconds at a time."""

    def __init__(
        self,
        proc: Path = Path("/proc"),
        window_s: float = WINDOW_S,
        sys: Path = Path("/sys"),
    ) -> None:
        self._proc = proc
        self._sys = sys
        self._window_s = window_s

    def look(self, interrupt: Interrupt) -> IdleAnswer:
        """See HostWatch.look."""
        processes = ProcessTimes(self._proc)
        before = read_counters(self._proc, self._sys)
        interrupt.wait(self._window_s)
        window = window_between(before, read_counters(self._proc, self._sys))
        return IdleAnswer(
            window=window, busiest=processes.busiest_since() if window.reasons else ()
        )


class IdleGate:
    """Waits until the host is idle, or until the rules end the wait."""

    def __init__(
        self,
        rules: IdleRules,
        interrupt: Interrupt,
        watch: HostWatch,
        on_wait: Callable[[IdleWindow], None] = lambda window: None,
    ) -> None:
        """`on_wait` gets every window that was too busy."""
        self._rules = rules
        self._interrupt = interrupt
        self._watch = watch
        self._on_wait = on_wait

    def ask(self, cases: tuple[str, ...]) -> IdleRecord:
        """Return the gate's record for `cases`; the caller applies the policy.

        Raise Interrupted when a signal to end this process comes meanwhile.
        """
        started_unix_s, started_s = time.time(), time.monotonic()
        if self._rules.policy == "force":
            return self._record(cases, started_unix_s, None, 0.0, None, ())
        while True:
            answer = self._watch.look(self._interrupt)
            window, busiest = answer.window, answer.busiest
            waited_s = time.monotonic() - started_s
            if window.busy_ratio is None:
                return self._record(cases, started_unix_s, None, waited_s, window, ())
            if not window.reasons:
                return self._record(cases, started_unix_s, True, waited_s, window, ())
            if waited_s + window.seconds > self._rules.timeout_s:
                return self._record(cases, started_unix_s, False, waited_s, window, busiest)
            self._on_wait(window)

    def _record(
        self,
        cases: tuple[str, ...],
        time_unix_s: float,
        idle: bool | None,
        waited_s: float,
        window: IdleWindow | None,
        busiest: tuple[Busy, ...],
    ) -> IdleRecord:
        return IdleRecord(
            cases=cases,
            time_unix_s=time_unix_s,
            policy=self._rules.policy,
            idle=idle,
            waited_s=waited_s,
            window=window,
            busiest=busiest,
        )


# Documentation/block/stat.rst: these sectors always have 512 bytes, whatever the device's own have.
SECTOR_BYTES = 512
_READ_SECTORS, _WRITTEN_SECTORS = 2, 6
_NOT_DISKS = ("loop", "ram", "zram")
# proc_pid_net(5): bytes received and transmitted of an interface.
_RECEIVED, _TRANSMITTED = 0, 8
_LOOPBACK = "lo"


def disk_bytes(sys: Path) -> int | None:
    """Return the bytes read and written together, or None if the kernel does not report them. `sys`
    stands for /sys."""
    moved = [
        sectors * SECTOR_BYTES
        for disk in (sys / "block").glob("*")
        if _is_disk(disk) and (sectors := _sectors(disk)) is not None
    ]
    return sum(moved) if moved else None


def _is_disk(disk: Path) -> bool:
    made_of_others = any((disk / "slaves").glob("*"))
    return not made_of_others and disk.name.rstrip("0123456789") not in _NOT_DISKS


def _sectors(disk: Path) -> int | None:
    # A device may disappear while it is read.
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = (disk / "stat").read_text().split()
        return int(fields[_READ_SECTORS]) + int(fields[_WRITTEN_SECTORS])
    return None


def network_bytes(proc: Path, sys: Path) -> int | None:
    """Return the bytes received and sent together, or None if the kernel does not report them.

    The interfaces of hardware count; where there are none, as in a container, all except the
    loopback.
    """
    moved = _interfaces(proc)
    hardware = [name for name in moved if (sys / "class/net" / name / "device").exists()]
    return sum(moved[name] for name in hardware or moved) if moved else None


def _interfaces(proc: Path) -> dict[str, int]:
    moved = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (proc / "net/dev").read_text().splitlines()[2:]:
            # A name may hold a colon; the numbers may follow the last one without a space.
            name, _, rest = line.rpartition(":")
            fields = rest.split()
            if name.strip() != _LOOPBACK:
                moved[name.strip()] = int(fields[_RECEIVED]) + int(fields[_TRANSMITTED])
    return moved
