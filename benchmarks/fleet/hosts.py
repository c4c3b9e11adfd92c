"""How often does `hostbench fleet report` call a host of a campaign low, rightly and wrongly?

usage: python -m benchmarks.fleet.hosts [--short | --readme]

Simulates campaigns of a thousand hosts for each spread between hosts. Each host has one job with 40
figures, twelve of them headlines. Jobs of one host differ as those of benchmarks.trust do (a
guest), or by 0.4 % (a host of its own). Of each campaign 40 hosts are a tenth slower in one figure,
half of them in a headline figure and half in another one; on a guest these are figures of the CPU,
since a single job of a guest calls no host low in memory, disks or networks. A sound host that is
called low is an error; a slow one has to be called low in that figure.

The table also shows how many slow hosts a test of normal figures could find at most, with the same
error rate in the same parts, if it knew the distribution of all hosts and jobs repeated perfectly.

A second table is of campaigns of two hundred hosts with two firmwares and two kernels, spread over
the hosts at random. Where neither matters, no population should be named; where one firmware costs
so much in three figures of the CPU, it should be named with that fact, and the kernel should not.

Writes results/amd/hosts.csv and prints the tables; --readme writes them into README and
docs/fleet.md from that file. Rows that the file has are not simulated again. Takes five minutes on
one CPU and needs no quiet host. --short takes a fifth of the campaigns and writes nothing.
"""

import csv
import dataclasses
import itertools
import math
import random
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.decisions.page import written
from benchmarks.decisions.resampled import Tally
from benchmarks.programs import ROOT
from benchmarks.tables import README
from hostbench.decisions.fleet import HEADLINES_PART, checked_fleet
from hostbench.judge.statistics import NORMAL
from hostbench.model.baseline import REPORT_ERROR, HostWord
from hostbench.model.fleet import FleetCheck
from tests.unit.baseline_hosts import CPU, KEY, WORKLOADS
from tests.unit.fleet_hosts import BEGAN_UNIX_S, campaign

RESULTS = Path(__file__).parent / "results/amd/hosts.csv"
PAGE = ROOT / "docs/fleet.md"
CAMPAIGNS, HOSTS, SLOW = 5, 1000, 40
SLOWER = 0.1
SPREADS = (0.01, 0.02, 0.04)
# The deviation of one host's jobs; None: as real jobs of a guest.
WITHIN = (None, 0.004)
HEADLINES = range(12)
OTHERS = range(12, len(WORKLOADS))
CPU_OTHERS = [at for at in OTHERS if WORKLOADS[at].startswith("cpu.")]
MIXED_CAMPAIGNS, MIXED_HOSTS, OTHER_FIRMWARE = 40, 200, 40
COSTS = (0.0, 0.03, 0.05)
FIRMWARE = ("firmware", "1.9 (2026-06-01)")


@dataclass
class Found:
    """A design and its result. `sure_sound` of `sure` hosts called surely low are sound."""

    spread: float
    within: float | None
    sound_low: Tally = field(default_factory=Tally)
    headline_found: Tally = field(default_factory=Tally)
    other_found: Tally = field(default_factory=Tally)
    sure_sound: Tally = field(default_factory=Tally)
    suspect: Tally = field(default_factory=Tally)
    seconds: float = 0.0

    def count(self, fleet: FleetCheck, slow: dict[int, tuple[int, float]], seconds: float) -> None:
        """Count the words of one campaign."""
        self.seconds = max(self.seconds, seconds)
        at_of = {f"node-{number:04}": at for number, (at, _) in slow.items()}
        for host in fleet.hosts:
            at = at_of.get(host.host)
            if host.is_sure:
                self.sure_sound.count(at is None)
            if at is None:
                self.sound_low.count(host.word is HostWord.LOW)
                self.suspect.count(host.word is HostWord.SUSPECT)
                continue
            low = {one.case for one in host.figures if one.word is HostWord.LOW}
            tally = self.headline_found if at in HEADLINES else self.other_found
            tally.count(f"{at:08x}" in low)


@dataclass
class Mixed:
    """Campaigns with two firmwares, one of them slower: how many name a population with that fact,
    and how many name any other one."""

    spread: float
    cost: float
    named: Tally = field(default_factory=Tally)
    wrong: Tally = field(default_factory=Tally)


def found(spread: float, within: float | None, campaigns: int) -> Found:
    """Return the result of one design."""
    rng = random.Random(f"{spread} {within}")  # noqa: S311 - the same each time
    key = KEY.model_copy(update={"is_guest": within is None})
    row = Found(spread, within)
    for _ in range(campaigns):
        places = (
            *(rng.choice(CPU if within is None else HEADLINES) for _ in range(SLOW // 2)),
            *(rng.choice(CPU_OTHERS if within is None else OTHERS) for _ in range(SLOW // 2)),
        )
        hosts = rng.sample(range(HOSTS), SLOW)
        slow = {host: (at, SLOWER) for host, at in zip(hosts, places, strict=True)}
        jobs = campaign(rng, HOSTS, spread, slow, within=within, key=key)
        began = time.process_time()
        fleet = checked_fleet(jobs, BEGAN_UNIX_S + 1e6, environment={})
        row.count(fleet, slow, time.process_time() - began)
    return row


def mixed(spread: float, cost: float, campaigns: int) -> Mixed:
    """Return how often populations are named."""
    rng = random.Random(f"{spread} {cost}")  # noqa: S311 - the same each time
    row = Mixed(spread, cost)
    for _ in range(campaigns):
        other = set(rng.sample(range(MIXED_HOSTS), OTHER_FIRMWARE))
        new_kernel = set(rng.sample(range(MIXED_HOSTS), MIXED_HOSTS // 2))

        def facts(
            number: int, other: set[int] = other, new: set[int] = new_kernel
        ) -> dict[str, str]:
            firmware = dict([FIRMWARE]) if number in other else {}
            return firmware | ({"kernel": "6.8.0"} if number in new else {})

        def factor(number: int, workload: str, other: set[int] = other) -> float:
            return 1 - cost if number in other and workload == WORKLOADS[CPU[0]] else 1.0

        jobs = campaign(rng, MIXED_HOSTS, spread, facts=facts, factor=factor)
        apart = [
            one
            for one in checked_fleet(jobs, BEGAN_UNIX_S + 1e6, environment={}).populations
            if one.beside is not None
        ]
        right = [one for one in apart if one.facts == (FIRMWARE,) and one.hosts == OTHER_FIRMWARE]
        row.named.count(bool(right))
        row.wrong.count(len(apart) > len(right) or (bool(apart) and not cost))
    return row


def at_most(spread: float, within: float | None, of_headlines: bool) -> float:
    """Return the share of slow hosts that a test of normal figures finds when it knows their
    distribution and has this part of the error rate. Jobs that vary as real ones count as if they
    did not."""
    part = HEADLINES_PART if of_headlines else 1 - HEADLINES_PART
    figures = len(HEADLINES) if of_headlines else len(OTHERS)
    deviation = math.hypot(spread, within or 0.0)
    return NORMAL.cdf(
        NORMAL.inv_cdf(REPORT_ERROR * part / figures) - math.log(1 - SLOWER) / deviation
    )


def host_table(rows: Iterable[dict[str, str]]) -> Iterator[str]:
    """Yield the table of hosts as lines of Markdown."""
    yield (
        "| deviation between hosts | jobs | sound hosts called low | 95 % interval "
        "| slow in a headline: found | 95 % interval | at most | slow in another figure: found "
        "| 95 % interval | at most | of those surely low, sound | suspect by one job |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        spread, within = float(row["spread"]), float(row["within"]) if row["within"] else None
        tallies = {
            name: _tally(row, name) for name in ("sound_low", "headline_found", "other_found")
        }
        most = [f"{100 * at_most(spread, within, which):.0f} %" for which in (True, False)]
        sure, suspect = _tally(row, "sure_sound"), _tally(row, "suspect")
        yield (
            f"| {100 * spread:g} % | {'of a guest' if within is None else f'{100 * within:g} %'} "
            f"| {tallies['sound_low']} | {tallies['headline_found']} | {most[0]} "
            f"| {tallies['other_found']} | {most[1]} | {sure.hits} of {sure.of} "
            f"| {100 * suspect.hits / suspect.of:.1f} % |"
        )


def short_table(rows: Iterable[dict[str, str]]) -> Iterator[str]:
    """Yield the table of docs/fleet.md."""
    yield (
        "| deviation between hosts | jobs | sound hosts called low | of these *surely* "
        "| slow in a headline figure: found | slow in another figure: found |"
    )
    yield "|---|---|---|---|---|---|"
    for row in rows:
        within = f"{100 * float(row['within']):g} %" if row["within"] else "of a guest"
        sure = _tally(row, "sure_sound")
        yield (
            f"| {100 * float(row['spread']):g} % | {within} | {row['sound_low']} | {sure.hits} "
            f"| {row['headline_found']} | {row['other_found']} |"
        )


def kept() -> list[dict[str, str]]:
    """Return the rows that were measured."""
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def population_table(rows: Iterable[dict[str, str]]) -> Iterator[str]:
    """Yield the table of populations."""
    yield (
        "| deviation between hosts | what the other firmware costs | named with it "
        "| 95 % interval | another population named | 95 % interval |"
    )
    yield "|---|---|---|---|---|---|"
    for row in rows:
        cost = float(row["cost"])
        yield (
            f"| {100 * float(row['spread']):g} % | {f'{100 * cost:g} %' if cost else 'nothing'} "
            f"| {_tally(row, 'named')} | {_tally(row, 'wrong')} |"
        )


def _tally(row: dict[str, str], name: str) -> Tally:
    hits, _, of = row[name].partition(" of ")
    return Tally(int(hits), int(of))


def _cells(row: Found | Mixed) -> dict[str, object]:
    cells: dict[str, object] = {"table": type(row).__name__.lower()}
    for one in dataclasses.fields(row):
        value = getattr(row, one.name)
        cells[one.name] = f"{value.hits} of {value.of}" if isinstance(value, Tally) else value
    return cells


def measured(part: int, known: Collection[tuple[str, ...]] = ()) -> Iterator[dict[str, object]]:
    """Yield every row that is not known, with the number of campaigns divided by `part`."""
    for spread, within in itertools.product(SPREADS, WITHIN):
        if _design("found", spread, within) not in known:
            yield _cells(found(spread, within, CAMPAIGNS // part))
    for spread, cost in itertools.product(SPREADS[:2], COSTS):
        if _design("mixed", spread, cost) not in known:
            yield _cells(mixed(spread, cost, MIXED_CAMPAIGNS // part))


def _design(table: str, spread: float, value: float | None) -> tuple[str, ...]:
    return (table, str(spread), "" if value is None else str(value))


COLUMNS = ("table", *{one.name: 0 for of in (Found, Mixed) for one in dataclasses.fields(of)})


def main() -> None:
    """Measure, or write the tables of what was measured."""
    if "--short" in sys.argv:
        for row in measured(CAMPAIGNS):
            print(row, flush=True)
        return
    if "--readme" not in sys.argv:
        known = {
            (row["table"], row["spread"], row["within"] if row["table"] == "found" else row["cost"])
            for row in kept()
        }
        is_new = not RESULTS.exists()
        with RESULTS.open("a") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            for row in measured(1, known):
                writer.writerow(row)
                file.flush()
    rows = kept()
    tables = {
        "hosts": list(host_table(row for row in rows if row["table"] == "found")),
        "populations": list(population_table(row for row in rows if row["table"] == "mixed")),
    }
    if "--readme" in sys.argv:
        README.write_text(written(README.read_text(), tables, "fleet"))
        short = {"hosts": short_table(row for row in rows if row["table"] == "found")}
        PAGE.write_text(written(PAGE.read_text(), short, "fleet"))
        return
    for lines in tables.values():
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
