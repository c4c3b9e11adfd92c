"""The network between the hosts of a fleet: which hosts, uplinks and links are slow."""

from enum import StrEnum

from hostbench.model.campaign import LockName
from hostbench.model.result import StoredModel
from hostbench.model.table import Direction


class PairWord(StrEnum):
    """The result for a host, an uplink or a link; the worst first.

    `suspect`: a further measurement decides. `unknown`: too little was measured to tell.
    """

    SLOW = "slow"
    SUSPECT = "suspect"
    UNKNOWN = "unknown"
    AS_EXPECTED = "as expected"


class Judged(StoredModel):
    """One host, uplink or link.

    - `ratio`: how good its figures are beside those of the others; 0.9 is a tenth worse, whichever
      direction the metric has.
    - `measured`: how many measurements it took part in.
    - `chance`: how often chance alone makes a sound one look so bad, for it alone; None: unknown.
    """

    ratio: float
    measured: int
    chance: float | None
    word: PairWord


class HostNetwork(Judged):
    """The network of one host, beside the other hosts of its rack. `locks`: those that its jobs
    held, as their documents name them; empty: none does."""

    host: str
    rack: str | None = None
    locks: tuple[LockName, ...] = ()


class Uplink(Judged):
    """What leaves one rack, beside the other racks.

    `inside_ratio`: how good pairs within the rack are beside pairs within others; None: there is no
    such pair. `whole_rack`: they are as slow, so it is the rack's hosts rather than the uplink.
    """

    rack: str
    inside_ratio: float | None = None
    whole_rack: bool = False


class Link(Judged):
    """Two hosts that were measured. `value` is the median of the measurements, in the metric's
    unit; `ratio` compares it with what the two hosts reach with others."""

    a: str
    b: str
    value: float


class AtOnce(StoredModel):
    """How good pairs are that are measured at the same time as others, beside pairs measured alone;
    from `low` to `high` with 95 % confidence. `across`: pairs of two racks."""

    across: bool
    alone: int
    together: int
    ratio: float
    low: float
    high: float


class NextRound(StoredModel):
    """Pairs to measure at the same time, near end first."""

    pairs: tuple[tuple[str, str], ...]


class PairMatrix(StoredModel):
    """The network between hosts, by one case.

    - `value`: the median of all measurements, in the metric's unit; `noise_ratio`: the standard
      deviation of repeated measurements, of their logarithms.
    - `links_share`: the share of all pairs of these hosts that were measured. A single slow link is
      among them with this probability.
    - `error_rate`: of fleets in which all are sound, at most so many have a host, uplink or link
      called slow; for links, apart from hosts and uplinks.
    - `undecided`: why there is no decision, as a sentence; None: there is one.
    - `next_rounds`: what would decide the suspects.
    - `left_out`: what was not used and why, as sentences.
    """

    title: str
    unit: str
    direction: Direction
    value: float
    noise_ratio: float | None
    measurements: int
    links_share: float
    error_rate: float
    undecided: str | None = None
    hosts: tuple[HostNetwork, ...]
    uplinks: tuple[Uplink, ...]
    links: tuple[Link, ...]
    at_once: tuple[AtOnce, ...] = ()
    next_rounds: tuple[NextRound, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def locks(self) -> dict[str, tuple[LockName, ...]]:
        """The locks of each host, by its name."""
        return {one.host: one.locks for one in self.hosts}
