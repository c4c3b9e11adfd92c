"""Virtual machine, container, and the kernel interfaces that they leave available."""

import errno

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

EVENT_SOURCES = "/sys/bus/event_source/devices"
CORE_COUNTERS = ("cpu", "cpu_core", "cpu_atom", "cpum_cf")
ARM_COUNTERS = ("armv8_", "armv9_")
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
PARANOID_MOST = 2
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
IO_URING_DISABLED = "/proc/sys/kernel/io_uring_disabled"


def virtual_machine(view: View) -> Outcome:
    """Whether this is a virtual machine."""
    found = view.host.virtualisation
    dmi = view.read("/sys/class/dmi/id/product_name")
    if found.hypervisor is None:
        return unknown("processors of this architecture do not report it", dmi)
    seen = Evidence(
        source="/proc/cpuinfo", value=f"flags {'have' if found.hypervisor else 'lack'} hypervisor"
    )
    if not found.hypervisor:
        return ok("no hypervisor", seen, dmi)
    product = " ".join(one for one in (found.vendor, found.product) if one)
    text = f"yes{f' ({product})' if product else ''}: clock, model and neighbours may be hidden"
    advice = Advice("for figures of the hardware itself, measure on bare metal", Reach.MACHINE)
    return notice(text, seen, dmi, advice=advice)


def container(view: View) -> Outcome:
    """Whether this is a container, and what its runtime filters."""
    kind = view.host.virtualisation.container
    seccomp = view.status("Seccomp")
    filtered = {"0": "no filter", "1": "strict", "2": "filtered"}.get(seccomp or "", "unknown")
    calls = Evidence(source="/proc/self/status", value=f"Seccomp {seccomp} ({filtered})")
    if kind is None:
        if not (view.root / "proc/1").exists():
            return unreadable(view.read("/proc/1/cgroup"))
        left = [mark for mark in ("/.dockerenv", "/run/.containerenv") if view.find(mark)]
        text = "no; its mark is here, but every namespace is the first one" if left else "no"
        return ok(text, *(Evidence(source=mark, value="there") for mark in left), calls)
    text = f"{kind}: quotas, system calls and the network may be limited from outside"
    mark = Evidence(source="/.dockerenv, /run/.containerenv, /proc/1/cgroup", value=kind)
    return notice(text, mark, calls)


def io_uring(view: View) -> Outcome:
    """Whether io_uring, the fastest way to the disk, is available."""
    disabled = view.read(IO_URING_DISABLED)
    answer = view.calls.io_uring_errno
    name = errno.errorcode.get(answer, str(answer)) if answer is not None else "no error"
    seen = Evidence(source="io_uring_setup(1, NULL)", value=name)
    if answer == errno.EFAULT:
        return ok("can be used", seen, disabled)
    if answer == errno.ENOSYS:
        text = "not in this kernel; disk workloads use slower interfaces"
        return notice(text, seen, disabled, advice=Advice("a kernel from 5.1 on", Reach.KERNEL))
    if answer not in (errno.EPERM, errno.EACCES):
        return unknown("an answer that hostbench does not know", seen, disabled)
    if disabled.number:
        advice = Advice("sysctl kernel.io_uring_disabled=0", Reach.KERNEL)
        return notice("switched off by the kernel", seen, disabled, advice=advice)
    text = "forbidden by a system call filter; disk workloads use slower interfaces"
    # https://github.com/moby/moby/pull/46762
    advice = Advice("start the container with a seccomp profile that adds io_uring", Reach.STARTED)
    return notice(text, seen, disabled, advice=advice)


def hardware_counters(view: View) -> Outcome:
    """Whether perf and likwid-perfctr can use the processor's own counters."""
    sources = [path.rsplit("/", 1)[1] for path in view.find(f"{EVENT_SOURCES}/*")]
    if not sources:
        return unknown("perf events are not in this kernel", view.read(EVENT_SOURCES))
    listed = Evidence(source=EVENT_SOURCES, value=", ".join(sources))
    if not any(one in CORE_COUNTERS or one.startswith(ARM_COUNTERS) for one in sources):
        text = "none: hostbench needs none, but perf and likwid-perfctr do"
        advice = Advice("give the virtual machine a vPMU", Reach.MACHINE)
        return notice(text, listed, advice=advice)
    watchdog = view.read("/proc/sys/kernel/nmi_watchdog")
    if watchdog.text == "1":
        text = "there, but the NMI watchdog holds one"
        advice = Advice("sysctl kernel.nmi_watchdog=0", Reach.KERNEL)
        return notice(text, listed, watchdog, advice=advice)
    return ok("there", listed, watchdog)


def perf_event_paranoid(view: View) -> Outcome:
    """Who may count events."""
    setting, answer = view.read(PARANOID), view.calls.perf_event_errno
    name = errno.errorcode.get(answer, str(answer)) if answer is not None else "not requested"
    seen = Evidence(source="perf_event_open(NULL, …)", value=name)
    if setting.number is None:
        return unreadable(setting)
    if answer == errno.EPERM:
        text = "a system call filter forbids perf_event_open"
        advice = Advice("docker run --cap-add PERFMON", Reach.STARTED)
        return notice(text, setting, seen, advice=advice)
    if view.has_capability(CAP_PERFMON) or view.has_capability(CAP_SYS_ADMIN):
        return ok("this process may count, by its capabilities", setting, seen)
    if setting.number > PARANOID_MOST:
        text = f"{setting.number}: an ordinary user may not count events"
        action = f"sysctl kernel.perf_event_paranoid={PARANOID_MOST}"
        return notice(text, setting, seen, advice=Advice(action, Reach.KERNEL))
    return ok(f"{setting.number}: a user may count events of own programs", setting, seen)


CHECKS = (
    Check("virtual_machine", Topic.ENVIRONMENT, "Virtual machine", ALL, virtual_machine),
    Check("container", Topic.ENVIRONMENT, "Container", ALL, container),
    Check("io_uring", Topic.ENVIRONMENT, "io_uring", ("disk",), io_uring),
    Check(
        "hardware_counters",
        Topic.ENVIRONMENT,
        "Hardware counters",
        ("cpu", "mem"),
        hardware_counters,
    ),
    Check(
        "perf_event_paranoid",
        Topic.ENVIRONMENT,
        "Use of perf events",
        ("cpu", "mem", "net"),
        perf_event_paranoid,
    ),
)
