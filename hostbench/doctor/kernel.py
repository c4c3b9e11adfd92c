"""How the kernel was built and started, and what it shows to others."""

import re

from hostbench.base.units import bound, human
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

VERSION = "/proc/version"
COMMAND_LINE = "/proc/cmdline"
DYNAMIC_PREEMPTION = "/sys/kernel/debug/sched/preempt"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"
# These clocks are read without a system call: arch/x86/include/asm/vdso/gettimeofday.h and its
# siblings. For kvm-clock, that is only so if the hypervisor guarantees a stable TSC.
FAST_CLOCKS = frozenset(
    {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase"}
)
RESOLUTION_SECONDS_MOST = 1e-6
# A part of a slice is 0.75 ms: docs/measurement.md.
TICK_HERTZ_MOST = 999


def clocksource(view: View) -> Outcome:
    """What the kernel reads the time from."""
    current = view.read(f"{CLOCKSOURCE}/current_clocksource")
    available = view.read(f"{CLOCKSOURCE}/available_clocksource")
    if not current.text:
        return unreadable(current)
    if current.text in FAST_CLOCKS:
        return ok(f"{current.text}: read without a system call", current, available)
    text = f"{current.text}: reading the time is a system call, or reads a slow device"
    if "tsc" in (available.text or "").split():
        advice = Advice(f"echo tsc > {current.path}", Reach.KERNEL)
        return problem(text, current, available, advice=advice)
    advice = Advice(
        "find out why the TSC was given up: journalctl -k | grep -i -e tsc -e clocksource",
        Reach.KERNEL,
    )
    return problem(text, current, available, advice=advice)


def timer_resolution(view: View) -> Outcome:
    """The step of the clock that times the trials."""
    resolution = view.calls.clock_resolution_s
    seen = Evidence(source="clock_getres(CLOCK_MONOTONIC)", value=human(resolution, "s"))
    if resolution > RESOLUTION_SECONDS_MOST:
        advice = Advice("boot without highres=off", Reach.KERNEL)
        return problem("the clock moves in coarse steps", seen, advice=advice)
    return ok(human(resolution, "s"), seen)


def preemption(view: View) -> Outcome:
    """When the kernel lets a waiting task interrupt a running one."""
    version = view.read(VERSION)
    if version.text is None:
        return unreadable(version)
    if "PREEMPT_RT" in version.text:
        text = "PREEMPT_RT: locks and interrupts cost more, waits are shorter"
        return notice(text, version.excerpt("PREEMPT_RT"))
    found = _preemption_mode(view)
    if found is None:
        reason = "the mode stands in debugfs or in the kernel's configuration"
        return unknown(f"{reason}; neither can be read", view.read(DYNAMIC_PREEMPTION))
    return ok(found[0], found[1])


def _preemption_mode(view: View) -> tuple[str, Evidence] | None:
    dynamic = view.read(DYNAMIC_PREEMPTION)
    chosen = re.search(r"\((\w+)\)", dynamic.text or "")
    if chosen:
        return chosen[1], dynamic.evidence
    line = view.read(COMMAND_LINE)
    requested = re.search(r"(?:^|\s)preempt=(\w+)", line.text or "")
    if requested:
        return requested[1], line.excerpt(requested[0].strip())
    config = view.kernel_config
    if config is None:
        return None
    modes = {
        "CONFIG_PREEMPT": "full",
        "CONFIG_PREEMPT_LAZY": "lazy",
        "CONFIG_PREEMPT_VOLUNTARY": "voluntary",
        "CONFIG_PREEMPT_NONE": "none",
    }
    for name, mode in modes.items():
        if config.settings.get(name) == "y":
            return mode, Evidence(source=config.path, value=f"{name}=y")
    return None


def timer_frequency(view: View) -> Outcome:
    """How often a tick interrupts a running CPU."""
    config = view.kernel_config
    hertz = config.settings.get("CONFIG_HZ") if config else None
    if config is None or hertz is None or not hertz.isdecimal():
        release = view.read("/proc/sys/kernel/osrelease")
        reason = "no kernel configuration in /proc/config.gz, /boot or /lib/modules"
        return unknown(reason, release)
    seen = Evidence(source=config.path, value=f"CONFIG_HZ={hertz}")
    if int(hertz) > TICK_HERTZ_MOST:
        text = f"{hertz} Hz: nearly every part of a slice holds a tick"
        advice = Advice("boot with nohz_full=CPUS, or another kernel", Reach.KERNEL)
        return notice(text, seen, advice=advice)
    return ok(f"{hertz} Hz", seen)


REALTIME = "/proc/sys/kernel/sched_rt"


def realtime_throttling(view: View) -> Outcome:
    """How much of a second real-time tasks may take."""
    runtime, period = view.read(f"{REALTIME}_runtime_us"), view.read(f"{REALTIME}_period_us")
    if runtime.number is None or not period.number:
        return unreadable(period if runtime.number is not None else runtime)
    if runtime.number < 0:
        text = "off: a real-time task can keep a measured thread off its CPU without end"
        advice = Advice("sysctl kernel.sched_rt_runtime_us=950000", Reach.KERNEL)
        return notice(text, runtime, period, advice=advice)
    share = runtime.number / period.number
    return ok(f"real-time tasks get at most {bound(share)} of a CPU", runtime, period)


CHECKS = (
    Check("clocksource", Topic.KERNEL, "Clock source", ALL, clocksource),
    Check("timer_resolution", Topic.KERNEL, "Timer resolution", ALL, timer_resolution),
    Check("preemption", Topic.KERNEL, "Preemption", ALL, preemption),
    Check("timer_frequency", Topic.KERNEL, "Timer ticks", ("cpu", "mem"), timer_frequency),
    Check("realtime_throttling", Topic.KERNEL, "Real-time throttling", ALL, realtime_throttling),
)
