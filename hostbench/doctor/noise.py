"""What others do on this host right now: programs, the hypervisor, kernel threads."""

import re

from hostbench.base.units import percent
from hostbench.doctor.check import (
    ALL,
    PROCESSES_HIDDEN,
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
from hostbench.host.idle import PSI_RATIO_MOST, read_counters
from hostbench.model.doctor import Evidence
from hostbench.model.result import IdleWindow

LOAD_A_CPU_LEAST = 0.5
END_IT = Advice("end what need not run now, or measure at another time", Reach.OWN)
_NOT_WATCHED = "the host was not watched"


def _window(view: View) -> IdleWindow | None:
    return view.observation.window if view.observation else None


def _over(window: IdleWindow, file: str, ratio: float | None) -> Evidence:
    return Evidence(source=file, value=f"{percent(ratio)} over {window.seconds:.1f} s")


def _reason(window: IdleWindow, *codes: str) -> str | None:
    """Return what the idle gate would say: these checks use its thresholds."""
    texts = [reason.text for reason in window.reasons if reason.code in codes]
    return "; ".join(texts) or None


def busy_cpus(view: View) -> Outcome:
    """How much of the CPUs' time is used, and by whom."""
    window = _window(view)
    if window is None or window.busy_ratio is None:
        return unknown(_NOT_WATCHED if window is None else "no CPU times", view.read("/proc/stat"))
    seen = [_over(window, "/proc/stat", window.busy_ratio)]
    busiest = view.observation.busiest if view.observation else ()
    if busiest:
        names = (f"{one.command} (pid {one.pid}) {percent(one.cpu_ratio)}" for one in busiest)
        seen.append(Evidence(source="/proc/PID/stat", value=", ".join(names)))
    elif not view.sees_all_processes:
        seen.append(Evidence(source="/proc/PID/stat", reason=PROCESSES_HIDDEN))
    reason = _reason(window, "busy", "busy_cpu")
    if reason:
        return problem(reason, *seen, advice=END_IT)
    return ok(f"idle: {percent(window.busy_ratio)} of the CPU time in use", *seen)


def steal(view: View) -> Outcome:
    """What the hypervisor gave to other virtual machines."""
    window = _window(view)
    if window is None or window.steal_ratio is None:
        return unknown(_NOT_WATCHED if window is None else "no CPU times", view.read("/proc/stat"))
    seen = _over(window, "/proc/stat", window.steal_ratio)
    reason = _reason(window, "stolen")
    if reason:
        advice = Advice(
            "ask for dedicated CPUs, or measure when the neighbours are quiet", Reach.MACHINE
        )
        return problem(reason, seen, advice=advice)
    since_boot = _steal_ticks(view) if view.is_virtual else None
    if since_boot == 0:
        text = "none since boot; not every hypervisor reports it"
        return unknown(text, seen, Evidence(source="/proc/stat", value="steal 0 since boot"))
    return ok("none worth naming", seen)


def _steal_ticks(view: View) -> int:
    return read_counters(view.root / "proc", view.root / "sys").cpus["cpu"].steal


def cpu_pressure(view: View) -> Outcome:
    """Whether processes wait for a CPU."""
    window = _window(view)
    if window is None or window.psi_cpu_ratio is None:
        return unreadable(view.read("/proc/pressure/cpu"))
    seen = _over(window, "/proc/pressure/cpu", window.psi_cpu_ratio)
    reason = _reason(window, "cpu_pressure")
    return problem(reason, seen, advice=END_IT) if reason else ok("no task waits", seen)


def memory_pressure(view: View) -> Outcome:
    """Whether processes wait for memory."""
    advice = Advice("end what uses the memory, or use a smaller working set", Reach.OWN)
    return _pressure(view, "/proc/pressure/memory", "for memory", advice)


def io_pressure(view: View) -> Outcome:
    """Whether processes wait for a disk."""
    return _pressure(view, "/proc/pressure/io", "for a disk", END_IT)


def _pressure(view: View, path: str, what: str, advice: Advice) -> Outcome:
    window, watched = _window(view), view.observation
    if window is None or watched is None:
        return unreadable(view.read(path))
    before, after = _total_us(watched.before.get(path)), _total_us(watched.after.get(path))
    if before is None or after is None:
        return unreadable(view.read(path))
    ratio = max(0, after - before) / 1e6 / window.seconds
    seen = _over(window, path, ratio)
    if ratio >= PSI_RATIO_MOST:
        return problem(f"a task waited {what} {percent(ratio)} of the time", seen, advice=advice)
    return ok("no task waits", seen)


def _total_us(text: str | None) -> int | None:
    match = re.search(r"^some .*total=(\d+)", text or "", re.MULTILINE | re.ASCII)
    return int(match[1]) if match else None


def load_average(view: View) -> Outcome:
    """The load of the last minute."""
    reading, cpus = view.read("/proc/loadavg"), view.host.cpu.online_cpus
    match = re.match(r"(\d+\.\d+) ", reading.text or "", re.ASCII)
    if match is None or not cpus:
        return unreadable(reading)
    load = float(match[1])
    if load >= LOAD_A_CPU_LEAST * cpus:
        text = f"{load:g} over the last minute on {cpus} CPUs: it was busy a moment ago"
        return notice(text, reading, advice=END_IT)
    return ok(f"{load:g} over the last minute on {cpus} CPUs", reading)


def irqbalance(view: View) -> Outcome:
    """The daemon that moves interrupts between CPUs."""
    seen = Evidence(source="/proc/PID/comm", value="irqbalance")
    if "irqbalance" in view.commands:
        text = "running: it moves interrupts between CPUs during a run"
        advice = Advice("systemctl stop irqbalance for the time of the run", Reach.KERNEL)
        return notice(text, seen, advice=advice)
    none = Evidence(source="/proc/PID/comm", value="no irqbalance")
    if not view.sees_all_processes:
        return unknown(PROCESSES_HIDDEN, none)
    return ok("not running: interrupts stay where they are", none)


def same_page_merging(view: View) -> Outcome:
    """A kernel thread that compares pages."""
    run = view.read("/sys/kernel/mm/ksm/run")
    if run.text == "1":
        text = "on: a kernel thread reads through memory and makes equal pages one"
        return notice(text, run, advice=Advice(f"echo 0 > {run.path}", Reach.KERNEL))
    if run.text in ("0", "2"):
        return ok("off", run)
    if run.reason == "no such file or directory":
        return ok("not in this kernel", run)
    return unreadable(run)


CHECKS = (
    Check("busy_cpus", Topic.NOISE, "Busy CPUs", ALL, busy_cpus),
    Check("steal", Topic.NOISE, "CPU time stolen", ALL, steal),
    Check("cpu_pressure", Topic.NOISE, "CPU pressure", ALL, cpu_pressure),
    Check("memory_pressure", Topic.NOISE, "Memory pressure", ("mem", "disk"), memory_pressure),
    Check("io_pressure", Topic.NOISE, "Disk pressure", ("disk",), io_pressure),
    Check("load_average", Topic.NOISE, "Load average", ALL, load_average),
    Check("irqbalance", Topic.NOISE, "Interrupt balancing", ("disk", "net"), irqbalance),
    Check("same_page_merging", Topic.NOISE, "Same-page merging", ("cpu", "mem"), same_page_merging),
)
