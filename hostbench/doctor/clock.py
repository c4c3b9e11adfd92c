"""What controls the clock, and how high it may go."""

from hostbench.doctor.check import (
    ALL,
    KEPT_BY_HYPERVISOR,
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
from hostbench.doctor.view import Reading, Tally, View, number

CPUS = "/sys/devices/system/cpu"
POLICIES = f"{CPUS}/cpufreq/policy[0-9]*"
NO_TURBO = f"{CPUS}/intel_pstate/no_turbo"
# The powersave of these drivers is their own governor, which raises the clock under load; that of
# any other driver stays at the lowest clock: docs.kernel.org/admin-guide/pm/intel_pstate.html and
# amd-pstate.html.
SELF_SCALING_DRIVERS = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})
# energy_performance_preference as a number: 0 is performance, 255 is power.
ENERGY_RAW_MOST = 192
# energy_perf_bias: 0 performance, 6 normal, 8 balance-power, 15 power.
ENERGY_BIAS_MOST = 7


def governor(view: View) -> Outcome:
    """What raises and lowers the clock."""
    governors = view.tally(f"{POLICIES}/scaling_governor")
    drivers = view.tally(f"{POLICIES}/scaling_driver")
    if not governors.values:
        return _no_cpufreq(view, governors)
    names, driver = set(governors.values), str(drivers) or "unknown driver"
    advice = Advice("cpupower frequency-set --governor performance", Reach.HARDWARE)
    if names == {"performance"}:
        return ok(f"performance, by {driver}", governors, drivers)
    if "powersave" in names and not set(drivers.values) <= SELF_SCALING_DRIVERS:
        text = f"powersave of {driver} keeps the lowest clock whatever the load"
        return problem(text, governors, drivers, advice=advice)
    text = f"{governors}, by {driver}: the clock follows the load, so work that waits runs slowly"
    return notice(text, governors, drivers, advice=advice)


def _no_cpufreq(view: View, seen: Tally) -> Outcome:
    if view.is_virtual:
        return unknown(KEPT_BY_HYPERVISOR, seen)
    return unknown("the kernel has no frequency driver here; the firmware may decide", seen)


def frequency_limits(view: View) -> Outcome:
    """Whether software keeps the clock below what the processor offers."""
    capped = []
    policies = view.find(POLICIES)
    for policy in policies:
        most, offered = view.read(f"{policy}/scaling_max_freq"), f"{policy}/cpuinfo_max_freq"
        ceiling = view.read(offered)
        if most.number and ceiling.number and most.number < ceiling.number:
            capped.append((most, ceiling))
    percent = view.read(f"{CPUS}/intel_pstate/max_perf_pct")
    if not policies:
        return _no_cpufreq(view, view.tally(f"{POLICIES}/scaling_max_freq"))
    advice = Advice(
        "cpupower frequency-set --max FREQUENCY, with cpuinfo_max_freq (kHz)", Reach.HARDWARE
    )
    if percent.number is not None and percent.number < 100:
        action = f"echo 100 > {percent.path}"
        text = f"intel_pstate holds it at {percent.number} % of the highest"
        return problem(text, percent, advice=Advice(action, Reach.HARDWARE))
    if not capped:
        return ok("none below the processor's own", view.tally(f"{POLICIES}/scaling_max_freq"))
    if view.host.frequency.turbo is False:
        return ok("as high as they go without turbo", *capped[0])
    text = f"the highest clock is not allowed on {len(capped)} of {len(policies)} policies"
    return problem(text, *capped[0], advice=advice)


def energy_preference(view: View) -> Outcome:
    """What the processor prefers if it controls the clock itself."""
    preferences = view.tally(f"{POLICIES}/energy_performance_preference")
    if not preferences.values:
        return _energy_bias(view)
    ranks = {_energy_rank(value) for value in preferences.values}
    advice = Advice(
        "cpupower set --epp performance, or governor performance, which sets it too",
        Reach.HARDWARE,
    )
    text = f"{preferences}: the hardware trades clock for energy"
    if max(ranks) > 1:
        return problem(text, preferences, advice=advice)
    if max(ranks) == 1:
        return notice(text, preferences, advice=advice)
    return ok(str(preferences), preferences)


def _energy_rank(value: str) -> int:
    """Return 0 for performance, 2 for saving energy, 1 for anything between."""
    raw = number(value)
    if raw is not None:
        return 0 if raw == 0 else 1 + (raw >= ENERGY_RAW_MOST)
    return {"performance": 0, "power": 2}.get(value, 1)


def _energy_bias(view: View) -> Outcome:
    biases = view.tally(f"{CPUS}/cpu[0-9]*/power/energy_perf_bias")
    if not biases.numbers:
        return unknown(KEPT_BY_HYPERVISOR if view.is_virtual else "no such setting here", biases)
    text = f"bias {max(biases.numbers)} of 15, where 0 is performance and 6 normal"
    advice = Advice("cpupower set --perf-bias 0", Reach.HARDWARE)
    if max(biases.numbers) > ENERGY_BIAS_MOST:
        return problem(text, biases, advice=advice)
    if max(biases.numbers) > 0:
        return notice(text, biases, advice=advice)
    return ok(text, biases)


def turbo(view: View) -> Outcome:
    """Clocks above the nominal one."""
    common = _first_readable(view, NO_TURBO, f"{CPUS}/cpufreq/boost")
    policies = view.tally(f"{POLICIES}/boost")
    if view.host.frequency.turbo is None and not policies.values:
        reason = KEPT_BY_HYPERVISOR if view.is_virtual else "no switch for it here"
        return unknown(reason, common)
    if view.host.frequency.turbo is False:
        value = 0 if common.path == NO_TURBO else 1
        advice = Advice(f"echo {value} > {common.path}", Reach.HARDWARE)
        return notice("off: figures are those of the nominal clock", common, advice=advice)
    if "0" in policies.values:
        advice = Advice(f"echo 1 | tee {policies.shown_pattern}", Reach.HARDWARE)
        return notice("off for some CPUs", policies, advice=advice)
    text = "on: the clock depends on temperature and on how many cores work; trials measure it"
    return ok(text, policies if policies.values else common)


def _first_readable(view: View, *paths: str) -> Reading:
    readings = [view.read(path) for path in paths]
    return next((reading for reading in readings if reading.text), readings[-1])


CHECKS = (
    Check("cpu_governor", Topic.CLOCK, "Frequency governor", ALL, governor),
    Check("frequency_limits", Topic.CLOCK, "Frequency limits", ALL, frequency_limits),
    Check("energy_preference", Topic.CLOCK, "Energy preference", ALL, energy_preference),
    Check("turbo", Topic.CLOCK, "Turbo", ALL, turbo),
)
