"""The tables of the experiment, from its raw figures: what share of the intervals hold the truth,
how often condition and culprit are right, how far off figures are; and the reliability diagram.

usage: python -m benchmarks.trust.table [FILE] [--diagram PICTURE.svg]
"""

import argparse
import csv
import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import BENCHMARKS
from benchmarks.trust.experiment import LATENCIES, PLANTS, QUIET, RAW, Plant
from hostbench.judge.figure import delivered_drift
from hostbench.judge.statistics import CLASS_DEGREES_MOST, student_quantile
from hostbench.model.registry import find_subsystem

# The truth at a time is the median of this many quiet jobs nearest to it.
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
# Verdicts whose figures may be used.
USABLE = ("clean", "noisy")
# Conditions that are false alarms on a host where nothing was planted. The kernel counts what the
# hypervisor takes; these conditions are inferred.
ALARMS = ("shared", "throttled", "quota")
# A disturbance is not felt by a case that still delivers more than this share of what a quiet host
# delivers.
FELT_RATIO = 0.97
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
# Half-width of the 95 % interval of a normal value, in standard deviations.
Z = 1.96
CELL_LEAST_RATIO = 17 / 20
# A cell of workload and disturbance with fewer figures is too small to show their spread.
CELL_LEAST = 8
Row = dict[str, Any]
# The distance of the truth from a figure in half-widths of its interval, and the degrees of freedom
# of the interval.
Distance = tuple[float, int]
NUMBERS = (
    *("value", "low", "high", "delivered", "delivered_low", "delivered_high", "time_unix_s"),
    *("slowest", "drift_ratio", "delivered_drift_ratio", "shared_ratio"),
)
# Each figure with the columns of its interval and of the drift in it.
INTERVALS = (
    ("value", "low", "high", "drift_ratio"),
    ("delivered", "delivered_low", "delivered_high", "delivered_drift_ratio"),
)
# A trial slower than this share of the neighbouring jobs confirms that something took the host from
# it.
SLOW_RATIO = 0.95


def load(path: Path) -> list[Row]:
    """Return the rows of the cases in the order they ran."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found: list[Row] = list(csv.DictReader(lines))
    for row in found:
        row |= {name: float(row[name]) if row.get(name) else None for name in NUMBERS}
        row["class"] = CLASSES.get(row["workload"])
        if row["workload"]:
            judge_by_todays_rule(row)
    return [row for row in found if row["workload"]]


def judge_by_todays_rule(row: Row) -> None:
    """Judge rounds that were measured under an older drift by the drift of today.

    Half an interval is the root of the sum of the squares of its trials' part and its drift part;
    the drift part is replaced. A figure is noisy when its new interval is wider than is usual
    today.
    """
    if row["shared_ratio"] is None:
        row["shared_ratio"] = float(row["share"] or 0) if row["condition"] == "shared" else 0.0
    if row["delivered_drift_ratio"] is None:
        row["delivered_drift_ratio"] = row["drift_ratio"]
    subsystem = find_subsystem(row["workload"].partition(".")[0])
    usual = subsystem.guest_spread
    drift = usual.drift_of("lower" if row["workload"] in LATENCIES else "higher")
    drifts = (drift, delivered_drift(drift, row["shared_ratio"]))
    for (_, low, high, judged), today in zip(INTERVALS, drifts, strict=True):
        if row[low] and row[high] and row[low] < row[high]:
            middle = math.sqrt(row[low] * row[high])
            factor = math.exp(math.hypot(trials_part(row, low, high, judged), Z * today))
            row[low], row[high], row[judged] = middle / factor, middle * factor, today
    if row["verdict"] in USABLE and row["low"]:
        target = max(subsystem.target_half_width, usual.half_width_ratio)
        row["verdict"] = "clean" if half_width_ratio(row) <= target else "noisy"


def trials_part(row: Row, low: str, high: str, drift: str) -> float:
    """Return half the interval that the trials alone give, on a logarithmic scale."""
    half = math.log(row[high] / row[low]) / 2
    return math.sqrt(max(0.0, half**2 - (Z * (row[drift] or 0.0)) ** 2))


def half_width_ratio(row: Row) -> float:
    """Return half the interval of a figure, as a share of the figure."""
    return float((row["high"] - row["low"]) / 2 / row["value"])


def truth(row: Row, rows: Sequence[Row], field: str, plant: str) -> float | None:
    """Return the median of `field` over the neighbouring jobs under `plant`, without the row
    itself, or None with fewer than three."""
    alike = [
        one
        for one in rows
        if one["workload"] == row["workload"]
        and one["plant"] == plant
        and one is not row
        and one[field] is not None
        and (field != "value" or one["verdict"] in USABLE)
    ]
    alike.sort(key=lambda one: abs(one["time_unix_s"] - row["time_unix_s"]))
    values = [one[field] for one in alike[:NEIGHBOURS]]
    return statistics.median(values) if len(values) >= 3 else None


def distances(rows: Iterable[Row], everything: Sequence[Row], figure: str) -> Iterator[Distance]:
    """Yield the distance of the truth from each figure that has an interval; `figure` is "value" or
    "delivered"."""
    low, high, n = (
        ("low", "high", "n")
        if figure == "value"
        else ("delivered_low", "delivered_high", "delivered_n")
    )
    for row in rows:
        true = truth(row, everything, figure, QUIET if figure == "value" else row["plant"])
        if true is not None and row[low] is not None and row[low] < row[high]:
            half = math.log(row[high] / row[low]) / 2
            off = abs(math.log(true) - math.log(row[high] * row[low]) / 2)
            yield off / half, int(row[n]) - 1 + CLASS_DEGREES_MOST


def coverage(found: Iterable[Distance], level: float = 0.95) -> tuple[int, int]:
    """Return how many intervals of this level hold the truth, and out of how many."""
    inside = of = 0
    for distance, degrees in found:
        of += 1
        wider = student_quantile((1 + level) / 2, degrees) / student_quantile(0.975, degrees)
        inside += distance <= wider
    return inside, of


def wilson(inside: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z, p = Z, inside / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * ((p * (1 - p) / of + z * z / (4 * of * of)) ** 0.5) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(inside: int, of: int) -> str:
    """Return a share with Wilson's interval, such as `96.7 % (93 to 99) of 120`."""
    if not of:
        return "-"
    low, high = wilson(inside, of)
    return f"{100 * inside / of:.1f} % ({100 * low:.0f} to {100 * high:.0f}) of {of}"


def errors(rows: Iterable[Row], everything: Sequence[Row]) -> list[float]:
    """Return how far usable figures are from the truth, as shares of it."""
    return [
        abs(row["value"] / true - 1)
        for row in rows
        if row["verdict"] in USABLE
        and row["value"]
        and (true := truth(row, everything, "value", QUIET))
    ]


def error_words(found: Sequence[float]) -> str:
    """Return the median and the largest error, such as `0.4 % (2.1 % most)`."""
    if not found:
        return "none usable"
    return f"{100 * statistics.median(found):.1f} % ({100 * max(found):.1f} % most)"


def of_class(rows: Iterable[Row], kind: str) -> list[Row]:
    """Return the rows of a class of resource."""
    return [row for row in rows if row["class"] == kind]


def kinds() -> list[str]:
    """Return the classes of resource."""
    return list(dict.fromkeys(CLASSES.values()))


def print_coverage(rows: Sequence[Row]) -> None:
    """Print by class which share of the intervals holds the truth, for figures called clean or
    noisy."""
    print(
        "| class | figure, quiet | figure, planted | delivered | half-width / half the range "
        "| the same, delivered | half-width of 19 in 20, quiet |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in kinds():
        own = of_class(rows, kind)
        called = [row for row in own if row["verdict"] in USABLE]
        quiet = [row for row in called if row["plant"] == QUIET]
        planted = [row for row in called if row["plant"] != QUIET]
        shares = [
            share(*coverage(distances(quiet, rows, "value"))),
            share(*coverage(distances(planted, rows, "value"))),
            share(*coverage(distances(own, rows, "delivered"))),
        ]
        widths = sorted(half_width_ratio(row) for row in quiet if row["low"])
        usual = f"{100 * widths[int(0.95 * len(widths))]:.1f} %" if widths else "-"
        sharp = (
            sharpness([row for row in own if row["plant"] == QUIET], "value", "low", "high"),
            sharpness(own, "delivered", "delivered_low", "delivered_high"),
        )
        print(f"| {kind} | {' | '.join([*shares, *sharp])} | {usual} |")


def print_poor_cells(rows: Sequence[Row]) -> None:
    """Print the cells of workload and disturbance where fewer than 17 of 20 intervals hold the
    truth."""
    poor = []
    for workload, plant in itertools.product(CLASSES, PLANTS):
        own = [row for row in rows if (row["workload"], row["plant"]) == (workload, plant.name)]
        called = [row for row in own if row["verdict"] in USABLE]
        for figure, some in (("value", called), ("delivered", own)):
            inside, of = coverage(distances(some, rows, figure))
            if inside < CELL_LEAST_RATIO * of:
                poor.append(f"{workload}, {plant.name}, {figure}: {inside} of {of}")
    print("Cells below 17 of 20:", "; ".join(poor) or "none")


def sharpness(rows: Sequence[Row], figure: str, low: str, high: str) -> str:
    """Return the median half-width of the intervals divided by half the range that holds 95 % of
    the figures.

    Each figure is taken relative to the median of its workload under its disturbance. The result is
    the median over the workloads.
    """
    ratios = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        off, widths = [], []
        for plant in PLANTS:
            cell = [
                row
                for row in rows
                if (row["workload"], row["plant"]) == (workload, plant.name)
                and row[figure]
                and row[low]
            ]
            if len(cell) < CELL_LEAST:
                continue
            middle = statistics.median(row[figure] for row in cell)
            off += [row[figure] / middle for row in cell]
            widths += [(row[high] - row[low]) / 2 / row[figure] for row in cell]
        off.sort()
        cut = round(0.025 * len(off))
        if off and (half := (off[-1 - cut] - off[cut]) / 2):
            ratios.append(statistics.median(widths) / half)
    return f"{statistics.median(ratios):.2f}" if ratios else "-"


def print_quiet(rows: Sequence[Row]) -> None:
    """Print the words for a host on which nothing was planted."""
    print(
        "| class | clean | noisy | not usable | alarm | of these false | any wrong word "
        "| error of figures |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in kinds():
        own = [row for row in of_class(rows, kind) if row["plant"] == QUIET]
        counts = [sum(row["verdict"] == word for row in own) for word in USABLE]
        alarms = [row for row in own if row["condition"] in ALARMS]
        false = sum(not is_borne_out(row, rows) for row in alarms)
        wrong = sum(is_wrong(row, rows) for row in own)
        cells = [*counts, len(own) - sum(counts), len(alarms)]
        cells += [share(false, len(own)), share(wrong, len(own))]
        print(f"| {kind} | {' | '.join(map(str, cells))} | {error_words(errors(own, rows))} |")


def print_plants(rows: Sequence[Row]) -> None:
    """Print by disturbance how often condition and culprit were right, and how far off the figures
    are."""
    print(
        "| planted | class | delivered | condition | culprit | error, usable figures | verdicts |"
    )
    print("|---|---|---|---|---|---|---|")
    for plant in PLANTS[1:]:
        for kind in kinds():
            own = [row for row in of_class(rows, kind) if row["plant"] == plant.name]
            if not own:
                continue
            felt = [row for row in own if is_felt(row["workload"], plant, rows)]
            verdicts = (
                f"{count} {word}"
                for word in (*USABLE, "disturbed", "skipped", "invalid", "failed")
                if (count := sum(row["verdict"] == word for row in own))
            )
            print(
                f"| {plant.name} | {kind} | {delivered_words(own, plant, rows)} | "
                f"{right([row['condition'] == plant.condition for row in felt])} | "
                f"{right([plant.culprit in row['culprit'] for row in felt])} | "
                f"{error_words(errors(own, rows))} | {', '.join(verdicts)} |"
            )
    jobs = {(row["time_unix_s"], row["exit_code"]) for row in rows}
    print(f"\nExit code 0: {sum(code == '0' for _, code in jobs)} of {len(jobs)} jobs.")


def is_wrong(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a case on a quiet host was called noisy, not usable or an alarm without a
    reason.

    A reason is time that the kernel counts as stolen, or a trial slower than the neighbouring jobs.
    """
    warned = row["verdict"] != "clean" or row["condition"] in ALARMS
    return warned and row["condition"] != "stolen" and not is_borne_out(row, rows)


def is_borne_out(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a trial of this case was slower than the neighbouring jobs: something took the
    host from it although nothing was planted."""
    true = truth(row, rows, "value", QUIET)
    if true is None or row["slowest"] is None:
        return False
    of_true = row["slowest"] / true
    return bool((1 / of_true if row["workload"] in LATENCIES else of_true) < SLOW_RATIO)


def right(answers: Sequence[bool]) -> str:
    """Return `39 of 40`, or `not felt` when the disturbance took nothing from the class."""
    return f"{sum(answers)} of {len(answers)}" if answers else "not felt"


def delivered_beside_quiet(workload: str, plant: Plant, rows: Sequence[Row]) -> float:
    """Return what is delivered under the disturbance, as a share of what a quiet host delivers.
    Both are medians of all rounds."""
    under, quiet = (
        statistics.median(
            row["delivered"]
            for row in rows
            if (row["workload"], row["plant"]) == (workload, name) and row["delivered"]
        )
        for name in (plant.name, QUIET)
    )
    return float(quiet / under if workload in LATENCIES else under / quiet)


def is_felt(workload: str, plant: Plant, rows: Sequence[Row]) -> bool:
    """Return whether the disturbance took anything from the workload or gave it something.

    A load can help: a CPU that is already working does not have to wake up.
    """
    ratio = delivered_beside_quiet(workload, plant, rows)
    return not FELT_RATIO <= ratio <= 1 / FELT_RATIO


def delivered_words(own: Sequence[Row], plant: Plant, rows: Sequence[Row]) -> str:
    """Return the share delivered by each workload of a class, such as `62 %, 71 %`."""
    workloads = dict.fromkeys(row["workload"] for row in own)
    return ", ".join(f"{100 * delivered_beside_quiet(one, plant, rows):.0f} %" for one in workloads)


def draw(rows: Sequence[Row], picture: Path) -> None:
    """Draw the reliability diagram: the coverage that intervals claim, and the coverage that they
    have."""
    import matplotlib  # takes half a second to import; only the picture needs it

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hostbench"
    from matplotlib import pyplot

    figure, sides = pyplot.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
    titles = {"value": "figure", "delivered": "delivered"}
    for side, (field, title) in zip(sides, titles.items(), strict=True):
        side.plot([45, 100], [45, 100], color="#888", linewidth=1, linestyle="--")
        for kind, marker in zip(kinds(), "osD^", strict=True):
            own = of_class(rows, kind)
            if field == "value":
                own = [row for row in own if row["verdict"] in USABLE]
            found = list(distances(own, rows, field))
            held = [100 * inside / of for inside, of in (coverage(found, at) for at in LEVELS)]
            side.plot(
                [100 * at for at in LEVELS], held, marker=marker, label=f"{kind} (n={len(found)})"
            )
        side.set_title(title)
        side.set_xlabel("the interval claims to hold the truth in … %")
        side.grid(alpha=0.3)
        side.legend(loc="lower right")
    sides[0].set_ylabel("it does in … %")
    figure.savefig(picture, metadata={"Date": None})


def main() -> None:
    """Print the tables; with --diagram, also draw the diagram."""
    parser = argparse.ArgumentParser(description="The tables of benchmarks.trust.experiment.")
    parser.add_argument("file", type=Path, nargs="?", default=RAW)
    parser.add_argument("--diagram", type=Path, metavar="PICTURE.svg")
    arguments = parser.parse_args()
    if not arguments.file.is_file():
        parser.error(
            f"there is no {arguments.file}: measure with python -m benchmarks.trust.experiment, or "
            f"name a file, such as those in {BENCHMARKS / 'trust/results'}"
        )
    rows = load(arguments.file)
    print_coverage(rows)
    print()
    print_poor_cells(rows)
    print()
    print_quiet(rows)
    print()
    print_plants(rows)
    if arguments.diagram:
        draw(rows, arguments.diagram)


if __name__ == "__main__":
    main()
