"""The CPUs, their kinds, and which of them this process may use."""

from collections.abc import Iterable

from hostbench.base.files import cpu_list
from hostbench.doctor.check import (
    ALL,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    unknown,
    unreadable,
)
from hostbench.doctor.view import Tally, View
from hostbench.model.doctor import Evidence

CPUS = "/sys/devices/system/cpu"
STATUS = "/proc/self/status"


def cpu_ranges(cpus: Iterable[int]) -> str:
    """Return `0-3,8` for 0, 1, 2, 3 and 8, as the kernel writes lists of CPUs."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in spans)


def smt(view: View) -> Outcome:
    """Simultaneous multithreading, and whether this process has two threads of one core."""
    active = view.read(f"{CPUS}/smt/active")
    control = view.read(f"{CPUS}/smt/control")
    if active.text not in ("0", "1"):
        return unreadable(active)
    if active.text == "0":
        if view.may_be_virtual:
            text = "not visible; a hypervisor may run two CPUs of this machine on one core"
            return unknown(text, active, control)
        return ok("off", active, control)
    shared = _shared_cores(view)
    if not shared:
        return ok("on; no two of the allowed CPUs share a core", active, control)
    seen = view.read(f"{CPUS}/cpu{shared[0][0]}/topology/thread_siblings_list")
    advice = Advice(
        f"use no more threads than cores (threads=N); or, for all: echo off > {CPUS}/smt/control",
        Reach.HARDWARE,
    )
    text = f"on: allowed CPUs share {len(shared)} cores; hostbench uses one per core first"
    return notice(text, active, control, seen, advice=advice)


def _shared_cores(view: View) -> list[tuple[int, ...]]:
    """Return the groups of allowed CPUs that share a core."""
    allowed = set(view.allowed_cpus or ())
    groups = set()
    for cpu in allowed:
        siblings = view.read(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list").text
        together = allowed & set(cpu_list(siblings) or ())
        if len(together) > 1:
            groups.add(tuple(sorted(together)))
    return sorted(groups)


def cpuset(view: View) -> Outcome:
    """Whether this process may use every CPU that is online."""
    online = view.read(f"{CPUS}/online")
    everywhere, allowed = cpu_list(online.text), view.allowed_cpus
    status = view.read(STATUS)
    if allowed is None or everywhere is None:
        return unreadable(status if allowed is None else online)
    mask = Evidence(source=STATUS, value=f"Cpus_allowed_list {cpu_ranges(allowed)}")
    if set(allowed) >= set(everywhere):
        return ok(f"all {len(everywhere)} CPUs that are online", mask, online)
    text = f"{len(allowed)} of the {len(everywhere)} CPUs online: figures are of this part"
    groups = view.host.cgroup.cpuset
    limited = Evidence(source="/sys/fs/cgroup", value=f"cpuset {groups}") if groups else None
    advice = Advice(
        "docker run without --cpuset-cpus, systemd without AllowedCPUs=, no taskset around it",
        Reach.STARTED,
    )
    return notice(text, mask, online, *((limited,) if limited else ()), advice=advice)


def offline_cpus(view: View) -> Outcome:
    """CPUs that are present but switched off."""
    present, online = view.read(f"{CPUS}/present"), view.read(f"{CPUS}/online")
    there, running = cpu_list(present.text), cpu_list(online.text)
    if there is None or running is None:
        return unreadable(present if there is None else online)
    off = set(there) - set(running)
    if not off:
        return ok("none", present, online)
    control = view.read(f"{CPUS}/smt/control")
    if control.text in ("off", "forceoff"):
        return ok(f"{cpu_ranges(off)}, as SMT is switched off", present, online, control)
    paths = " ".join(f"{CPUS}/cpu{cpu}/online" for cpu in sorted(off)[:2])
    action = f"echo 1 | tee {paths}{' …' if len(off) > 2 else ''}"
    text = f"CPUs {cpu_ranges(off)} are switched off"
    return notice(text, present, online, advice=Advice(action, Reach.HARDWARE))


def isolated_cpus(view: View) -> Outcome:
    """CPUs that the scheduler leaves alone: they are quiet, and only pinned threads run there."""
    isolated, tickless = view.read(f"{CPUS}/isolated"), view.read(f"{CPUS}/nohz_full")
    if isolated.text is None:
        return unreadable(isolated)
    apart = cpu_list(isolated.text) or ()
    silent = cpu_list(tickless.text) or ()
    if not apart and not silent:
        return ok("none", isolated, tickless)
    both = cpu_ranges({*apart, *silent})
    text = f"CPUs {both} are kept quiet: figures there and elsewhere differ"
    advice = Advice(f"measure on one kind only, with the parameter cpus={both}", Reach.OWN)
    return notice(text, isolated, tickless, advice=advice)


def core_types(view: View) -> Outcome:
    """Performance and efficiency cores."""
    allowed = view.allowed_cpus or view.host.allowed_cpus
    fast, slow = view.read("/sys/devices/cpu_core/cpus"), view.read("/sys/devices/cpu_atom/cpus")
    readings = tuple(view.read(f"{CPUS}/cpu{cpu}/cpu_capacity") for cpu in allowed)
    capacities = Tally(f"{CPUS}/cpu*/cpu_capacity", readings)
    used = [
        kind
        for kind, cpus in (
            ("performance", view.host.cpu.performance_cpus),
            ("efficiency", view.host.cpu.efficiency_cpus),
        )
        if set(allowed) & set(cpus or ())
    ]
    if len(used) > 1:
        text = f"performance cores {fast.text} and efficiency cores {slow.text}"
        advice = Advice(f"measure one kind, with the parameter cpus={fast.text}", Reach.OWN)
        return notice(text, fast, slow, advice=advice)
    if len(capacities.values) > 1:
        text = "cores of different capacity"
        advice = Advice("measure one kind, with the parameter cpus=LIST", Reach.OWN)
        return notice(text, capacities, advice=advice)
    if used:
        return ok(f"{used[0]} cores only", fast, slow)
    if view.may_be_virtual:
        return unknown("none are distinguished; a hypervisor may hide them", fast, slow)
    return ok("one", fast, slow)


def numa_nodes(view: View) -> Outcome:
    """Whether memory has a near and a far part."""
    online = view.read("/sys/devices/system/node/online")
    nodes = view.host.cpu.numa_nodes
    if nodes is None:
        return unreadable(online)
    if nodes > 1:
        text = f"{nodes} NUMA nodes: memory of another node is slower"
        advice = Advice("measure inside one node, with the parameter cpus=LIST", Reach.OWN)
        return notice(text, online, advice=advice)
    if view.may_be_virtual:
        return unknown("one is shown; a hypervisor may hide others", online)
    return ok("one", online)


CHECKS = (
    Check("smt", Topic.CORES, "Simultaneous multithreading", ("cpu", "mem"), smt),
    Check("cpuset", Topic.SHARE, "CPUs allowed", ALL, cpuset),
    Check("offline_cpus", Topic.CORES, "Offline CPUs", ("cpu", "mem"), offline_cpus),
    Check("isolated_cpus", Topic.CORES, "Isolated CPUs", ALL, isolated_cpus),
    Check("core_types", Topic.CORES, "Kinds of cores", ("cpu", "mem", "net"), core_types),
    Check("numa_nodes", Topic.CORES, "NUMA nodes", ALL, numa_nodes),
)
