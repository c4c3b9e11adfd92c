"""Heat: what it has cost so far, and how near the next throttling is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
from hostbench.doctor.view import View, number
from hostbench.model.doctor import Evidence

THROTTLE_COUNTS = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle"
ZONES = "/sys/class/thermal/thermal_zone[0-9]*"
SENSORS = "/sys/class/hwmon/hwmon[0-9]*"
PROCESSOR_SENSORS = frozenset({"coretemp", "k10temp", "zenpower"})
THROTTLING_TRIPS = frozenset({"passive", "hot", "critical"})
MILLI = 1000
# An unset trip point reads as 0, or as nonsense far below freezing.
SENSIBLE = range(20 * MILLI, 200 * MILLI)
NEAR_CELSIUS = 10
COOLING = Advice("let it cool down, clean or speed up the fans, or lower the load", Reach.MACHINE)


def thermal_throttling(view: View) -> Outcome:
    """Whether the processor has slowed itself down because of heat."""
    cores = view.tally(f"{THROTTLE_COUNTS}/core_throttle_count")
    packages = view.tally(f"{THROTTLE_COUNTS}/package_throttle_count")
    if not cores.numbers and not packages.numbers:
        reason = KEPT_BY_HYPERVISOR if view.is_virtual else "counted on Intel processors only"
        return unknown(reason, cores)
    # A package's count appears once for each of its CPUs.
    core, package = sum(cores.numbers), max(packages.numbers, default=0)
    seen = (
        Evidence(source=cores.shown_pattern, value=f"{core} in all"),
        Evidence(source=packages.shown_pattern, value=f"at most {package}"),
    )
    if _grew(view):
        text = "the processor slowed itself down during this second"
        return problem(text, *seen, advice=COOLING)
    if core or package:
        text = f"since boot {core} times by cores and {package} times by the package; not now"
        return notice(text, *seen, advice=COOLING)
    return ok("never since boot", *seen)


def _grew(view: View) -> bool:
    if view.observation is None:
        return False
    before, after = view.observation.before, view.observation.after
    counts = [path for path in after if path.endswith("_throttle_count")]
    return any((number(after[path]) or 0) > (number(before.get(path)) or 0) for path in counts)


@dataclass(frozen=True)
class Temperature:
    """One reading, and the temperature in degrees Celsius at which something happens."""

    path: str
    name: str
    celsius: float
    trip_celsius: float

    @property
    def evidence(self) -> Evidence:
        """The reading as the report shows it."""
        value = f"{self.name} {self.celsius:.0f} °C, trips at {self.trip_celsius:.0f} °C"
        return Evidence(source=self.path, value=value)


def thermal_zones(view: View) -> Outcome:
    """How far the sensors are from the temperature at which clocks go down."""
    found = sorted((*_zones(view), *_sensors(view)), key=lambda one: one.trip_celsius - one.celsius)
    if not found:
        seen = view.tally(f"{ZONES}/temp")
        reason = "no sensor with a trip point can be read"
        return unknown(KEPT_BY_HYPERVISOR if view.is_virtual else reason, seen)
    nearest = found[0]
    left = nearest.trip_celsius - nearest.celsius
    if left <= 0:
        return problem("hot: clocks are being lowered", nearest.evidence, advice=COOLING)
    if left <= NEAR_CELSIUS:
        text = f"{left:.0f} °C below the point where clocks are lowered"
        return notice(text, nearest.evidence, advice=COOLING)
    return ok(f"at least {left:.0f} °C below every trip point", nearest.evidence)


def _zones(view: View) -> Iterator[Temperature]:
    for zone in view.find(ZONES):
        reading = view.read(f"{zone}/temp")
        trips = _sensible(
            view.read(f"{path.removesuffix('type')}temp").number
            for path in view.find(f"{zone}/trip_point_*_type")
            if view.read(path).text in THROTTLING_TRIPS
        )
        if reading.number is not None and trips:
            name = view.read(f"{zone}/type").text or "sensor"
            yield Temperature(reading.path, name, reading.number / MILLI, min(trips) / MILLI)


def _sensors(view: View) -> Iterator[Temperature]:
    for sensor in view.find(SENSORS):
        chip = view.read(f"{sensor}/name").text
        if chip not in PROCESSOR_SENSORS:
            continue
        for path in view.find(f"{sensor}/temp*_input"):
            reading, base = view.read(path), path.removesuffix("input")
            trips = _sensible(view.read(f"{base}{name}").number for name in ("max", "crit"))
            if reading.number is not None and trips:
                yield Temperature(path, chip, reading.number / MILLI, min(trips) / MILLI)


def _sensible(millidegrees: Iterable[int | None]) -> list[int]:
    return [one for one in millidegrees if one is not None and one in SENSIBLE]


CHECKS = (
    Check("thermal_throttling", Topic.TEMPERATURE, "Thermal throttling", ALL, thermal_throttling),
    Check("thermal_zones", Topic.TEMPERATURE, "Temperatures", ALL, thermal_zones),
)
