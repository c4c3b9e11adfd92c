"""Read the hardware's own error counters and its temperature from the kernel."""

import re
from pathlib import Path

from hostbench.base.files import read_number, read_text

MILLI = 1000
PROCESSOR_SENSORS = frozenset({"coretemp", "k10temp", "zenpower"})
# Of each memory controller, and of each of its DIMMs.
_EDAC_COUNTS = ("mc*/?e_count", "mc*/dimm*/dimm_?e_count")
_EDAC_LABEL = "dimm_label"
# Interrupts by CPU: machine checks, corrected errors that reached their threshold (Intel's CMCI,
# AMD's thresholding), and AMD's deferred errors. The row MCP counts looks for errors, not errors.
_MACHINE_CHECKS = re.compile(r"^\s*(MCE|THR|DFR):((?:\s+\d+)+)", re.MULTILINE)


def error_counts(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, int]:
    """Return the errors counted since boot, by where the count is: corrected and uncorrected ones
    of each memory controller and DIMM (EDAC), and machine checks. A DIMM's count has its label.
    Empty: the kernel counts none here."""
    controllers = sys / "devices" / "system" / "edac" / "mc"
    edac = sorted(path for pattern in _EDAC_COUNTS for path in controllers.glob(pattern))
    counts = {_named(path, sys): read_number(path) for path in edac}
    for row, by_cpu in _MACHINE_CHECKS.findall(read_text(proc / "interrupts") or ""):
        counts[f"/proc/interrupts {row}"] = sum(map(int, by_cpu.split()))
    return {source: count for source, count in counts.items() if count is not None}


def _named(count: Path, sys: Path) -> str:
    """Return where a count is, with the label of its DIMM if the kernel has one."""
    label = read_text(count.with_name(_EDAC_LABEL))
    return f"/sys/{count.relative_to(sys)}" + (f", {label}" if label else "")


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
