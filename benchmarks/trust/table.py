"""The tables of the experiment, from its raw figures: what share of the intervals hold the truth,
how often condition and culprit are right, how far off figures are.

usage: python -m benchmarks.trust.table [FILE]
"""

import csv
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.trust.experiment import PLANTS, QUIET, RAW

# The truth of a moment is the median of so many quiet jobs, the nearest ones.
NEIGHBOURS = 16
CLASSES = {
    "cpu.fma": "registers",
    "cpu.add_sub": "registers",
    "mem.copy": "memory",
    "mem.pointer_chase": "memory",
    "disk.rand_read": "disk",
    "net.tcp_stream": "network",
    "net.tcp_rr": "network",
}
Row = dict[str, Any]
NUMBERS = ("value", "low", "high", "delivered", "delivered_low", "delivered_high", "time_unix_s")


def load(path: Path) -> list[Row]:
    """The rows of the cases, in the order they ran."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found: list[Row] = list(csv.DictReader(lines))
    for row in found:
        row |= {name: float(row[name]) if row[name] else None for name in NUMBERS}
    return [row for row in found if row["workload"]]


def truth(row: Row, rows: Sequence[Row], field: str, plant: str) -> float | None:
    """The median of `field` over the neighbouring jobs under `plant`, without the row itself."""
    alike = [
        one
        for one in rows
        if one["workload"] == row["workload"]
        and one["plant"] == plant
        and one is not row
        and one[field] is not None
        and (field != "value" or one["verdict"] in ("clean", "noisy"))
    ]
    alike.sort(key=lambda one: abs(one["time_unix_s"] - row["time_unix_s"]))
    values = [one[field] for one in alike[:NEIGHBOURS]]
    return statistics.median(values) if len(values) >= 3 else None


def coverage(rows: Iterable[Row], everything: Sequence[Row], figure: str) -> tuple[int, int]:
    """How many intervals hold the truth, and of how many; `figure`: value or delivered."""
    low, high = ("low", "high") if figure == "value" else ("delivered_low", "delivered_high")
    inside = of = 0
    for row in rows:
        plant = QUIET if figure == "value" else row["plant"]
        true = truth(row, everything, figure, plant)
        if true is None or row[low] is None:
            continue
        of += 1
        inside += row[low] <= true <= row[high]
    return inside, of


def share(inside: int, of: int) -> str:
    """`0.967 (0.93-0.99) of 120`, with Wilson's interval."""
    if not of:
        return "-"
    z, p = 1.96, inside / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * ((p * (1 - p) / of + z * z / (4 * of * of)) ** 0.5) / (1 + z * z / of)
    return f"{p:.3f} ({middle - half:.2f}-{min(1.0, middle + half):.2f}) of {of}"


def median_error(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """`0.4 % (2.1 % most)`: how far the figures are from the truth."""
    errors = [
        abs(row["value"] / true - 1)
        for row in rows
        if row["value"] and (true := truth(row, everything, "value", QUIET))
    ]
    if not errors:
        return "-"
    return f"{100 * statistics.median(errors):.1f} % ({100 * max(errors):.1f} % most)"


def print_coverage(rows: Sequence[Row]) -> None:
    """What share of the intervals hold the truth, by class; of figures called clean or noisy."""
    print("| class | undisturbed or whole-run figure | delivered | half-width / half the range |")
    print("|---|---|---|---|")
    for kind in dict.fromkeys(CLASSES.values()):
        own = [row for row in rows if CLASSES[row["workload"]] == kind]
        called = [row for row in own if row["verdict"] in ("clean", "noisy")]
        value = share(*coverage(called, rows, "value"))
        delivered = share(*coverage(own, rows, "delivered"))
        print(f"| {kind} | {value} | {delivered} | {sharpness(own)} |")


def sharpness(rows: Sequence[Row]) -> str:
    """The median half-width of the quiet intervals over half the range that holds 95 % of the quiet
    figures, the median over the workloads."""
    ratios = []
    for workload in {row["workload"] for row in rows}:
        own = [row for row in rows if row["workload"] == workload and row["plant"] == QUIET]
        own = [row for row in own if row["value"] and row["low"]]
        if len(own) < 8:
            continue
        ordered = sorted(row["value"] for row in own)
        cut = round(0.025 * len(ordered))
        half = (ordered[-1 - cut] - ordered[cut]) / 2 / statistics.median(ordered)
        widths = [(row["high"] - row["low"]) / 2 / row["value"] for row in own]
        ratios.append(statistics.median(widths) / half if half else 0.0)
    return f"{statistics.median(ratios):.2f}" if ratios else "-"


def print_plants(rows: Sequence[Row]) -> None:
    """How often condition and culprit were right, and how far off the figures are, by plant."""
    print(
        "| planted | class | condition right | culprit named | error of figures | clean, exit 0 |"
    )
    print("|---|---|---|---|---|---|")
    for plant in PLANTS:
        for kind in dict.fromkeys(CLASSES.values()):
            own = [
                row
                for row in rows
                if row["plant"] == plant.name and CLASSES[row["workload"]] == kind
            ]
            if not own:
                continue
            right = sum(row["condition"] == plant.condition for row in own)
            named = sum(bool(plant.culprit) and plant.culprit in row["culprit"] for row in own)
            clean = [row for row in own if row["verdict"] == "clean"]
            exits = sum(row["exit_code"] == "0" for row in own)
            culprit = f"{named} of {len(own)}" if plant.culprit else "-"
            print(
                f"| {plant.name} | {kind} | {right} of {len(own)} | {culprit} | "
                f"{median_error(own, rows)} | {len(clean)}, {exits} of {len(own)} |"
            )


def main() -> None:
    """Print the tables."""
    rows = load(Path(sys.argv[1]) if len(sys.argv) > 1 else RAW)
    print_coverage(rows)
    print()
    print_plants(rows)


if __name__ == "__main__":
    main()
