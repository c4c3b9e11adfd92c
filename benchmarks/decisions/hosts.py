"""How often is a host beside a baseline called low, rightly and wrongly?

usage: python -m benchmarks.decisions.hosts [--short | --readme]
A thousand simulated sound hosts for each spread between hosts, and two hundred that are a tenth
slower in one headline figure; jobs of one host differ as those of benchmarks.trust do. Each has 40
figures, twelve of them headlines, and is checked beside a baseline of other hosts, drawn anew for
every 20. A host that is called low where it is sound is wronged; a slow one has to be called low in
that figure. Beside it stands how many would be found at most of twelve normal figures that together
wrong 1 % of the sound hosts, each with a twelfth of that: by a t test that knows so many hosts, and
by one that knows the distribution of all. A second table is of baselines: a thousand of sound hosts
each, which should not be refused, and two hundred whose first host is a tenth slower in one
headline figure, which should be, with its name and the figure. Prints the tables of README, four
minutes on one CPU, and needs no quiet host; --readme writes them there and, in short, into
docs/comparing.md. --short: a fifth of the hosts.
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
# Between hosts, how many are known, and how many jobs each has.
DESIGNS = (
    *((0.01, 10, 1), (0.01, 20, 1), (0.01, 60, 3)),
    *((0.02, 10, 1), (0.02, 20, 1), (0.02, 60, 3), (0.02, 100, 3)),
    *((0.04, 10, 1), (0.04, 20, 1)),
)
# Of baselines.
ODD_DESIGNS = (
    *((0.01, 8, 1), (0.01, 8, 3), (0.01, 20, 1)),
    *((0.02, 8, 1), (0.02, 20, 1), (0.04, 20, 1)),
)


def found_at_most(spread: float) -> float:
    """The share of slow hosts that a test of one of these figures finds which knows everything."""
    limit = NORMAL.inv_cdf(REPORT_ERROR / HEADLINES)
    return NORMAL.cdf(limit - math.log(1 - SLOWER) / spread)


def found_beside(spread: float, hosts: int) -> float:
    """The share that a t test of one of these figures finds which knows so many hosts, each with
    one job that repeats perfectly."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        above = chance_below(middle, 1.0, hosts) > REPORT_ERROR / HEADLINES
        low, high = (middle, high) if above else (low, middle)
    shift = -math.log(1 - SLOWER) / (spread * math.sqrt(1 + 1 / hosts))
    return 1 - noncentral_t_below(high, hosts - 1, shift)


@dataclass(frozen=True)
class Row:
    """A design: how many sound hosts were called low, and how many slow ones were found; or how
    many baselines of sound hosts were refused, and how many with a slow one."""

    spread: float
    hosts: int
    jobs: int
    wronged: Tally
    found: Tally

    @property
    def head(self) -> str:
        """The cells of the design."""
        return f"| {100 * self.spread:g} % | {self.hosts} | {self.jobs} "


def measured(part: int) -> Iterator[Row]:
    """All designs, each of so many times fewer hosts."""
    for spread, hosts, jobs in DESIGNS:
        sound, slow = SOUND // part, SLOW // part
        yield Row(
            *(spread, hosts, jobs),
            wronged=Tally(called_low(hosts, spread, sound, jobs=jobs), sound),
            found=Tally(called_low(hosts, spread, slow, slow=SLOWER, jobs=jobs), slow),
        )


def baselines(part: int) -> Iterator[Row]:
    """All designs of baselines, each of so many times fewer of them."""
    for spread, hosts, jobs in ODD_DESIGNS:
        sound, slow = SOUND // part, SLOW // part
        yield Row(
            *(spread, hosts, jobs),
            wronged=Tally(refused(hosts, spread, sound, jobs=jobs), sound),
            found=Tally(refused(hosts, spread, slow, slow=SLOWER, jobs=jobs), slow),
        )


def whole_table(rows: Iterable[Row]) -> Iterator[str]:
    """The table of README, in lines of Markdown."""
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
    """The table of baselines."""
    yield (
        "| standard deviation between hosts | hosts | jobs a host | sound baselines refused "
        "| 95 % interval | with a slow host: refused, host and figure named | 95 % interval |"
    )
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        yield f"{row.head}| {row.wronged} | {row.found} |"


def short_table(rows: Iterable[Row]) -> Iterator[str]:
    """That of docs/comparing.md."""
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
