"""A campaign's answer: which hosts of a set are bad."""

from typing import Literal

from pydantic import Field

from hostbench.model.baseline import REPORT_ERROR, FigureCheck, HostKey, HostWord
from hostbench.model.campaign import LockName
from hostbench.model.pairs import PairMatrix
from hostbench.model.result import StoredModel
from hostbench.model.summary import Verdict
from hostbench.model.table import Direction

# Of the hosts that are called surely low, at most this share is so by chance.
SURE_ERROR = 0.05


class FleetFigure(FigureCheck):
    """One figure of a host, compared with those of the other hosts of its population. `low` to
    `high` is the figure's own interval, of the newest job; None: unknown."""

    low: float | None = None
    high: float | None = None


class LostFigure(StoredModel):
    """A case without a figure that may be used. `verdict` None: the job did not finish the case, or
    does not have it. `culprit`: who took what was taken from its trials."""

    case: str
    title: str
    job: str
    verdict: Verdict | None
    reason: str | None = None
    culprit: str | None = None


class HostFact(StoredModel):
    """A fact in which a host differs from most others: its value and the usual one. `alike` of the
    `of` other hosts have the same value."""

    fact: str
    value: str
    usual: str
    alike: int
    of: int


class FleetHost(StoredModel):
    """A host of the campaign: the node's name, or the host's name.

    - `population`: the place of its population in FleetCheck.populations.
    - `p`: how often any figure of a sound host is so far off; None: nothing is known to compare
      with.
    - `locks`: the locks that its jobs held, as their documents name them; empty: none does.
    - `is_sure`: it is low, and of the hosts of the campaign that are so far off at most SURE_ERROR
      are so by chance.
    - `facts`: for a host that is low or suspect, the facts in which it differs from the others.
    - `lost`: the cases without a figure.
    """

    host: str
    word: HostWord
    population: int
    jobs: tuple[str, ...]
    locks: tuple[LockName, ...] = ()
    p: float | None = None
    is_sure: bool = False
    figures: tuple[FleetFigure, ...] = ()
    facts: tuple[HostFact, ...] = ()
    lost: tuple[LostFigure, ...] = ()

    @property
    def off(self) -> tuple[FleetFigure, ...]:
        """The figures that are low or suspect: low ones, headlines, and the least likely first."""
        found = [one for one in self.figures if one.word in (HostWord.LOW, HostWord.SUSPECT)]
        found.sort(
            key=lambda one: (
                one.word is not HostWord.LOW,
                not one.is_headline,
                one.p,
                -(one.lost_ratio or 0.0),
            )
        )
        return tuple(found)


class CaseLevel(StoredModel):
    """What the hosts of a population do in a case: `usual` is the median, `expected` the least (for
    times: the largest) of a sound host. None: there are too few hosts. `limit`: the usual
    theoretical limit."""

    usual: float
    expected: float | None = None
    limit: float | None = None
    hosts: int


class CaseRatio(StoredModel):
    """A case in which a population differs from another one: its usual figure over theirs."""

    case: str
    title: str
    ratio: float
    is_worse: bool


class Population(StoredModel):
    """Hosts that are compared with each other.

    - `key`: the hardware model of most of them; `hosts`: how many they are.
    - `facts`: what they have in common and the hosts of `beside` do not, as name and value.
      `beside`: the place of the population that they differ from; None: this is the largest of its
      hardware.
    - `differs`: the cases in which they differ from it, the largest differences first.
    - `baseline`: the files that they were compared with; empty: with each other.
    """

    key: HostKey
    hosts: int
    facts: tuple[tuple[str, str], ...] = ()
    beside: int | None = None
    differs: tuple[CaseRatio, ...] = ()
    baseline: tuple[str, ...] = ()
    cases: dict[str, CaseLevel] = Field(default={})


class FleetCase(StoredModel):
    """A case of the campaign."""

    title: str
    workload: str
    unit: str
    direction: Direction
    is_headline: bool


class CommonFact(StoredModel):
    """A fact that low hosts have more often than chance explains: `low` of `lows` low hosts have
    it, and `others` of `of_others` of the rest. `p`: how often chance does that."""

    fact: str
    value: str
    low: int
    lows: int
    others: int
    of_others: int
    p: float


class FleetCheck(StoredModel):
    """The hosts of a campaign compared with each other, the worst first.

    - `word`: low if any host is, else suspect, else as expected; no reference if no host could be
      compared.
    - `error`: at most this share of the sound hosts is called low.
    - `clusters`, `campaigns`: their names; empty: the jobs are of no campaign.
    - `missing`: nodes without a document.
    - `refused`: the documents that are damaged or of something else, a sentence for each.
    - `notes`: what could not be used or is odd, as sentences.
    - `pairs`: the network between the hosts, by the jobs between two of them; None: there are none.
    """

    kind: Literal["hostbench.fleet"] = "hostbench.fleet"
    word: HostWord
    suite: str
    clusters: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()
    jobs: int
    first_unix_s: float
    last_unix_s: float
    error: float = REPORT_ERROR
    hosts: tuple[FleetHost, ...]
    populations: tuple[Population, ...]
    cases: dict[str, FleetCase]
    common: tuple[CommonFact, ...] = ()
    missing: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pairs: PairMatrix | None = None

    def of(self, word: HostWord) -> tuple[FleetHost, ...]:
        """Return the hosts with this word."""
        return tuple(one for one in self.hosts if one.word is word)

    @property
    def locks(self) -> dict[str, tuple[LockName, ...]]:
        """The locks of each host, by its name."""
        return {one.host: one.locks for one in sorted(self.hosts, key=lambda host: host.host)}

    @property
    def headlines(self) -> tuple[str, ...]:
        """The cases whose figures describe a host best."""
        return tuple(case for case, one in self.cases.items() if one.is_headline)
