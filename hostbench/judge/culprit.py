"""Who took the CPU from a disturbed trial, and from all trials of a case."""

import math
import re
from collections.abc import Sequence

from hostbench.base.units import percent
from hostbench.model.events import DiskUser, OtherProcesses, OthersEvent
from hostbench.model.result import Reason, TrialRecord

TAKEN_BY = "taken_by"
# What a process must have of all that others took to be named alone.
SHARE_LEAST = 0.5
# Less than this of one CPU explains no disturbance.
RATIO_LEAST = 0.02
# The kernel counts the time of CPUs and processes in ticks; what others used is a difference of
# several such times, and in a mean over trials, which err in both directions, less unsure.
TICK_S = 0.01
# What stands behind a culprit whose share is of the bytes that went to and from disks.
ON_DISK = ", on the disk"
TICKS_UNSURE = 2


def others_of(trial: TrialRecord) -> OthersEvent | None:
    """Who else used the host. Of a loop's trial the kernel's own time is left out: its threads and
    interrupts work for the disk or the network that is measured. Where processes cannot be seen,
    what is left is what was used in programs' own code."""
    others, end = trial.others, trial.end
    if others is None or end is None or not any(one.clean_slices is None for one in end.threads):
        return others
    busiest = tuple(one for one in others.busiest if not one.kernel)
    seen_s = sum(one.cpu_s for one in busiest)
    cpu_s = max(seen_s, others.user_s or 0.0) if others.unseen else seen_s
    counted_s = others.user_s if others.unseen else others.cpu_s
    is_known = bool(busiest) or counted_s is not None
    return others.model_copy(update={"busiest": busiest, "cpu_s": cpu_s if is_known else None})


def used_ratio(others: OthersEvent | None, trials: int = 1) -> float | None:
    """What others used of the time of all CPUs, as one of so many `trials` to take the mean of."""
    if others is None or others.cpu_s is None:
        return None
    unsure_s = TICKS_UNSURE * TICK_S / math.sqrt(trials)
    return max(0.0, others.cpu_s - unsure_s) / (others.elapsed_s * others.cpus)


def disk_ratio(others: OthersEvent | None) -> float | None:
    """What others had of the bytes that went to and from disks; None where that is unknown."""
    if others is None or others.disk is None:
        return None
    total = others.disk.own_bytes + others.disk.others_bytes
    return others.disk.others_bytes / total if total else 0.0


def disk_user(trials: Sequence[OthersEvent]) -> tuple[str | None, bool]:
    """Return who moved most bytes to and from disks while the trials of a case ran, and whether
    that was at least half of what all others did."""
    moved: dict[str, int] = {}
    names: dict[str, str] = {}
    seen = [others.disk for others in trials if others.disk is not None]
    for one in (user for use in seen for user in use.busiest):
        moved[one.command] = moved.get(one.command, 0) + one.disk_bytes
        names.setdefault(one.command, f"{_name(one)}{ON_DISK}")
    most = max(moved, key=lambda command: moved[command], default=None)
    if most is None:
        return None, False
    return names[most], moved[most] >= SHARE_LEAST * sum(use.others_bytes for use in seen)


def taken_by(others: OthersEvent | None) -> Reason | None:
    """Return a reason that names the processes which used the CPUs during a trial, or None if no
    other process is known to have used them."""
    if others is None:
        return None
    seen_s = sum(one.cpu_s for one in others.busiest)
    all_s = max(seen_s, others.cpu_s or 0.0)
    if all_s < RATIO_LEAST * others.elapsed_s:
        return None
    if others.unseen and seen_s < SHARE_LEAST * all_s:
        text = f"processes outside this container used {_of_a_cpu(all_s, others)} meanwhile"
    elif others.busiest and others.busiest[0].cpu_s >= SHARE_LEAST * all_s:
        text = f"{_named(others.busiest[0], others)} meanwhile"
    else:
        named = "; ".join(_named(one, others) for one in others.busiest)
        text = f"other processes used {_of_a_cpu(all_s, others)} meanwhile" + (
            f"; the most of them: {named}" if named else ", each for a short time"
        )
    return Reason(code=TAKEN_BY, text=text)


def culprit_of(trials: Sequence[OthersEvent]) -> tuple[str | None, bool]:
    """Return who used the CPUs most while the trials of a case ran, and whether that was at least
    half of what all others used; None if nobody is known to have used them."""
    used_s: dict[str, float] = {}
    names: dict[str, str] = {}
    groups_s: dict[str, float] = {}
    for others in trials:
        for one in others.busiest:
            used_s[one.command] = used_s.get(one.command, 0.0) + one.cpu_s
            names.setdefault(one.command, _name(one))
        if (group := others.busiest_group) is not None:
            groups_s[group.group] = groups_s.get(group.group, 0.0) + group.cpu_s
    seen_s = max(sum(used_s.values()), sum(groups_s.values()))
    all_s = max(seen_s, sum(others.cpu_s or 0.0 for others in trials))
    if all_s < RATIO_LEAST * sum(others.elapsed_s for others in trials):
        return None, False
    if any(others.unseen for others in trials) and seen_s < SHARE_LEAST * all_s:
        return "processes outside this container", True
    most = max(used_s, key=lambda command: used_s[command], default=None)
    if most is not None and used_s[most] >= SHARE_LEAST * all_s:
        return names[most], True
    # No name alone, but all that one container or unit ran: a compiler and its helpers.
    path = max(groups_s, key=lambda path: groups_s[path], default=None)
    if path is not None and groups_s[path] >= SHARE_LEAST * all_s:
        return f"control group {group_name(path)}", True
    if most is None:
        return "processes that ran for a short time", False
    return names[most], False


def _name(one: OtherProcesses | DiskUser) -> str:
    """`stress-ng, pid 123, of docker-3fa9c12b7d01`; `make, 5 processes`."""
    kind = ", kernel thread" if isinstance(one, OtherProcesses) and one.kernel else ""
    which = f"pid {one.pid}" if one.processes == 1 else f"{one.processes} processes"
    of = "" if one.group is None else f", of {group_name(one.group)}"
    return f"{one.command}{kind}, {which}{of}"


def group_name(path: str) -> str:
    """What a control group is called: the last part of its path without the kind of unit, the id of
    a container as short as its engine shows it."""
    name = path.rstrip("/").rpartition("/")[2]
    name = re.sub(r"\.(scope|service|slice)$", "", name)
    return re.sub(r"[0-9a-f]{64}", lambda found: found[0][:12], name)


def _named(one: OtherProcesses, others: OthersEvent) -> str:
    kind = "kernel thread, " if one.kernel else ""
    which = "pid" if one.processes == 1 else f"{one.processes} processes, such as pid"
    return f"{one.command} ({kind}{which} {one.pid}) used {_of_a_cpu(one.cpu_s, others)}"


def _of_a_cpu(cpu_s: float, others: OthersEvent) -> str:
    return f"{percent(cpu_s / others.elapsed_s)} of a CPU"
