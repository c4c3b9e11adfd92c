"""Baselines: what hosts of one model do, and how a host compares with them.

A baseline is one JSON file for each hardware model (docs/comparing.md). It holds the figures of
each host, so files can be merged and everything else in them can be computed again.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from hostbench.model.result import StoredModel
from hostbench.model.table import Direction

BASELINE_SCHEMA: Literal[1] = 1
KIND: Literal["hostbench.baseline"] = "hostbench.baseline"

# With fewer hosts, the spread between hosts of a model is unknown, and the limit is the reference.
HOSTS_LEAST = 5
# At most this many headline figures decide about a host. With more of them, each must be further
# off to count.
HEADLINES_MOST = 12
# At most one of a hundred sound hosts is called low.
REPORT_ERROR = 0.01
# At most five of a hundred sound hosts are called low or suspect.
SUSPECT_ERROR = 0.05
# The share of the other reported figures that chance may explain.
REST_ERROR = 0.05
# The tolerance limit: this share of all sound hosts lies above it, with this confidence.
TOLERANCE_COVERAGE = TOLERANCE_CONFIDENCE = 0.95

Positive = Annotated[float, Field(gt=0)]


class HostKey(StoredModel):
    """What hosts of one baseline have in common; None: unknown.

    - `memory`: the populated channels with their speed.
    - `virtualisation`: the product or instance type.
    - `is_guest`: the host runs on a hypervisor.
    - `protocol`: the protocol version of the benchmark programs.
    """

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
        """The key in words: `Xeon Platinum 8488C, stepping 8, 1 socket, 2 CPUs, 8 × 4800 MT/s,
        m7i.large`."""
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
    """A host: its jobs, oldest first, and facts that may distinguish two populations."""

    jobs: Annotated[tuple[BaselineJob, ...], Field(min_length=1)]
    facts: dict[str, str] = Field(default={})


class HostFigures(StoredModel):
    """A case on one host.

    `figures` and `limits` have one entry for each of the host's jobs: None where the job has no
    usable figure, or no limit. `median` is the median of `figures`.
    """

    figures: tuple[Positive | None, ...]
    limits: tuple[Positive | None, ...]
    median: Positive


class BaselineCase(StoredModel):
    """A case by host.

    `within` is the variance of the logarithms of one host's jobs; `between` is the variance of
    hosts beyond that. None: too few jobs, or too few hosts.
    """

    title: str
    workload: str
    unit: str
    direction: Direction
    tolerance: float
    hosts: Annotated[dict[str, HostFigures], Field(min_length=1)]
    within: float | None = None
    between: float | None = None


class Baseline(StoredModel):
    """The file. The names of hosts are hashes of their machine ids; the names of cases are the
    cases' hashes."""

    schema_version: Literal[1] = Field(alias="schema", default=BASELINE_SCHEMA)
    kind: Literal["hostbench.baseline"] = KIND
    key: HostKey
    hosts: Annotated[dict[str, BaselineHost], Field(min_length=1)]
    cases: dict[str, BaselineCase]


class BaselineFile(StoredModel):
    """A baseline file in short: its model, `hosts`, `jobs` and `cases`; or `error`, the reason why
    it is not used."""

    file: str
    key: HostKey | None = None
    hosts: int = 0
    jobs: int = 0
    cases: int = 0
    error: str | None = None


class BaselineList(StoredModel):
    """The baselines that checks find, and the folders that they search."""

    baselines: tuple[BaselineFile, ...]
    folders: tuple[str, ...]


class MeasuredFigure(StoredModel):
    """The figure of a case in one job. `limit`: the most that the hardware can do; for a time, the
    least."""

    title: str
    workload: str
    unit: str
    direction: Direction
    value: Positive
    limit: Positive | None = None
    tolerance: float = 0.02


class MeasuredJob(StoredModel):
    """What a baseline takes from a job, and what a check compares with a baseline. `machine`
    identifies the host."""

    job: str
    machine: str
    digest: str | None
    created_unix_s: float
    versions: dict[str, str]
    key: HostKey
    facts: dict[str, str]
    figures: dict[str, MeasuredFigure]


class HostWord(StrEnum):
    """How a host, or one of its figures, compares with sound hosts; the worst first.

    - low: further off than 1 in 100 sound hosts.
    - suspect: further off than 1 in 20.
    - no reference: unknown.
    - as expected: no further off than sound hosts are.
    """

    LOW = "low"
    SUSPECT = "suspect"
    NO_REFERENCE = "no reference"
    AS_EXPECTED = "as expected"


class FigureCheck(StoredModel):
    """One figure compared with those of other hosts. Without a baseline, `share_of_limit` is the
    only reference, and the other references are None.

    - `is_headline`: it is one of the figures that decide.
    - `expected`: the tolerance limit, the least value of a sound host (for times: the largest).
    - `usual`: the median of the other hosts.
    - `distribution_free`: the limit is itself the figure of one of them.
    - `p`: how often a sound host is this far off.
    - `needs_another`: figures of this class vary so much between jobs that a single job calls none
      of them low.
    - `lost_ratio`: by which share it is worse than usual.
    """

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
    """A host compared with a baseline of its model, or with its limits alone.

    - `word`: the result of the headline figures.
    - `hosts`: the hosts of the baseline without this one; 0: there is none.
    - `error`: how often a sound host is called low; None without a baseline.
    - `notes`: what could not be used, as sentences.
    """

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
    """Something to look at.

    `text` names it and `evidence` says how it is known, both as sentences. `lost_ratio` is the
    share of the speed that it costs; None: unknown. `is_fault` False: it may be as it should be,
    which is still unknown.
    """

    text: str
    evidence: str
    lost_ratio: float | None = None
    is_fault: bool = True


class Receipt(StoredModel):
    """The answer to "is this host as it should be?".

    - `answer`: the answer as a sentence; `word`: the same for programs.
    - `items`: what to look at. The first `faults` of them cost performance, the costliest first.
      The others cost almost nothing, or may be as they should be.
    - `notes`: see HostCheck.
    """

    word: HostWord
    answer: str
    faults: int = 0
    items: tuple[ReceiptItem, ...] = ()
    notes: tuple[str, ...] = ()
