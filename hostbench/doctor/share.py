"""The share of the host that control groups give this process, and what they have already
withheld."""

import re
from pathlib import Path

from hostbench.base.units import significant
from hostbench.doctor.check import (
    ALL,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    problem,
    unknown,
)
from hostbench.doctor.view import Reading, View
from hostbench.host.inventory import cgroup_groups, memory_limit_of, quota_of
from hostbench.model.doctor import Evidence

GROUPS = "/sys/fs/cgroup"
ABOVE_HIDDEN = "; groups above the container cannot be seen"
QUOTA_REMEDY = Advice(
    "docker run without --cpus, Kubernetes without limits.cpu, systemd without CPUQuota=",
    Reach.STARTED,
)
MEMORY_REMEDY = Advice(
    "docker run without --memory, Kubernetes without limits.memory, systemd without MemoryMax=",
    Reach.STARTED,
)
GIB = 1 << 30


def _no_groups(view: View) -> Outcome:
    return unknown("no control groups are mounted", view.read("/proc/self/cgroup"))


def _above(view: View) -> str:
    return ABOVE_HIDDEN if view.host.virtualisation.container else ""


def cpu_quota(view: View) -> Outcome:
    """The smallest quota of this process's groups and those above them."""
    groups = cgroup_groups(view.root, "cpu")
    if view.host.cgroup.version is None or not groups:
        return _no_groups(view)
    limited = [(quota, group) for group in groups if (quota := quota_of(group)) is not None]
    if not limited:
        seen = _quota_evidence(view, groups[0])
        return ok(f"none{_above(view)}", seen)
    quota = min(limited)[0]
    seen_all = [_quota_evidence(view, group) for _, group in limited]
    allowed = len(view.allowed_cpus or view.host.allowed_cpus)
    text = f"{significant(quota)} CPUs of time for {allowed} allowed CPUs"
    if quota < allowed:
        text = f"{text}: threads are stopped when it is used up"
        return problem(text, *seen_all, advice=QUOTA_REMEDY)
    return ok(f"{text}{_above(view)}", *seen_all)


def _quota_evidence(view: View, group: Path) -> Evidence:
    path = view.path_of(group)
    second = view.read(f"{path}/cpu.max")
    if second.text is not None:
        return second.evidence
    quota, period = (view.read(f"{path}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota.text is None:
        return Evidence(source=f"{path}/cpu.max", reason="no such file: no quota at this level")
    return quota.excerpt(f"{quota.text} of cfs_period_us {period.text}")


def cgroup_throttling(view: View) -> Outcome:
    """How often a quota has stopped this process's groups."""
    readings = [
        reading
        for group in cgroup_groups(view.root, "cpu")
        if (reading := view.read(f"{view.path_of(group)}/cpu.stat")).text is not None
    ]
    counts = [count for reading in readings if (count := _throttled(reading.text)) is not None]
    if not counts:
        seen = readings[0] if readings else view.read(f"{GROUPS}/cpu.stat")
        return unknown("the groups of this process count no throttling", seen)
    evidence = [
        reading.excerpt(f"nr_throttled {count}")
        for reading in readings
        if (count := _throttled(reading.text)) is not None
    ]
    if _throttled_during(view):
        text = "threads were stopped by a quota during this second"
        return problem(text, *evidence, advice=QUOTA_REMEDY)
    if max(counts):
        text = f"{max(counts)} times since the group was made; not during this second"
        return notice(text, *evidence, advice=QUOTA_REMEDY)
    return ok("never", *evidence)


def _throttled(text: str | None) -> int | None:
    match = re.search(r"^nr_throttled (\d+)$", text or "", re.MULTILINE | re.ASCII)
    return int(match[1]) if match else None


def _throttled_during(view: View) -> bool:
    if view.observation is None:
        return False
    before, after = view.observation.before, view.observation.after
    return any(
        (_throttled(after[path]) or 0) > (_throttled(before.get(path)) or 0)
        for path in after
        if path.endswith("/cpu.stat")
    )


def memory_limit(view: View) -> Outcome:
    """How much memory this process's groups may use."""
    groups = cgroup_groups(view.root, "memory")
    total = view.read("/proc/meminfo")
    memory = view.host.memory_bytes
    if view.host.cgroup.version is None or not groups:
        return _no_groups(view)
    limit = view.host.cgroup.memory_bytes
    whole = total.excerpt(f"MemTotal {_gib(memory)}") if memory else total
    if limit is None:
        return ok(f"none{_above(view)}", *_limit_readings(view, groups[:1]), whole)
    limited = [group for group in groups if memory_limit_of(group) == limit]
    seen = _limit_readings(view, limited)
    text = f"{_gib(limit)} of the host's {_gib(memory)}"
    if memory is not None and limit >= memory:
        return ok(f"{text}{_above(view)}", *seen, whole)
    return notice(f"{text}: no larger working set fits", *seen, whole, advice=MEMORY_REMEDY)


def _limit_readings(view: View, groups: list[Path]) -> list[Reading]:
    names = ("memory.max", "memory.limit_in_bytes")
    both = [view.read(f"{view.path_of(group)}/{name}") for group in groups for name in names]
    return [reading for reading in both if reading.text is not None] or both[:1]


def _gib(size: int | None) -> str:
    return "unknown memory" if size is None else f"{significant(size / GIB)} GiB"


CHECKS = (
    Check("cpu_quota", Topic.SHARE, "CPU quota", ALL, cpu_quota),
    Check("cgroup_throttling", Topic.SHARE, "Throttling by quota", ALL, cgroup_throttling),
    Check("memory_limit", Topic.SHARE, "Memory limit", ("cpu", "mem", "disk", "net"), memory_limit),
)
