"""What a subsystem declares: one object, in `services/<name>/subsystem.py` or in another installed
package (docs/architecture.md, "The registry").

A declaration is cheap: a method imports what it needs when it is called, so listing the subsystems
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
    """What on a busy host changes a figure.

    `core`: only losing the core: a slice that nothing interrupted is correct. `host`: what keeps
    its threads waiting, and what they share with others. `waking`: any use of the CPUs, since its
    threads wait most of the time, and how soon they wake up depends on it.
    """

    CORE = "core"
    HOST = "host"
    WAKING = "waking"


@dataclass(frozen=True, kw_only=True)
class GuestSpread:
    """How figures of a subsystem spread on a virtual machine, as benchmarks/trust measured it; 0:
    unknown.

    - `drift_ratio`: the standard deviation, in logarithms, by which all rates of a job differ from
      those of the jobs before and after it. Trials within a minute of each other cannot show it.
    - `time_drift_ratio`: the same for times; None: they drift like rates.
    - `half_width_ratio`: for 19 of 20 quiet cases, half the interval is at most this share of the
      figure.
    """

    drift_ratio: float = 0.0
    time_drift_ratio: float | None = None
    half_width_ratio: float = 0.0

    def drift_of(self, direction: "Direction") -> float:
        """Return the drift of a figure. Direction "lower" is that of a time."""
        if direction == "lower" and self.time_drift_ratio is not None:
            return self.time_drift_ratio
        return self.drift_ratio


@dataclass(frozen=True, kw_only=True)
class MethodChange:
    """From `version` of a program on, these workloads measure in another way.

    - `why`: the change, as a clause such as `a read covers the whole array`.
    - `workloads`: their names after the dot; empty: all.
    - `factor`: multiply an older figure by it to compare it with a newer one; None: there is no
      such number, and the two are not compared.
    """

    version: str
    why: str
    workloads: tuple[str, ...] = ()
    factor: float | None = None

    def concerns(self, workload: str) -> bool:
        """Whether it changed the workload of this full name."""
        return not self.workloads or workload.partition(".")[2] in self.workloads


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """What `source` published about a metric on hardware like that of a case: from `least` to
    `most`, in the metric's unit."""

    metric: str
    least: float
    most: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Subsystem:
    """A subsystem. Without overrides it has no limits and no ratings.

    A layer that accepts more declares that in a base class of its own, which a subsystem may
    inherit, too: HasPeers (hostbench.programs.subsystem), HasChecks (hostbench.doctor.subsystem),
    HasReport (hostbench.report.subsystem).

    - `name`: stands before the dot of its workloads; `title`: its heading.
    - `port`: where its service listens unless HOSTBENCH_LISTEN says otherwise.
    - `directory`: holds its program; None: the program is built in this checkout.
    - `has_scratch`: its workloads measure files in the scratch directory.
    - `has_far_ends`: its workloads can have their other end on a second host, whose service opens
      sessions for them. So the service runs in the host's network, and the inventory has the host's
      interfaces.
    - `has_devices`: it needs device drivers, which are started for it only, and the inventory has
      the devices.
    - `is_quiet`: during a trial, samples stay in memory, because writing them would disturb the
      measurement.
    - `target_half_width`: a case needs no further trial when half its interval is at most this
      share of the figure, unless its suite says otherwise.
    - `guest_spread`: what its figures reach on a virtual machine.
    - `sensitivity`: what on a busy host changes its figures.
    - `headlines`: the workloads that describe a host best, by their names after the dot, the
      foremost first. A one-line summary shows a case of the first one that was measured.
    - `method_changes`: which of its older figures cannot be compared directly with newer ones.
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
        """Raise ValueError for an invalid name or port."""
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
        """Import now what limits and peers would import when called, so that a job neither waits
        for it nor finds other code than the job before it."""

    def limits(
        self, host: "HostInventory", start: "StartEvent", end: "EndEvent"
    ) -> dict[str, "Limit"]:
        """Return the limits of one finished trial on `host` by metric, in the metric's unit; empty
        if none are known."""
        del host, start, end
        return {}

    def published(
        self, params: "Mapping[str, ParamValue]", start: "StartEvent"
    ) -> PublishedFigure | None:
        """Return the figure that was published for a case on such hardware, by the case's
        parameters and the start of a trial; None if none is known."""
        del params, start
        return None

    def ratings(self) -> "Sequence[Rating]":
        """Return the environment variables that its service checks when it starts."""
        return ()
