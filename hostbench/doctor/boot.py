"""The kernel's mitigations, and the options it was started with."""

import re

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
from hostbench.doctor.view import View
from hostbench.model.doctor import Evidence

COMMAND_LINE = "/proc/cmdline"
# The code that each mitigation slows down: docs.kernel.org/admin-guide/hw-vuln/.
KERNEL_ENTRY, USER_CODE = "entering and leaving the kernel", "ordinary code"
COSTLY = (
    ("meltdown", r"PTI", KERNEL_ENTRY),
    ("mds", r"Clear CPU buffers", KERNEL_ENTRY),
    ("tsx_async_abort", r"Clear CPU buffers", KERNEL_ENTRY),
    ("mmio_stale_data", r"Clear CPU buffers", KERNEL_ENTRY),
    ("reg_file_data_sampling", r"Clear Register File", KERNEL_ENTRY),
    ("tsa", r"Clear CPU buffers", KERNEL_ENTRY),
    ("retbleed", r"untrained return thunk|IBRS|Stuffing", KERNEL_ENTRY),
    ("spec_rstack_overflow", r"Safe RET|IBPB", KERNEL_ENTRY),
    ("spectre_v2", r"Retpolines|Mitigation: IBRS", KERNEL_ENTRY),
    ("indirect_target_selection", r"thunks|stuffing", KERNEL_ENTRY),
    ("spec_store_bypass", r"Speculative Store Bypass disabled(?! via)", USER_CODE),
    ("gather_data_sampling", r"Microcode", "gather instructions"),
    ("srbds", r"Microcode", "random numbers of the CPU"),
    ("l1tf", r"cache flushes", "entering virtual machines"),
    ("vmscape", r"IBPB", "leaving virtual machines"),
)
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"


def mitigations(view: View) -> Outcome:
    """Which mitigations of CPU vulnerabilities cost time, and in which code."""
    found = view.host.mitigations
    if not found:
        return unknown("the kernel lists none", view.tally(f"{VULNERABILITIES}/*"))
    costs: dict[str, list[str]] = {}
    for name, pattern, what in COSTLY:
        status = found.get(name, "")
        if status.startswith("Mitigation") and re.search(pattern, status):
            costs.setdefault(what, []).append(name)
    if not costs:
        seen = Evidence(source=f"{VULNERABILITIES}/*", value=f"{len(found)} read, none that costs")
        return ok("none that costs", seen)
    seen_costly = [
        Evidence(source=f"{VULNERABILITIES}/{name}", value=found[name])
        for names in costs.values()
        for name in names
    ]
    text = "; ".join(f"{what} slower by {', '.join(names)}" for what, names in costs.items())
    advice = Advice(
        "compare only with hosts that have the same; mitigations=off at boot takes the protection "
        "away",
        Reach.KERNEL,
    )
    return notice(text, *seen_costly, advice=advice)


# docs.kernel.org/admin-guide/kernel-parameters.html. No other options are shown.
# fmt: off
OPTIONS = frozenset(
    {
        "amd_pstate", "clocksource", "cpufreq.off", "cpuidle.off", "cpuidle_haltpoll.force",
        "debug_pagealloc", "default_hugepagesz", "gather_data_sampling", "hugepages",
        "hugepagesz", "idle", "init_on_alloc", "init_on_free", "intel_idle.max_cstate",
        "intel_iommu", "intel_pstate", "iommu", "iommu.strict", "irqaffinity", "isolcpus",
        "kpti", "maxcpus", "mem", "mitigations", "nohz", "nohz_full", "noibrs", "nopti",
        "nosmt", "nospectre_v1", "nospectre_v2", "notsc", "nr_cpus", "numa",
        "numa_balancing", "page_poison", "pcie_aspm", "preempt", "processor.ignore_ppc",
        "processor.max_cstate", "pti", "rcu_nocbs", "retbleed", "skew_tick", "slub_debug",
        "spec_rstack_overflow", "spec_store_bypass_disable", "spectre_v2",
        "split_lock_detect", "threadirqs", "transparent_hugepage", "tsc", "tsx",
    }
)
# fmt: on


def kernel_command_line(view: View) -> Outcome:
    """The options the kernel was started with, if figures depend on them."""
    line = view.read(COMMAND_LINE)
    if line.text is None:
        return unreadable(line)
    words = line.text.split(" -- ")[0].split()
    relevant = [word for word in words if word.partition("=")[0].replace("-", "_") in OPTIONS]
    if not relevant:
        return ok("nothing that figures depend on", line.excerpt("none of those that matter"))
    text = "figures depend on " + ", ".join(word.partition("=")[0] for word in relevant)
    advice = Advice("compare only with hosts that were started with the same options", Reach.OWN)
    return notice(text, line.excerpt(" ".join(relevant)), advice=advice)


CHECKS = (
    Check("mitigations", Topic.KERNEL, "Mitigations", ("cpu", "mem", "disk", "net"), mitigations),
    Check("kernel_command_line", Topic.KERNEL, "Kernel options", ALL, kernel_command_line),
)
