"""A suite by Jobs on two real kubelets of this machine beside the embedded form on the same CPUs.

usage: python -m benchmarks.fleet.nodes [SUITE [ROUNDS]]
       python -m benchmarks.fleet.nodes --readme

Starts a real control plane and two real nodes on this machine (scripts/kubernetes.sh builds them;
root and two CPUs are needed), each node with all CPUs but one. Each of ROUNDS rounds (2) measures
SUITE (quick) four times, one after another: as a campaign on both nodes, and by `hostbench run` on
the CPUs of either node. Then `hostbench compare` says which figures differ. Two rounds of quick
take some 20 minutes.

Prints the comparison, and writes its figures into results/ when the suite is quick; --readme writes
the table of README from what is there. Exit code 0: no figure of a Job is worse.
"""

import csv
import math
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.arguments import given_number
from benchmarks.decisions.page import written
from benchmarks.figures import BENCHMARKS, maker
from benchmarks.tables import README
from hostbench.model.decision import Word
from tests.fleet import real_node
from tests.fleet.cluster import Cluster
from tests.fleet.real_fleet import Fleet

SUITE, ROUNDS = "quick", 2
# Of a campaign on both nodes, or a run by hand.
LIMIT_S = 3600
COLUMNS = (
    *("case", "figure", "word", "value_a", "value_b", "ratio", "low", "high"),
    *("least_effect_ratio", "jobs_a", "jobs_b"),
)


def measure(fleet: Fleet, cpus: Iterable[Iterable[int]], rounds: int) -> tuple[Path, list[Path]]:
    """Measure in turn; return the results by hand, and those of each campaign. `cpus`: those of
    each node."""
    by_hand = fleet.command.results.with_name("by-hand")
    campaigns = []
    for number in range(1, rounds + 1):
        name = f"nodes-{number}"

        def by_jobs(name: str = name) -> None:
            fleet.wait_for_ends([fleet.start(name, "--lock=host", "--at-most=1", "--peers=none")])
            fleet.client("clean", name)

        def embedded() -> None:
            for those in cpus:
                fleet.wait_for_ends([fleet.start_by_hand(by_hand, those, "--peers=none")])

        # In the order A B B A, so that a drift of the host is no difference.
        turns = (by_jobs, embedded) if number % 2 else (embedded, by_jobs)
        for turn in turns:
            turn()
            print(f"round {number} of {rounds}: {turn.__name__} measured", flush=True)
        campaigns.append(fleet.command.results / name)
    return by_hand, campaigns


def compared(fleet: Fleet, by_hand: Path, campaigns: Iterable[Path]) -> tuple[int, Any]:
    """Print the comparison of Jobs (B) with runs by hand (A); return its exit code, and itself."""
    sides = (str(by_hand), ",".join(map(str, campaigns)))
    print(fleet.command.run("compare", *sides, "--require=not-worse").output)
    ended = fleet.command.run("compare", *sides, "--require=not-worse", "--json")
    (comparison,) = ended.document["comparisons"]
    return ended.code, comparison


def rows_of(comparison: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Yield a row for each figure that both sides have."""
    for case in comparison["cases"]:
        for kind, change in case["changes"].items():
            found = {"case": case["title"], "figure": kind} | change
            yield {name: found[name] for name in COLUMNS}


def table(rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of the table in README."""
    by_subsystem: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        by_subsystem.setdefault(row["case"].partition(".")[0], []).append(row)
    yield f"| subsystem | figures | {' | '.join(Word)} | by Job over by hand, median | all |"
    yield f"|---|---|{'---|' * len(Word)}---|---|"
    for subsystem, its in by_subsystem.items():
        counts = Counter(row["word"] for row in its)
        counted = " | ".join(str(counts[word]) for word in Word)
        ratios = [float(row["ratio"]) for row in its if row["ratio"]] or [math.nan]
        yield (
            f"| {subsystem} | {len(its)} | {counted} | {statistics.median(ratios):.3f} | "
            f"{min(ratios):.3f} – {max(ratios):.3f} |"
        )


def raw() -> Path:
    """Return the file of this machine's figures."""
    return BENCHMARKS / "fleet/results" / maker() / "nodes.csv"


def main() -> int:
    """Measure and compare, or write the table; return the exit code."""
    if "--readme" in sys.argv:
        with raw().open(newline="") as file:
            lines = list(table(csv.DictReader(file)))
        README.write_text(written(README.read_text(), {"nodes": lines}, "fleet"))
        return 0
    suite = sys.argv[1] if len(sys.argv) > 1 else SUITE
    rounds = given_number(ROUNDS, place=2)
    if (reason := real_node.unable() or real_node.missing()) is not None:
        raise SystemExit(reason)
    first, second, *rest = sorted(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster(Path(directory) / "cluster") as cluster,
        real_node.two_nodes(cluster) as nodes,
    ):
        fleet = Fleet(cluster, nodes, Path(directory), suite, LIMIT_S)
        sides = measure(fleet, ([second, *rest], [first, *rest]), rounds)
        code, comparison = compared(fleet, *sides)
    if suite == SUITE:
        raw().parent.mkdir(parents=True, exist_ok=True)
        with raw().open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows_of(comparison))
    return code


if __name__ == "__main__":
    sys.exit(main())
