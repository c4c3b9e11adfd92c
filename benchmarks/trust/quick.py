"""Are the words of the suite quick right over hours, and does it end in time under load?

usage: python -m benchmarks.trust.quick [--idle N] [--planted N] [--peers] [--table]

Runs quick N times (ten) on the idle host, at least 20 minutes apart, and N times (twenty) under the
disturbances of benchmarks.trust.experiment in turn, in the time between. Every run is saved, and a
later call continues from there. The tables are printed at the end; with --table, nothing else is
done. With --peers, each run also measures the other tools that the suite names.

Each run has a results directory of its own. The table also replays the idle runs: what each would
have reported with the earlier runs in its results directory.
"""

import argparse
import csv
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import file_of, host, maker
from benchmarks.trust.experiment import PLANTS, QUIET, Plant, job, row_of
from benchmarks.trust.table import USABLE, share
from hostbench.decisions.sets import EARLIER_MOST
from hostbench.judge.between_jobs import spread_of, varies
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
# A case with fewer usable figures shows neither that it is steady nor that it moved.
LEAST_RUNS = 3
# The words are those for runs since then (2026-11-25T22:56:46Z). Until that day the programs had
# other kernels for some of the cases, among them cpu.int_mul_add, whose figure rose by 4 %.
SAME_PROGRAMS_SINCE_UNIX_S = 1795647406
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
    middle = statistics.median(values)
    return all(abs(value / middle - 1) <= usual_ratio(workload) for value in values)


def usual_ratio(workload: str) -> float:
    """Return how much figures of a workload usually vary on a guest, as a share."""
    return find_subsystem(workload.partition(".")[0]).guest_spread.half_width_ratio


def cases_of(runs: Iterable[Sequence[Row]]) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of each case over the runs, oldest first: its workload, and which case of the
    workload it is. Its label also has what `best` became, which differs from run to run."""
    found: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for rows in runs:
        counts: Counter[str] = Counter()
        for row in rows:
            counts[row["workload"]] += 1
            found[row["workload"], counts[row["workload"]]].append(row)
    return found


@dataclass
class Words:
    """The words for the figures of one case, oldest first: whether each is right, as the run
    reported it, and as it would have reported it with the earlier runs in its results directory."""

    is_steady: bool
    reported: list[bool]
    replayed: list[bool]


def words_of(workload: str, rows: Sequence[Row]) -> Words:
    """Return the words for the usable figures of a case."""
    values = [float(row["value"]) for row in rows]
    steady, within = is_steady(workload, values), usual_ratio(workload)
    reported, replayed = [], []
    for place, row in enumerate(rows):
        off = varies(spread_of(values[max(0, place - EARLIER_MOST) : place + 1], within))
        clean = row["verdict"] == "clean"
        warned = not clean or row["condition"] != "quiet"
        reported.append(clean if steady else warned)
        replayed.append(clean and not off if steady else warned or off)
    return Words(steady, reported, replayed)


def print_words(idle: Sequence[Row]) -> None:
    """Print the words for cases whose figures stay within their target, and for those whose figures
    do not."""
    by_run: defaultdict[int, list[Row]] = defaultdict(list)
    for row in idle:
        if (began_unix_s := int(row["time_unix_s"])) >= SAME_PROGRAMS_SINCE_UNIX_S:
            by_run[began_unix_s].append(row)
    words: defaultdict[str, list[Words]] = defaultdict(list)
    for (workload, _), rows in cases_of(by_run[run] for run in sorted(by_run)).items():
        usable = [row for row in rows if row["verdict"] in USABLE]
        if len(usable) >= LEAST_RUNS:
            words[workload.partition(".")[0]].append(words_of(workload, usable))
    print(
        f"{len(by_run)} idle runs. Replayed: with the earlier runs in the results directory.\n\n"
        "| subsystem | steady | of these clean | replayed | moved | of these noisy or with a "
        "condition | replayed |\n|---|---|---|---|---|---|---|"
    )
    for name in sorted(words):
        print_row(name, words[name])
    everything = [one for found in words.values() for one in found]
    print_row("all", everything)
    print_row(
        f"all, from the {LEAST_RUNS + 1}th usable figure of a case on", everything, LEAST_RUNS
    )


def print_row(name: str, words: Sequence[Words], first: int = 0) -> None:
    """Print one row: the words for all figures but the `first` of each case."""
    cells = []
    for steady in (True, False):
        own = [one for one in words if one.is_steady is steady]
        reported = [right for one in own for right in one.reported[first:]]
        replayed = [right for one in own for right in one.replayed[first:]]
        cells += [str(len(own)), *(share(sum(each), len(each)) for each in (reported, replayed))]
    print(f"| {name} | {' | '.join(cells)} |")


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
