"""Find who took the CPU from a disturbed trial, or from all trials of a case."""

import math
import re
from collections.abc import Sequence

from hostbench.base.units import percent
from hostbench.model.events import DiskUser, OtherProcesses, OthersEvent
from hostbench.model.result import Reason, TrialRecord

TAKEN_BY = "taken_by"
# A process is named alone if it took at least this share of what all others took.
SHARE_LEAST = 0.5
# Less than this of one CPU explains no disturbance.
RATIO_LEAST = 0.02
# The kernel counts the time of CPUs and processes in ticks. What others used is a difference of
# several such times. A mean over trials is less uncertain, as their errors go both ways.
TICK_S = 0.01
# Follows the name of a culprit whose share is one of bytes moved to and from disks.
ON_DISK = ", on the disk"
TICKS_UNSURE = 2


def others_of(trial: TrialRecord) -> OthersEvent | None:
    """Return who else used the host during a trial.

    A trial that measures a loop leaves out the kernel's own time: kernel threads and interrupts
    then work for the disk or the network that is measured. Where other processes are invisible,
    only the time in programs' own code counts.
    """
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
    """Return the share of all CPUs' time that others used, or None where it is unknown.

    The trial is one of `trials` whose mean is taken: the more there are, the less is subtracted for
    the kernel's ticks.
    """
    if others is None or others.cpu_s is None:
        return None
    unsure_s = TICKS_UNSURE * TICK_S / math.sqrt(trials)
    return max(0.0, others.cpu_s - unsure_s) / (others.elapsed_s * others.cpus)


def disk_ratio(others: OthersEvent | None) -> float | None:
    """Return the others' share of the bytes moved to and from disks, or None where it is
    unknown."""
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
        text = f"processes outside this container used {_of_a_cpu(all_s, others)} in the meantime"
    elif others.busiest and others.busiest[0].cpu_s >= SHARE_LEAST * all_s:
        text = f"{_named(others.busiest[0], others)} in the meantime"
    else:
        named = "; ".join(_named(one, others) for one in others.busiest)
        text = f"other processes used {_of_a_cpu(all_s, others)} in the meantime" + (
            f"; the busiest: {named}" if named else ", each for a short time"
        )
    return Reason(code=TAKEN_BY, text=text)


def culprit_of(trials: Sequence[OthersEvent]) -> tuple[str | None, bool]:
    """Return who used the CPUs most while the trials of a case ran, and whether that was at least
    half of what all others used; None if no user of them is known."""
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
    # No single program used half, but one container or unit did, such as a compiler and its
    # helpers.
    path = max(groups_s, key=lambda path: groups_s[path], default=None)
    if path is not None and groups_s[path] >= SHARE_LEAST * all_s:
        return f"control group {group_name(path)}", True
    if most is None:
        return "processes that ran for a short time", False
    return names[most], False


def _name(one: OtherProcesses | DiskUser) -> str:
    """Return a name such as `stress-ng, pid 123, of docker-3fa9c12b7d01` or `make, 5 processes`."""
    kind = ", kernel thread" if isinstance(one, OtherProcesses) and one.kernel else ""
    which = f"pid {one.pid}" if one.processes == 1 else f"{one.processes} processes"
    of = "" if one.group is None else f", of {group_name(one.group)}"
    return f"{one.command}{kind}, {which}{of}"


def group_name(path: str) -> str:
    """Return the short name of a control group: the last part of its path without the kind of unit.
    A container's id is cut to the 12 digits that its engine shows."""
    name = path.rstrip("/").rpartition("/")[2]
    name = re.sub(r"\.(scope|service|slice)$", "", name)
    return re.sub(r"[0-9a-f]{64}", lambda found: found[0][:12], name)


def _named(one: OtherProcesses, others: OthersEvent) -> str:
    kind = "kernel thread, " if one.kernel else ""
    which = "pid" if one.processes == 1 else f"{one.processes} processes, such as pid"
    return f"{one.command} ({kind}{which} {one.pid}) used {_of_a_cpu(one.cpu_s, others)}"


def _of_a_cpu(cpu_s: float, others: OthersEvent) -> str:
    return f"{percent(cpu_s / others.elapsed_s)} of a CPU"
