"""Baselines: what hosts of one model do, and what a host is said to be beside them.

A baseline is one JSON file a hardware model (docs/comparing.md). It holds the figures of each host,
so that files merge and everything else in it can be computed again.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from hostbench.model.result import StoredModel
from hostbench.model.table import Direction

BASELINE_SCHEMA: Literal[1] = 1
KIND: Literal["hostbench.baseline"] = "hostbench.baseline"

# With fewer hosts nothing is known of how hosts of a model differ, and the limit is the reference.
HOSTS_LEAST = 5
# So many headline figures of a host decide together; with more each has to be further off.
HEADLINES_MOST = 12
# Of a hundred sound hosts at most one is called low.
REPORT_ERROR = 0.01
# Of a hundred at most five are called low or suspect.
SUSPECT_ERROR = 0.05
# Of the other figures that are named, so many are named by chance.
REST_ERROR = 0.05
# The tolerance limit: a share of all sound hosts lies above it, and that with this confidence.
TOLERANCE_COVERAGE = TOLERANCE_CONFIDENCE = 0.95

Positive = Annotated[float, Field(gt=0)]


class HostKey(StoredModel):
    """What hosts of one baseline have in common; None: unknown. `memory` are the populated channels
    with their speed, `virtualisation` the product or instance type, `protocol` that of the
    benchmark programs. `is_guest`: a hypervisor lies below."""

    cpu: str
    stepping: int | None = None
    sockets: int | None = None
    cpus: int
    memory: str | None = None
    virtualisation: str | None = None
    is_guest: bool
    protocol: int

    @property
    def words(self) -> str:
        """`Xeon Platinum 8488C, stepping 8, 1 socket, 2 CPUs, 8 × 4800 MT/s, m7i.large`."""
        parts = [
            self.cpu,
            None if self.stepping is None else f"stepping {self.stepping}",
            None if self.sockets is None else f"{self.sockets} socket{'s' * (self.sockets > 1)}",
            f"{self.cpus} CPU{'s' * (self.cpus > 1)}",
            self.memory,
            self.virtualisation or ("a virtual machine" if self.is_guest else None),
        ]
        return ", ".join(part for part in parts if part)


class BaselineJob(StoredModel):
    """A job of a host: the digest of its document, and the versions of its programs."""

    digest: str
    versions: dict[str, str]


class BaselineHost(StoredModel):
    """A host: its jobs, the oldest first, and facts that may tell two populations apart."""

    jobs: Annotated[tuple[BaselineJob, ...], Field(min_length=1)]
    facts: dict[str, str] = Field(default={})


class HostFigures(StoredModel):
    """A case on one host. `figures` and `limits` have a place for each of the host's jobs: None
    where it has no figure that may be used, or no limit. `median` is that of `figures`."""

    figures: tuple[Positive | None, ...]
    limits: tuple[Positive | None, ...]
    median: Positive


class BaselineCase(StoredModel):
    """A case by host. `within` is the variance of the logarithms of one host's jobs, `between` that
    of hosts beyond it; None: too few jobs, or hosts, to tell."""

    title: str
    workload: str
    unit: str
    direction: Direction
    tolerance: float
    hosts: Annotated[dict[str, HostFigures], Field(min_length=1)]
    within: float | None = None
    between: float | None = None


class Baseline(StoredModel):
    """The file. Hosts are named by the hash of their machine, cases by theirs."""

    schema_version: Literal[1] = Field(alias="schema", default=BASELINE_SCHEMA)
    kind: Literal["hostbench.baseline"] = KIND
    key: HostKey
    hosts: Annotated[dict[str, BaselineHost], Field(min_length=1)]
    cases: dict[str, BaselineCase]


class BaselineFile(StoredModel):
    """A file that is looked at: the model that it is of, its `hosts`, their `jobs` and its `cases`;
    or `error`, why it is not used."""

    file: str
    key: HostKey | None = None
    hosts: int = 0
    jobs: int = 0
    cases: int = 0
    error: str | None = None


class BaselineList(StoredModel):
    """The baselines that checks find, and the folders that they are looked for in."""

    baselines: tuple[BaselineFile, ...]
    folders: tuple[str, ...]


class MeasuredFigure(StoredModel):
    """The figure of a case in one job. `limit`: what the hardware could do at most, or for times at
    least."""

    title: str
    workload: str
    unit: str
    direction: Direction
    value: Positive
    limit: Positive | None = None
    tolerance: float = 0.02


class MeasuredJob(StoredModel):
    """What a baseline takes of a job, and what is checked against one. `machine` names its host."""

    job: str
    machine: str
    digest: str | None
    created_unix_s: float
    versions: dict[str, str]
    key: HostKey
    facts: dict[str, str]
    figures: dict[str, MeasuredFigure]


class HostWord(StrEnum):
    """What is known of a host or of one of its figures, the worst first: further off than 1 in 100
    sound hosts, or than 1 in 20; nothing; no further off than sound hosts are."""

    LOW = "low"
    SUSPECT = "suspect"
    NO_REFERENCE = "no reference"
    AS_EXPECTED = "as expected"


class FigureCheck(StoredModel):
    """One figure beside those of other hosts. `expected` is the tolerance limit, the least of a
    sound host (of times the most), `usual` their median. `distribution_free`: the limit is a
    figure of theirs. `p`: how often a sound host is that far off. `needs_another`: figures of this
    class stray so much from job to job that one job calls none low. `lost_ratio`: what it is worse
    than usual. `is_headline`: it is one of those that decide. Without a baseline all of it is
    None, and `share_of_limit` is what there is."""

    case: str
    title: str
    workload: str
    unit: str
    direction: Direction
    word: HostWord
    value: float
    is_headline: bool = False
    hosts: int = 0
    expected: float | None = None
    usual: float | None = None
    distribution_free: bool = False
    p: float | None = None
    needs_another: bool = False
    lost_ratio: float | None = None
    share_of_limit: float | None = None


class HostCheck(StoredModel):
    """A host beside a baseline of its model, or beside its limits alone. `word` is that of the
    headline figures; `hosts` those of the baseline without this one, 0: there is none. `error` is
    how often a sound host is called low, None where no baseline tells. `notes` say what could not
    be used, as sentences."""

    word: HostWord
    key: HostKey
    hosts: int = 0
    error: float | None = None
    figures: tuple[FigureCheck, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def headlines(self) -> tuple[FigureCheck, ...]:
        """The figures that decide."""
        return tuple(one for one in self.figures if one.is_headline)


class ReceiptItem(StoredModel):
    """Something to look at. `lost_ratio`: the share of the speed that it costs, None: unknown.
    `text` names it, `evidence` says how it is known, both as sentences. `is_fault` False: it may be
    as it should be, and nobody can tell yet."""

    text: str
    evidence: str
    lost_ratio: float | None = None
    is_fault: bool = True


class Receipt(StoredModel):
    """The answer to "is this host as it should be?": `answer` in a sentence, `word` for programs;
    `items` to look at: `faults` that cost performance, the one that costs most first, and behind
    them what costs nothing to speak of or may be as it should be. `notes` as in HostCheck."""

    word: HostWord
    answer: str
    faults: int = 0
    items: tuple[ReceiptItem, ...] = ()
    notes: tuple[str, ...] = ()
