"""Read the hardware's own error counters and its temperature from the kernel."""

import re
from pathlib import Path

from hostbench.base.files import read_number, read_text

MILLI = 1000
PROCESSOR_SENSORS = frozenset({"coretemp", "k10temp", "zenpower"})
_EDAC_COUNTS = "devices/system/edac/mc/mc*/?e_count"
# Machine checks by CPU. The row MCP counts looks for errors, not errors.
_MACHINE_CHECKS = re.compile(r"^\s*MCE:((?:\s+\d+)+)", re.MULTILINE)


def error_counts(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, int]:
    """Return the errors counted since boot, by where the count is: corrected and uncorrected ones
    of each memory controller (EDAC), and machine checks. Empty: the kernel counts none here."""
    edac = sorted(sys.glob(_EDAC_COUNTS))
    counts = {f"/sys/{path.relative_to(sys)}": read_number(path) for path in edac}
    found = _MACHINE_CHECKS.search(read_text(proc / "interrupts") or "")
    if found is not None:
        counts["/proc/interrupts MCE"] = sum(map(int, found[1].split()))
    return {source: count for source, count in counts.items() if count is not None}


def hottest_celsius(sys: Path = Path("/sys")) -> float | None:
    """Return what the hottest sensor of a processor reads, or None without one."""
    readings = [
        read_number(path)
        for sensor in sys.glob("class/hwmon/hwmon*")
        if read_text(sensor / "name") in PROCESSOR_SENSORS
        for path in sensor.glob("temp*_input")
    ]
    known = [reading / MILLI for reading in readings if reading is not None]
    return max(known, default=None)
