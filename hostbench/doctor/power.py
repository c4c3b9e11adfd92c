"""Saving energy: idle states, power profiles, batteries."""

from hostbench.doctor.check import (
    ALL,
    KEPT_BY_HYPERVISOR,
    PROCESSES_HIDDEN,
    Advice,
    Check,
    Outcome,
    Reach,
    Seen,
    Topic,
    notice,
    ok,
    problem,
    unknown,
    unreadable,
)
from hostbench.doctor.view import View
from hostbench.model.doctor import Evidence

IDLE = "/sys/devices/system/cpu/cpuidle"
STATES = "/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*"
SHOWN_STATES = STATES.replace("[0-9]*", "*")
RESUME_LATENCY = "/sys/devices/system/cpu/cpu[0-9]*/power/pm_qos_resume_latency_us"
CSTATE_LIMITS = (
    "/sys/module/intel_idle/parameters/max_cstate",
    "/sys/module/processor/parameters/max_cstate",
)
# Intel's C1E needs about 10 µs to wake, C6 and deeper more than 100 µs: drivers/idle/intel_idle.c.
DEEP_MICROSECONDS = 20
# Opening it files a request: docs.kernel.org/power/pm_qos_interface.html.
NOT_OPENED = Evidence(
    source="/dev/cpu_dma_latency", reason="not opened: opening it files a latency request"
)


def idle_states(view: View) -> Outcome:
    """How deep idle CPUs may sleep, and how long they take to wake up."""
    driver = view.read(f"{IDLE}/current_driver")
    if driver.text is None:
        return unreadable(driver)
    if view.is_virtual:
        return unknown(f"those of the processor are {KEPT_BY_HYPERVISOR}", driver)
    states = [
        (latency, name)
        for state in view.find(STATES)
        if (latency := view.read(f"{state}/latency").number) is not None
        and view.read(f"{state}/disable").text != "1"
        and (name := view.read(f"{state}/name").text)
    ]
    if not states:
        return ok("none in use: idle CPUs do not sleep deeply", driver)
    latency, name = max(states)
    seen: list[Seen] = [driver, Evidence(source=SHOWN_STATES, value=f"{name} {latency} µs")]
    seen += [reading.evidence for path in CSTATE_LIMITS if (reading := view.read(path)).text]
    bounds = view.tally(RESUME_LATENCY)
    if bounds.values:
        seen.append(bounds.evidence)
    if latency <= DEEP_MICROSECONDS:
        return ok(f"the deepest, {name}, wakes in {latency} µs", *seen, NOT_OPENED)
    text = f"the deepest, {name}, needs {latency} µs to wake: waiting work sees that"
    advice = Advice(f"cpupower idle-set --disable-by-latency {DEEP_MICROSECONDS}", Reach.HARDWARE)
    return notice(text, *seen, NOT_OPENED, advice=advice)


PLATFORM_PROFILE = "/sys/firmware/acpi/platform_profile"
SAVING_PROFILES = frozenset({"low-power", "quiet", "cool"})
TUNED_PROFILE = "/etc/tuned/active_profile"
FAST_TUNED = frozenset(
    {
        "accelerator-performance",
        "hpc-compute",
        "latency-performance",
        "network-latency",
        "network-throughput",
        "throughput-performance",
        "virtual-guest",
        "virtual-host",
    }
)
# By command, which the kernel cuts to 15 characters.
DAEMONS = {
    "auto-cpufreq": "auto-cpufreq",
    "power-profiles-": "power-profiles-daemon",
    "tuned": "tuned",
}
PROFILE_REMEDY = Advice(
    "powerprofilesctl set performance, or tuned-adm profile throughput-performance", Reach.HARDWARE
)


def power_profile(view: View) -> Outcome:
    """What else controls the balance of speed and energy."""
    platform, tuned = view.read(PLATFORM_PROFILE), view.read(TUNED_PROFILE)
    running = sorted(name for command, name in DAEMONS.items() if command in view.commands)
    daemons = Evidence(source="/proc/PID/comm", value=", ".join(running) or "no such daemon")
    seen: tuple[Seen, ...] = (*(one for one in (platform, tuned) if one.text), daemons)
    if platform.text in SAVING_PROFILES:
        text = f"{platform.text}: the firmware saves energy"
        return problem(text, *seen, advice=PROFILE_REMEDY)
    if "tuned" in running and tuned.text and tuned.text not in FAST_TUNED:
        text = f"tuned has the profile {tuned.text}"
        return notice(text, *seen, advice=PROFILE_REMEDY)
    if platform.text and platform.text != "performance":
        return notice(platform.text, *seen, advice=PROFILE_REMEDY)
    if set(running) - {"tuned"}:
        text = f"{', '.join(running)} may change the clock at any time"
        return notice(text, *seen, advice=PROFILE_REMEDY)
    if running or platform.text:
        return ok(platform.text or f"tuned, {tuned.text or 'profile unknown'}", *seen)
    if not view.sees_all_processes:
        return unknown(PROCESSES_HIDDEN, platform, daemons)
    return ok("no daemon manages it", platform, daemons)


SUPPLIES = "/sys/class/power_supply"


def battery(view: View) -> Outcome:
    """Whether a laptop runs from its battery."""
    if not (view.root / SUPPLIES.lstrip("/")).is_dir():
        return unknown("the kernel lists no power supplies", view.read(f"{SUPPLIES}/BAT0/status"))
    draining = []
    for path in view.find(f"{SUPPLIES}/*/type"):
        supply = path.removesuffix("/type")
        status, online = view.read(f"{supply}/status"), view.read(f"{supply}/online")
        # A mouse has a battery, too.
        mine = view.read(f"{supply}/scope").text != "Device"
        kind = view.read(path).text
        if mine and kind == "Battery" and status.text == "Discharging":
            draining.append(status)
        if kind == "Mains" and online.text == "0":
            draining.append(online)
    if draining:
        advice = Advice("plug in the power supply", Reach.OWN)
        return problem("this host runs from its battery", *draining, advice=advice)
    listed = view.tally(f"{SUPPLIES}/*/type")
    return ok("none in use", listed)


CHECKS = (
    Check("idle_states", Topic.POWER, "Idle states", ("disk", "net"), idle_states),
    Check("power_profile", Topic.POWER, "Power profile", ALL, power_profile),
    Check("battery", Topic.POWER, "Battery", ALL, battery),
)
