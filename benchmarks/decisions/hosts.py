"""How often is a host beside a baseline called low, rightly and wrongly?

usage: python -m benchmarks.decisions.hosts [--short]
A thousand simulated sound hosts for each spread between hosts, and two hundred that are a tenth
slower in one headline figure; jobs of one host differ as those of benchmarks.trust do. Each has 40
figures, twelve of them headlines, and is checked beside a baseline of other hosts, drawn anew for
every 20. A host that is called low where it is sound is wronged; a slow one has to be called low in
that figure. Beside it stands how many would be found at most, if the distribution of sound hosts
were known: of twelve normal figures that together wrong 1 % of them. Prints the table of
docs/comparing.md, some minutes on one CPU, and needs no quiet host. --short: a fifth of the hosts.
"""

import math
import sys

from benchmarks.decisions.resampled import Tally
from hostbench.judge.statistics import NORMAL
from hostbench.model.baseline import REPORT_ERROR
from tests.unit.baseline_hosts import called_low

SOUND, SLOW = 1000, 200
HEADLINES = 12
SLOWER = 0.1
# Between hosts, how many are known, and how many jobs each has.
DESIGNS = (
    *((0.01, 10, 1), (0.01, 20, 1), (0.01, 60, 3)),
    *((0.02, 10, 1), (0.02, 20, 1), (0.02, 60, 3), (0.02, 100, 3)),
    *((0.04, 10, 1), (0.04, 20, 1)),
)


def found_at_most(spread: float) -> float:
    """The share of slow hosts that a test of one of these figures finds which knows everything."""
    limit = NORMAL.inv_cdf(REPORT_ERROR / HEADLINES)
    return NORMAL.cdf(limit - math.log(1 - SLOWER) / spread)


def main() -> None:
    """Print the table."""
    part = 5 if "--short" in sys.argv else 1
    print(
        "| deviation between hosts | hosts known | jobs a host | sound hosts called low "
        "| 95 % interval | slow hosts found | 95 % interval | at most |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for spread, hosts, jobs in DESIGNS:
        sound, slow = SOUND // part, SLOW // part
        wronged = Tally(called_low(hosts, spread, sound, jobs=jobs), sound)
        found = Tally(called_low(hosts, spread, slow, slow=SLOWER, jobs=jobs), slow)
        print(
            f"| {100 * spread:g} % | {hosts} | {jobs} | {wronged} | {found} "
            f"| {100 * found_at_most(spread):.0f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
