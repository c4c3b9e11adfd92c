"""Are the words of the suite quick right over hours, and does it end in time under load?

usage: python -m benchmarks.trust.quick [--idle N] [--planted N] [--peers] [--table]

Runs quick N times (ten) on the idle host, at least 20 minutes apart, and N times (twenty) under the
disturbances of benchmarks.trust.experiment in turn, in the time between. Every run is saved, and a
later call continues from there. The tables are printed at the end; with --table, nothing else is
done. With --peers, each run also measures the other tools that the suite names.
"""

import argparse
import csv
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import file_of, host, maker
from benchmarks.trust.experiment import PLANTS, QUIET, Plant, job, row_of
from benchmarks.trust.table import USABLE, share
from hostbench.model.registry import find_subsystem

APART_S = 20 * 60
RAW = file_of("trust/quick", maker())
JOB_FIELDS = ("plant", "time_unix_s", "peers", "exit_code", "took_s", "estimate_s")
CASE_FIELDS = (
    *("workload", "label", "verdict", "value", "low", "high", "condition", "share", "culprit", "n"),
    *("delivered_ratio", "reason"),
)
FIELDS = (*JOB_FIELDS, *CASE_FIELDS)
# Values of the column `peers`: those that the suite names, or none.
SUITES, NONE = "suite", "none"
# From this many runs on, a figure that moved can be told from one that did not.
LEAST_RUNS = 3
Row = dict[str, str]


def options(peers: str) -> tuple[str, ...]:
    """Return the options of `hostbench run` and `hostbench plan`."""
    return () if peers == SUITES else (f"--peers={peers}",)


def estimate_s(peers: str) -> float:
    """Return the longest time that the plan of quick promises on this host, in seconds."""
    command = [sys.executable, "-m", "hostbench", "plan", "quick", "--json", *options(peers)]
    plan = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return float(plan["estimate"]["high_s"])


def measured(plant: Plant, peers: str, promised_s: float) -> list[dict[str, Any]]:
    """Run quick once under a disturbance and return its rows."""
    began = {"plant": plant.name, "time_unix_s": round(time.time()), "peers": peers}
    with plant.begin() as members:
        exit_code, took_s, cases = job("quick", members, *options(peers))
    began |= {"exit_code": exit_code, "took_s": round(took_s, 1), "estimate_s": promised_s}
    found = []
    for case in cases:
        of_case = row_of(case) | {
            "label": case.label,
            "reason": ", ".join(reason.code for reason in case.reasons),
        }
        found.append(began | {name: of_case[name] for name in CASE_FIELDS})
    return found or [began]


def load() -> list[Row]:
    """Return the rows measured so far, one for each case."""
    if not RAW.exists():
        return []
    lines = [line for line in RAW.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def jobs(measured_rows: Sequence[Row]) -> list[Row]:
    """Return the first row of each run."""
    return list({row["time_unix_s"]: row for row in reversed(measured_rows)}.values())[::-1]


@dataclass
class Left:
    """The runs that are still missing."""

    idle: int
    planted: list[Plant]
    last_idle_s: float

    def wait_s(self) -> float:
        """Return how many seconds to wait before the next run on the idle host."""
        return max(0.0, self.last_idle_s + APART_S - time.time())

    def __iter__(self) -> Iterator[Plant]:
        while self.idle or self.planted:
            if self.idle and not self.wait_s():
                self.idle -= 1
                self.last_idle_s = time.time()
                yield PLANTS[0]
            elif self.planted:
                yield self.planted.pop(0)
            else:
                time.sleep(self.wait_s())


def left(idle: int, planted: int) -> Left:
    """Return the missing runs out of `idle` and `planted`."""
    done = jobs(load())
    quiet = [float(run["time_unix_s"]) for run in done if run["plant"] == QUIET]
    turn = list(itertools.islice(itertools.cycle(PLANTS[1:]), planted))
    return Left(max(0, idle - len(quiet)), turn[len(done) - len(quiet) :], max(quiet, default=0.0))


def is_steady(workload: str, values: Sequence[float]) -> bool:
    """Return whether all figures of a case are as near to their median as is usual for their class
    on a guest."""
    within = find_subsystem(workload.partition(".")[0]).guest_spread.half_width_ratio
    middle = statistics.median(values)
    return all(abs(value / middle - 1) <= within for value in values)


def print_words(idle: Sequence[Row]) -> None:
    """Print the words for cases whose figures stay within their target, and for those whose figures
    do not."""
    cases: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in idle:
        if row["verdict"] in USABLE:
            cases[row["workload"], row["label"]].append(row)
    print("| subsystem | steady | of these clean | moved | of these noisy or with a condition |")
    print("|---|---|---|---|---|")
    pooled = {"steady": [0, 0], "moved": [0, 0]}
    ordered = sorted(cases.items())
    for name, found in itertools.groupby(ordered, lambda one: one[0][0].partition(".")[0]):
        counts = {"steady": [0, 0, 0], "moved": [0, 0, 0]}
        for (workload, _), own in found:
            if len(own) < LEAST_RUNS:
                continue
            steady = is_steady(workload, [float(row["value"]) for row in own])
            warned = sum(row["verdict"] != "clean" or row["condition"] != "quiet" for row in own)
            right = sum(row["verdict"] == "clean" for row in own) if steady else warned
            kind = "steady" if steady else "moved"
            counts[kind] = [
                sum(pair) for pair in zip(counts[kind], (1, right, len(own)), strict=True)
            ]
            pooled[kind] = [sum(pair) for pair in zip(pooled[kind], (right, len(own)), strict=True)]
        cells = [f"{counts[kind][0]} | {share(*counts[kind][1:])}" for kind in counts]
        print(f"| {name} | {' | '.join(cells)} |")
    cells = [f"| {share(*pooled[kind])}" for kind in pooled]
    print(f"| all | {' | '.join(cells)} |")


def print_runs(runs: Sequence[Row]) -> None:
    """Print how long the runs took compared with their plan, and how they ended."""
    print("| beside | runs | exit 0 | took | longest, of the plan's longest |")
    print("|---|---|---|---|---|")
    for name in dict.fromkeys((run["plant"], run["peers"]) for run in runs):
        own = [run for run in runs if (run["plant"], run["peers"]) == name]
        took = [float(run["took_s"]) for run in own]
        of_plan = max(float(run["took_s"]) / float(run["estimate_s"]) for run in own)
        ended = sum(run["exit_code"] == "0" for run in own)
        peers = "" if name[1] == NONE else ", with peers"
        print(
            f"| {name[0]}{peers} | {len(own)} | {ended} | {statistics.median(took):.0f} s "
            f"({min(took):.0f} to {max(took):.0f}) | {of_plan:.2f} |"
        )


def print_tables() -> None:
    """Print both tables of what was measured so far."""
    found = load()
    print_words([row for row in found if row["plant"] == QUIET and row["workload"]])
    print()
    print_runs(jobs(found))


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--idle", type=int, default=10, metavar="N")
    parser.add_argument("--planted", type=int, default=20, metavar="N")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        peers = SUITES if arguments.peers else NONE
        promised_s = estimate_s(peers)
        if not RAW.exists():
            RAW.parent.mkdir(exist_ok=True, parents=True)
            head = "".join(f"# {name}: {value}\n" for name, value in host("cpu").items() if value)
            RAW.write_text(head + ",".join(FIELDS) + "\n")
        with RAW.open("a", newline="") as file:
            table = csv.DictWriter(file, FIELDS, lineterminator="\n")
            for plant in left(arguments.idle, arguments.planted):
                found = measured(plant, peers, promised_s)
                table.writerows(found)
                file.flush()
                print(f"{plant.name}: exit {found[0]['exit_code']}, {found[0]['took_s']:.0f} s")
    print_tables()


if __name__ == "__main__":
    main()
