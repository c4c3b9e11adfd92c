"""The processes of this host and their CPU time."""

import contextlib
import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostbench.base.cpu_times import parse_cpu_times
from hostbench.model.events import DiskUse, DiskUser, OtherGroup, OtherProcesses, OthersEvent

# proc_pid_stat(5), counted from after the command.
_PARENT, _FLAGS, _USER, _SYSTEM, _STARTED = 1, 6, 11, 12, 19
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's sched.h
# The kernel's number of its first PID namespace (PROC_PID_INIT_INO, proc_ns.h).
_FIRST_NAMESPACE = "pid:[4026531836]"
BUSIEST_SHOWN = 3
# A process below this share of a CPU explains nothing.
BUSY_RATIO_LEAST = 0.01
# The size of the blocks that getrusage(2) counts.
_BLOCK_BYTES = 512


@dataclass(frozen=True)
class Process:
    """One process at one moment: the CPU time in seconds of all its threads, the part in its own
    code, and the bytes it has read from disks and written to them; None: unknown, or not
    requested."""

    pid: int
    command: str
    parent: int
    cpu_s: float
    user_s: float
    started: int
    kernel: bool
    disk_bytes: int | None = None

    def used_since(self, before: Mapping[int, "Process"]) -> float:
        """Return its CPU time since `before` was read; all of it if it began later."""
        earlier = self._earlier(before)
        return self.cpu_s if earlier is None else max(0.0, self.cpu_s - earlier.cpu_s)

    def user_since(self, before: Mapping[int, "Process"]) -> float:
        """Return its CPU time in its own code since then."""
        earlier = self._earlier(before)
        return self.user_s if earlier is None else max(0.0, self.user_s - earlier.user_s)

    def moved_since(self, before: Mapping[int, "Process"]) -> int:
        """Return the bytes it moved to and from disks since then; 0 if unknown."""
        earlier = self._earlier(before)
        known = 0 if earlier is None else earlier.disk_bytes or 0
        return max(0, (self.disk_bytes or 0) - known)

    def _earlier(self, before: Mapping[int, "Process"]) -> "Process | None":
        earlier = before.get(self.pid)
        return earlier if earlier is not None and earlier.started == self.started else None


def read_processes(proc: Path, *, disks: bool = False) -> dict[int, Process]:
    """Return every process by its id, with its use of `disks` if requested. Processes that end
    meanwhile are left out."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    found = {}
    for entry in proc.glob("[0-9]*"):
        try:
            text = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue
        # The command is in parentheses and may contain any character.
        head, _, rest = text.rpartition(")")
        fields = rest.split()
        pid = int(entry.name)
        found[pid] = Process(
            pid=pid,
            command=head.partition("(")[2],
            parent=int(fields[_PARENT]),
            cpu_s=(int(fields[_USER]) + int(fields[_SYSTEM])) / ticks_per_s,
            user_s=int(fields[_USER]) / ticks_per_s,
            started=int(fields[_STARTED]),
            kernel=bool(int(fields[_FLAGS]) & _KERNEL_THREAD),
            disk_bytes=_disk_bytes(entry) if disks else None,
        )
    return found


def _disk_bytes(entry: Path) -> int | None:
    """Return the disk bytes of one process, as in proc_pid_io(5), or None for processes of other
    users."""
    try:
        counts = dict(line.split(": ") for line in (entry / "io").read_text().splitlines())
    except OSError:
        return None
    return int(counts["read_bytes"]) + int(counts["write_bytes"])


# Milliseconds since the kernel started; on Intel's CPUs (kernel 5.6).
_HELD_TIMES = (
    "cpu[0-9]*/thermal_throttle/core_throttle_total_time_ms",
    "cpu[0-9]*/thermal_throttle/package_throttle_total_time_ms",
)


@dataclass(frozen=True)
class _Reading:
    at_s: float
    held_ms: dict[Path, int]
    processes: dict[int, Process]
    cpus: int
    busy_s: float | None
    user_s: float | None
    own_s: float
    own_user_s: float
    own_bytes: int


class OthersMeter:
    """Measures, from its creation on, what processes other than this one and its descendants take
    of the CPUs."""

    def __init__(
        self,
        proc: Path = Path("/proc"),
        cpus: Path = Path("/sys/devices/system/cpu"),
        *,
        disks: bool = False,
    ) -> None:
        """`proc` and `cpus` stand for the kernel's files in tests. `disks`: also measure what is
        moved to and from disks."""
        self._proc = proc
        self._disks = disks
        self._held_times = [path for pattern in _HELD_TIMES for path in cpus.glob(pattern)]
        self._before = self._read()

    def taken(self) -> OthersEvent:
        """Return what they have taken since the creation."""
        before, now = self._before, self._read()
        elapsed_s = max(1e-9, now.at_s - before.at_s)
        ours = _descendants(os.getpid(), now.processes.values())
        used_s = {pid: one.used_since(before.processes) for pid, one in now.processes.items()}
        others_s = user_s = None
        living = [pid for pid in ours if pid != os.getpid() and pid in now.processes]
        if before.busy_s is not None and now.busy_s is not None:
            living_s = sum(used_s[pid] for pid in living)
            others_s = max(0.0, now.busy_s - before.busy_s - (now.own_s - before.own_s) - living_s)
        if before.user_s is not None and now.user_s is not None:
            living_s = sum(now.processes[pid].user_since(before.processes) for pid in living)
            own_s = now.own_user_s - before.own_user_s
            user_s = max(0.0, now.user_s - before.user_s - own_s - living_s)
        strangers = [
            one
            for pid, one in now.processes.items()
            if pid not in ours and (used_s[pid] > 0 or one.moved_since(before.processes))
        ]
        groups = {one.pid: control_group(self._proc, one.pid) for one in strangers}
        least_s = BUSY_RATIO_LEAST * elapsed_s
        return OthersEvent(
            elapsed_s=elapsed_s,
            cpus=now.cpus,
            cpu_s=others_s,
            user_s=user_s,
            busiest=_busiest(strangers, used_s, groups, least_s),
            busiest_group=_busiest_group(strangers, used_s, groups, least_s),
            unseen=_hides_processes(self._proc),
            clock_held_s=max(
                (
                    max(0, held_ms - before.held_ms[path]) / 1000
                    for path, held_ms in now.held_ms.items()
                    if path in before.held_ms
                ),
                default=None,
            ),
            disk=self._disk_use(now, strangers, groups, ours),
        )

    def _disk_use(
        self,
        now: _Reading,
        strangers: Iterable[Process],
        groups: Mapping[int, str | None],
        ours: Iterable[int],
    ) -> DiskUse | None:
        before = self._before.processes
        own = now.processes.get(os.getpid())
        if own is None or own.disk_bytes is None:
            return None
        living = (now.processes[pid].moved_since(before) for pid in ours if pid != os.getpid())
        moved = {one.pid: one.moved_since(before) for one in strangers}
        by_name: dict[str, list[int]] = {}
        for one in strangers:
            if moved[one.pid]:
                by_name.setdefault(one.command, []).append(one.pid)
        users = [
            DiskUser(
                command=command,
                pid=(most := max(pids, key=lambda pid: moved[pid])),
                processes=len(pids),
                disk_bytes=sum(moved[pid] for pid in pids),
                group=groups[most],
            )
            for command, pids in by_name.items()
        ]
        return DiskUse(
            own_bytes=max(0, now.own_bytes - self._before.own_bytes) + sum(living),
            others_bytes=sum(moved.values()),
            busiest=tuple(sorted(users, key=lambda one: -one.disk_bytes)[:BUSIEST_SHOWN]),
        )

    def _read(self) -> _Reading:
        try:
            times = parse_cpu_times((self._proc / "stat").read_text())
        except OSError:
            times = {}
        everyone, ticks_per_s = times.pop("cpu", None), os.sysconf("SC_CLK_TCK")
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return _Reading(
            at_s=time.monotonic(),
            held_ms=dict(self._read_held()),
            processes=read_processes(self._proc, disks=self._disks),
            cpus=max(1, len(times)),
            busy_s=None if everyone is None else everyone.busy / ticks_per_s,
            user_s=None if everyone is None else everyone.user / ticks_per_s,
            own_s=sum(one.ru_utime + one.ru_stime for one in own),
            own_user_s=sum(one.ru_utime for one in own),
            own_bytes=sum(one.ru_inblock + one.ru_oublock for one in own) * _BLOCK_BYTES,
        )

    def _read_held(self) -> Iterator[tuple[Path, int]]:
        for path in self._held_times:
            with contextlib.suppress(OSError, ValueError):
                yield path, int(path.read_text())


def control_group(proc: Path, pid: int) -> str | None:
    """Return the path of a process's control group: of version 2, else the one of version 1 that
    counts CPU time. Return None for the root group, and if the kernel does not report it."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    paths = {
        names: path
        for line in lines
        if line.count(":") >= 2
        for _, names, path in [line.split(":", 2)]
    }
    counting = next((path for names, path in paths.items() if "cpuacct" in names.split(",")), None)
    path = counting or paths.get("", "/")
    return None if path == "/" else path


def _busiest(
    processes: Iterable[Process],
    used_s: Mapping[int, float],
    groups: Mapping[int, str | None],
    least_s: float,
) -> tuple[OtherProcesses, ...]:
    """Return the processes that used at least `least_s`, those of one name added up: a load has
    many workers."""
    by_name: dict[tuple[str, bool], list[int]] = {}
    for one in processes:
        by_name.setdefault((one.command, one.kernel), []).append(one.pid)
    found = [
        OtherProcesses(
            command=command,
            pid=(most := max(pids, key=lambda pid: used_s[pid])),
            processes=len(pids),
            cpu_s=sum(used_s[pid] for pid in pids),
            kernel=kernel,
            group=groups[most],
        )
        for (command, kernel), pids in by_name.items()
    ]
    found = [one for one in found if one.cpu_s >= least_s]
    return tuple(sorted(found, key=lambda one: -one.cpu_s)[:BUSIEST_SHOWN])


def _busiest_group(
    processes: Iterable[Process],
    used_s: Mapping[int, float],
    groups: Mapping[int, str | None],
    least_s: float,
) -> OtherGroup | None:
    """Return the control group that used most, at least `least_s`. Return None if processes of one
    name did all of it: that name says more."""
    members: dict[str, list[Process]] = {}
    for one in processes:
        group = groups[one.pid]
        if group is not None:
            members.setdefault(group, []).append(one)
    cpu_s = {group: sum(used_s[one.pid] for one in own) for group, own in members.items()}
    most = max(cpu_s, key=lambda group: cpu_s[group], default=None)
    if most is None or cpu_s[most] < least_s or len({one.command for one in members[most]}) == 1:
        return None
    return OtherGroup(group=most, processes=len(members[most]), cpu_s=cpu_s[most])


def _descendants(of: int, processes: Iterable[Process]) -> set[int]:
    """Return the ids of a process, its children, their children and so on."""
    children: dict[int, list[int]] = {}
    for one in processes:
        children.setdefault(one.parent, []).append(one.pid)
    found, left = {of}, [of]
    while left:
        new = [pid for pid in children.get(left.pop(), ()) if pid not in found]
        found.update(new)
        left += new
    return found


def _hides_processes(proc: Path) -> bool:
    """Whether there may be processes that `proc` does not list: those outside this container, or of
    other users (hidepid)."""
    try:
        return str((proc / "self/ns/pid").readlink()) != _FIRST_NAMESPACE or not any(
            (proc / "1").iterdir()
        )
    except OSError:
        return True
