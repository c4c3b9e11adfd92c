"""What a subsystem declares: one object each, in `services/<name>/subsystem.py`, or in a package
that somebody else installs (docs/architecture.md, "The registry").

To declare is cheap: a method imports what it needs when it is called, so listing the subsystems
imports neither limits nor charts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from hostbench.base.errors import shown

if TYPE_CHECKING:
    from hostbench.base.rating import Rating
    from hostbench.model.events import EndEvent, ParamValue, StartEvent
    from hostbench.model.host import HostInventory
    from hostbench.model.limit import Limit
    from hostbench.model.table import Direction

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
PORT_MOST = 65535


class Sensitivity(StrEnum):
    """What of a busy host changes a figure.

    `core`: nothing but having the core: a slice that nothing interrupted tells the truth. `host`:
    what its threads are kept waiting, and what they share with others. `waking`: any use of the
    CPUs, since its threads wait most of the time, and how soon they are woken depends on it.
    """

    CORE = "core"
    HOST = "host"
    WAKING = "waking"


@dataclass(frozen=True, kw_only=True)
class GuestSpread:
    """How figures of a class of resource spread on a virtual machine, as benchmarks/trust measured
    it; 0: unknown.

    `drift_ratio`: by how much all rates of a job lie off those of the jobs before and after it,
    which trials that follow each other within a minute cannot show (standard deviation of the
    logarithms); `time_drift_ratio`: the same of times, None: they drift as rates do.
    `half_width_ratio`: half the interval of 19 of 20 quiet cases is at most this share of the
    figure.
    """

    drift_ratio: float = 0.0
    time_drift_ratio: float | None = None
    half_width_ratio: float = 0.0

    def drift_of(self, direction: "Direction") -> float:
        """The drift of a figure: of a time, less is better."""
        if direction == "lower" and self.time_drift_ratio is not None:
            return self.time_drift_ratio
        return self.drift_ratio


@dataclass(frozen=True, kw_only=True)
class MethodChange:
    """From `version` of a program on, these workloads (by their names behind the dot; empty: all)
    measure in another way, for `why`, a clause such as `a read covers the whole array`. `factor`:
    what an older figure is to be multiplied with to stand beside a newer one; None: there is no
    such number, and the two are not compared."""

    version: str
    why: str
    workloads: tuple[str, ...] = ()
    factor: float | None = None

    def concerns(self, workload: str) -> bool:
        """Whether it changed the workload of this full name."""
        return not self.workloads or workload.partition(".")[2] in self.workloads


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """What `source` published of a metric on hardware like that of a case: from `least` to `most`,
    in the metric's unit."""

    metric: str
    least: float
    most: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Subsystem:
    """A subsystem. What is not overridden is what a subsystem has that knows nothing more: no
    limits, no ratings. A layer that can take more declares that in a base class of its own, which a
    subsystem may have beside this one: HasPeers (hostbench.programs.subsystem), HasChecks
    (hostbench.doctor.subsystem), HasReport (hostbench.report.subsystem).

    `name` stands before the dot of its workloads; `title` is its heading. `port` is where its
    service listens unless HOSTBENCH_LISTEN says otherwise. `directory` holds its program, None: the
    program is built in this checkout.

    `has_scratch`: its workloads measure files in the scratch directory. `has_far_ends`: they can
    have their other end on a second host, whose service opens sessions for them; so the service
    stands in the host's network, and the inventory has the host's interfaces. `has_devices`: it
    needs device drivers, which are started only for it, and the inventory has the devices.
    `is_quiet`: while it measures, samples are kept in memory, since to write them out would disturb
    what is measured. `target_half_width`: a case needs no further trial when half its interval is
    at most this share of the figure, unless its suite says otherwise. `guest_spread`: what its
    figures reach on a virtual machine. `sensitivity`: what of a busy host changes its figures.

    `headlines`: workloads whose figure says most of a host, by their names behind the dot, the
    foremost first; a line that sums the subsystem up shows a case of the first that was measured.

    `method_changes`: which of its older figures are not to be compared with newer ones as they are.
    """

    name: str
    title: str
    port: int
    directory: Path | None = None
    has_scratch: bool = False
    has_far_ends: bool = False
    has_devices: bool = False
    is_quiet: bool = False
    target_half_width: float = 0.02
    guest_spread: GuestSpread = GuestSpread()
    sensitivity: Sensitivity = Sensitivity.HOST
    headlines: tuple[str, ...] = ()
    method_changes: tuple[MethodChange, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a name or a port that no subsystem can have."""
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"{shown(self.name)} is not a name of a subsystem; give up to 32 lower-case "
                "letters, digits or underscores, a letter first"
            )
        if not 0 < self.port <= PORT_MOST:
            raise ValueError(f"{self.port} is not a port; give one from 1 to {PORT_MOST}")

    @property
    def program(self) -> str:
        """The file name of its benchmark program."""
        return f"{self.name}-bench"

    def load(self) -> None:
        """Import now what limits and peers import when they are called: a job should not wait for
        it, nor find other code than the job before it."""

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """Return the limits of one finished trial on `host` by metric, in the metric's unit; empty
        where none are known."""
        del host, start, end
        return {}

    def published(
        self, params: "Mapping[str, ParamValue]", start: "StartEvent"
    ) -> PublishedFigure | None:
        """Return the figure that was published of a case on such hardware, by the case's
        parameters and the start of a trial; None where none is known."""
        del params, start
        return None

    def ratings(self) -> "Sequence[Rating]":
        """Return the variables of the environment that its service checks when it starts."""
        return ()
