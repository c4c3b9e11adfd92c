"""Pages, swap, and how much memory there is to measure with."""

import re

from hostbench.base.units import bound, percent, significant
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
    unreadable,
)
from hostbench.doctor.view import View
from hostbench.model.doctor import Evidence

SYSCTL_VM = "/proc/sys/vm"
HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-*kB"
POOL_RATIO_LEAST = 0.05
AVAILABLE_RATIO_LEAST = 0.5
SWAPPINESS_MOST = 10
GIB = 1 << 30


def transparent_huge_pages(view: View) -> Outcome:
    """Whether memory is available in 2 MiB pages."""
    enabled = view.read("/sys/kernel/mm/transparent_hugepage/enabled")
    defrag = view.read("/sys/kernel/mm/transparent_hugepage/defrag")
    match = re.search(r"\[(\w+)\]", enabled.text or "")
    if match is None:
        return unreadable(enabled)
    if match[1] == "never":
        text = "never: only 4 KiB pages, with which large arrays are read and written slower"
        advice = Advice(f"echo madvise > {enabled.path}", Reach.KERNEL)
        return notice(text, enabled, advice=advice)
    if match[1] == "always":
        text = "always: programs that do not ask for huge pages get them too"
        return ok(text, enabled, defrag)
    return ok(f"{match[1]}: programs that ask for huge pages get them", enabled, defrag)


def hugetlb_pool(view: View) -> Outcome:
    """Memory set aside for explicit huge pages."""
    directories, total = view.find(HUGE_PAGES), view.host.memory_bytes
    pages = view.tally(f"{HUGE_PAGES}/nr_hugepages")
    if not directories or not pages.numbers:
        return unreadable(view.read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"))
    size = 0
    for directory in directories:
        match = re.search(r"hugepages-(\d+)kB$", directory, re.ASCII)
        count = view.read(f"{directory}/nr_hugepages").number
        size += int(match[1]) * 1024 * count if match and count else 0
    if total and size >= POOL_RATIO_LEAST * total:
        text = f"{significant(size / GIB)} GiB are reserved and unavailable to other programs"
        return notice(text, pages, advice=Advice("sysctl vm.nr_hugepages=0", Reach.KERNEL))
    return ok("empty" if not size else f"{significant(size / GIB)} GiB", pages)


def numa_balancing(view: View) -> Outcome:
    """Whether the kernel moves pages to the node that uses them."""
    setting = view.read("/proc/sys/kernel/numa_balancing")
    if setting.number is None:
        if setting.reason == "no such file or directory":
            return ok("not in this kernel", setting)
        return unreadable(setting)
    if setting.number and (view.host.cpu.numa_nodes or 1) > 1:
        text = "on: the kernel takes pages away for a moment to see who uses them, and moves them"
        return notice(text, setting, advice=Advice("sysctl kernel.numa_balancing=0", Reach.KERNEL))
    return ok("on, with one node to balance" if setting.number else "off", setting)


def swap_in_use(view: View) -> Outcome:
    """Whether memory was swapped out to a disk."""
    swaps = view.read("/proc/swaps")
    if swaps.text is None:
        return unreadable(swaps)
    devices = _swap_devices(swaps.text)
    moved = _swapped_pages(view)
    if moved:
        seen = Evidence(source="/proc/vmstat", value=f"{moved} pages swapped in or out")
        advice = Advice("end what uses the memory", Reach.OWN)
        return problem("pages were swapped during this second", swaps, seen, advice=advice)
    if not devices:
        return ok("no swap", swaps.excerpt("no entry"))
    used, size = (sum(one[index] for one in devices) for index in (1, 0))
    text = f"{significant(used / GIB)} GiB of {significant(size / GIB)} GiB in use"
    if used:
        advice = Advice("swapoff -a && swapon -a, when enough memory is free", Reach.KERNEL)
        return notice(text, swaps.excerpt(text), advice=advice)
    return ok(text, swaps.excerpt(text))


def _swap_devices(text: str) -> list[tuple[int, int]]:
    """Return size and used bytes of each: proc_swaps(5), in units of 1024 bytes."""
    found = []
    for line in text.splitlines()[1:]:
        match = re.fullmatch(r"\S+\s+\S+\s+(\d+)\s+(\d+)\s+-?\d+", line.strip(), re.ASCII)
        if match:
            found.append((int(match[1]) * 1024, int(match[2]) * 1024))
    return found


def _swapped_pages(view: View) -> int:
    if view.observation is None:
        return 0
    before, after = (
        _swap_counts(texts.get("/proc/vmstat"))
        for texts in (view.observation.before, view.observation.after)
    )
    return max(0, after - before) if before is not None and after is not None else 0


def _swap_counts(text: str | None) -> int | None:
    counts = re.findall(r"^pswp(?:in|out) (\d+)$", text or "", re.MULTILINE | re.ASCII)
    return sum(map(int, counts)) if counts else None


def swappiness(view: View) -> Outcome:
    """How readily the kernel swaps."""
    setting, swaps = view.read(f"{SYSCTL_VM}/swappiness"), view.read("/proc/swaps")
    if setting.number is None:
        return unreadable(setting)
    if swaps.text is not None and not _swap_devices(swaps.text):
        return ok(f"{setting.number}, without any swap", setting)
    if setting.number > SWAPPINESS_MOST:
        text = f"{setting.number}: pages may leave before the file cache shrinks"
        advice = Advice(f"sysctl vm.swappiness={SWAPPINESS_MOST}", Reach.KERNEL)
        return notice(text, setting, advice=advice)
    return ok(str(setting.number), setting)


def overcommit(view: View) -> Outcome:
    """Whether a large allocation may be refused."""
    mode = view.read(f"{SYSCTL_VM}/overcommit_memory")
    if mode.number == 2:
        text = "strict: allocations are refused once the commit limit is reached"
        ratio = view.read(f"{SYSCTL_VM}/overcommit_ratio")
        advice = Advice("sysctl vm.overcommit_memory=0", Reach.KERNEL)
        return notice(text, mode, ratio, advice=advice)
    if mode.number in (0, 1):
        return ok("heuristic" if mode.number == 0 else "always granted", mode)
    return unreadable(mode)


def memory_available(view: View) -> Outcome:
    """How much memory a working set can have."""
    meminfo, total = view.read("/proc/meminfo"), view.host.memory_bytes
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.text or "", re.MULTILINE | re.ASCII)
    if match is None or not total:
        return unknown("MemAvailable or MemTotal is missing", meminfo)
    available = int(match[1]) * 1024
    text = f"{significant(available / GIB)} GiB, {percent(available / total)} of all"
    seen = meminfo.excerpt(f"MemAvailable {match[1]} kB")
    if available < AVAILABLE_RATIO_LEAST * total:
        text = f"{text}: others use more than {bound(1 - AVAILABLE_RATIO_LEAST)}"
        return notice(text, seen, advice=Advice("end what uses the memory", Reach.OWN))
    return ok(text, seen)


CHECKS = (
    Check(
        "memory_available",
        Topic.MEMORY,
        "Memory available",
        ("cpu", "mem", "gpu"),
        memory_available,
    ),
    Check(
        "transparent_huge_pages",
        Topic.MEMORY,
        "Transparent huge pages",
        ("cpu", "mem"),
        transparent_huge_pages,
    ),
    Check("hugetlb_pool", Topic.MEMORY, "Huge page pool", ("mem",), hugetlb_pool),
    Check("numa_balancing", Topic.MEMORY, "NUMA balancing", ("cpu", "mem"), numa_balancing),
    Check("swap_in_use", Topic.MEMORY, "Swap", ALL, swap_in_use),
    Check("swappiness", Topic.MEMORY, "Swappiness", ("mem", "disk"), swappiness),
    Check("overcommit", Topic.MEMORY, "Overcommit", ("mem",), overcommit),
)
