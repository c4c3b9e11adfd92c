"""How often is a host called low in comparison with a baseline, rightly and wrongly?

usage: python -m benchmarks.decisions.hosts [--short | --readme]

Simulates for each spread between hosts a thousand sound hosts, and two hundred that are a tenth
slower in one headline figure. Jobs of one host differ as those of benchmarks.trust do. Each host
has 40 figures, twelve of them headlines, and is compared with a baseline of other hosts, which is
drawn anew for every 20 hosts. A sound host that is called low is an error; a slow one has to be
called low in that figure.

The table also shows how many slow hosts a test of twelve normal figures could find at most when all
twelve together call 1 % of the sound hosts low, a twelfth of that each: a t test that knows this
many hosts, and a test that knows the distribution of all hosts.

A second table is of baselines: for each design a thousand of sound hosts, which should not be
refused, and two hundred whose first host is a tenth slower in one headline figure, which should be
refused with the name of the host and the figure. Prints the tables of README; --readme writes them
there and a short one into docs/comparing.md. Takes four minutes on one CPU and needs no quiet host.
--short takes a fifth of the hosts.
"""

import itertools
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.decisions.page import COMPARING, show
from benchmarks.decisions.resampled import Tally
from benchmarks.tables import README
from hostbench.decisions.tolerance import chance_below, noncentral_t_below
from hostbench.judge.statistics import NORMAL
from hostbench.model.baseline import REPORT_ERROR
from tests.unit.baseline_hosts import called_low, refused

SOUND, SLOW = 1000, 200
HEADLINES = 12
SLOWER = 0.1
# Deviation between hosts, number of known hosts, jobs of each host.
DESIGNS = (
    *((0.01, 10, 1), (0.01, 20, 1), (0.01, 60, 3)),
    *((0.02, 10, 1), (0.02, 20, 1), (0.02, 60, 3), (0.02, 100, 3)),
    *((0.04, 10, 1), (0.04, 20, 1)),
)
# The same three numbers for the baselines.
ODD_DESIGNS = (
    *((0.01, 8, 1), (0.01, 8, 3), (0.01, 20, 1)),
    *((0.02, 8, 1), (0.02, 20, 1), (0.04, 20, 1)),
)


def found_at_most(spread: float) -> float:
    """Return the share of slow hosts that a test of one figure finds when it knows the true
    distribution."""
    limit = NORMAL.inv_cdf(REPORT_ERROR / HEADLINES)
    return NORMAL.cdf(limit - math.log(1 - SLOWER) / spread)


def found_beside(spread: float, hosts: int) -> float:
    """Return the share of slow hosts that a t test of one figure finds when it knows this many
    hosts, each with one job that repeats perfectly."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        above = chance_below(middle, 1.0, hosts) > REPORT_ERROR / HEADLINES
        low, high = (middle, high) if above else (low, middle)
    shift = -math.log(1 - SLOWER) / (spread * math.sqrt(1 + 1 / hosts))
    return 1 - noncentral_t_below(high, hosts - 1, shift)


@dataclass(frozen=True)
class Row:
    """One design and its result: how many sound hosts were called low and how many slow ones were
    found; or how many baselines of sound hosts were refused, and how many with a slow host."""

    spread: float
    hosts: int
    jobs: int
    wronged: Tally
    found: Tally

    @property
    def head(self) -> str:
        """Return the cells that name the design."""
        return f"| {100 * self.spread:g} % | {self.hosts} | {self.jobs} "


def measured(part: int) -> Iterator[Row]:
    """Yield the result of every design, with the number of hosts divided by `part`."""
    for spread, hosts, jobs in DESIGNS:
        sound, slow = SOUND // part, SLOW // part
        yield Row(
            *(spread, hosts, jobs),
            wronged=Tally(called_low(hosts, spread, sound, jobs=jobs), sound),
            found=Tally(called_low(hosts, spread, slow, slow=SLOWER, jobs=jobs), slow),
        )


def baselines(part: int) -> Iterator[Row]:
    """Yield the result of every baseline design, with the number of baselines divided by `part`."""
    for spread, hosts, jobs in ODD_DESIGNS:
        sound, slow = SOUND // part, SLOW // part
        yield Row(
            *(spread, hosts, jobs),
            wronged=Tally(refused(hosts, spread, sound, jobs=jobs), sound),
            found=Tally(refused(hosts, spread, slow, slow=SLOWER, jobs=jobs), slow),
        )


def whole_table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the table of README as lines of Markdown."""
    yield (
        "| deviation between hosts | hosts known | jobs a host | sound hosts called low "
        "| 95 % interval | slow hosts found | 95 % interval | a t test | of all hosts |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        beside = f"{100 * found_beside(row.spread, row.hosts):.0f} %"
        most = f"{100 * found_at_most(row.spread):.0f} %"
        yield f"{row.head}| {row.wronged} | {row.found} | {beside} | {most} |"


def baseline_table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the table of baselines."""
    yield (
        "| standard deviation between hosts | hosts | jobs a host | sound baselines refused "
        "| 95 % interval | with a slow host: refused, host and figure named | 95 % interval |"
    )
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        yield f"{row.head}| {row.wronged} | {row.found} |"


def short_table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the table of docs/comparing.md."""
    yield (
        "| standard deviation between hosts | hosts known | jobs a host "
        f"| of {SOUND:,} sound hosts called low | of {SLOW} slow hosts found |"
    )
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"{row.head}| {row.wronged.hits} | {row.found.hits} |"


def main() -> None:
    """Print the tables."""
    part = 5 if "--short" in sys.argv else 1
    found, again = itertools.tee(measured(part))
    whole = {"hosts": whole_table(found), "baselines": baseline_table(baselines(part))}
    show({README: whole, COMPARING: {"hosts": short_table(again)}})


if __name__ == "__main__":
    main()
